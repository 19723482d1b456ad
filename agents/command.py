"""The command `train.py`: read its arguments, train, and show progress and results."""

from __future__ import annotations

import errno
import importlib
import inspect
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
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

from agents import checkpoint, evaluate
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.evaluate import Counts
from agents.runs import LEARNERS, Run, Stopped, opened, stopping
from agents.settings import SettingError, code_options
from wotd_env import Rules, files
from wotd_env.policies import POLICIES

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The values of errno that mean that the disk is full."""


@dataclass
class _Origin:
    """The origin of the defaults of the settings."""

    preset: str = "quick"
    resume: Path | None = None


def parse(arguments: Sequence[str], learners: dict[str, str] = LEARNERS) -> tuple[Any, Any]:
    """Return the learner, a module, and its settings from the command line.

    Raises:
        CheckpointError: if the run to resume is missing, has another learner, or names code without consent.
        SystemExit: for `--help` and for wrong arguments.
    """
    named = arguments[0] if arguments and not arguments[0].startswith("-") else None
    if named and named not in learners:
        print(f"train.py: error: unknown learner {named!r}; choose {', '.join(learners)}", file=sys.stderr)
        raise SystemExit(2)
    options = arguments[1:] if named else arguments
    origin, _ = tyro.cli(_Origin, args=options, add_help=False, return_unknown_args=True)
    name = named or next(iter(learners))
    if origin.resume:
        name = str(checkpoint.load(origin.resume / CHECKPOINT).get("learner", name))
        if (named or name) != name or name not in learners:
            known = named or " or ".join(learners)
            raise CheckpointError(f"the run in {origin.resume} has the learner {name}, not {known}")
    learner: Any = importlib.import_module(learners[name])
    presets = learner.PRESETS
    default = learner.Run.read_settings(origin.resume) if origin.resume else presets.get(origin.preset)
    settings = tyro.cli(
        learner.Settings,
        prog=" ".join(["python", *_program(), *([named] if named else [])]),
        description=f"{inspect.getdoc(learner.Settings)}\n\nLearners: {', '.join(learners)}; this is {name}. "
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


def main(arguments: Sequence[str] | None = None, learners: dict[str, str] = LEARNERS) -> int:
    """Run the command; return its exit code: 0, 1 if the disk is full, 2 for a user's mistake, 130 if interrupted."""
    try:
        learner, settings = parse(sys.argv[1:] if arguments is None else arguments, learners)
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
    """Train, show the next commands and the strength; return the exit code."""
    console.print(f"Run folder {run.folder}", soft_wrap=True, markup=False)
    try:
        results = train(run, console)
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
    rules = run.settings.rules
    console.print("What comes next:", *what_next(run.folder, rules), sep="\n  ", soft_wrap=True, markup=False)
    with console.status("comparing with perfect play"):
        strength = evaluate.strength(policy_name(run.folder), rules, results)
    console.print(strength, soft_wrap=True, markup=False)
    return 0


def train(run: Run, console: Console) -> dict[str, Counts]:
    """Train and measure with progress; leave the results in the run folder."""
    try:
        with progress_of(run, console) as show, stopping(run, console.print):
            run.train(show)
    finally:
        picture = evaluate.draw_curve(run.curve, run.unit, run.settings.rules.players)
        files.write(run.folder / "curve.png", picture)
    results = measure(run, console)
    console.print(evaluate.table(results, run.settings.rules.players))
    return results


# ------------------------------------------------------------------------------------------------------------ progress


