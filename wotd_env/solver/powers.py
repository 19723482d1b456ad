"""Compute the values of turns for families of positions, in the basic game and with powers.

With powers, a position also contains the powers that each player still holds. A *section* has the values of all
positions for given powers of the player to move and of the other player. A used power never returns, so the sections
with fewer powers are solved first. If the players hold different powers, there are two sections that differ only in the
player to move. These two sections are solved together, because passes and swaps lead from each section to the other.
The *owner*, 0 or 1, selects one of the two sections.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.actions import Action, power_of
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.dice import NUM_ROLLS
from wotd_env.core.rules import PATHS, Power
from wotd_env.planning.ends import OTHERS, ends_of, offers_of, value_rolls
from wotd_env.planning.turn import LANES, Rows, largest, reroll
from wotd_env.solver import turns
from wotd_env.solver.families import LEAPT, REBORN, STAYS, TIGER, USED, Block, first_end
from wotd_env.solver.turns import AGAIN, JUMPED, JUMPED_AGAIN, NEVER, OTHER, PROGRESS, End


class Held(NamedTuple):
    """What rolls offer to a player, see `planning.ends.offers_of`. A small tuple, because kernels copy it often."""

    powers: int  # the powers that the player holds before the turn, as bits
    offers: NDArray[np.uint8]  # with these powers, see `offers_with`
    plain: NDArray[np.uint8]  # without powers


class Sources(NamedTuple):
    """The values after a turn, float (positions,): one array for each combination of power use and next player."""

    powers: int  # the powers that the player holds before the turn, as bits
    kept_other: NDArray[np.floating[Any]]
    kept_again: NDArray[np.floating[Any]]
    used_other: NDArray[np.floating[Any]]
    used_again: NDArray[np.floating[Any]]


def offers_with(powers: int) -> NDArray[np.uint8]:
    """Return what rolls offer to a player who holds some powers, given as bits (see `planning.ends.offers_of`).

    An end that uses the power dragon or anxiety is USED or LEAPT plus the same end without a power.
    """
    plain, known = ends_of(2, powers=False), ends_of(2, powers=True)
    number = {end: i for i, end in enumerate(zip(plain.action.tolist(), plain.dice.tolist(), strict=True))}
    free: list[list[int]] = []
    other: list[list[int]] = []
    for roll in range(NUM_ROLLS):
        free.append(plain.offers[roll, 2 : 2 + plain.offers[roll, 0]].tolist())
        other.append([])
        for end in known.offers[roll, OTHERS : OTHERS + known.offers[roll, 1]].tolist():
            action, power = int(known.action[end]), power_of(int(known.action[end]))
            if power is None:
                other[-1].append(number[action, 0])
            elif powers >> power & 1:
                moves = action < Action.EQUILIBRIUM
                action = Action.MOVE_ON + (action - Action.MOVE_ON) % PATHS if moves else Action.EQUILIBRIUM
                offset = USED if power == Power.DRAGON else LEAPT
                other[-1].append(offset + number[action, int(known.dice[end])])
    return offers_of(free, other)


@inlined
def _value_after(index: Any, values: Any, sign: Any) -> Any:
    """Return `sign` times a value, or NEVER for the index -1."""
    # A branch for impossible ends would be slow, because the processor would often mispredict it.
    value = sign * values[np.uint64(max(index, 0))]
    return NEVER if index < 0 else value


@kernel
def fill_ends(block: Block, source: Sources, perfection: Any, owner: Any, half: Any, lanes: Any) -> None:
    """Write the values of ends that lead to solved positions, for one owner and one half of the block.

    Passes and swaps without a power are left out, because the values after them are iterated. `perfection` is the
    field of `Ends`.
    """
    rows, after, first = block.rows, block.after, first_end(owner, half)
    kept_other, kept_again = source.kept_other, source.kept_again
    used_other, used_again = source.used_other, source.used_again
    rebirth = source.powers >> Power.REBIRTH & 1  # R12
    for end in range(PROGRESS):
        row = first + np.uint64(end)
        for lane in range(lanes):
            rows[row, lane] = _value_after(after[OTHER, end, lane], kept_other, -1)
        if perfection[end]:
            for lane in range(lanes):
                again = _value_after(after[AGAIN, end, lane], kept_again, 1)
                rows[row, lane] = max(rows[row, lane], again)
        if source.powers:
            for lane in range(lanes):
                used = _value_after(after[OTHER, end, lane], used_other, -1)
                leapt = _value_after(after[JUMPED, end, lane], used_other, -1)
                if perfection[end] or rebirth:
                    again = _value_after(after[AGAIN, end, lane], used_again, 1)
                    if rebirth:
                        rows[row, lane] = max(rows[row, lane], again)
                    if perfection[end]:
                        used = max(used, again)
                        leapt = max(leapt, _value_after(after[JUMPED_AGAIN, end, lane], used_again, 1))
                rows[row + np.uint64(USED), lane] = used
                rows[row + np.uint64(LEAPT), lane] = leapt
    if source.powers:
        for end in range(PROGRESS, PROGRESS + STAYS):
            row = first + np.uint64(end)
            for lane in range(lanes):
                rows[row + np.uint64(USED), lane] = _value_after(after[OTHER, end, lane], used_other, -1)
                reborn = _value_after(after[AGAIN, end, lane], used_again, 1) if rebirth else NEVER
                rows[row + np.uint64(REBORN - PROGRESS), lane] = reborn
    fear = np.uint64(USED + End.PASS if source.powers >> Power.FEAR & 1 else USED + End.FEAR)
    for lane in range(lanes):
        rows[first + np.uint64(End.FEAR), lane] = rows[first + fear, lane]


@kernel
def value_half(rows: Rows, value: Any, swapped: Any, half: Any, first: Any, held: Held) -> None:
    """Compute the values of positions before the first roll, for one owner and one half of the block.

    The result is in row NOTHING. `value`, (3, LANES), has the current values of the positions to which passes and swaps
    lead. The rows of ends start with row `first`.
    """
    everyone = value.ravel()
    for lane in range(LANES):
        rows[first + np.uint64(End.PASS), lane] = -value[1 - half, lane]
    for path in range(PATHS):
        for lane in range(LANES):
            rows[first + np.uint64(End.SWAP_ON + path), lane] = -everyone[swapped[half, path, lane]]
    if held.powers >> Power.REBIRTH & 1:
        for stay in range(STAYS):
            kept = first + np.uint64(PROGRESS + stay)
            largest(rows, kept, (kept, first + np.uint64(REBORN + stay)))
    tiger = held.powers >> Power.TIGER & 1
    if tiger:  # the additional re-roll uses the power (R12), so the turn then ends in a row from USED
        value_rolls(held.plain, End.PASS, rows, 0, first + np.uint64(USED))
        reroll(rows)
        for roll in range(NUM_ROLLS):
            largest(rows, TIGER + roll, (np.uint64(roll),))
    value_rolls(held.offers, End.PASS, rows, 0, first)
    if tiger:
        for roll in range(NUM_ROLLS):
            largest(rows, roll, (np.uint64(roll), np.uint64(TIGER + roll)))
    turns.value_rerolls(rows)
