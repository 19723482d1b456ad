"""A turn of the two-player basic game: the ways in which it may end, the rolls that offer them, and where they lead.

What the solver knows of the rules of a turn stands here (R2, R3, R5, R6, R7, R8) and in the arrays of
`positions.Board`, which say what a piece may do on its path and what a finished game is (R3, R4, R6, R9, R10).
`families` works out by it the turns of many positions side by side, and `evaluate` those of a policy. The rules
themselves are in `core.engine`, and the tests ask it for every roll whether it offers the same ends.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from wotd_env.core.actions import Action
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.dice import COUNTS, EQUILIBRIUM, NUM_ROLLS, Roll, keep_number
from wotd_env.core.rules import DICE, DRAGON, PATHS, REROLLS
from wotd_env.planning.turn import LANES, Rows, expect, largest, reroll, row_operation
from wotd_env.solver.positions import NONE, Bases, Board, Codes, index_of, number_with

__all__ = ["AGAIN", "ENDS", "NEVER", "PROGRESS", "End"]


class End(IntEnum):
    """The numbers of the ways in which a turn may end; a path is added to those that end in `_ON`."""

    MOVE_ON = 0
    """+ 5 * path + dice - 1: one piece moves, and the other player is to move (R3)"""
    PERFECTION_ON = 25
    """+ path: one piece moves by five dice, and the extra turn is taken (R8)"""
    EQUILIBRIUM = 30
    """every piece that can advances (R7)"""
    PASS = 31
    """nothing moves (R5)"""
    SWAP_ON = 32
    """+ path: the pieces of the path are swapped (R6)"""


ENDS = End.SWAP_ON + PATHS
"""The number of ends."""
PROGRESS = int(End.PASS)
"""The ends below this one make progress; the others stay in the layer of the position, and in its family."""
AGAIN = np.arange(ENDS) // PATHS == End.PERFECTION_ON // PATHS
"""bool (37,): whether the same player is to move after an end (R8)."""
NEVER = -4.0
"""The value of an end that is not possible; true values are in [-1, 1]."""


FOUR_DRAGONS = np.array([keep_number([path] + [DRAGON] * (DICE - 1)) for path in range(PATHS)], np.uint8)
"""uint8 (5,): the rolls that offer a swap, on the path of the fifth die (R6)."""
FIVE_DRAGONS = keep_number([DRAGON] * DICE)
"""The roll that offers a swap on any path, and no move (R6)."""


def _moves() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the moves that rolls offer, one of which must be made if any is possible (R5).

    Returns:
        uint8 (252, 4), the ends that are moves of every roll, and uint8 (252,), how many they are.
    """
    moves = np.zeros((NUM_ROLLS, 4), np.uint8)
    size = np.zeros(NUM_ROLLS, np.uint8)
    for roll, counts in enumerate(COUNTS[:NUM_ROLLS, :PATHS].tolist()):
        if roll == EQUILIBRIUM:  # R7
            ends = [int(End.EQUILIBRIUM)]
        else:  # R3
            ends = [End.MOVE_ON + DICE * path + dice - 1 for path, dice in enumerate(counts) if dice]
        if DICE in counts:  # R8
            ends.append(End.PERFECTION_ON + counts.index(DICE))
        moves[roll, : len(ends)] = ends
        size[roll] = len(ends)
    return moves, size


MOVES, NUM_MOVES = _moves()


