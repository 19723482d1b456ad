"""Trained networks as players, and the file they are kept in.

`model.zip` is what SB3 saves, so `MaskablePPO.load` reads it. But SB3 keeps settings as pickled objects, and to read
those is to run what code they contain. So the file also says in plain JSON what the network is made for, and `load`
reads nothing but that and the weights.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.distributions import MaskableCategorical
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents import checkpoint
from agents.checkpoint import CheckpointError
from agents.network import PathPolicy
from wotd_env import Game, Rules

ABOUT, WEIGHTS = "wotd-env.json", "policy.pth"
"""The files in `model.zip` that are read: rules and width of the network, and its weights."""


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


def save(file: Path, model: MaskablePPO) -> None:
    """Write the model of a training, with a `PathPolicy`; the file is either the old or the new one at any time."""
    network = model.policy
    assert isinstance(network, PathPolicy)
    buffer = io.BytesIO()
    model.save(buffer)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(ABOUT, json.dumps({"rules": asdict(network.rules), "width": network.width}))
    checkpoint.write(file, buffer.getvalue())


def load(run: Path | str) -> Trained:
    """Return the player of a run folder, or of its `model.zip`; no code in the file is run.

    Raises:
        FileNotFoundError: if there is no model.
        CheckpointError: if it is damaged, or not of train.py.
    """
    file = Path(run)
    file = file / "model.zip" if file.is_dir() else file
    if not file.is_file():
        raise FileNotFoundError(f"there is no model {file}: name a run folder of train.py, or its model.zip")
    parts = checkpoint.members(str(file), file.read_bytes())
    if missing := {ABOUT, WEIGHTS} - parts.keys():
        raise CheckpointError(
            f"{file} is no model of this version of train.py: it lacks {', '.join(sorted(missing))}. "
            "The policy sb3:FILE plays models of other makers, if you trust them"
        )
    try:
        about = json.loads(parts[ABOUT])
        rules, width = Rules(**about["rules"]), about["width"]
        if type(width) is not int or not 0 < width * width < len(parts[WEIGHTS]):  # no larger than the file
            raise ValueError(f"width must be that of the weights, got {width!r}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: {ABOUT} does not describe a network of train.py: {error}") from error
    game = Game(rules)
    network = PathPolicy(
        spaces.Box(0, 127, (game.observation_size,), np.int8),
        spaces.Discrete(game.num_actions),
        lambda _: 0.0,
        rules=rules,
        width=width,
    )
    name = f"{file}: {WEIGHTS}"
    weights = checkpoint.tensors(name, parts[WEIGHTS])
    checkpoint.check(name, weights, network.state_dict())
    network.load_state_dict(weights)
    return Trained(network)
