"""Sweeps with Ray Tune: `python -m agents.tune td --trials 30 --folder runs/sweep`, on one or many machines.

A *trial* is a run of `train.py` with settings that are drawn from `RANGES`; all trials have the same seed. It has a run
folder of its own in the folder of the sweep, named after what was drawn. So a sweep that was interrupted, by whatever,
goes on by the same command: finished trials are not repeated, begun ones are resumed, and more can be added. Nodes of
a cluster must find the checkout and the folder under the same paths.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

import train
from agents import checkpoint, report
from agents.checkpoint import CheckpointError
from agents.runs import CHECKPOINT, REFERENCES, RESULT, alone
from wotd_env.adapters.ray import connect
from wotd_env.core.arguments import check_integer
from wotd_env.extras import needed_for
from wotd_env.policies import POLICIES

with needed_for("a sweep", "tune"):
    from ray import tune
    from ray.tune.search.basic_variant import BasicVariantGenerator

RANGES = {
    "ppo": {
        "learning_rate": tune.loguniform(1e-3, 1e-2),
        "entropy": tune.loguniform(0.03, 0.5),
        "epochs": tune.randint(1, 7),
    },
    "td": {
        "learning_rate": tune.loguniform(1e-3, 1e-2),
        "td_lambda": tune.uniform(0.5, 1.0),
        "explore": tune.loguniform(0.01, 0.2),
        "replay": tune.randint(2, 17),
    },
}
"""What is drawn for the trials of each learner."""


@dataclass(frozen=True)
class Sweep:
    """Train with settings drawn from ranges, side by side, and rank them by strength.

    The first argument may be the learner; options that are not listed here are those of train.py, for all trials. The
    same command goes on with an interrupted sweep.
    """

    trials: int = 16
    """Trainings."""

    folder: Path | None = None
    """Folder of the sweep; by default runs/sweep- and the time."""

    ray: str | None = None
    """Ray cluster to train on: its address, or auto for the one of this machine; by default a new one here."""

    def __post_init__(self) -> None:
        check_integer("trials", self.trials, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 1 if trials failed, 2 for a user's mistake, 130 if interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sweep, rest = tyro.cli(Sweep, args=words, prog="python -m agents.tune", return_unknown_args=True)
    try:
        learner, base = train.parse(rest)
        base = with_absolute_paths(base)
        if base.resume:
            raise CheckpointError("--resume is not for sweeps: the same command goes on with one")
        name = next(name for name, module in train.LEARNERS.items() if module == learner.__name__)
        if name not in RANGES:
            raise CheckpointError(f"there are ranges for {' and '.join(RANGES)}, not for {name}")
        folder = (sweep.folder or Path("runs", f"sweep-{datetime.now():%Y-%m-%d_%H-%M-%S}")).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        connect(sweep.ray)
    except (CheckpointError, ImportError, OSError) as error:
        print(f"agents.tune: error: {error}", file=sys.stderr)
        return 2
    console = Console()
    console.print(f"Folder of the sweep {folder}", soft_wrap=True)

    def trial(drawn: dict[str, Any]) -> None:
        """Train with settings that were drawn, and report the strength."""
        run_trial(name, replace(base, folder=folder / words_of(drawn)), rounded(drawn))

    results = tune.Tuner(
        tune.with_resources(trial, {"cpu": base.threads}),
        param_space=RANGES[name],
        tune_config=tune.TuneConfig(
            num_samples=sweep.trials,
            search_alg=BasicVariantGenerator(random_state=base.seed),
            metric="strength",
            mode="max",
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(folder),
            failure_config=tune.FailureConfig(max_failures=3),  # of nodes, above all
            verbose=1,
        ),
    ).fit()
    return show(results, name, folder, console)


def with_absolute_paths(base: Any) -> Any:
    """Return settings where policies are named by whole paths: a trial works in a folder of its own."""
    changed = {}
    for name in ("credit", "against", "init"):
        kind, colon, path = getattr(base, name, "none").rpartition(":")
        if Path(path).exists() and (colon or path not in POLICIES):
            changed[name] = f"{kind}{colon}{Path(path).absolute()}"
    return replace(base, **changed)


def rounded(drawn: dict[str, Any]) -> dict[str, Any]:
    """Return settings with three digits, so that people can name them."""
    return {name: value if isinstance(value, int) else float(f"{value:.3g}") for name, value in drawn.items()}


def words_of(drawn: dict[str, Any]) -> str:
    """Return the name of a trial: what was drawn for it."""
    return ",".join(f"{name}={value}" for name, value in rounded(drawn).items())


def run_trial(name: str, base: Any, drawn: dict[str, Any]) -> None:
    """Train as train.py does, or go on with that, and report to Tune.

    The strength is the share of games won against the strongest opponent that the learner is measured against.

    Args:
        name: of the learner.
        base: settings of all trials; `folder` is that of this one.
        drawn: what is set for this one.
    """
    learner = importlib.import_module(train.LEARNERS[name])
    settings = replace(base, **drawn)
    folder = settings.folder
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder):
        going_on = replace(settings, resume=folder)
        begun = (folder / CHECKPOINT).exists()
        if begun and (folder / RESULT).exists() and learner.Run.read_settings(folder) == going_on:
            counts = json.loads((folder / RESULT).read_text())
        else:
            run = learner.Run.resume(going_on) if begun else learner.Run.begin(settings)
            shown = len(run.curve)

            def progress(run: Any) -> None:
                nonlocal shown
                if len(run.curve) > shown:
                    shown = len(run.curve)
                    _, _, _, games, wins, *_ = run.curve[-1]
                    tune.report({"strength": wins / games, "trained": run.done / run.total})

            run.train(progress)
            counts = {other: c._asdict() for other, c in run.finish().items()}
            checkpoint.write(folder / RESULT, (json.dumps(counts, indent=2) + "\n").encode())
    opponent, counts = list(counts.items())[-1]
    strength = counts["wins"] / counts["games"]
    tune.report({"strength": strength, "trained": 1.0, "opponent": opponent, **counts})


def show(results: Any, name: str, folder: Path, console: Console) -> int:
    """Show the trials, the strongest first, and what comes next; return the exit code."""
    finished = [result for result in results if result.metrics and "wins" in result.metrics]
    finished.sort(key=lambda result: -result.metrics["strength"])
    table = Table(title=f"{len(finished)} of {len(results)} trials, 95 % intervals", title_justify="left")
    opponent = finished[0].metrics["opponent"] if finished else REFERENCES[-1]
    for column in (*RANGES[name], f"wins against {opponent}, %"):
        table.add_column(column, justify="right")
    for result in finished:
        drawn, counts = rounded(result.config), result.metrics
        table.add_row(*map(str, drawn.values()), report.in_percent(counts["wins"], counts["games"]))
    console.print(table)
    if finished:
        best = folder / words_of(finished[0].config)
        console.print("The strongest is the run", str(best), soft_wrap=True)
        console.print(
            "Part of that is luck, as of the best of many: new games say more, as those of wotd arena."
        )
    for error in results.errors:
        print(f"agents.tune: error: {error}", file=sys.stderr)
    if results.errors:
        return 1
    if len(finished) < len(results):
        console.print("Interrupted. The same command goes on, with", f"--folder {folder}", soft_wrap=True)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
