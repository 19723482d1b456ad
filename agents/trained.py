"""Load the network of a run of PPO or RLlib from its checkpoint; no code in the file is run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gymnasium import spaces

from agents import checkpoint
from agents.checkpoint import CHECKPOINT
from agents.network import PathNetwork, PathPolicy
from wotd_env import Game, Rules
from wotd_env.policies.sb3 import Trained


def policy_of(network: PathNetwork) -> Trained:
    """Return the policy of a network's most likely actions."""
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
    """Return the policy of a run folder of PPO or RLlib, see `load_network`."""
    return policy_of(load_network(run))


def load_network(run: Path | str) -> PathNetwork:
    """Return the network of a run folder of PPO or RLlib, as of its last checkpoint.

    Runs of TD(lambda) have another network: the name of their folder is a policy, see `wotd_env.make_policy`.

    Raises:
        CheckpointError: if the checkpoint is missing or damaged, or has another network.
    """
    path = Path(run) / CHECKPOINT
    saved = checkpoint.load(path)
    try:
        rules, weights = Rules.from_dict(saved["settings"]["rules"]), saved["network"]
        network = PathNetwork(rules, len(weights["path.weight"]), "afterstates.again" in weights)
        checkpoint.check("network", weights, network.state_dict())
    except KeyError as error:
        why = f"it has no {error}, so it is not of PPO. A run folder of train.py td is a policy by its name"
        raise checkpoint.CheckpointError(f"{path} cannot be used: {why}") from error
    except (TypeError, ValueError) as error:
        raise checkpoint.unusable(path, error) from error
    network.load_state_dict(weights)
    return network
