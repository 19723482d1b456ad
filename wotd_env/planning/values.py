"""Value functions for positions: an interface, and the hand-made value function of the policy `planner`.

The hand-made value function gives every seat a strength. The strength is the sum of these terms, where S is the number
of plain spaces:

- *progress*: a piece on plain space t has the value t;
- *points*: a piece on numbered space k has the value S - 1 + NUMBER * k;
- *tempo*: the seat to act gets TEMPO;
- *blocking*: for c = 1 to 5, a piece before the numbered spaces loses BLOCKED[c - 1] if the c-th space ahead of the
  piece is occupied;
- *power*: an unused power has the value POWER[color] if `powers` is "own", and ANY_POWER if `powers` is "any";
- *lead*: a seat with at least four pieces on numbered spaces gets CLOSING[d] if it is d points behind the best
  opponent.

The strengths are multiplied by WEIGHT, which grows towards the end of the game. The softmax of the products gives the
probabilities of winning. The value of a seat is its expected reward under these probabilities.
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

# index: the largest number of pieces that one seat has on numbered spaces
WEIGHT = np.array([0.17, 0.21, 0.24, 0.31, 0.42])
NUMBER = 1.25
TEMPO = 1.4
BLOCKED = 0.1, 0.35, 0.6, 0.35, 0.15
POWER = np.array([0.3, 2.0, 0.8, 1.5, 1.6])
ANY_POWER = 4.0
CLOSING = np.array([1.5, 2.6, 0.8, -1.2])

NEXT_FIVE = np.uint64((1 << DICE) - 1)
# the sum of BLOCKED over the occupied spaces; index: bit mask of these spaces
BLOCKED_BY = np.array(
    [sum(BLOCKED[space] for space in range(DICE) if mask >> space & 1) for mask in range(1 << DICE)]
)


@runtime_checkable
class CheckedValue(Protocol):
    """A value function that checks its input. The planner calls `unchecked` for the records that it writes itself."""

    def __call__(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Return the expected reward of every seat in each state, float32 (M, n).

        The rewards are in [-1, 1]. In each state, their sum is 0.

        Raises:
            ValueError: for an invalid record.
        """
        game.check(afterstates)
        return self.unchecked(game, afterstates)

    def unchecked(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Return the values without checking the records."""
        ...


class HandMade(CheckedValue):
    """The class of the hand-made value function; `hand_made` is its only instance."""

    def unchecked(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Return the values without checking the records."""
        values = np.empty((len(afterstates), game.rules.players), np.float32)
        write_values(afterstates, game.config, values)
        return values


hand_made = HandMade()
"""The hand-made value function, called as `hand_made(game, afterstates)`."""


@kernel
def write_values(states: Records, config: Configs, values: Any) -> None:
    """Write the hand-made values of a batch, (N, n)."""
    for i in range(states.shape[0]):
        write_value(states[i], config[0], values[i])


@kernel
def write_value(s: Record, rules: Config, out: Any) -> None:
    """Write the hand-made value of a state for each seat to `out`, (n,). The value does not depend on the dice."""
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
        out[seat] = engine.reward_of(out[seat], n, total)
