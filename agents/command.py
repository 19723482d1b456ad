"""The command `train.py`: read its arguments, train, and show progress and results."""

from __future__ import annotations

import errno
import importlib
import inspect
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
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
from agents.folder import CHECKPOINT
from agents.runs import LEARNERS, Run, Stopped, opened, stopping
from agents.settings import SettingError, code_options
from wotd_env import files

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The values of errno that mean that the disk is full."""


@dataclass
class _Origin:
    """Where the defaults of the settings come from."""

    preset: str = "quick"
    resume: Path | None = None


def parse(arguments: Sequence[str]) -> tuple[Any, Any]:
    """Return the learner, a module, and its settings from the command line.

    Raises:
        CheckpointError: if the run to resume is missing, has another learner, or names code without consent.
        SystemExit: for `--help` and for wrong arguments.
    """
    named = arguments[0] if arguments and not arguments[0].startswith("-") else None
    if named and named not in LEARNERS:
        print(f"train.py: error: unknown learner {named!r}; choose {', '.join(LEARNERS)}", file=sys.stderr)
        raise SystemExit(2)
    options = arguments[1:] if named else arguments
    origin, _ = tyro.cli(_Origin, args=options, add_help=False, return_unknown_args=True)
    name = named or next(iter(LEARNERS))
    if origin.resume:
        name = str(checkpoint.load(origin.resume / CHECKPOINT).get("learner", name))
        if (named or name) != name or name not in LEARNERS:
            known = named or " or ".join(LEARNERS)
            raise CheckpointError(f"the run in {origin.resume} has the learner {name}, not {known}")
    learner: Any = importlib.import_module(LEARNERS[name])
    presets = learner.PRESETS
    default = learner.Run.read_settings(origin.resume) if origin.resume else presets.get(origin.preset)
    settings = tyro.cli(
        learner.Settings,
        prog=f"train.py {named or ''}",
        description=f"{inspect.getdoc(learner.Settings)}\n\nLearners: {', '.join(LEARNERS)}; this is {name}. "
        "The first argument chooses the learner.",
        args=options,
        default=default or presets["quick"],
        config=(tyro.conf.OmitArgPrefixes,),
    )
    if origin.resume:
        ask_consent(settings, {option.partition("=")[0] for option in options})
    now = f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    return learner, replace(settings, folder=settings.folder or Path("runs", now))


def ask_consent(settings: Any, given: set[str]) -> None:
    """Check that the user repeats each option that names code, instead of trusting a checkpoint.

    Args:
        settings: the settings of a run to resume.
        given: the options on the command line.

    Raises:
        CheckpointError: naming the options to add.
    """
    code = code_options(settings)
    if not given >= code.keys():
        again = shlex.join(word for option in code.items() for word in option)
        raise CheckpointError(
            f"{settings.resume / CHECKPOINT} names code that would be run: {again}. "
            f"If you trust it, repeat that: add {again}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 1 if the disk is full, 2 for a user's mistake, 130 if interrupted."""
    try:
        learner, settings = parse(sys.argv[1:] if arguments is None else arguments)
        with opened(learner.Run, settings) as run:
            return work(run, Console())
    except (CheckpointError, SettingError, ImportError, OSError) as error:
        print(f"train.py: error: {error}", file=sys.stderr)
        return 1 if getattr(error, "errno", None) in NO_ROOM else 2
    except KeyboardInterrupt:
        print(
            "train.py: interrupted before the training; start it again with the same command", file=sys.stderr
        )
        return 130


def work(run: Run, console: Console) -> int:
    """Train, show the result and the next commands; return the exit code."""
    console.print(f"Run folder {run.folder}", soft_wrap=True, markup=False)
    try:
        train(run, console)
    except (Stopped, KeyboardInterrupt):
        console.print(f"Interrupted. Resume with: {resume_command(run)}", soft_wrap=True, markup=False)
        return 130
    except OSError as error:
        full = error.errno in NO_ROOM
        print(
            f"train.py: error: {error}. The last checkpoint in {run.folder} is intact. "
            f"{'Make room on the disk' if full else 'Fix that'}, then resume with: {resume_command(run)}",
            file=sys.stderr,
        )
        return 1 if full else 2
    lines = report.what_next(run.folder, run.settings.rules)
    console.print("What comes next:", *lines, sep="\n  ", soft_wrap=True, markup=False)
    return 0


