"""Ways to end a turn of the basic game (*ends*): the ends that each roll offers, and the position after each end.

For speed, the solver has its own implementation of the rules. This module implements rulings R2, R3 and R5
to R8. The arrays of `positions.Board` implement R3, R4, R6, R9 and R10. Tests compare the solver with `core.engine` for
every roll.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from wotd_env.core.actions import Action
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.dice import COUNTS, EQUILIBRIUM, NUM_ROLLS, Roll, keep_index
from wotd_env.core.rules import DICE, DRAGON, PATHS, REROLLS
from wotd_env.planning.turn import LANES, Rows, emit_largest, expect, largest, reroll, row_operation
from wotd_env.solver.positions import NONE, Board, Codes, index_of, rank_with, sort_codes


class End(IntEnum):
    """The ways to end a turn. Names with `_ON` need an offset, e.g. SWAP_ON + 2 is a swap on path 2."""

    MOVE_ON = 0  # + 5 * path + dice - 1: one piece moves (R3)
    PERFECTION_ON = 25  # + path: one piece moves by five dice, and the player takes the extra turn (R8)
    EQUILIBRIUM = 30  # each of the player's pieces that can move advances by one space (R7)
    PASS = 31  # no piece moves (R5)
    SWAP_ON = 32  # + path: two pieces on the path are swapped (R6)


ENDS = End.SWAP_ON + PATHS
PROGRESS = int(End.PASS)  # ends below this number make progress; other ends lead to the same family
AGAIN = np.arange(ENDS) // PATHS == End.PERFECTION_ON // PATHS  # (37,): whether an extra turn follows (R8)
NEVER = -4.0  # the value of an impossible end; possible ends have values in [-1, 1]

FOUR_DRAGONS = np.array([keep_index([path] + [DRAGON] * (DICE - 1)) for path in range(PATHS)], np.uint8)
"""uint8 (5,): for each path, the roll of four dragons and the path's element (R6)."""
FIVE_DRAGONS = keep_index([DRAGON] * DICE)  # the roll that offers swaps on all paths, but no move (R6)


def _moves() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the ends of each roll except passes and swaps, uint8 (252, 4), and the number of ends, uint8 (252,)."""
    moves = np.zeros((NUM_ROLLS, 4), np.uint8)
    size = np.zeros(NUM_ROLLS, np.uint8)
    for roll, counts in enumerate(COUNTS[:NUM_ROLLS, :PATHS].tolist()):
        ends = [End.MOVE_ON + DICE * path + dice - 1 for path, dice in enumerate(counts) if dice]  # R3
        if roll == EQUILIBRIUM:  # R7
            ends = [int(End.EQUILIBRIUM)]
        if DICE in counts:  # R8
            ends.append(End.PERFECTION_ON + counts.index(DICE))
        moves[roll, : len(ends)] = ends
        size[roll] = len(ends)
    return moves, size


MOVES, NUM_MOVES = _moves()


def ends_after(rolls: NDArray[np.integer], actions: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the end of each turn, given its last roll and its action in phase MOVE (R3, R5, R6, R7).

    If the player takes an extra turn (R8), the caller must convert the end with `perfect`.
    """
    path = np.clip(actions - Action.MOVE_ON, 0, PATHS - 1)
    return np.select(
        [actions >= Action.FIRST_SWAP, actions == Action.PASS, actions == Action.EQUILIBRIUM],
        [End.SWAP_ON + actions - Action.FIRST_SWAP, End.PASS, End.EQUILIBRIUM],
        End.MOVE_ON + DICE * path + COUNTS[rolls, path].astype(np.int64) - 1,
    )


