"""`ppo`: the most likely action of a bundled policy network (docs/results/models.md; extra `arena`)."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from wotd_env import models
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.policies.onnx import Onnx

load_model = functools.cache(Onnx)


class Ppo:
    """A policy that plays the most likely action of the bundled network for the rules of the game."""

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,), see `Policy.act`."""
        return load_model(models.find("ppo", game.rules)).act(game, state, rng)

    def check_rules(self, rules: Rules) -> None:
        """Check that a network for these rules is bundled."""
        load_model(models.find("ppo", rules)).check_rules(rules)
