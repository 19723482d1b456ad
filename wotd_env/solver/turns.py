"""Describe a turn of the basic game: its possible ends, the rolls that offer each end, and the positions after it.

For speed the solver implements the rules of a turn a second time. This module implements R2, R3 and R5 to R8, and the
arrays of `positions.Board` implement R3, R4, R6, R9 and R10. The tests compare this implementation with `core.engine`
for every roll.
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
    """The ways to end a turn. A name with `_ON` stands for the first of several ends; its comment gives the offsets."""

    MOVE_ON = 0  # + 5 * path + dice - 1: one piece moves (R3)
    PERFECTION_ON = 25  # + path: one piece moves by five dice, and the player takes the extra turn (R8)
    EQUILIBRIUM = 30  # every piece that can move advances by one space (R7)
    PASS = 31  # no piece moves (R5)
    SWAP_ON = 32  # + path: the pieces of the path are swapped (R6)


ENDS = End.SWAP_ON + PATHS  # the number of ends
PROGRESS = int(End.PASS)  # ends below this number make progress; all other ends stay in the family
AGAIN = np.arange(ENDS) // PATHS == End.PERFECTION_ON // PATHS  # (37,): whether an extra turn follows (R8)
NEVER = -4.0  # the value of an impossible end; possible ends have values in [-1, 1]

FOUR_DRAGONS = np.array([keep_index([path] + [DRAGON] * (DICE - 1)) for path in range(PATHS)], np.uint8)
"""uint8 (5,): for each path, the roll of four dragons and the path's element, which offers a swap on the path (R6)."""
FIVE_DRAGONS = keep_index([DRAGON] * DICE)  # the roll that offers a swap on every path, and no moves (R6)


def _moves() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the moves of each roll as ends, uint8 (252, 4), and the number of these moves, uint8 (252,)."""
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

    Every move by five dice gets an end `MOVE_ON`. If the player takes the extra turn, convert this end with `perfect`.
    """
    path = np.clip(actions - Action.MOVE_ON, 0, PATHS - 1)
    return np.select(
        [actions >= Action.FIRST_SWAP, actions == Action.PASS, actions == Action.EQUILIBRIUM],
        [End.SWAP_ON + actions - Action.FIRST_SWAP, End.PASS, End.EQUILIBRIUM],
        End.MOVE_ON + DICE * path + COUNTS[rolls, path].astype(np.int64) - 1,
    )


def perfect(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Convert the end `MOVE_ON` of each move by five dice into the end `PERFECTION_ON` on the same path (R8)."""
    return End.PERFECTION_ON + (ends - End.MOVE_ON) // DICE


def _emit_move_or_pass(builder: Any, rows: list[Any]) -> Any:
    """Return the value of the best move in each lane; if no move is possible, the value of the pass, rows[0] (R5)."""
    otherwise, *moves = rows
    move = emit_largest(builder, moves)
    possible = builder.fcmp_ordered(">", move, ir.Constant(move.type, [NEVER / 2] * LANES))
    return builder.select(possible, move, otherwise)


move_or_pass = row_operation(_emit_move_or_pass)


@kernel
def value_turns(rows: Rows, first: Any) -> None:
    """Write to row NOTHING the values of turns before their first roll. The values of ends start in row `first`."""
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
    """Return the best end that a roll offers, given the values of all ends, (37,). Ties go to the smaller `End`."""
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
    mirrors: NDArray[np.uint64]  # (N, 5): the codes as the next player sees them, ascending
    partners: NDArray[np.uint64]  # (N, 5): for each code, the index of the same path in the mirror
    over: NDArray[np.bool_]  # (N,): whether the game has ended in this position


@inlined
def write_indices(board: Board, base: Any, total: Any, positions: Positions, other: Any, power: Any) -> None:
    """Write the index of the position after each end, for N positions of layer `total`, a uint64.

    The index is that of the position as seen by the player who moves after the end. After a perfection with the extra
    turn (R8), this is the same player, otherwise the next player. The index -1 stands for an impossible end.

    The argument `other`, an int64 array with at least PROGRESS rows and N columns, gets the indices after ends that
    make progress without a power. `power` is a `PowerBlock` or None. If it is a `PowerBlock`, `other` also gets the
    indices after passes and swaps, and the arrays of `power` get the indices that the class `PowerBlock` describes.
    """
    # the codes after an equilibrium: row k is for the k-th of the arrays other, again, jumped and jumped_again
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
    """Return whether the game has ended, which means that a player has all pieces on numbered spaces (R9)."""
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
