"""Values of positions: an interface, and the hand-made value of the policy `planner`.

The hand-made value gives every seat a strength, a sum in units of one plain space:

- *progress*: a piece on plain space t has the value t;
- *points*: a piece on number k has the value S - 1 + NUMBER * k, so number 1 is hardly better than the space before it;
- *tempo*: the seat to act gets TEMPO;
- *blocking*: a piece loses BLOCKED[c - 1] for every occupied space among the next five, at distance c;
- *power*: an unused power has the value POWER, or ANY_POWER if the seat may choose which power it uses;
- *lead*: a seat with four numbered pieces can soon end the game; it gets CLOSING[d] if it is d points behind.

A space has more weight towards the end of the game (WEIGHT). The probabilities to win are the softmax of the weighted
strengths. The value is the expected reward.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import DICE, PATHS
from wotd_env.core.state import Record, Records, States

# Weight of a space, by the largest number of pieces that any seat has on numbered spaces
WEIGHT = np.array([0.17, 0.21, 0.24, 0.31, 0.42])
NUMBER = 1.25
TEMPO = 1.4
BLOCKED = np.array([0.1, 0.35, 0.6, 0.35, 0.15])  # by the distance to the occupied space, minus one
POWER = np.array([0.3, 2.0, 0.8, 1.5, 1.6])  # by color
ANY_POWER = 4.0
CLOSING = np.array([1.5, 2.6, 0.8, -1.2])  # by the number of points behind the best other seat, at most three

NEXT_FIVE = np.uint64((1 << DICE) - 1)
# Loss of a piece, by the occupied spaces among its next five, as bits.
BLOCKED_BY = (np.arange(1 << DICE)[:, None] >> np.arange(DICE) & 1) @ BLOCKED


@runtime_checkable
class CheckedValue(Protocol):
    """A value that checks the records. The planner skips the check for its own records.

    Any other function `value(game, afterstates)` is a value too, see `wotd_env.planning.planner.plan`.
    """

    def __call__(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Return the value of every state for each seat, float32 (M, n): expected rewards, zero-sum in [-1, 1].

        Raises:
            ValueError: for an invalid record.
        """
        game.check(afterstates)
        return self.unchecked(game, afterstates)

    def unchecked(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Return the values without the check of the records."""
        ...


class HandMade(CheckedValue):
    """The hand-made value; `hand_made` is its only instance."""

    def unchecked(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Return the values without the check of the records."""
        values = np.empty((len(afterstates), game.rules.players), np.float32)
        _hand_made(afterstates, game.config, values)
        return values


hand_made = HandMade()
"""The hand-made value: a function `hand_made(game, afterstates)`, see `CheckedValue`."""


@kernel
def _hand_made(states: Records, config: Configs, values: Any) -> None:
    """Write the values of a batch, (N, n)."""
    for i in range(states.shape[0]):
        write_value(states[i], config[0], values[i])


@kernel
def write_value(s: Record, rules: Config, out: Any) -> None:
    """Write the value of a state for each seat. The dice do not matter."""
    n = rules.players
    most_numbered = 0
    for seat in range(n):
        strength = TEMPO if seat == s.player else 0.0
        numbered = 0
        for path in range(PATHS):
            space = np.int64(s.pieces[seat, path])
            if space > rules.spaces:
                numbered += 1
                strength += rules.spaces - 1 + NUMBER * (space - rules.spaces)
            else:
                ahead = engine.occupied(s, rules, path) >> np.uint64(space + 1)
                strength += space - BLOCKED_BY[ahead & NEXT_FIVE]
        if numbered >= PATHS - 1:
            points = engine.score(s, rules, seat)
            behind = 0
            for other in range(n):
                behind = max(behind, engine.score(s, rules, other) - points)
            strength += CLOSING[min(behind, CLOSING.size - 1)]
        if engine.powers_of(s, rules, seat):
            strength += POWER[s.color[seat]] if rules.powers == engine.OWN_POWERS else ANY_POWER
        most_numbered = max(most_numbered, numbered)
        out[seat] = strength
    weight = WEIGHT[min(most_numbered, WEIGHT.size - 1)] * 2 / n
    total = 0.0
    for seat in range(n):
        out[seat] = np.exp(weight * out[seat])
        total += out[seat]
    for seat in range(n):
        out[seat] = (n * out[seat] / total - 1) / (n - 1)
