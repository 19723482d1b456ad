"""`planner`: plays the best action of the exact plan of its turn (`wotd_env.planning`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.planning.planner import Value, plan
from wotd_env.planning.values import hand_made
from wotd_env.policy import RulesBound


class Planner:
    """A policy that plays the best action of the exact plan of its turn.

    Args:
        value: the value function of afterstates; by default the hand-made value.
    """

    def __init__(self, value: Value = hand_made) -> None:
        self.value = value

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`. Break ties by the lowest action number."""
        actions: NDArray[np.int64] = plan(game, state, self.value)[0].argmax(1)
        return actions

    def equity(self, game: Game, state: States) -> NDArray[np.float32]:
        """Return the equity of the seat to act in each state, float32 (N,), see `wotd_env.policy.HasEquity`."""
        return plan(game, state, self.value)[1]

    def check_rules(self, rules: Rules) -> None:
        """Check that the value fits games with these rules."""
        value: object = self.value  # object, because mypy thinks a function is never RulesBound
        if isinstance(value, RulesBound):
            value.check_rules(rules)
