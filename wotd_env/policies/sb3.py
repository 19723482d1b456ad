"""`sb3:FILE`: a model that MaskablePPO of sb3-contrib has saved (extra `train`)."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game


class Sb3:
    """Plays the most likely legal action.

    Args:
        file: the zip file.
        trust: consent to run the code that such a file may contain: it holds pickled objects.

    Raises:
        ImportError: if sb3-contrib is not installed.
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no model, or without `trust`.
    """

    def __init__(self, file: str | Path, trust: bool = False) -> None:
        try:  # by its name: nothing here may lead to torch when it is imported
            ppo = importlib.import_module("sb3_contrib").MaskablePPO
        except ImportError as error:
            raise ImportError("an SB3 policy needs sb3-contrib: pip install 'wotd-env[train]'") from error
        self.file = Path(file)
        if not self.file.is_file():
            raise FileNotFoundError(f"no SB3 file {self.file}")
        if not trust:
            raise ValueError(
                f"reading {self.file} can run code that it contains. If you know where it comes from, consent by "
                "trust=True or --trust; a network of train.py needs no consent as ONNX: python -m agents.export"
            )
        try:
            self._model = ppo.load(self.file, device="cpu")
        except Exception as error:  # whatever unpickling meets
            raise ValueError(f"{self.file} holds no model that MaskablePPO can read: {error}") from error

    def act(self, game: Game, state: NDArray[np.void], rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`.

        Raises:
            ValueError: if the model was made for other rules.
        """
        observation, mask = game.observe(state), game.legal_actions(state)
        if not len(state):
            return np.zeros(0, np.int64)
        actions = int(self._model.action_space.n)
        if actions != mask.shape[1]:
            raise ValueError(f"{self.file} has {actions} actions, these rules {mask.shape[1]}: {game.rules}")
        named = {"observation": observation, "action_mask": mask}
        given = named if hasattr(self._model.observation_space, "spaces") else observation
        chosen, _ = self._model.predict(given, action_masks=mask, deterministic=True)
        return np.asarray(chosen, np.int64)
