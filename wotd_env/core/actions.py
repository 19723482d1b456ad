"""The actions. Only the swaps depend on the number of players."""

from __future__ import annotations

from enum import IntEnum
from itertools import combinations
from typing import Any

import numpy as np

from wotd_env.core.rules import MAX_PLAYERS, PATHS, Power

Bits = Any  # a set of actions, swaps or powers in compiled code, uint64: bit i is set if i is in it


class Action(IntEnum):
    """The actions from 31 on. Actions 0 to 30 re-roll dice: they keep die i if bit i is set.

    A name that ends in `_ON` is the action on path 0; add p to get the action on path p. The swap of a pair on a path
    is `FIRST_SWAP + path * pairs(players) + pair`; `PAIRS` has the relative seats of every pair.
    """

    STOP_ROLLING = 31  #: keep all five dice
    MOVE_ON = 32  #: + path: move by the dice that show its element (R3)
    WOOD_ON = 37  #: + path: move by the dice of its element and all dragons (R12, the dragon)
    JUMP_ON = 42  #: + path: jump over the pieces in the way (R12, anxiety)
    EQUILIBRIUM = 47  #: advance every piece that can (R7)
    WOOD_EQUILIBRIUM = 48  #: advance every piece that can, with a dragon as the missing element (R13)
    EARTH_EQUILIBRIUM = 49  #: advance every piece that can; blocked pieces jump (R12, anxiety)
    PASS = 50  #: do nothing, because no power-free move is possible (R5)
    NO_MOVE_BY_FEAR = 51  #: do not move although a move is possible (R12, fear)
    END_TURN = 52
    PERFECTION_TURN = 53  #: take the extra turn of perfection (R8)
    REBIRTH_TURN = 54  #: take an extra turn (R12, rebirth)
    FIRST_SWAP = 55  #: + path * pairs + pair: call the dragon (R6)


def pairs(players: int) -> int:
    """Return the number of pairs of seats."""
    return players * (players - 1) // 2


def num_actions(players: int) -> int:
    """Return the size of the action space for a number of players."""
    return Action.FIRST_SWAP + PATHS * pairs(players)


MOST_ACTIONS = num_actions(MAX_PLAYERS)  # the size of the action space for five players


def power_of(action: int) -> Power | None:
    """Return the power that an action uses (R12), or None.

    Never return the tiger, because it has no actions of its own: a hold that re-rolls uses it if no other re-roll is
    left.
    """
    if Action.WOOD_ON <= action < Action.JUMP_ON or action == Action.WOOD_EQUILIBRIUM:
        return Power.DRAGON
    if Action.JUMP_ON <= action < Action.EQUILIBRIUM or action == Action.EARTH_EQUILIBRIUM:
        return Power.ANXIETY
    if action == Action.NO_MOVE_BY_FEAR:
        return Power.FEAR
    return Power.REBIRTH if action == Action.REBIRTH_TURN else None


PAIRS = np.zeros((MAX_PLAYERS + 1, pairs(MAX_PLAYERS), 2), np.int8)
"""int8 (6, 10, 2): [players, pair] -> the relative seats of a swap, 0 = the seat to act."""
for _players in range(2, MAX_PLAYERS + 1):
    PAIRS[_players, : pairs(_players)] = list(combinations(range(_players), 2))
