"""Agents named by their strength, weakest first.

The policy `Sampled` fills the gap in strength between `random` and `greedy`. It plans like `planner` but samples its
action, so it often plays a worse action if its temperature is high. In games of two players, each strength up to
`easy` wins about four of five games against the previous strength. `strong` and `near perfect` each win about three
of five games against the previous strength.
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
    """Samples each action with a probability proportional to exp(equity / temperature), with `planner`'s equities.

    Args:
        temperature: positive, in units of equity.
    """

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions (see `Policy.act`)."""
        equity = plan(game, state, hand_made)[0]
        noise = rng.gumbel(size=equity.shape)  # Gumbel-max trick: the argmax is a sample of the softmax
        actions: NDArray[np.int64] = (equity / self.temperature + noise).argmax(1)
        return actions


class Strength(NamedTuple):
    """A description, and `plays`: the name of the policy, or the temperature of `Sampled`."""

    words: str
    plays: str | float

    def make(self) -> Policy:
        """Return the policy of this strength."""
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
"""The strengths by name, weakest first."""
