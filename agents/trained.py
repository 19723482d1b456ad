"""The file that a trained network is kept in.

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
from sb3_contrib import MaskablePPO

from agents import checkpoint
from agents.checkpoint import CheckpointError
from agents.network import PathNetwork, PathPolicy
from wotd_env import Game, Rules
from wotd_env.policies.sb3 import Trained

ABOUT, WEIGHTS = "wotd-env.json", "policy.pth"
"""The files in `model.zip` that are read: rules and width of the network, and its weights."""


def save(file: Path, model: MaskablePPO) -> None:
    """Write the model of a training, with a `PathPolicy`; the file is either the old or the new one at any time."""
    network = model.policy.mlp_extractor
    assert isinstance(network, PathNetwork)
    buffer = io.BytesIO()
    model.save(buffer)
    _write(file, network, buffer)


def save_network(file: Path, network: PathNetwork) -> None:
    """Write a network that others than SB3 have trained, see `save`; `MaskablePPO.load` does not read it."""
    weights, buffer = io.BytesIO(), io.BytesIO()
    th.save(player(network).network.state_dict(), weights)
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(WEIGHTS, weights.getvalue())
    _write(file, network, buffer)


def _write(file: Path, network: PathNetwork, buffer: io.BytesIO) -> None:
    """Write an archive of weights to which what they are for is added."""
    about = {"rules": asdict(network.rules), "width": network.width, "planned": network.planned}
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(ABOUT, json.dumps(about))
    checkpoint.write(file, buffer.getvalue())


def player(network: PathNetwork) -> Trained:
    """Return what plays by a network."""
    game = Game(network.rules)
    policy = PathPolicy(
        spaces.Box(0, 127, (game.observation_size,), np.int8),
        spaces.Discrete(game.num_actions),
        lambda _: 0.0,
        rules=network.rules,
        width=network.width,
        planned=network.planned,
    )
    policy.mlp_extractor = network  # type: ignore[assignment]
    return Trained(policy)


def load(run: Path | str) -> Trained:
    """Return the player of a run folder of PPO, or of its `model.zip`; no code in the file is run.

    Runs of TD(lambda) have none: their values are policies by the folder's name, see `wotd_env.make_policy`.

    Raises:
        FileNotFoundError: if there is no model.
        CheckpointError: if it is damaged, or not of train.py.
    """
    file = Path(run)
    file = file / "model.zip" if file.is_dir() else file
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no model {file}: name a run folder of PPO, or its model.zip; "
            "a run folder of train.py td is a policy by its name, without torch"
        )
    parts = checkpoint.members(str(file), file.read_bytes())
    if missing := {ABOUT, WEIGHTS} - parts.keys():
        raise CheckpointError(
            f"{file} is no model of this version of train.py: it lacks {', '.join(sorted(missing))}. "
            "The policy sb3:FILE plays models of other makers, if you trust them"
        )
    try:
        about = json.loads(parts[ABOUT])
        rules, width = Rules.from_dict(about["rules"]), about["width"]
        planned = about.get("planned", False)
        if type(planned) is not bool:
            raise ValueError(f"planned must be true or false, got {planned!r}")
        if type(width) is not int or not 0 < width * width < len(parts[WEIGHTS]):  # no larger than the file
            raise ValueError(f"width must be that of the weights, got {width!r}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: {ABOUT} does not describe a network of train.py: {error}") from error
    trained = player(PathNetwork(rules, width, planned))
    name = f"{file}: {WEIGHTS}"
    weights = checkpoint.tensors(name, parts[WEIGHTS])
    checkpoint.check(name, weights, trained.network.state_dict())
    trained.network.load_state_dict(weights)
    return trained