def resume_command(run: Run) -> str:
    """Return the command that resumes a run."""
    again = [word for option in code_options(run.settings).items() for word in option]
    if ray := getattr(run.settings, "ray", None):
        again += ["--ray", ray]
    return report.command(Path.cwd(), "python", sys.argv[0], "--resume", run.folder, *again)


def train(run: Run, console: Console) -> None:
    """Train and measure with progress; leave the results in the run folder."""
    try:
        with progress_of(run, console) as show, stopping(run, console.print):
            run.train(show)
    finally:
        picture = report.draw_curve(run.curve, run.unit, run.settings.rules.players)
        files.write(run.folder / "curve.png", picture)
    results = measure(run, console)
    console.print(report.table(results, run.settings.rules.players))
    with console.status("comparing with perfect play"):
        if exact := report.grade(run.folder, run.settings.rules):
            console.print(exact, soft_wrap=True, markup=False)


# ------------------------------------------------------------------------------------------------------------ progress


class Pace:
    """The speed of a training, from its updates.

    The first update compiles kernels, so the clock starts after it.
    """

    def __init__(self) -> None:
        self.updates = -1
        self._start = self._now = (0.0, 0)

    def note(self, done: int) -> None:
        """Note that an update has ended; the first call comes before the first update."""
        self.updates += 1
        self._now = time.perf_counter(), done
        if self.updates < 2:
            self._start = self._now

    @property
    def speed(self) -> float:
        """Decisions or turns a second; 0 before the second update."""
        seconds, done = self._now[0] - self._start[0], self._now[1] - self._start[1]
        return done / seconds if seconds > 0 else 0.0

    def left(self, total: int) -> str:
        """Return the time left in words; empty before the second update."""
        if not self.speed:
            return ""
        minutes = max(total - self._now[1], 0) / self.speed / 60
        if minutes < 1:
            return f"{60 * minutes:.0f} s"
        return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


@contextmanager
def progress_of(run: Run, console: Console) -> Iterator[Callable[[Run], None]]:
    """Yield a function that shows progress: as a bar in a terminal, otherwise as a line at each milestone.

    Both say once, after the second update, how long the training takes.
    """
    pace = Pace()

    def note(run: Run) -> None:
        pace.note(run.done)
        if pace.updates == 2 and run.done < run.total:
            console.print(
                f"About {pace.left(run.total)} to the end of {run.total:,} {run.unit}, "
                f"at {pace.speed:,.0f} {run.unit}/s."
            )

    if not console.is_terminal:
        shown = -1

        def show_line(run: Run) -> None:
            nonlocal shown
            note(run)
            if run.milestone > shown:
                shown = run.milestone
                left = pace.left(run.total) if run.done < run.total else ""
                line = f"{run.done / run.total:4.0%}  {run.done:,} {run.unit}, wins: {wins(run)}"
                console.print(f"{line}, {left} left" if left else line, soft_wrap=True)

        yield show_line
        return
    with Progress(*columns(), console=console, expand=True) as progress:
        task = progress.add_task("training", total=run.total, text="")

        def show_bar(run: Run) -> None:
            note(run)
            text = f"{pace.speed:,.0f} {run.unit}/s, wins: {wins(run, 2)}"
            progress.update(task, completed=run.done, text=text)

        yield show_bar


def wins(run: Run, strongest: int = 3) -> str:
    """Return the shares of games won at the last milestone, against the strongest references."""
    latest = run.curve[-min(strongest, len(run.references)) :]
    return ", ".join(f"{row.opponent} {row.wins / row.games:.0%}" for row in latest)


def columns() -> list[ProgressColumn]:
    """Return the columns of the progress bar. In a narrow terminal the bar becomes shorter."""
    whole = Column(no_wrap=True)
    return [
        TextColumn("{task.percentage:>3.0f} %"),
        BarColumn(None, table_column=Column(ratio=1)),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(whole),
        TextColumn("left"),
        TimeRemainingColumn(table_column=whole),
    ]


def measure(run: Run, console: Console) -> dict[str, Counts]:
    """Measure the result, with progress."""
    if not console.is_terminal:
        console.print(f"Measuring: {run.final_games:,} games against each of {', '.join(run.references)}.")
        return run.finish()
    with Progress(*columns(), console=console, expand=True, transient=True) as progress:
        tasks = {
            name: progress.add_task(name, start=False, total=run.final_games, text=f"games against {name}")
            for name in run.references
        }

        def show(name: str, over: int) -> None:
            progress.start_task(tasks[name])
            progress.update(tasks[name], completed=over)

        return run.finish(show)
