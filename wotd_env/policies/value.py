"""The hand-made value of a position, by which the `planner` policy plays.

Every seat has a strength, a sum in units of one plain space:

- *progress*: a piece on plain space t is worth t;
- *points*: a piece on number k is worth S - 1 + 1.25 k, so number 1 is hardly more than the space before it;
- *tempo*: the seat to act is ahead by TEMPO spaces;
- *blocking*: a piece loses BLOCKED[c] for every space at 1..5 = c dice that is occupied, most for three dice;
- *power*: a power not yet used is worth POWER spaces;
- *lead*: with four numbered pieces a seat may end the game. That is worth CLOSING, by how far it is behind.

A space counts for more the nearer the end is, measured by the largest number of numbered pieces of any seat. The
chances to win are the softmax of the strengths so weighted, and the value is the reward expected from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env import engine
from wotd_env._compile import kernel
from wotd_env.game import Game
from wotd_env.rules import DICE, PATHS

__all__ = ["hand_made"]

WEIGHT = np.array([0.17, 0.21, 0.24, 0.31, 0.42])  # of a space, by the most numbered pieces of a seat
NUMBER = 1.25
TEMPO = 1.4
BLOCKED = np.array([0.1, 0.35, 0.6, 0.35, 0.15])  # by the dice, less one, that would bring it to the space
POWER = np.array([1.0, 3.0, 1.0, 1.0, 1.0])  # by colour; the best of them where a seat may choose
CLOSING = np.array([1.5, 2.6, 0.8, -1.2])  # by the points behind the best other seat, 3 or more the same

NEXT_FIVE = np.uint64(31)
BLOCKED_BY = (
    np.arange(32)[:, None] >> np.arange(DICE) & 1
) @ BLOCKED  # by which of the next five spaces are taken


def hand_made(game: Game, afterstates: NDArray[np.void]) -> NDArray[np.float32]:
    """Return the value of every state for each seat, float32 (M, n): the rewards expected, zero-sum in [-1, 1]."""
    values = np.empty((len(afterstates), game.rules.players), np.float32)
    _hand_made(afterstates, game._config, values)
    return values


@kernel
def _hand_made(states: Any, rules: Any, values: Any) -> None:
    """Write the values."""
    r = rules[0]
    n = r.players
    points, numbered = np.empty(n, np.int64), np.empty(n, np.int64)
    strength = np.empty(n)
    for i in range(states.shape[0]):
        s = states[i]
        points[:] = 0
        numbered[:] = 0
        strength[:] = 0
        for path in range(PATHS):
            taken = engine.occupied(s, r, path)
            for seat in range(n):
                space = s.pieces[seat, path]
                if space > r.spaces:
                    number = space - r.spaces
                    points[seat] += number
                    numbered[seat] += 1
                    strength[seat] += r.spaces - 1 + NUMBER * number
                else:
                    strength[seat] += space - BLOCKED_BY[taken >> np.uint64(space + 1) & NEXT_FIVE]
        strength[s.player] += TEMPO
        most = 0
        for seat in range(n):
            most = max(most, numbered[seat])
            powers = engine.powers_of(s, r, seat)
            if powers:
                strength[seat] += _power(powers)
            if numbered[seat] >= PATHS - 1:
                behind = 0
                for other in range(n):
                    behind = max(behind, points[other] - points[seat])
                strength[seat] += CLOSING[min(behind, CLOSING.size - 1)]
        weight = WEIGHT[min(most, WEIGHT.size - 1)] * 2 / n
        total = 0.0
        for seat in range(n):
            strength[seat] = np.exp(weight * strength[seat])
            total += strength[seat]
        for seat in range(n):
            values[i, seat] = (n * strength[seat] / total - 1) / (n - 1)


@kernel
def _power(powers: Any) -> Any:
    """Return the worth of the best of some powers."""
    best = 0.0
    for power in range(PATHS):
        if powers >> power & 1:
            best = max(best, POWER[power])
    return best
