"""`sb3:FILE`: a model that MaskablePPO of sb3-contrib saved (extra `train`).

Torch and the packages that need it are imported only when a model is loaded or used.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from gymnasium.spaces import Dict
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.observation import ENCODINGS
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.extras import needed_for
from wotd_env.policy import check_made_for, seen_in

if TYPE_CHECKING:
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy


class Trained:
    """A policy that plays the most likely action of a MaskablePPO network.

    Args:
        network: a policy of MaskablePPO. The observations are vectors, or dicts with `observation` and `action_mask`.
        sample: whether to draw each action from the network's distribution instead of taking the most likely action.
        name: name of the network in error messages.
        encoding: encoding of the network's observations. If it is None, `check_rules` selects the first encoding
            whose observations have the size of the network's input.
    """

    def __init__(
        self,
        network: MaskableActorCriticPolicy,
        sample: bool = False,
        name: str = "the network",
        encoding: str | None = "one_hot",
    ) -> None:
        self.network, self._sample, self._name, self.encoding = network, sample, name, encoding
        self._checked: Rules | None = None

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,), see `Policy.act`."""
        self.check_rules(game.rules)
        assert self.encoding is not None
        game = seen_in(self.encoding, game)
        observation, mask = game.observe(state), game.legal_actions(state)
        if not len(state):
            return np.zeros(0, np.int64)
        named = {"observation": observation, "action_mask": mask}
        given = named if isinstance(self.network.observation_space, Dict) else observation
        with importlib.import_module("torch").no_grad():
            tensors, _ = self.network.obs_to_tensor(given)
            distribution = self.network.get_distribution(tensors, mask).distribution
            probability = distribution.probs.double().cpu().numpy()  # type: ignore[union-attr]
        actions: NDArray[np.int64] = probability.argmax(1)
        if self._sample:
            up_to = probability.cumsum(1)
            draws = rng.random((len(state), 1)) * up_to[:, -1:]
            actions = (up_to > draws).argmax(1)
        return actions

    def check_rules(self, rules: Rules) -> None:
        """Check that these rules fit the input and output sizes of the network, and the rules stored in it, if any."""
        if rules is self._checked:
            return
        if made_for := getattr(self.network, "rules", None):  # stored in networks of `train.py sb3`
            check_made_for(self._name, made_for, rules)
        actions, game = int(self.network.action_space.n), Game(rules)  # type: ignore[attr-defined]  # it is Discrete
        if actions != game.num_actions:
            raise ValueError(
                f"{self._name} has {actions} actions, these rules {game.num_actions}: {rules}. Choose the number of "
                "players of the training"
            )
        space = self.network.observation_space
        shape = (space["observation"] if isinstance(space, Dict) else space).shape
        encodings = ENCODINGS if self.encoding is None else (self.encoding,)
        sizes = {name: seen_in(name, game).observation_size for name in encodings}
        fitting = [name for name, size in sizes.items() if shape == (size,)]
        if not fitting:
            known = ", ".join(f"({size},) as {name}" for name, size in sizes.items())
            raise ValueError(f"{self._name} takes observations {shape}, these rules have {known}: {rules}")
        self.encoding = fitting[0]
        self._checked = rules


def load(file: str | Path, trust: bool = False) -> Trained:
    """Load a policy from a model that MaskablePPO saved.

    Args:
        file: the zip file, or `ENCODING:FILE`. Without ENCODING, the encoding is the first one whose observations have
            the size of the network's input.
        trust: consent to load the pickled objects in the file, which can run any code.

    Raises:
        ImportError: if sb3-contrib is not installed.
        FileNotFoundError: if there is no such file.
        ValueError: if `trust` is False, or if the file contains no model.
    """
    prefix, _, rest = str(file).partition(":")
    encoding, file = (prefix, Path(rest)) if prefix in ENCODINGS and rest else (None, Path(file))
    # These checks come before the import, because importing torch takes seconds.
    if not file.is_file():
        raise FileNotFoundError(f"no SB3 file {file}")
    if not trust:
        raise ValueError(
            f"reading {file} can run code that it contains. If you trust its source, consent with "
            "trust=True or --trust; the run folder of train.py needs no consent, nor does its ONNX file"
        )
    with needed_for("an SB3 policy", "train"):
        ppo = importlib.import_module("sb3_contrib").MaskablePPO
    try:
        network = ppo.load(file, device="cpu").policy
    except Exception as error:  # unpickling can raise any exception
        raise ValueError(f"{file} contains no model that MaskablePPO can read: {error}") from error
    network.set_training_mode(False)
    return Trained(network, name=str(file), encoding=encoding)
