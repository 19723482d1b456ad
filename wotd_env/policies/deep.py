"""`deep` and `deep:FILE`: plan two turns exactly, by the hand-made value of `planner` or by one that was learnt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wotd_env import policy
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.planning.deeper import Deeper
from wotd_env.planning.planner import plan
from wotd_env.policies.planner import Planner
from wotd_env.policies.td import Td

__all__ = ["CLOSE", "Deep"]

CLOSE = 0.01
"""The second turn is planned where the plan of one gives two actions values that differ by less than this."""


class Deep(Planner):
    """Plays the best action of the exact plan of its turn, and where that is a close thing, of the next turn as well.

    Args:
        file: a learnt value, or the run folder that it is in; by default the value is the hand-made one.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no learnt value, or is damaged.
    """

    def __init__(self, file: str | Path | None = None) -> None:
        self._one_turn = Planner() if file is None else Td(file)
        super().__init__(Deeper(self._one_turn.value))

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`; of equally good ones the lowest."""
        values = plan(game, state, self._one_turn.value)[0]
        second, best = np.partition(values, -2)[:, -2:].T
        actions: NDArray[np.int64] = values.argmax(1)
        close = second > best - CLOSE
        actions[close] = super().act(game, state[close], rng)
        return actions

    def check_rules(self, rules: Rules) -> None:
        """Make sure that a learnt value is for some rules, see `LearnedValue.check_rules`."""
        policy.check_rules(self._one_turn, rules)
