"""Apply the ends of a turn to positions, and compute the value of a turn from the values of its ends.

`planning.ends` has the ends that each roll offers. For speed, this module and the arrays of `positions.Board`
implement the effects of ends separately from `core.engine`. Tests compare both.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.rules import DICE, PATHS, REROLLS
from wotd_env.planning.ends import Ends, value_rolls
from wotd_env.planning.turn import Rows, expect, reroll
from wotd_env.solver.positions import NONE, Board, Codes, index_of, rank_with, sort_codes


class End(IntEnum):
    """The numbers of ends in `planning.ends` without powers. End `5 * path + dice - 1` is a move."""

    EQUILIBRIUM = 25
    PASS = 26
    FEAR = 27  # impossible without powers; with the power fear, a pass that uses it
    SWAP_ON = 28  # + path with two players, + 3 * path + pair with three players


ENDS = End.SWAP_ON + PATHS  # number of ends with two players
PROGRESS = int(End.PASS)  # ends below this number make progress; other ends lead to the same family
NEVER = -np.inf  # the value of an impossible end


@kernel
def value_turns(offers: Any, rows: Rows, first: Any) -> None:
    """Set row NOTHING (see `planning.turn`) to the values before the first roll.

    Before the call, row `first + end` must have the values of each end. `offers` is a field of `Ends`.
    """
    value_rolls(offers, PROGRESS, rows, 0, first)
    value_rerolls(rows)


@kernel
def value_rerolls(rows: Rows) -> None:
    """Set row NOTHING to the values before the first roll, given the values of stopping with each roll (R2)."""
    for _ in range(REROLLS):
        reroll(rows)
    expect(rows)


class Positions(NamedTuple):
    """Positions of one layer, before the first roll of a turn."""

    codes: NDArray[np.uint64]  # (N, 5): the codes of each position, ascending
    mirrors: NDArray[np.uint64]  # (N, 5): the codes of each mirror, ascending
    partners: NDArray[np.uint64]  # (N, 5): for each code, the column of the same path in `mirrors`
    over: NDArray[np.bool_]  # (N,)


OTHER, AGAIN, JUMPED, JUMPED_AGAIN = range(4)
"""The first index of the array that `write_indices` fills. `OTHER`: the other player moves next. `AGAIN`: the same
player moves next. `JUMPED`, `JUMPED_AGAIN`: the same after an end with a jump (power anxiety)."""


@inlined
def write_indices(board: Board, ends: Ends, base: Any, total: Any, positions: Positions, after: Any) -> None:
    """Write the index of the position after each end, for N positions of one layer. `total` is the layer, a uint64.

    The index is `base[layer]` plus the rank of the position after the end, seen from the player who moves next.
    Impossible ends have the index -1.

    `after` is int64 (4, ENDS, N) with powers. Without powers, it is int64 (2, PROGRESS or more, N). Then it gets no
    indices of passes and swaps, and no indices for AGAIN after ends that earn no extra turn.
    """
    powers = after.shape[0] > JUMPED
    changed = np.empty((4, PATHS), np.uint64)  # codes after an equilibrium, by the first index of `after`
    after[:] = -1
    for i in range(positions.over.size):
        if positions.over[i]:
            continue
        position, mirror, partners = positions.codes[i], positions.mirrors[i], positions.partners[i]
        jumps = False
        for path in range(PATHS):
            own, partner, at = position[path], partners[path], np.uint64(path)
            for dice in range(1, DICE + 1):
                end, layer = np.uint64(DICE * path + dice - 1), total + np.uint64(dice)
                code = np.uint64(board.after[own, dice])
                if code != NONE:
                    flipped = np.uint64(board.flip[code])
                    after[OTHER, end, i] = base[layer] + rank_with(board, layer, mirror, partner, flipped)
                    if powers or ends.perfection[end]:
                        after[AGAIN, end, i] = base[layer] + rank_with(board, layer, position, at, code)
                if powers:
                    code = np.uint64(board.jumped[own, dice])
                    if code != NONE:
                        layer = total + np.uint64(board.progress[code]) - np.uint64(board.progress[own])
                        flipped = np.uint64(board.flip[code])
                        after[JUMPED, end, i] = base[layer] + rank_with(
                            board, layer, mirror, partner, flipped
                        )
                        after[JUMPED_AGAIN, end, i] = base[layer] + rank_with(
                            board, layer, position, at, code
                        )
            step = np.uint64(board.after[own, 1])  # R7
            changed[OTHER, path] = board.flip[own if step == NONE else step]
            if powers:
                leap = np.uint64(board.jumped[own, 1]) if step == NONE else step  # R12
                jumps |= board.jumped[own, 1] != NONE
                leap = own if leap == NONE else leap
                changed[AGAIN, path] = own if step == NONE else step
                changed[JUMPED, path], changed[JUMPED_AGAIN, path] = board.flip[leap], leap
                code = np.uint64(board.swapped[own, 0])
                if code != NONE:
                    swap, flipped = np.uint64(End.SWAP_ON + path), np.uint64(board.flip[code])
                    after[OTHER, swap, i] = base[total] + rank_with(board, total, mirror, partner, flipped)
                    after[AGAIN, swap, i] = base[total] + rank_with(board, total, position, at, code)
        if powers:
            after[OTHER, End.PASS, i] = index_of(board, base, total, mirror)
            after[AGAIN, End.PASS, i] = index_of(board, base, total, position)
        for kind in range(after.shape[0]):
            if kind == OTHER or (powers and (kind == AGAIN or jumps)):
                layer = sort_codes(board, changed[kind])
                if layer != total:
                    after[kind, End.EQUILIBRIUM, i] = index_of(board, base, layer, changed[kind])


@inlined
def is_over(board: Board, codes: Codes) -> Any:
    """Return whether the game is over: a player has all pieces on numbered spaces (R9)."""
    over = 7  # bit k: on all paths so far, the piece of player k is on a numbered space
    for path in range(PATHS):
        over &= board.numbered[codes[path]]
    return over != 0


@kernel
def final_result(board: Board, codes: Codes) -> Any:
    """Return the result of a finished game of two players for the player to move: 1, 0 or -1 (R10)."""
    lead = 0
    for path in range(PATHS):
        lead += board.standing[codes[path], 0] - board.standing[codes[path], 1]
    return np.sign(lead)
