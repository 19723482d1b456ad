"""Compute the values of turns for families of positions, in the basic game and with powers (R11 to R13).

With powers, a position also contains the powers that each player still holds. A *section* has the values of all
positions for given powers of the player to move and of the other player. A used power never returns, so the sections
with fewer powers are solved first. If the players hold different powers, there are two sections that differ only in the
player to move. These two sections are solved together, because passes and swaps lead from each section to the other.
The *owner*, 0 or 1, selects one of the two sections.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from wotd_env.core.compilation import kernel
from wotd_env.core.dice import COUNTS, EQUILIBRIUM, MISSING, NUM_ROLLS
from wotd_env.core.rules import DICE, DRAGON, PATHS, REROLLS, Power
from wotd_env.planning.turn import LANES, Rows, emit_largest, expect, largest, reroll, row_operation
from wotd_env.solver import turns
from wotd_env.solver.families import IMPOSSIBLE, JUMPED, REBORN, STAYS, TIGER, USED, Block, first_end
from wotd_env.solver.turns import ENDS, FIVE_DRAGONS, FOUR_DRAGONS, MOVES, NEVER, NUM_MOVES, PROGRESS, End


class Sources(NamedTuple):
    """The values after a turn, float (positions,): one array for each combination of power use and next player."""

    powers: int  # the powers that the player holds before the turn, as bits
    kept_other: NDArray[np.floating[Any]]
    kept_again: NDArray[np.floating[Any]]
    used_other: NDArray[np.floating[Any]]
    used_again: NDArray[np.floating[Any]]


class PowerBlock(NamedTuple):
    """The memory that one thread needs for powers, in addition to its `Block`."""

    again: NDArray[np.int64]  # (ENDS, LANES): like `Block.indices`, but the same player moves again
    jumped: NDArray[np.int64]  # (PROGRESS, LANES): like `Block.indices`, but after moves with jumps
    jumped_again: NDArray[np.int64]  # (PROGRESS, LANES): like `jumped`, but the same player moves again


def new_power_block() -> PowerBlock:
    """Return an empty `PowerBlock`."""
    return PowerBlock(*(np.zeros((count, LANES), np.int64) for count in (ENDS, PROGRESS, PROGRESS)))


def _power_ends() -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the ends that each roll offers with the power dragon (R13), and the ends with the power anxiety (R12).

    For each power, there are two arrays: the ends, (252, 12), and the number of ends, (252,).
    """
    table, size = np.zeros((2, NUM_ROLLS, 12), np.uint8), np.zeros((2, NUM_ROLLS), np.uint8)
    for roll, counts in enumerate(COUNTS[:NUM_ROLLS].tolist()):
        dragons = counts[DRAGON]
        wood = {path: counts[path] + dragons for path in range(PATHS) if dragons and path != MISSING[roll]}
        jump = {path: counts[path] for path in range(PATHS) if counts[path] and roll != EQUILIBRIUM}
        for kind, moves in enumerate((wood, jump)):
            ends = [End.MOVE_ON + DICE * path + dice - 1 for path, dice in moves.items()]
            ends += [End.PERFECTION_ON + path for path, dice in moves.items() if dice == DICE]
            if MISSING[roll] != DRAGON if kind == 0 else roll == EQUILIBRIUM:
                ends.append(End.EQUILIBRIUM)
            table[kind, roll, : len(ends)] = ends
            size[kind, roll] = len(ends)
    return table[0], size[0], table[1], size[1]


WOOD, NUM_WOOD, JUMPS, NUM_JUMPS = _power_ends()


@kernel
def fill_ends(
    block: Block, power: PowerBlock | None, source: Sources, owner: Any, half: Any, lanes: Any
) -> None:
    """Write the values of ends that lead to solved positions, for one owner and one half of the block.

    Passes and swaps without a power are left out, because the values after them are iterated.
    """
    rows, indices, first = block.rows, block.indices, first_end(owner, half)
    rebirth = source.powers >> Power.REBIRTH & 1
    for end in range(PROGRESS):
        row, again = first + np.uint64(end), turns.AGAIN[end]
        kept = source.kept_again if again else source.kept_other
        used = source.used_again if again else source.used_other
        for lane in range(lanes):
            # A branch for impossible ends would be slow, because the processor would often mispredict it.
            index = indices[end, lane]
            value = kept[np.uint64(max(index, 0))]
            value = value if again else -value
            rows[row, lane] = NEVER if index < 0 else value
        if power is not None and source.powers:
            for lane in range(lanes):
                index = indices[end, lane]
                value = rows[IMPOSSIBLE, 0]
                if index >= 0:
                    value = used[index] if again else -used[index]
                    if rebirth and not again:
                        rows[row, lane] = max(rows[row, lane], source.used_again[power.again[end, lane]])
                rows[row + np.uint64(USED), lane] = value
                index = power.jumped[end, lane]
                value = rows[IMPOSSIBLE, 0]
                if index >= 0:
                    value = used[index] if again else -used[index]
                rows[row + np.uint64(JUMPED), lane] = value
    if power is not None and source.powers:
        for stay in range(STAYS):
            end = PROGRESS + stay
            for lane in range(lanes):
                index = indices[end, lane]
                value, reborn = rows[IMPOSSIBLE, 0], rows[IMPOSSIBLE, 0]
                if index >= 0:
                    value = -source.used_other[index]
                    if rebirth:
                        reborn = source.used_again[power.again[end, lane]]
                rows[first + np.uint64(USED + end), lane] = value
                rows[first + np.uint64(REBORN + stay), lane] = reborn


