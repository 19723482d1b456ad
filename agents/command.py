"""The command `train.py`: read its arguments, train, and show progress and results."""

import argparse
import functools
import inspect
import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import Progress

from agents import checkpoint, evaluate, loop
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.loop import LEARNERS, REPLAY, Run, Stopped, module_of, opened, stopping
from agents.settings import REPEATED, SettingError
from wotd_env import Rules, files
from wotd_env.core.rules import essence, options_of
from wotd_env.evaluation import Evaluation
from wotd_env.policies import POLICIES
from wotd_env.process import FAILED, NO_ROOM, exit_code, shell_command

EARLY = 10.0  # seconds of training after which a log file gets a line with the speed and the time left


def parse(arguments: Sequence[str]) -> tuple[str, Any]:
    """Parse the command line; return the name of the learner and the settings of the run.

    Raises:
        CheckpointError: if the run to resume is missing or belongs to another learner.
        SettingError: if there is no such learner.
        SystemExit: for `--help` and for other wrong arguments.
    """
    named = arguments[0] if arguments and not arguments[0].startswith("-") else None
    if named and named not in LEARNERS:
        raise SettingError(f"unknown learner {named!r}; choose {', '.join(LEARNERS)}")
    options = arguments[1:] if named else arguments
    defaults = argparse.ArgumentParser(prog="train.py", add_help=False, allow_abbrev=False)
    defaults.add_argument("--preset", default="quick")
    defaults.add_argument("--resume", type=Path)
    origin, _ = defaults.parse_known_args(options)
    name = named or next(iter(LEARNERS))
    if origin.resume:
        name = str(checkpoint.load(origin.resume / CHECKPOINT)[1].get("learner", name))
        if (named or name) != name or name not in LEARNERS:
            known = named or " or ".join(LEARNERS)
            raise CheckpointError(f"the run in {origin.resume} has the learner {name}, not {known}")
    learner = module_of(name)
    presets = learner.PRESETS
    default = loop.read_settings(name, origin.resume) if origin.resume else presets.get(origin.preset)
    settings = tyro.cli(
        learner.Settings,
        prog=" ".join(["python", *_program(), *([named] if named else [])]),
        description=f"{inspect.getdoc(learner.Settings)}\n\nLearners: {', '.join(LEARNERS)}; this is {name}. "
        "The first argument is a learner, or compare, which draws the curves of several runs.",
        args=options,
        default=default or presets["quick"],
        config=(tyro.conf.OmitArgPrefixes,),
    )
    return name, replace(
        settings, folder=settings.folder or Path("runs", f"{datetime.now():%Y-%m-%d_%H-%M-%S}")
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 1 if the machine failed, 2 for a user's mistake, 130 if interrupted."""
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        if words[:1] == ["compare"]:
            tyro.cli(compare, args=words[1:], prog="python train.py compare")
            return 0
        name, settings = parse(words)
        with opened(name, settings) as run:
            return work(run, Console())
    except (CheckpointError, SettingError, ImportError, OSError) as error:
        print(f"train.py: error: {error}", file=sys.stderr)
        return exit_code(error)
    except MemoryError as error:
        print(f"train.py: error: not enough memory: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        why = "interrupted before training; start it again with the same command"
        print(f"train.py: {why}", file=sys.stderr)
        return 130


def compare(runs: Annotated[tuple[Path, ...], tyro.conf.Positional], file: Path = Path("curves.png")) -> None:
    """Overlay the learning curves of several runs. Runs that differ only in their seeds give one curve.

    Args:
        runs: the run folders.
        file: the PNG file to write.
    """
    if not runs:
        raise CheckpointError("name the run folders to compare")
    if file.suffix != ".png":
        raise SettingError(f"file must end in .png, got {file}")
    found = [checkpoint.load(folder / CHECKPOINT)[1] for folder in runs]
    settings = [facts["settings"] | facts["settings"]["rules"] for facts in found]
    curves: evaluate.Curves = {}
    for folder, facts, own in zip(runs, found, settings, strict=True):
        if not facts["curve"]:
            raise CheckpointError(f"the run in {folder} has no milestone yet: leave it out, or wait")
        by_opponent = evaluate.curves_of(evaluate.Measurement(*row) for row in facts["curve"])
        opponent, curve = list(by_opponent.items())[-1]  # the strongest reference
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
    files.write(file, evaluate.draw_curves(labeled, " or ".join(sorted(units)), settings[0]["players"]))


def work(run: Run, console: Console) -> int:
    """Train; then show the policy's strength, and commands to run next."""
    say = functools.partial(console.print, soft_wrap=True, markup=False)
    say(f"Run folder {run.folder}")
    if run.done >= run.total:
        say("All updates are done, so only the measurements are repeated. Train longer with --updates.")
    try:
        results = train(run, console)
    except (Stopped, KeyboardInterrupt):
        say(f"Interrupted. Resume with: {resume_command(run)}")
        return 130
    except OSError as error:
        print(
            f"train.py: error: {error}. The last checkpoint in {run.folder} is intact. "
            f"{'Make room on the disk' if error.errno in NO_ROOM else 'Fix that'}, then resume with: "
            f"{resume_command(run)}",
            file=sys.stderr,
        )
        return exit_code(error)
    rules = run.settings.rules
    say(f"Replay of a game by the trained policy: {run.folder / REPLAY}")
    say("Next commands:", *next_commands(run.folder, rules), sep="\n  ")
    with console.status("comparing with perfect play"):
        strength = evaluate.strength(policy_name(run.folder), rules, results)
    say(strength)
    return 0


def train(run: Run, console: Console) -> dict[str, Evaluation]:
    """Train, measure the strength, and write the results to the run folder."""
    unit = run.learner.unit
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(unit, total=run.total)
    rows, started, first = len(run.curve), time.perf_counter(), run.done
    early = console.is_terminal  # a bar shows the speed from the start
    compiled = False

    def show(run: Run) -> None:
        nonlocal rows, early, compiled, started, first
        if not compiled and run.done > first:  # the first update includes compilation
            compiled, started, first = True, time.perf_counter(), run.done
        bar.update(task, completed=run.done)
        taken = time.perf_counter() - started
        if not early and taken > EARLY and run.done > first:
            early, speed = True, (run.done - first) / taken
            left = (run.total - run.done) / speed / 60
            console.print(f"{speed:,.0f} {unit} per second, about {left:.0f} min left", soft_wrap=True)
        if len(run.curve) > rows:
            latest = run.curve[rows:]
            rows = len(run.curve)
            wins = ", ".join(f"{row.opponent} {row.wins / row.games:.0%}" for row in latest)
            done = latest[0].done  # can be less than run.done if the run was resumed
            console.print(f"{done / run.total:4.0%}  {done:,} {unit}, wins: {wins}", soft_wrap=True)

    try:
        with bar, stopping(run, console.print):
            loop.train(run, show)
    finally:
        picture = evaluate.draw_curves(evaluate.curves_of(run.curve), unit, run.settings.rules.players)
        files.write(run.folder / "curve.png", picture)
    opponents = ", ".join(loop.references(run))
    console.print(
        f"Measuring the share of games won against {opponents}, with 95 % intervals.", soft_wrap=True
    )
    with console.status("measuring"):
        results = loop.finish(run)
    for opponent, result in results.items():
        console.print(f"against {opponent}: {result}", soft_wrap=True)
    return results


def next_commands(folder: Path, rules: Rules) -> list[str]:
    """Return shell commands that measure the policy of a finished run. They must be run in the current folder."""
    name = policy_name(folder)
    lines = [command("wotd", "arena", name, "greedy", "planner", *options_of(rules))]
    if evaluate.has_equities(rules):
        lines.append(command("wotd", "analyze", name, *options_of(essence(rules))))
    return lines


def resume_command(run: Run) -> str:
    """Return the command that resumes a run."""
    names = [name for name in (*REPEATED, "ray") if getattr(run.settings, name, None) not in (None, "none")]
    again = [word for name in names for word in (f"--{name}", getattr(run.settings, name))]
    return command("python", *_program(), "--resume", run.folder, *again)


def policy_name(folder: Path) -> str:
    """Return the path of a run folder as a policy name, e.g. `./td` for `td`, which names a bundled policy."""
    return f"./{folder}" if str(folder) in POLICIES else str(folder)


def command(program: str, *arguments: str | Path) -> str:
    """Return a shell command for the current folder. It starts a program of this Python environment."""
    path, where = Path(sys.executable), Path.cwd()
    path = path if program == "python" else path.with_name(program)
    if shutil.which(program) != str(path):
        program = str(path.relative_to(where) if path.is_relative_to(where) else path)
    return shell_command(program, *arguments)


def _program() -> list[str]:
    """Return the arguments of `python` that start this program."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return ["-m", spec.name] if spec else [sys.argv[0]]
