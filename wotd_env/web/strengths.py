"""Opponents named by their strength, weakest first.

Sampling fills the gap between `random` and `greedy`: `Sampled` plans like `planner`, and often plays a worse action if
its temperature is high. In games of two players, each strength up to `easy` wins about four of five games against
the previous strength; `strong` and `near perfect` win about three of five.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.state import States
from wotd_env.planning.planner import plan
from wotd_env.planning.values import hand_made
from wotd_env.policies import make_policy
from wotd_env.policy import Policy


class Sampled:
    """Plays an action with a probability proportional to exp(equity / temperature); `planner` computes the equities.

    Args:
        temperature: in equity, positive.
    """

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`."""
        equity = plan(game, state, hand_made)[0]
        noise = rng.gumbel(size=equity.shape)  # the argmax of the sum is a sample of the distribution
        actions: NDArray[np.int64] = (equity / self.temperature + noise).argmax(1)
        return actions


class Strength(NamedTuple):
    """A strength: a description, and its policy by name or its temperature."""

    words: str
    plays: str | float

    def make(self) -> Policy:
        """Return the policy."""
        return make_policy(self.plays) if isinstance(self.plays, str) else Sampled(self.plays)


STRENGTHS = {
    "learner": Strength("plays at random", "random"),
    "newcomer": Strength("has a vague idea of a good move", 0.25),
    "beginner": Strength("often overlooks the best move", 0.09),
    "very easy": Strength("sometimes overlooks the best move", 0.045),
    "easy": Strength("collects the dice of one path, without looking ahead", "greedy"),
    "strong": Strength("plans each turn", "planner"),
    "near perfect": Strength("plans each turn with a learned value", "td"),
}
"""The strengths by name."""
