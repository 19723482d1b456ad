"""`deep` and `deep:NAME`: the best action of an exact plan of one or two turns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.planning.deeper import Deeper
from wotd_env.planning.planner import best_actions, plan
from wotd_env.policies import base_name, full_name, make_policy
from wotd_env.policies.planner import Planner
from wotd_env.policy import check_plays

CLOSE = 0.01  # plan two turns if the one-turn equities of the best two actions differ by less than this


class Deep(Planner):
    """A policy that plans one turn exactly, or two turns if the equities of the best two actions are close.

    Args:
        name: name of a policy with a value function, such as `planner`, `td` or `module:object`; or the file or run
            folder of a learned value. The default is the bundled learned value for the rules.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: for an unknown policy, a policy without a value function, or a damaged file.
    """

    value: Deeper

    def __init__(self, name: str | Path = "td") -> None:
        base = base_name(str(name))
        # `deep` of `deep` is refused before anything is made.
        policy = None if full_name(base).partition(":")[0] == "deep" else make_policy(base)
        value = getattr(policy, "value", None)
        if policy is None or value is None or isinstance(policy, Deep):
            raise ValueError(
                f"deep:NAME needs a policy with a value of positions, such as planner, td or the file of a learned "
                f"value, got {str(name)!r}"
            )
        self.policy = policy
        super().__init__(Deeper(value))

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,), see `Policy.act`."""
        planned = plan(game, state, self.value.value)
        second, best = np.partition(planned[0], -2)[:, -2:].T
        actions = best_actions(*planned)
        close = second > best - CLOSE
        actions[close] = super().act(game, state[close], rng)
        return actions

    def check_rules(self, rules: Rules) -> None:
        """Check that the value function fits games with these rules."""
        check_plays(self.policy, rules)
