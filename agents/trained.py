"""Trained networks as players."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch as th
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.distributions import MaskableCategorical
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from wotd_env import Game


class Trained:
    """Plays by a network: the most likely action, or with `sample` one drawn by its probability.

    Args:
        network: a policy of MaskablePPO.
        sample: draw actions.
    """

    def __init__(self, network: MaskableActorCriticPolicy, sample: bool = False) -> None:
        self.network, self.sample = network, sample

    def act(self, game: Game, state: NDArray[np.void], rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `wotd_env.policies.Policy.act`."""
        observation = th.from_numpy(game.observe(state)).to(self.network.device)
        with th.no_grad():
            distribution = self.network.get_distribution(observation, game.legal_actions(state)).distribution
        assert isinstance(distribution, MaskableCategorical)
        probability = distribution.probs.double().cpu().numpy()
        if not self.sample:
            best: NDArray[np.int64] = probability.argmax(1)
            return best
        # Inverse transform sampling: the first action at which the cumulated probability exceeds a uniform draw.
        up_to = probability.cumsum(1)
        draws = rng.random((len(state), 1)) * up_to[:, -1:]
        drawn: NDArray[np.int64] = (up_to > draws).argmax(1)
        return drawn


def load(run: Path | str) -> Trained:
    """Return the player of a run folder or of an SB3 zip.

    Raises:
        FileNotFoundError: if there is no model.
    """
    file = Path(run)
    file = file / "model.zip" if file.is_dir() else file
    if not file.is_file():
        raise FileNotFoundError(f"no model {file}")
    return Trained(MaskablePPO.load(file, device="cpu").policy)