def _emit_move_or_stay(builder: Any, rows: list[Any]) -> Any:
    """Return the largest value of the moves and the power fear.

    If no move is possible, return the value of the pass (R5).
    """
    stay, fear, *moves = rows
    move = emit_largest(builder, moves)
    possible = builder.fcmp_ordered(">", move, ir.Constant(move.type, [NEVER / 2] * LANES))
    return builder.select(possible, emit_largest(builder, [move, fear]), stay)


move_or_stay = row_operation(_emit_move_or_stay)


@kernel
def value_power_rolls(rows: Rows, first: Any, powers: Any) -> None:
    """Write the value of stopping with each roll (R5, R6, R12, R13)."""
    stay = first + np.uint64(End.PASS)
    fear = first + np.uint64(USED + End.PASS) if powers >> Power.FEAR & 1 else np.uint64(IMPOSSIBLE)
    for roll in range(NUM_ROLLS):
        moves = MOVES[roll]
        a, b = first + moves[0], first + moves[1]
        if NUM_MOVES[roll] == 0:
            largest(rows, roll, (stay,))
        elif NUM_MOVES[roll] == 1:
            move_or_stay(rows, roll, (stay, fear, a))
        elif NUM_MOVES[roll] == 2:
            move_or_stay(rows, roll, (stay, fear, a, b))
        elif NUM_MOVES[roll] == 3:
            move_or_stay(rows, roll, (stay, fear, a, b, first + moves[2]))
        else:
            move_or_stay(rows, roll, (stay, fear, a, b, first + moves[2], first + moves[3]))
        if powers >> Power.DRAGON & 1:
            for i in range(NUM_WOOD[roll]):
                largest(rows, roll, (np.uint64(roll), first + np.uint64(USED + WOOD[roll, i])))
        if powers >> Power.ANXIETY & 1:
            for i in range(NUM_JUMPS[roll]):
                largest(rows, roll, (np.uint64(roll), first + np.uint64(JUMPED + JUMPS[roll, i])))
    for path in range(PATHS):
        swap = first + np.uint64(End.SWAP_ON + path)
        largest(rows, FOUR_DRAGONS[path], (np.uint64(FOUR_DRAGONS[path]), swap))
        largest(rows, FIVE_DRAGONS, (np.uint64(FIVE_DRAGONS), swap))


@kernel
def value_half(rows: Rows, value: Any, swapped: Any, half: Any, first: Any, powers: Any) -> None:
    """Compute the values of positions before the first roll, for one owner and one half of the block.

    The result is in row NOTHING. `value`, (3, LANES), has the current values of the positions to which passes and swaps
    lead. The rows of ends start with row `first`. `powers` is None in the basic game; otherwise, it has the mover's
    powers as bits.
    """
    everyone = value.ravel()
    for lane in range(LANES):  # R5
        rows[first + np.uint64(End.PASS), lane] = -value[1 - half, lane]
    for path in range(PATHS):  # R6
        for lane in range(LANES):
            rows[first + np.uint64(End.SWAP_ON + path), lane] = -everyone[swapped[half, path, lane]]
    if powers is None:
        turns.value_turns(rows, first)
        return
    for stay in range(STAYS):
        kept = first + np.uint64(PROGRESS + stay)
        largest(rows, kept, (kept, first + np.uint64(REBORN + stay)))
    tiger = powers >> Power.TIGER & 1
    if tiger:  # the additional re-roll uses the power (R12), so the turn then ends in a row from USED
        value_power_rolls(rows, first + np.uint64(USED), 0)
        reroll(rows)
        for roll in range(NUM_ROLLS):
            largest(rows, TIGER + roll, (np.uint64(roll),))
    value_power_rolls(rows, first, powers)
    if tiger:
        for roll in range(NUM_ROLLS):
            largest(rows, roll, (np.uint64(roll), np.uint64(TIGER + roll)))
    for _ in range(REROLLS):  # R2
        reroll(rows)
    expect(rows)
