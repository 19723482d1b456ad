"""Sweeps with Ray Tune: `python -m agents.tune td --trials 30 --folder runs/sweep`, on one or many machines.

A *trial* is a training run with settings drawn from `RANGES`; all trials have the same seed. The run folder of a trial
is in the folder of the sweep, and is named after the drawn settings. Repeat the command with a larger `--trials` to add
trials. All nodes of a cluster need the checkout and the folder of the sweep under the same paths.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from agents import loop
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.command import parse
from agents.evaluate import in_percent
from agents.settings import SettingError, kept
from wotd_env.adapters.ray import connect
from wotd_env.core.arguments import check_integer
from wotd_env.extras import needed_for
from wotd_env.process import exit_code, prepare_streams

with needed_for("a sweep", "tune"):
    from ray import tune
    from ray.tune.search.basic_variant import BasicVariantGenerator

RANGES = {
    "ppo": {
        "learning_rate": tune.loguniform(1e-3, 1e-2),
        "ent_coef": tune.loguniform(3e-3, 5e-2),
        "clip_coef": tune.loguniform(0.05, 0.5),
        "update_epochs": tune.randint(1, 5),
    },
    "td": {
        "learning_rate": tune.loguniform(1e-3, 1e-2),
        "td_lambda": tune.uniform(0.5, 1.0),
        "explore": tune.loguniform(0.01, 0.2),
        "replay": tune.randint(2, 17),
    },
    "sb3": {
        "learning_rate": tune.loguniform(3e-4, 3e-3),
        "ent_coef": tune.loguniform(1e-3, 3e-2),
        "gae_lambda": tune.uniform(0.8, 1.0),
        "n_epochs": tune.randint(1, 7),
    },
}


@dataclass(frozen=True)
class Sweep:
    """Train in parallel with settings drawn from ranges, and rank the trials by strength.

    The first argument may be the learner. The other options are those of train.py, for all trials. The same command
    continues an interrupted sweep.
    """

    trials: int = 16  # Number of trials.
    folder: Path | None = None  # Folder of the sweep; by default runs/sweep- followed by the time.
    # Address of the Ray cluster, or auto for the running one on this machine; by default a new one is started.
    ray: str | None = None

    def __post_init__(self) -> None:
        check_integer("trials", self.trials, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 1 if trials or the machine failed, 2 for a user's mistake, or 130."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sweep, rest = tyro.cli(Sweep, args=words, prog="python -m agents.tune", return_unknown_args=True)
    try:
        name, base = parse(rest)
        if base.resume:
            raise CheckpointError("--resume is not for sweeps: the same command continues a sweep")
        folder = (sweep.folder or Path("runs", f"sweep-{datetime.now():%Y-%m-%d_%H-%M-%S}")).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        base = replace(base, folder=folder)
        loop.module_of(name).Learner(base)  # a wrong setting raises an error here, before any trial starts
        connect(sweep.ray)
    except (CheckpointError, SettingError, ImportError, OSError) as error:
        print(f"agents.tune: error: {error}", file=sys.stderr)
        return exit_code(error)
    console, here = Console(), Path.cwd()
    console.print(f"Folder of the sweep {folder}", soft_wrap=True)

    def trial(drawn: dict[str, Any]) -> None:
        os.chdir(here)  # Ray starts a trial in another folder, but settings may contain relative paths
        settings = rounded(drawn)
        run_trial(name, replace(base, folder=trial_folder(folder, settings), **settings))

    search = BasicVariantGenerator(random_state=base.seed)
    config = tune.TuneConfig(num_samples=sweep.trials, search_alg=search, metric="strength", mode="max")
    failures = tune.FailureConfig(max_failures=3)  # retry, because most failures are failures of nodes
    run = tune.RunConfig(name="tune", storage_path=str(folder), failure_config=failures, verbose=1)
    task = tune.with_resources(trial, {"cpu": 1 + getattr(base, "threads", 1)})
    results = tune.Tuner(task, param_space=RANGES[name], tune_config=config, run_config=run).fit()
    return show(results, name, folder, console)


def rounded(drawn: dict[str, Any]) -> dict[str, Any]:
    """Round drawn settings to three significant digits, so that the names of trials are short."""
    return {name: value if isinstance(value, int) else float(f"{value:.3g}") for name, value in drawn.items()}


def trial_folder(folder: Path, settings: dict[str, Any]) -> Path:
    """Return the run folder of a trial, e.g. `SWEEP/learning_rate=0.002,update_epochs=3`."""
    return folder / ",".join(f"{name}={value}" for name, value in settings.items())


def run_trial(name: str, settings: Any) -> None:
    """Start or resume a trial, and report its strength: the share of games won against the strongest reference."""
    result = settings.folder / loop.RESULT
    if (settings.folder / CHECKPOINT).is_file():
        started = loop.read_settings(name, settings.folder)
        if kept(started) != kept(settings):
            raise CheckpointError(
                f"the run in {settings.folder} was started with other settings; remove the folder"
            )
        settings = started
    if not result.is_file():
        with loop.opened(name, settings) as run:

            def progress(run: loop.Run) -> None:
                last = run.curve[-1]
                if last.done == run.done:
                    tune.report({"strength": last.wins / last.games, "trained": run.done / run.total})

            loop.train(run, progress)
            loop.finish(run)
    opponent, counts = list(json.loads(result.read_text()).items())[-1]
    tune.report({"strength": counts["share"], "trained": 1.0, "opponent": opponent, **counts})


def show(results: Any, name: str, folder: Path, console: Console) -> int:
    """Show the trials, the strongest first; return the exit code."""
    finished = [result for result in results if result.metrics and "wins" in result.metrics]
    finished.sort(key=lambda result: -result.metrics["strength"])
    table = Table(title=f"{len(finished)} of {len(results)} trials, 95 % intervals", title_justify="left")
    for column in (*RANGES[name], "against", "wins, %"):
        table.add_column(column, justify="right")
    for result in finished:
        counts = result.metrics
        wins = in_percent(counts["wins"], counts["games"])
        table.add_row(*map(str, rounded(result.config).values()), counts["opponent"], wins)
    console.print(table)
    if finished:
        best = trial_folder(folder, rounded(finished[0].config))
        advice = "The best of many trials is partly lucky; measure it again with wotd arena."
        console.print(f"The strongest is the run {best}\n{advice}", soft_wrap=True)
    for error in results.errors:
        print(f"agents.tune: error: {error}", file=sys.stderr)
    if results.errors:
        return 1
    if len(finished) < len(results):
        console.print("Interrupted. Continue with the same command and", f"--folder {folder}", soft_wrap=True)
        return 130
    return 0


if __name__ == "__main__":
    prepare_streams()
    sys.exit(main())
