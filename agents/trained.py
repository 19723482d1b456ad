"""Trained networks as players."""

from __future__ import annotations

import numpy as np
import torch as th
from numpy.typing import NDArray
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
        mask = th.from_numpy(game.legal_actions(state)).bool()
        observation = th.from_numpy(game.observe(state)).to(self.network.device)
        with th.no_grad():
            latent = self.network.mlp_extractor.forward_actor(self.network.extract_features(observation))
            logits = self.network.action_net(latent).cpu().masked_fill(~mask, -th.inf)
        if not self.sample:
            return logits.argmax(1).numpy()
        # Inverse transform sampling: the first action at which the cumulated probability exceeds a uniform draw.
        up_to = logits.double().softmax(1).cumsum(1).numpy()
        draws = rng.random((len(state), 1)) * up_to[:, -1:]
        actions: NDArray[np.int64] = (up_to > draws).argmax(1)
        return actions
