"""`td`: plans every turn exactly, by a value of positions that was learnt (`python train.py td`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wotd_env import models
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.planning.learned import LearnedValue, load
from wotd_env.policies.planner import Planner

__all__ = ["Td"]


class Td(Planner):
    """Plays the best action of the exact plan of its turn, by a learnt value.

    Args:
        file: the learnt value, or the run folder that it is in; without one, that of the package for the rules at hand.

    Attributes:
        learned: returns the learnt value for some rules, or raises a ValueError if there is none.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no learnt value, or is damaged.
    """

    def __init__(self, file: str | Path | None = None) -> None:
        self.learned: Callable[[Rules], LearnedValue] = _of_package
        if file is not None:
            file = Path(file)
            value = load(file / "value.npz" if file.is_dir() else file)
            self.learned = functools.partial(_checked, value)
        super().__init__(self._value)

    def _value(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Value positions that the planner has made, see `LearnedValue`."""
        return self.learned(game.rules).unchecked(game, afterstates)

    def check_rules(self, rules: Rules) -> None:
        """Make sure that there is a learnt value for some rules.

        Raises:
            ValueError: if there is none.
        """
        self.learned(rules)


def _checked(value: LearnedValue, rules: Rules) -> LearnedValue:
    value.check_rules(rules)
    return value


@functools.cache
def _of_package(rules: Rules) -> LearnedValue:
    return load(models.find("td", rules))
