"""`ppo`: the most likely action of a network of the package that PPO has trained (`python train.py`; extra `arena`)."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from wotd_env import models
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.policies.onnx import Onnx

__all__ = ["Ppo"]


class Ppo:
    """Plays the best action of the network that the package has for the rules at hand."""

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`.

        Raises:
            ImportError: if onnxruntime is not installed.
            ValueError: if there is no network for these rules.
        """
        return _of_package(game.rules).act(game, state, rng)

    def check_rules(self, rules: Rules) -> None:
        """Make sure that there is a network for some rules.

        Raises:
            ImportError: if onnxruntime is not installed.
            ValueError: if there is none.
        """
        _of_package(rules).check_rules(rules)


@functools.cache
def _of_package(rules: Rules) -> Onnx:
    return Onnx(models.find("ppo", rules))
