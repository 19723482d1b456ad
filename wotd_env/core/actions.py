"""The numbers of the actions, the same for every number of players up to the swaps, and their words."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.rules import DICE, ELEMENTS, PATHS, Rules

__all__ = ["describe_action", "num_actions"]

STOP = 31  # keep all five dice
MOVE = 32  # + path: move by the dice that show its element
WILD = 37  # + path: the same with dragons counted as its element (wood)
JUMP = 42  # + path: jump over the pieces in the way (earth)
ADVANCE = 47  # equilibrium
WILD_ADVANCE = 48  # equilibrium with the dragon as the missing element (wood)
JUMP_ADVANCE = 49  # equilibrium in which blocked pieces jump (earth)
PASS = 50
FEAR = 51
END = 52
EXTRA = 53  # the extra turn of perfection
REBIRTH = 54
SWAP = 55  # + path * pairs + pair of relative seats


def pairs(players: int) -> int:
    """Return the number of pairs of seats."""
    return players * (players - 1) // 2


def num_actions(players: int) -> int:
    """Return the size of the action space for a number of players."""
    return SWAP + PATHS * pairs(players)


def _pair_table() -> NDArray[np.int8]:
    """Return the relative seats of every swap, int8 (6, 10, 2): [players, pair] -> two seats, 0 = the one to act."""
    table = np.zeros((6, 10, 2), np.int8)
    for players in range(2, 6):
        table[players, : pairs(players)] = list(combinations(range(players), 2))
    return table


PAIRS = _pair_table()

_FIXED = {
    STOP: "keep all dice and stop rolling",
    ADVANCE: "equilibrium: advance every piece that can",
    WILD_ADVANCE: "equilibrium with the dragon as the missing element: advance every piece that can (wood)",
    JUMP_ADVANCE: "equilibrium: advance every piece, blocked ones jump (earth)",
    PASS: "pass",
    FEAR: "stay put although a move is possible (fear, water)",
    END: "end the turn",
    EXTRA: "take the extra turn of perfection",
    REBIRTH: "take an extra turn (rebirth, fire)",
}
_SEATS = ("me", "the next seat", "the 2nd next seat", "the 3rd next seat", "the 4th next seat")


def describe_action(action: int, rules: Rules | None = None) -> str:
    """Say in words what an action does.

    Args:
        action: number of the action.
        rules: the rules of the game, needed for the swaps of more than two players.

    Raises:
        ValueError: if there is no such action.
    """
    players = 2 if rules is None else rules.players
    if not 0 <= action < num_actions(players):
        raise ValueError(
            f"action must be from 0 to {num_actions(players) - 1} for {players} players, got {action!r}"
        )
    action = int(action)
    if action in _FIXED:
        return _FIXED[action]
    if action < STOP:
        kept = [str(die + 1) for die in range(DICE) if action >> die & 1]
        if not kept:
            return "re-roll all dice"
        return f"keep {'dice' if len(kept) > 1 else 'die'} {', '.join(kept)} and re-roll the rest"
    if action < WILD:
        return f"move on {ELEMENTS[action - MOVE]}"
    if action < JUMP:
        return f"move on {ELEMENTS[action - WILD]}, dragons counted as {ELEMENTS[action - WILD]} (wood)"
    if action < ADVANCE:
        return f"jump on {ELEMENTS[action - JUMP]} (earth)"
    path, pair = divmod(action - SWAP, pairs(players))
    one, other = PAIRS[players, pair]
    return f"swap on {ELEMENTS[path]} the pieces of {_SEATS[one]} and {_SEATS[other]}"
