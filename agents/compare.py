"""Overlay the learning curves of several runs: `python -m agents.compare RUN_FOLDER ...`.

Runs that differ only in their seeds give one curve: their mean strength against the strongest reference, with its 95 %
interval over the seeds. The curve of a single run has the interval over its games. This needs the extra `arena`.
"""

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from agents import checkpoint
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.evaluate import Curves, Measurement, curves_of, draw_curves
from agents.loop import LEARNERS
from wotd_env import files
from wotd_env.process import exit_code, prepare_streams


def draw(runs: Annotated[tuple[Path, ...], tyro.conf.Positional], file: Path = Path("curves.png")) -> None:
    """Overlay the learning curves of several runs. Runs that differ only in their seeds give one curve.

    Args:
        runs: run folders.
        file: the PNG file to write.
    """
    found = [checkpoint.load(folder / CHECKPOINT)[1] for folder in runs]
    curves: Curves = {}
    for folder, facts in zip(runs, found, strict=True):
        if not facts["curve"]:
            raise CheckpointError(f"the run in {folder} has no milestone yet: leave it out, or wait")
        opponent, curve = list(curves_of(Measurement(*row) for row in facts["curve"]).items())[-1]
        others = [other["settings"] for other in found if other["learner"] == facts["learner"]]
        own = {name: value for name, value in facts["settings"].items() if name != "seed"}
        differing = [name for name, value in own.items() if any(other[name] != value for other in others)]
        words = [
            f"{opponent}: {facts['learner']}",
            *(f"{name}={json.dumps(own[name])}" for name in differing),
        ]
        curves.setdefault(" ".join(words), []).extend(curve)
    units = {importlib.import_module(LEARNERS[facts["learner"]]).Learner.unit for facts in found}
    labeled = {f"{label}, runs: {len(curve)}": curve for label, curve in curves.items()}
    players = found[0]["settings"]["rules"]["players"]
    files.write(file, draw_curves(labeled, " or ".join(sorted(units)), players))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    try:
        tyro.cli(draw, args=arguments, prog="python -m agents.compare")
    except (CheckpointError, ImportError, OSError) as error:
        print(f"agents.compare: error: {error}", file=sys.stderr)
        return exit_code(error)
    return 0


if __name__ == "__main__":
    prepare_streams()
    sys.exit(main())
