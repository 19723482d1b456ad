"""Write a trained network as ONNX: `python -m agents.export RUN [FILE]`, then `wotd arena onnx:FILE greedy`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agents.checkpoint import CheckpointError
from agents.player import to_onnx
from agents.trained import load_network
from wotd_env import files


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, or 2 for a user's mistake."""
    parser = argparse.ArgumentParser(prog="python -m agents.export", description=__doc__)
    parser.add_argument("run", type=Path, help="run folder of train.py")
    parser.add_argument(
        "file", type=Path, nargs="?", help="file to write (default model.onnx in the run folder)"
    )
    options = parser.parse_args(arguments)
    file = options.file or options.run / "model.onnx"
    try:
        content = to_onnx(load_network(options.run))
        if not file.parent.is_dir():
            raise FileNotFoundError(f"no folder {file.parent} to write {file.name} to")
        files.write(file, content)
    except (CheckpointError, OSError) as error:
        print(f"agents.export: error: {error}", file=sys.stderr)
        return 2
    print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
