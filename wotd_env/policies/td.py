"""`td`: plans every turn exactly, with a learned value of positions (`python train.py td`)."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wotd_env import models
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.planning import learned
from wotd_env.planning.learned import LearnedValue
from wotd_env.planning.values import CheckedValue
from wotd_env.policies.planner import Planner

load_model = functools.cache(learned.load)


class BundledValue(CheckedValue):
    """A value function that uses the bundled learned value for the rules of each game."""

    def for_rules(self, rules: Rules) -> LearnedValue:
        """Return the bundled learned value for these rules."""
        return load_model(models.find("td", rules))

    def unchecked(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Return the values of afterstates without checking the records."""
        return self.for_rules(game.rules).unchecked(game, afterstates)

    def check_rules(self, rules: Rules) -> None:
        """Check that a learned value for these rules is bundled."""
        self.for_rules(rules)


class Td(Planner):
    """A policy that plans its turn exactly with a learned value, and plays the best action of the plan.

    Args:
        file: file of a learned value; by default the bundled value for the rules.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if the file is not a learned value or is damaged.
    """

    value: BundledValue | LearnedValue

    def __init__(self, file: str | Path | None = None) -> None:
        super().__init__(BundledValue() if file is None else learned.load(file))

    def learned(self, rules: Rules) -> LearnedValue:
        """Return the learned value that the policy uses under these rules. Raise ValueError if no value fits."""
        self.check_rules(rules)
        return self.value.for_rules(rules) if isinstance(self.value, BundledValue) else self.value
