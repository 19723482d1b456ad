"""Overlay the learning curves of several runs: `python train.py compare RUN_FOLDER ...`.

Runs that differ only in their seeds give one curve: their mean strength against the strongest reference, with its 95 %
interval over the seeds. The curve of a single run has the interval over its games. This needs the extra `arena`.
"""

import json
from pathlib import Path
from typing import Annotated

import tyro

from agents import checkpoint
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.evaluate import Curves, Measurement, curves_of, draw_curves
from agents.loop import module_of
from wotd_env import files


def draw(runs: Annotated[tuple[Path, ...], tyro.conf.Positional], file: Path = Path("curves.png")) -> None:
    """Overlay the learning curves of several runs. Runs that differ only in their seeds give one curve.

    Args:
        runs: the run folders.
        file: the PNG file to write.
    """
    if not runs:
        raise CheckpointError("name the run folders to compare")
    found = [checkpoint.load(folder / CHECKPOINT)[1] for folder in runs]
    settings = [facts["settings"] | facts["settings"]["rules"] for facts in found]
    curves: Curves = {}
    for folder, facts, own in zip(runs, found, settings, strict=True):
        if not facts["curve"]:
            raise CheckpointError(f"the run in {folder} has no milestone yet: leave it out, or wait")
        opponent, curve = list(curves_of(Measurement(*row) for row in facts["curve"]).items())[-1]
        others = [s for s, other in zip(settings, found, strict=True) if other["learner"] == facts["learner"]]
        differing = [
            f"{name}={json.dumps(value)}"
            for name, value in own.items()
            if name not in ("seed", "rules") and any(other.get(name) != value for other in others)
        ]
        label = " ".join([f"{opponent}: {facts['learner']}", *differing])
        curves.setdefault(label, []).extend(curve)
    units = {module_of(facts["learner"]).Learner.unit for facts in found}
    labeled = {f"{label}, runs: {len(curve)}": curve for label, curve in curves.items()}
    files.write(file, draw_curves(labeled, " or ".join(sorted(units)), settings[0]["players"]))
