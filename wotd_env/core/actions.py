"""The actions and their numbers. Only the numbers of swaps depend on the number of players."""

from __future__ import annotations

from enum import IntEnum
from itertools import combinations
from typing import Any

import numpy as np

from wotd_env.core.rules import MAX_PLAYERS, PATHS, Power

Bits = Any
"""A set of numbers (actions, powers, seats, ...) in compiled code: bit i is 1 if i is in the set.

numba combines uint64 with other integers as bits; in Python the types of the results differ."""


class Action(IntEnum):
    """The actions from 31 on. Lower numbers are holds: bit i is 1 if die i is kept, e.g. 0b00101 keeps dice 0 and 2.

    A name that ends in `_ON` is the action on path 0; add p for path p, e.g. `MOVE_ON + 2` moves on path 2. The number
    of a swap is `FIRST_SWAP + path * pairs(players) + pair`, and the two seats of the swap are `PAIRS[players, pair]`.
    """

    STOP_ROLLING = 31  #: keep all five dice
    MOVE_ON = 32  #: move on path 0, one space for each die of element 0 (R3)
    WOOD_ON = 37  #: move on path 0, one space for each die of element 0 and each dragon (R12, the dragon)
    JUMP_ON = 42  #: jump on path 0 to the first empty space beyond the occupied destination (R12, anxiety)
    EQUILIBRIUM = 47  #: advance every movable piece of the player by one space (R7)
    WOOD_EQUILIBRIUM = 48  #: the same as EQUILIBRIUM, with a dragon as the missing element (R13)
    EARTH_EQUILIBRIUM = 49  #: the same as EQUILIBRIUM, but blocked pieces jump (R12, anxiety)
    PASS = 50  #: do nothing; legal if no move without a power is possible (R5)
    NO_MOVE_BY_FEAR = 51  #: do not move although a move is possible (R12, fear)
    END_TURN = 52
    PERFECTION_TURN = 53  #: take the extra turn for five dice of one element (R8)
    REBIRTH_TURN = 54  #: take an extra turn (R12, rebirth)
    FIRST_SWAP = 55  #: on path 0, swap the pieces of the seat to act and the next seat (R6)


def pairs(players: int) -> int:
    """Return the number of pairs of seats."""
    return players * (players - 1) // 2


def num_actions(players: int) -> int:
    """Return the size of the action space for a number of players."""
    return Action.FIRST_SWAP + PATHS * pairs(players)


MOST_ACTIONS = num_actions(MAX_PLAYERS)


def power_of(action: int) -> Power | None:
    """Return the power that an action uses (R12), or None.

    The number of a hold does not show whether the hold uses the tiger, so the result is None for all holds.
    """
    if Action.WOOD_ON <= action < Action.JUMP_ON or action == Action.WOOD_EQUILIBRIUM:
        return Power.DRAGON
    if Action.JUMP_ON <= action < Action.EQUILIBRIUM or action == Action.EARTH_EQUILIBRIUM:
        return Power.ANXIETY
    if action == Action.NO_MOVE_BY_FEAR:
        return Power.FEAR
    return Power.REBIRTH if action == Action.REBIRTH_TURN else None


PAIRS = np.zeros((MAX_PLAYERS + 1, pairs(MAX_PLAYERS), 2), np.int8)
"""int8 (6, 10, 2): PAIRS[players, pair] are the two seats of a swap, counted from the seat to act (0)."""
for _players in range(2, MAX_PLAYERS + 1):
    PAIRS[_players, : pairs(_players)] = list(combinations(range(_players), 2))
