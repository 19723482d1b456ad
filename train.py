"""Train MaskablePPO on Way of the Dragon by self-play: `python train.py`, see `--help`."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from agents import checkpoint, report
from agents.checkpoint import CheckpointError
from agents.training import PRESETS, Run, Settings, Stopped, alone, make_folder, read_settings


@dataclass
class _Origin:
    """Where the defaults of the settings come from."""

    preset: Literal["quick", "full"] = "quick"
    resume: Path | None = None


def parse(arguments: Sequence[str] | None) -> Settings:
    """Return the settings that the command line asks for.

    Raises:
        CheckpointError: if there is no run to resume where it says.
        SystemExit: for `--help` and for wrong arguments.
    """
    origin, _ = tyro.cli(_Origin, args=arguments, add_help=False, return_unknown_args=True)
    default = read_settings(origin.resume) if origin.resume else PRESETS[origin.preset]
    settings = tyro.cli(Settings, args=arguments, default=default, config=(tyro.conf.OmitArgPrefixes,))
    now = f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    return replace(settings, folder=settings.folder or Path("runs", now))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 1 if the disk is full, 2 for a user's mistake, 130 if interrupted."""
    try:
        settings = parse(arguments)
        assert settings.folder is not None
        if not settings.resume:
            make_folder(settings.folder)
        with alone(settings.resume or settings.folder):
            return work(settings, Console())
    except (CheckpointError, OSError) as error:
        print(f"train.py: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("train.py: interrupted before the training", file=sys.stderr)
        return 130


def work(settings: Settings, console: Console) -> int:
    """Begin or resume a run, train, and say what comes next; return the exit code."""
    run = Run.resume(settings) if settings.resume else Run.begin(settings)
    console.print(f"Run folder {run.folder}; tensorboard --logdir {run.folder}", soft_wrap=True)
    resume = report.command(Path.cwd(), "python", sys.argv[0], "--resume", run.folder)
    try:
        train(run, console)
    except (Stopped, KeyboardInterrupt):
        console.print(f"Interrupted. This goes on: {resume}", soft_wrap=True)
        return 130
    except OSError as error:
        print(
            f"train.py: error: {error}. The last checkpoint in {run.folder} is intact; "
            f"once there is room for files, this goes on from it: {resume}",
            file=sys.stderr,
        )
        return 1
    console.print(
        "What comes next:", *report.what_next(run.folder, settings.rules), sep="\n  ", soft_wrap=True
    )
    return 0


@contextmanager
def stopping(run: Run, console: Console) -> Iterator[None]:
    """Let Ctrl-C and a request to terminate stop the run after the update in progress."""

    def stop(signum: int, frame: FrameType | None) -> None:
        if run.stop:
            raise KeyboardInterrupt
        run.stop = True
        console.print("Stopping after this update; once more stops at once.")

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def train(run: Run, console: Console) -> None:
    """Train and measure, with progress; leave the results in the run folder."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[text]}"), *times, console=console) as progress:
        task = progress.add_task("training", total=run.settings.decisions, text="")

        def show(run: Run) -> None:
            wins = ", ".join(f"{row[2]} {row[4] / row[3]:.0%}" for row in run.curve[-2:])
            speed = run.model.num_timesteps / max(run.seconds, 1)
            progress.update(task, completed=run.model.num_timesteps, text=f"{speed:,.0f}/s, wins: {wins}")

        try:
            with stopping(run, console):
                run.train(show)
        finally:
            picture = report.draw_curve(run.curve, run.settings.rules.players)
            checkpoint.write(run.folder / "curve.png", picture)
    with console.status(f"playing {run.settings.final_games:,} games against each of random and greedy"):
        results = run.measure(run.settings.final_games)
    content = {name: counts._asdict() for name, counts in results.items()}
    checkpoint.write(run.folder / "result.json", (json.dumps(content, indent=2) + "\n").encode())
    console.print(report.table(results, run.settings.rules.players))


if __name__ == "__main__":
    sys.exit(main())