def ends_after(rolls: NDArray[np.integer], actions: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the ends to which actions of phase MOVE lead with rolls, where no extra turn follows (R3, R5, R6, R7)."""
    path = np.clip(actions - Action.MOVE_ON, 0, PATHS - 1)
    return np.select(
        [actions >= Action.FIRST_SWAP, actions == Action.PASS, actions == Action.EQUILIBRIUM],
        [End.SWAP_ON + actions - Action.FIRST_SWAP, End.PASS, End.EQUILIBRIUM],
        End.MOVE_ON + DICE * path + COUNTS[rolls, path].astype(np.int64) - 1,
    )


def perfect(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what moves by five dice become if the extra turn is taken (R8)."""
    return End.PERFECTION_ON + (ends - End.MOVE_ON) // DICE


# -------------------------------------------------------------------------------------------------------------- kernels


def _emit_move_or_pass(builder: Any, rows: list[Any]) -> Any:
    """Return the largest of the rows but the first, and the first where none of them is possible (R5)."""
    otherwise, *moves = rows
    while len(moves) > 1:
        a, b = moves.pop(0), moves.pop(0)
        moves.append(builder.select(builder.fcmp_ordered(">", a, b), a, b))
    possible = builder.fcmp_ordered(">", moves[0], ir.Constant(moves[0].type, [NEVER / 2] * LANES))
    return builder.select(possible, moves[0], otherwise)


move_or_pass = row_operation(_emit_move_or_pass)


@kernel
def work_out(rows: Rows, first: Any) -> None:
    """Work out the best turns from the values of their ends, which stand from row `first` on.

    The values of the turns are in row NOTHING then.
    """
    stay = first + np.uint64(End.PASS)
    for roll in range(NUM_ROLLS):
        moves = MOVES[roll]
        a, b = first + moves[0], first + moves[1]
        if NUM_MOVES[roll] == 1:
            move_or_pass(rows, roll, (stay, a))
        elif NUM_MOVES[roll] == 2:
            move_or_pass(rows, roll, (stay, a, b))
        elif NUM_MOVES[roll] == 3:
            move_or_pass(rows, roll, (stay, a, b, first + moves[2]))
        elif NUM_MOVES[roll] == 4:
            move_or_pass(rows, roll, (stay, a, b, first + moves[2], first + moves[3]))
    swaps = first + np.uint64(End.SWAP_ON)
    a, b, c, d, e = (
        swaps,
        swaps + np.uint64(1),
        swaps + np.uint64(2),
        swaps + np.uint64(3),
        swaps + np.uint64(4),
    )
    for path in range(PATHS):
        roll = FOUR_DRAGONS[path]
        largest(rows, roll, (np.uint64(roll), swaps + np.uint64(path)))
    largest(rows, FIVE_DRAGONS, (stay, a, b, c, d, e))
    for _ in range(REROLLS):  # R2
        reroll(rows)
    expect(rows)


@kernel
def best_end(values: Any, roll: Roll) -> Any:
    """Return the best of the ends that a roll offers by their values, (37,); of equals the one offered first."""
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


@inlined
def write_indices(
    board: Board,
    codes: Any,
    mirrors: Any,
    partners: Any,
    over: Any,
    total: Any,
    base: Bases,
    advanced: Codes,
    indices: Any,
) -> None:
    """Write where in the values the ends of turns lead that make progress.

    After an end the other player is to move, and sees the mirror of what the mover leaves, unless the mover has an
    extra turn.

    Args:
        board: for the board's positions.
        codes: uint64 (n, 5), those of positions of one layer before a turn, each in ascending order.
        mirrors: uint64 (n, 5), those of their mirrors, likewise.
        partners: uint64 (n, 5), for each of the codes where the same path is among those of the mirror.
        over: bool (n,), whether the game has ended.
        total: the layer.
        base: where in the values the layers begin.
        advanced: to work in.
        indices: int64 (PROGRESS or more, n or more), is written; -1 for an end that is not possible.
    """
    indices[:] = -1
    for i in range(over.size):
        if over[i]:
            continue
        position, mirror = codes[i], mirrors[i]
        # The layer after an equilibrium.
        advance: Any = np.uint64(total)
        for path in range(PATHS):
            own, partner = position[path], partners[i, path]
            after = board.after[own]
            for dice in range(1, DICE + 1):  # R3
                code = np.uint64(after[dice])
                if code != NONE:
                    end = np.uint64(End.MOVE_ON + DICE * path + dice - 1)
                    layer = np.uint64(total + dice)
                    flipped = np.uint64(board.flip[code])
                    indices[end, i] = base[layer] + number_with(board, layer, mirror, partner, flipped)
            # R8: the same move by five dice, with the player who made it to move again.
            code = np.uint64(after[DICE])
            if code != NONE:
                end = np.uint64(End.PERFECTION_ON + path)
                layer = np.uint64(total + DICE)
                indices[end, i] = base[layer] + number_with(board, layer, position, np.uint64(path), code)
            # R7: every piece that can goes one space. These are the codes of the mirror afterwards.
            code = np.uint64(after[1])
            if code == NONE:
                code = own
            else:
                advance += np.uint64(1)
            code = np.uint64(board.flip[code])
            k = path
            while k > 0 and advanced[k - 1] > code:
                advanced[k] = advanced[k - 1]
                k -= 1
            advanced[k] = code
        if advance != total:
            end = np.uint64(End.EQUILIBRIUM)
            indices[end, i] = index_of(board, advanced, advance, base)


@inlined
def is_over(board: Board, codes: Codes) -> Any:
    """Return whether the game has ended: one of the players has all pieces on numbered spaces (R9)."""
    over = 3
    for path in range(PATHS):
        over &= board.numbered[codes[path]]
    return over != 0


@kernel
def final_result(board: Board, codes: Codes) -> Any:
    """Return the result of a finished game for the player to move (R10)."""
    lead = 0
    for path in range(PATHS):
        lead += board.standing[codes[path]]
    return np.sign(lead)
