"""`sb3:FILE`: a model that MaskablePPO of sb3-contrib has saved (extra `train`).

Torch and what builds on it are imported by name where they are needed: nothing here may lead to them when it is
imported.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.policy import check_made_for, seen_in

if TYPE_CHECKING:
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

__all__ = ["Trained", "load"]


class Trained:
    """Plays by a network of MaskablePPO: the most likely action, or with `sample` one drawn by its probability.

    Args:
        network: a policy of MaskablePPO, for observations as vectors or as dicts with `observation` and `action_mask`.
        sample: draw actions.
        name: what errors call it.
        encoding: of the observations that it takes.

    Attributes:
        network: the policy of MaskablePPO.
        encoding: of the observations that it takes.
    """

    def __init__(
        self,
        network: MaskableActorCriticPolicy,
        sample: bool = False,
        name: str = "the network",
        encoding: str = "one_hot",
    ) -> None:
        self.network, self._sample, self._name, self.encoding = network, sample, name, encoding
        self._checked: Rules | None = None

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`.

        Raises:
            ValueError: if the network was made for other rules.
        """
        self.check_rules(game.rules)
        game = seen_in(self.encoding, game)
        observation, mask = game.observe(state), game.legal_actions(state)
        if not len(state):
            return np.zeros(0, np.int64)
        named = {"observation": observation, "action_mask": mask}
        given = named if hasattr(self.network.observation_space, "spaces") else observation
        with importlib.import_module("torch").no_grad():
            tensors, _ = self.network.obs_to_tensor(given)
            distribution = self.network.get_distribution(tensors, mask).distribution
            probability = distribution.probs.double().cpu().numpy()  # type: ignore[union-attr]
        if not self._sample:
            best: NDArray[np.int64] = probability.argmax(1)
            return best
        # Inverse transform sampling: the first action at which the cumulated probability exceeds a uniform draw.
        up_to = probability.cumsum(1)
        draws = rng.random((len(state), 1)) * up_to[:, -1:]
        drawn: NDArray[np.int64] = (up_to > draws).argmax(1)
        return drawn

    def check_rules(self, rules: Rules) -> None:
        """Make sure that the network is for some rules, as far as it says: a network of train.py says all.

        Raises:
            ValueError: if it is not.
        """
        if rules is self._checked:
            return
        if (own := getattr(self.network, "rules", None)) is not None:
            check_made_for(self._name, own, rules)
        actions, game = int(self.network.action_space.n), Game(rules, encoding=self.encoding)  # type: ignore[attr-defined]  # it is Discrete
        if actions != game.num_actions:
            raise ValueError(f"{self._name} has {actions} actions, these rules {game.num_actions}: {rules}")
        space = self.network.observation_space
        shape = getattr(space, "spaces", {"observation": space})["observation"].shape
        if shape != (game.observation_size,):
            raise ValueError(
                f"{self._name} takes observations {shape}, these rules have ({game.observation_size},): {rules}"
            )
        self._checked = rules


def load(file: str | Path, trust: bool = False) -> Trained:
    """Return the player of a model that MaskablePPO has saved.

    Args:
        file: the zip file.
        trust: consent to run the code that such a file may contain: it holds pickled objects.

    Raises:
        ImportError: if sb3-contrib is not installed.
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no model, or without `trust`.
    """
    try:
        ppo = importlib.import_module("sb3_contrib").MaskablePPO
    except ImportError as error:
        raise ImportError("an SB3 policy needs sb3-contrib: pip install 'wotd-env[train]'") from error
    file = Path(file)
    if not file.is_file():
        raise FileNotFoundError(f"no SB3 file {file}")
    if not trust:
        raise ValueError(
            f"reading {file} can run code that it contains. If you know where it comes from, consent by "
            "trust=True or --trust; a network of train.py needs no consent as ONNX: python -m agents.export"
        )
    try:
        network = ppo.load(file, device="cpu").policy
    except Exception as error:  # whatever unpickling meets
        raise ValueError(f"{file} holds no model that MaskablePPO can read: {error}") from error
    network.set_training_mode(False)
    return Trained(network, name=str(file))
