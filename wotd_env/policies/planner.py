"""`planner`: plays the best action of the exact plan of its turn (`wotd_env.planning`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.planning.planner import Value, best_actions, plan
from wotd_env.planning.values import hand_made
from wotd_env.policy import RulesBound


class Planner:
    """A policy that plans its turn exactly and plays the best action of the plan.

    Args:
        value: the value function for the positions after the turn; by default the hand-made value function.
    """

    def __init__(self, value: Value = hand_made) -> None:
        self.value = value

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,), see `Policy.act`. In a tie, the lowest action number wins."""
        return best_actions(*plan(game, state, self.value))

    def equity(self, game: Game, state: States) -> NDArray[np.float32]:
        """Return the equity of the seat to act in each state, float32 (N,)."""
        return plan(game, state, self.value)[1]

    def check_rules(self, rules: Rules) -> None:
        """Check that the value function fits games with these rules."""
        value: object = self.value  # object, because mypy assumes that no function is RulesBound
        if isinstance(value, RulesBound):
            value.check_rules(rules)