@contextmanager
def progress_of(run: Run, console: Console) -> Iterator[Callable[[Run], None]]:
    """Yield a function that shows progress: as a bar in a terminal, otherwise as a line at each milestone.

    Both say once, after the second update, how long the training takes.
    """
    updates, shown, start = -1, -1, (0.0, 0)

    def pace(run: Run) -> tuple[float, str]:
        """Return decisions or turns per second, and the time left in words; 0 and nothing before the second update."""
        nonlocal updates, start
        updates += 1
        if updates < 2:  # the first update compiles kernels, so the clock starts after it
            start = time.perf_counter(), run.done
            return 0.0, ""
        speed = (run.done - start[1]) / (time.perf_counter() - start[0])
        minutes = max(run.total - run.done, 0) / speed / 60
        left = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
        left = f"{60 * minutes:.0f} s" if minutes < 1 else left
        if updates == 2 and run.done < run.total:
            console.print(
                f"About {left} to the end of {run.total:,} {run.unit}, at {speed:,.0f} {run.unit}/s."
            )
        return speed, left

    if not console.is_terminal:

        def show_line(run: Run) -> None:
            nonlocal shown
            _, left = pace(run)
            if run.milestone > shown:
                shown = run.milestone
                line = f"{run.done / run.total:4.0%}  {run.done:,} {run.unit}, wins: {wins(run)}"
                line += f", {left} left" if left and run.done < run.total else ""
                console.print(line, soft_wrap=True)

        yield show_line
        return
    with Progress(*columns(), console=console, expand=True) as progress:
        task = progress.add_task("training", total=run.total, text="")

        def show_bar(run: Run) -> None:
            speed, _ = pace(run)
            text = f"{speed:,.0f} {run.unit}/s, wins: {wins(run, 2)}"
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
    games = run.settings.final_games
    if not console.is_terminal:
        console.print(f"Measuring: {games:,} games against each of {', '.join(run.references)}.")
        return run.finish()
    with Progress(*columns(), console=console, expand=True, transient=True) as progress:
        tasks = {
            name: progress.add_task(name, start=False, total=games, text=f"games against {name}")
            for name in run.references
        }

        def show(name: str, over: int) -> None:
            progress.start_task(tasks[name])
            progress.update(tasks[name], completed=over)

        return run.finish(show)


# ---------------------------------------------------------------------------------------------------- the next commands


def what_next(folder: Path, rules: Rules) -> list[str]:
    """Return the commands that measure a finished run, for a shell in the current folder."""
    lines = []
    if not evaluate.has_arena():
        extra = f"{Path(__file__).parent.parent}[arena]"
        lines.append(command("python", "-m", "pip", "install", "--editable", extra))
    name = policy_name(folder)
    lines.append(command("wotd", "arena", name, "greedy", "planner", *options(rules)))
    if evaluate.solved(rules):
        lines.append(command("wotd", "analyze", name, "--spaces", str(rules.spaces)))
    return lines


def resume_command(run: Run) -> str:
    """Return the command that resumes a run."""
    again = [word for option in code_options(run.settings).items() for word in option]
    if ray := getattr(run.settings, "ray", None):
        again += ["--ray", ray]
    return command("python", *_program(), "--resume", run.folder, *again)


def policy_name(folder: Path) -> str:
    """Return the policy name of a run folder. A folder named like a policy gets a leading `./`."""
    return f"./{folder}" if str(folder) in POLICIES else str(folder)


def command(program: str, *arguments: str | Path) -> str:
    """Return a command line that starts a program of this Python's environment, for a shell in the current folder."""
    path, where = Path(sys.executable), Path.cwd()
    path = path if program == "python" else path.with_name(program)
    if shutil.which(program) != str(path):
        program = str(path.relative_to(where) if path.is_relative_to(where) else path)
    return shlex.join([program, *map(str, arguments)])


def options(rules: Rules) -> list[str]:
    """Return the command-line options for these rules."""
    words = []
    for field in fields(rules):
        if (value := getattr(rules, field.name)) != field.default:
            words.append(f"--{field.name.replace('_', '-')}")
            if value is not True:
                words.append(",".join(value) if isinstance(value, tuple) else str(value))
    return words


def _program() -> list[str]:
    """Return the arguments of Python that start this program: `train.py`, or -m and a module."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return ["-m", spec.name] if spec else [sys.argv[0]]
