"""Load the policy network of a run of `train.py` from its checkpoint; no code in the file is run."""

from __future__ import annotations

from pathlib import Path

from agents import checkpoint
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.player import NetworkPolicy
from agents.ppo import Network
from wotd_env import Rules


def load(run: Path | str) -> NetworkPolicy:
    """Return the policy of a run folder of PPO, see `load_network`."""
    return NetworkPolicy(load_network(run))


def load_network(run: Path | str) -> Network:
    """Return the policy network of a run folder of PPO, as of its last checkpoint.

    Runs of TD(lambda) have another network: the name of their folder is a policy, see `wotd_env.make_policy`.

    Raises:
        CheckpointError: if the checkpoint is missing or damaged, or has another network.
    """
    path = Path(run) / CHECKPOINT
    saved = checkpoint.load(path)
    try:
        rules, weights = Rules.from_dict(saved["settings"]["rules"]), saved["network"]
        network = Network(rules, len(weights["path.weight"]), "planned.afterstates.again" in weights)
        checkpoint.check("network", weights, network.state_dict())
    except KeyError as error:
        why = f"it has no {error}, so it is not of PPO. A run folder of train.py td is a policy by its name"
        raise CheckpointError(f"{path} cannot be used: {why}") from error
    except (TypeError, ValueError) as error:
        raise checkpoint.unusable(path, error) from error
    network.load_state_dict(weights)
    return network