def perfect(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Convert each end of a move by five dice (`MOVE_ON`) to the same end with an extra turn (`PERFECTION_ON`, R8)."""
    return End.PERFECTION_ON + (ends - End.MOVE_ON) // DICE


def _emit_move_or_pass(builder: Any, rows: list[Any]) -> Any:
    """Return the value of the best move. If no move is possible, return the value of the pass (R5)."""
    otherwise, *moves = rows
    move = emit_largest(builder, moves)
    possible = builder.fcmp_ordered(">", move, ir.Constant(move.type, [NEVER / 2] * LANES))
    return builder.select(possible, move, otherwise)


move_or_pass = row_operation(_emit_move_or_pass)


@kernel
def value_turns(rows: Rows, first: Any) -> None:
    """Set row NOTHING (see `planning.turn`) to the values before the first roll.

    Before the call, row `first + end` must have the values of each end.
    """
    stay = first + np.uint64(End.PASS)
    for roll in range(NUM_ROLLS):
        moves = MOVES[roll]
        a, b = first + moves[0], first + moves[1]
        if NUM_MOVES[roll] == 0:
            largest(rows, roll, (stay,))
        elif NUM_MOVES[roll] == 1:
            move_or_pass(rows, roll, (stay, a))
        elif NUM_MOVES[roll] == 2:
            move_or_pass(rows, roll, (stay, a, b))
        elif NUM_MOVES[roll] == 3:
            move_or_pass(rows, roll, (stay, a, b, first + moves[2]))
        else:
            move_or_pass(rows, roll, (stay, a, b, first + moves[2], first + moves[3]))
    for path in range(PATHS):
        swap = first + np.uint64(End.SWAP_ON + path)
        largest(rows, FOUR_DRAGONS[path], (np.uint64(FOUR_DRAGONS[path]), swap))
        largest(rows, FIVE_DRAGONS, (np.uint64(FIVE_DRAGONS), swap))
    for _ in range(REROLLS):  # R2
        reroll(rows)
    expect(rows)


@kernel
def best_end(values: Any, roll: Roll) -> Any:
    """Return the best end that a roll offers, given the value of each end, (37,). Ties go to the lowest end."""
    chosen, most = np.int64(End.PASS), NEVER / 2
    for i in range(NUM_MOVES[roll]):
        end = np.int64(MOVES[roll, i])
        if values[end] > most:
            chosen, most = end, values[end]
    if chosen == End.PASS:  # R5
        most = values[chosen]
    for path in range(PATHS):
        end = np.int64(End.SWAP_ON + path)
        if (roll == FOUR_DRAGONS[path] or roll == FIVE_DRAGONS) and values[end] > most:
            chosen, most = end, values[end]
    return chosen


class Positions(NamedTuple):
    """Positions of one layer, before the first roll of a turn."""

    codes: NDArray[np.uint64]  # (N, 5): the codes of each position, ascending
    mirrors: NDArray[np.uint64]  # (N, 5): the codes of each mirror, ascending
    partners: NDArray[np.uint64]  # (N, 5): for each code, the column of the same path in `mirrors`
    over: NDArray[np.bool_]  # (N,)


@inlined
def write_indices(board: Board, base: Any, total: Any, positions: Positions, other: Any, power: Any) -> None:
    """Write the index of the position after each end, for N positions of one layer. `total` is the layer, a uint64.

    The index is `base[layer]` plus the rank of the position after the end. Impossible ends have the index -1.

    `other`, int64 (PROGRESS or more, N), gets the indices after ends that make progress and use no power. If
    `power` is a `PowerBlock`, the function fills its arrays, and `other` also gets the indices after passes and swaps.

    The position after an end is seen from the player who moves next. In `other`, the same player moves next only after
    a perfection with the extra turn (R8).
    """
    # codes after an equilibrium: row 0 for `other`, rows 1 to 3 for `again`, `jumped` and `jumped_again` of `power`
    changed = np.empty((4, PATHS), np.uint64)
    other[:] = -1
    if power is not None:
        for indices in (power.again, power.jumped, power.jumped_again):
            indices[:] = -1
    for i in range(positions.over.size):
        if positions.over[i]:
            continue
        position, mirror = positions.codes[i], positions.mirrors[i]
        jumps = False
        for path in range(PATHS):
            own, partner, at = position[path], positions.partners[i, path], np.uint64(path)
            for dice in range(1, DICE + 1):
                end, layer = np.uint64(End.MOVE_ON + DICE * path + dice - 1), total + np.uint64(dice)
                code = np.uint64(board.after[own, dice])  # R3
                if code != NONE:
                    flipped = np.uint64(board.flip[code])
                    other[end, i] = base[layer] + rank_with(board, layer, mirror, partner, flipped)
                    if power is not None:
                        power.again[end, i] = base[layer] + rank_with(board, layer, position, at, code)
                    if dice == DICE:  # R8
                        perfection = np.uint64(End.PERFECTION_ON + path)
                        other[perfection, i] = base[layer] + rank_with(board, layer, position, at, code)
                if power is not None:
                    code = np.uint64(board.jumped[own, dice])  # R12
                    if code != NONE:
                        layer = total + np.uint64(board.progress[code]) - np.uint64(board.progress[own])
                        flipped = np.uint64(board.flip[code])
                        power.jumped[end, i] = base[layer] + rank_with(board, layer, mirror, partner, flipped)
                        mine = base[layer] + rank_with(board, layer, position, at, code)
                        power.jumped_again[end, i] = mine
                        if dice == DICE:  # R8
                            power.jumped[np.uint64(End.PERFECTION_ON + path), i] = mine
            step = np.uint64(board.after[own, 1])  # R7
            changed[0, path] = board.flip[own if step == NONE else step]
            if power is not None:
                leap = np.uint64(board.jumped[own, 1]) if step == NONE else step
                jumps |= board.jumped[own, 1] != NONE
                leap = own if leap == NONE else leap
                changed[1, path] = own if step == NONE else step
                changed[2, path], changed[3, path] = board.flip[leap], leap
                code = np.uint64(board.swapped[own, 0])  # R6
                if code != NONE:
                    swap, flipped = np.uint64(End.SWAP_ON + path), np.uint64(board.flip[code])
                    other[swap, i] = base[total] + rank_with(board, total, mirror, partner, flipped)
                    power.again[swap, i] = base[total] + rank_with(board, total, position, at, code)
        everyone = np.uint64(End.EQUILIBRIUM)
        layer = sort_codes(board, changed[0])
        if layer != total:
            other[everyone, i] = index_of(board, base, layer, changed[0])
            if power is not None:
                sort_codes(board, changed[1])
                power.again[everyone, i] = index_of(board, base, layer, changed[1])
        if power is not None:
            if jumps:
                layer = sort_codes(board, changed[2])
                power.jumped[everyone, i] = index_of(board, base, layer, changed[2])
            other[np.uint64(End.PASS), i] = index_of(board, base, total, mirror)  # R5
            power.again[np.uint64(End.PASS), i] = index_of(board, base, total, position)


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
