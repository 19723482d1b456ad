"""Load the policy network of a run of `train.py` from its last checkpoint, and write it as ONNX.

    python -m agents.export RUN [FILE]
    wotd arena onnx:FILE greedy

No code in the checkpoint is run.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agents import checkpoint
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.player import NetworkPolicy, to_onnx
from agents.ppo import Network
from wotd_env import Rules, files


def load(run: Path | str) -> NetworkPolicy:
    """Return the policy in the last checkpoint of a run of `ppo` or `sb3`; its `network` is a torch module.

    For a run of TD(lambda), pass the run folder itself to `wotd_env.make_policy`.

    Raises:
        CheckpointError: if the checkpoint is missing or damaged, or if its network is of another kind.
    """
    path = Path(run) / CHECKPOINT
    saved = checkpoint.load(path)
    try:
        rules, weights = Rules.from_dict(saved["settings"]["rules"]), saved["network"]
        network = Network(rules, len(weights["path.weight"]), "planned.afterstates.again" in weights)
        checkpoint.check("network", weights, network.state_dict())
    except KeyError as error:
        why = f"it has no {error}, so it is not a run of PPO. A run folder of train.py td is itself a policy name"
        raise CheckpointError(f"{path} cannot be used: {why}") from error
    except (TypeError, ValueError) as error:
        raise checkpoint.unusable(path, error) from error
    network.load_state_dict(weights)
    return NetworkPolicy(network)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, or 2 for a user's mistake."""
    parser = argparse.ArgumentParser(prog="python -m agents.export", description="Write a network as ONNX.")
    parser.add_argument("run", type=Path, help="run folder of train.py")
    parser.add_argument("file", type=Path, nargs="?", help="by default model.onnx in the run folder")
    options = parser.parse_args(arguments)
    file = options.file or options.run / "model.onnx"
    try:
        policy = load(options.run)
        if not file.parent.is_dir():
            raise FileNotFoundError(f"no folder {file.parent} to write {file.name} to")
        files.write(file, to_onnx(policy.network))
    except (CheckpointError, OSError) as error:
        print(f"agents.export: error: {error}", file=sys.stderr)
        return 2
    print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
