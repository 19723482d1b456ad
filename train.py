"""Train on Way of the Dragon by self-play: `python train.py`, or `python train.py td`; see `--help`."""

from __future__ import annotations

import errno
import importlib
import inspect
import json
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from agents import checkpoint, report
from agents.checkpoint import CheckpointError
from agents.evaluate import Counts
from agents.runs import CHECKPOINT, RESULT, Stopped, alone, make_folder, options_that_are_code

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a file that cannot be written has met where more room is the cure."""

LEARNERS = {"ppo": "agents.training", "td": "agents.td", "rllib": "agents.rllib"}
"""The modules that learn, each with `Settings`, `PRESETS` and `Run`; the first one is the default."""


@dataclass
class _Origin:
    """Where the defaults of the settings come from."""

    preset: str = "quick"
    resume: Path | None = None


def parse(arguments: Sequence[str]) -> tuple[Any, Any]:
    """Return the learner, a module, and the settings that the command line asks for.

    Raises:
        CheckpointError: if there is no run to resume where it says, one of another learner, or one that names code.
        SystemExit: for `--help` and for wrong arguments.
    """
    named = arguments[0] if arguments and not arguments[0].startswith("-") else None
    if named and named not in LEARNERS:
        print(f"train.py: error: there is no learner {named!r}, but {', '.join(LEARNERS)}", file=sys.stderr)
        raise SystemExit(2)
    options = arguments[1:] if named else arguments
    origin, _ = tyro.cli(_Origin, args=options, add_help=False, return_unknown_args=True)
    name = named or next(iter(LEARNERS))
    if origin.resume:
        name = str(checkpoint.load(origin.resume / CHECKPOINT).get("learner", name))
        if (named or name) != name or name not in LEARNERS:
            known = named or " or ".join(LEARNERS)
            raise CheckpointError(f"the run in {origin.resume} is one of the learner {name}, not {known}")
    learner: Any = importlib.import_module(LEARNERS[name])
    presets = learner.PRESETS
    default = learner.Run.read_settings(origin.resume) if origin.resume else presets.get(origin.preset)
    settings = tyro.cli(
        learner.Settings,
        prog=f"{Path(sys.argv[0]).name} {named or ''}",
        description=f"{inspect.getdoc(learner.Settings)}\n\nLearners: {', '.join(LEARNERS)}; this is {name}. "
        "Its name may be the first argument.",
        args=options,
        default=default or presets["quick"],
        config=(tyro.conf.OmitArgPrefixes,),
    )
    given = {option.partition("=")[0] for option in options}
    if origin.resume and (code := options_that_are_code(settings)) and not given >= set(code[::2]):
        path, again = origin.resume / CHECKPOINT, shlex.join(code)
        raise CheckpointError(
            f"{path} names code to be run: {again}. If you trust it, say so again: add {again}"
        )
    now = f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    return learner, replace(settings, folder=settings.folder or Path("runs", now))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 1 if the disk is full, 2 for a user's mistake, 130 if interrupted."""
    try:
        learner, settings = parse(sys.argv[1:] if arguments is None else arguments)
        if not settings.resume:
            make_folder(settings.folder)
        with alone(settings.resume or settings.folder):
            return work(learner, settings, Console())
    except (CheckpointError, ImportError, OSError) as error:
        print(f"train.py: error: {error}", file=sys.stderr)
        return 1 if getattr(error, "errno", None) in NO_ROOM else 2
    except KeyboardInterrupt:
        print("train.py: interrupted before the training; the same command begins it", file=sys.stderr)
        return 130


def work(learner: Any, settings: Any, console: Console) -> int:
    """Begin or resume a run, train, and say what comes next; return the exit code."""
    run = learner.Run.resume(settings) if settings.resume else learner.Run.begin(settings)
    console.print(f"Run folder {run.folder}", soft_wrap=True, markup=False)
    again = options_that_are_code(settings) + (
        ["--ray", settings.ray] if getattr(settings, "ray", None) else []
    )
    resume = report.command(Path.cwd(), "python", sys.argv[0], "--resume", run.folder, *again)
    try:
        train(run, console)
    except (Stopped, KeyboardInterrupt):
        console.print(f"Interrupted. This goes on: {resume}", soft_wrap=True, markup=False)
        return 130
    except OSError as error:
        full = error.errno in NO_ROOM
        print(
            f"train.py: error: {error}. The last checkpoint in {run.folder} is intact; "
            f"once {'there is room for files' if full else 'that is mended'}, this goes on from it: {resume}",
            file=sys.stderr,
        )
        return 1 if full else 2
    rules = run.settings.rules
    lines = report.what_next(run.folder, rules)
    console.print("What comes next:", *lines, sep="\n  ", soft_wrap=True, markup=False)
    return 0


@contextmanager
def stopping(run: Any, console: Console) -> Iterator[None]:
    """Let Ctrl-C and a request to terminate stop the run after what is in progress."""

    def stop(signum: int, frame: FrameType | None) -> None:
        if run.stop:
            raise KeyboardInterrupt
        run.stop = True
        console.print("Stopping soon; once more stops at once.")

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def columns() -> list[ProgressColumn]:
    """Return what stands beside the progress bar; where the line is narrow, the bar gives way."""
    whole = Column(no_wrap=True)
    return [
        TextColumn("{task.percentage:>3.0f} %"),
        BarColumn(None, table_column=Column(ratio=1)),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(whole),
        TextColumn("left"),
        TimeRemainingColumn(table_column=whole),
    ]


def train(run: Any, console: Console) -> None:
    """Train and measure, with progress; leave the results in the run folder."""
    with Progress(*columns(), console=console, expand=True) as progress:
        task = progress.add_task("training", total=run.total, text="")
        before = run.done

        def show(run: Any) -> None:
            latest = run.curve[-min(2, len(run.references)) :]
            wins = ", ".join(f"{row[2]} {row[4] / row[3]:.0%}" for row in latest)
            speed = (run.done - before) / max(progress.tasks[task].elapsed or 0, 1)
            progress.update(task, completed=run.done, text=f"{speed:,.0f} {run.unit}/s, wins: {wins}")

        try:
            with stopping(run, console):
                run.train(show)
        finally:
            picture = report.draw_curve(run.curve, run.unit, run.settings.rules.players)
            checkpoint.write(run.folder / "curve.png", picture)
    results = measure(run, console)
    content = {name: counts._asdict() for name, counts in results.items()}
    checkpoint.write(run.folder / RESULT, (json.dumps(content, indent=2) + "\n").encode())
    console.print(report.table(results, run.settings.rules.players))
    with console.status("comparing with perfect play"):
        if exact := report.grade(run.folder, run.settings.rules):
            console.print(exact, soft_wrap=True, markup=False)


def measure(run: Any, console: Console) -> dict[str, Counts]:
    """Measure the result, with progress."""
    with Progress(*columns(), console=console, expand=True, transient=True) as progress:
        tasks = {
            name: progress.add_task(name, start=False, total=run.final_games, text=f"games against {name}")
            for name in run.references
        }

        def show(name: str, over: int) -> None:
            progress.start_task(tasks[name])
            progress.update(tasks[name], completed=over)

        results: dict[str, Counts] = run.finish(show)
        return results


if __name__ == "__main__":
    sys.exit(main())
