"""Shared by the subcommands: exit codes, error messages, progress bars, checks before long work."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from wotd_env import files

if TYPE_CHECKING:
    from wotd_env.core.game import Game
    from wotd_env.core.rules import Rules
    from wotd_env.core.state import States
    from wotd_env.policy import Policy

__all__ = [
    "FAILED",
    "FORFEITS",
    "HOUR",
    "INTERRUPTED",
    "PICTURES",
    "WRONG_USE",
    "check_range",
    "check_writable",
    "cores",
    "explained",
    "fail",
    "narrate",
    "progress_bar",
    "ready_policies",
    "replacing",
    "say",
]

FAILED, WRONG_USE, FORFEITS, INTERRUPTED = 1, 2, 3, 130
"""Exit codes."""

HOUR = 3600  # seconds

PICTURES = (".png", ".svg", ".pdf")
"""File name endings of pictures."""


def fail(code: int, message: object) -> NoReturn:
    """End the command with a message and an exit code."""
    say(f"Error: {message}", err=True)
    raise typer.Exit(code)


def say(text: str, *, err: bool = False) -> None:
    """Print text. In a terminal, lines are wrapped between words and continue below their last column."""
    if (sys.stderr if err else sys.stdout).isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(line if len(line) <= width else _wrapped(line, width) for line in text.split("\n"))
    typer.echo(text, err=err)


def _wrapped(line: str, width: int) -> str:
    columns = re.match(r"(.*\s\s)?", line)  # columns have at least two spaces between them
    indent = " " * min(columns.end() if columns else 0, width // 2)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


@contextmanager
def explained(kept: str = "") -> Iterator[None]:
    """Turn user errors into a message and an exit code. `kept` is added to the message of an interruption."""
    try:
        yield
    except (typer.Exit, BrokenPipeError):
        raise
    except (ValueError, OSError, ImportError) as error:
        from wotd_env.core.game import IllegalActionError

        # A policy, not the user, causes an illegal action.
        fail(FAILED if isinstance(error, IllegalActionError) else WRONG_USE, error)
    except (sqlite3.Error, RuntimeError) as error:
        fail(FAILED, error)
    except KeyboardInterrupt:
        say(f"Interrupted. {kept}".rstrip(), err=True)
        raise typer.Exit(INTERRUPTED) from None


def ready_policies(names: list[str], trust: bool, rules: Rules | None = None) -> dict[str, Policy]:
    """Return policies by name.

    Args:
        names: of the policies.
        trust: see `wotd_env.make_policy`.
        rules: of the games to play. With them, unsuitable policies and a missing table of `oracle` are found before
            the first game.

    Raises:
        ValueError: for any exception in a user's own module.
    """
    from wotd_env import Game, make_policy
    from wotd_env.policies.oracle import Oracle
    from wotd_env.policy import check_plays

    made = {}
    for name in names:
        try:
            made[name] = make_policy(name, trust=trust)
        except (ValueError, OSError, ImportError):
            raise
        except Exception as error:
            raise ValueError(f"policy {name!r} cannot be made: {type(error).__name__}: {error}") from error
    if rules is not None:
        for name, policy in made.items():
            try:
                check_plays(policy, rules)
            except ValueError:
                raise
            except Exception as error:
                told = f"cannot be asked for its rules: {type(error).__name__}: {error}"
                raise ValueError(f"policy {name!r} {told}") from error
            if isinstance(policy, Oracle):
                policy.table(Game(rules))
    return made


@contextmanager
def progress_bar(unit: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; yield the function f(done, total) that updates it."""
    columns = (
        BarColumn(None, table_column=Column(min_width=8, ratio=1)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        _Rate(unit if len(unit) <= 24 else f"{unit[:23]}…", Column(no_wrap=True)),  # 80 characters in all
        TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet, expand=True) as bar:
        task = bar.add_task("", total=None, rate="")
        first: list[float] = []  # done and time at the first call; earlier work does not count for the rate

        def move(done: int, total: int) -> None:
            now = time.monotonic()
            if not first:
                first[:] = done, now
            rate = (done - first[0]) / (now - first[1]) if done > first[0] and now > first[1] else 0
            bar.update(task, completed=done, total=total, rate=f", {rate:,.0f}/s" if rate >= 1 else "")

        yield move


class _Rate(ProgressColumn):
    """Unit and mean rate, followed by `left` or `took` for the time in the next column."""

    def __init__(self, unit: str, column: Column) -> None:
        super().__init__(column)
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{self._unit}{task.fields['rate']}, {'took' if task.finished else 'left'}")


def narrate(game: Game, names: Sequence[str], steps: Iterable[tuple[States, int | None]]) -> Iterator[str]:
    """Yield a game in words, turn by turn.

    Args:
        game: the rules, with forced decisions.
        names: of the players, by seat.
        steps: the positions, STATE (1,), with the decision taken in each; None in the last one.
    """
    from wotd_env.core.position import SEATS
    from wotd_env.core.words import show_dice
    from wotd_env.notation import position
    from wotd_env.rendering.text import render_text, seat_names

    names = seat_names(names, game.rules.players)
    lines: list[str] = []
    turn = -1
    for state, action in steps:
        if state["turn"][0] != turn or action is None:
            if lines:
                yield "\n".join([*lines, ""])
            turn = int(state["turn"][0])
            lines = [render_text(game, state, names=names), position(game.rules, state), ""]
        if action is not None:
            seat, dice = int(state["player"][0]), show_dice(state["dice"][0])
            lines.append(f"{names[seat]} ({SEATS[seat]}), {dice}: {game.describe_action(state, action)}")
    yield "\n".join(lines).rstrip()


def check_writable(file: Path, *endings: str) -> None:
    """Check that a file can be written, without creating or changing anything.

    Raises:
        ValueError: if the name has none of the endings.
        OSError: if the file cannot be written.
    """
    if file.suffix not in endings:
        raise ValueError(f"the output file must end in {', '.join(endings)}, got {file}")
    try:
        target = file.resolve()  # the target of a link
        if not target.parent.exists():
            raise FileNotFoundError(f"cannot write {file.name}: no folder {file.parent}")
        if not target.parent.is_dir():
            raise NotADirectoryError(f"cannot write {file.name}: {file.parent} is not a folder")
        if not target.exists():
            with tempfile.TemporaryFile(dir=target.parent):
                pass
        elif target.is_file():
            with target.open("ab"):
                pass
        else:
            raise IsADirectoryError(f"{file} exists and is not a regular file")
    except OSError as error:
        if error.errno is None:  # raised above
            raise
        raise type(error)(f"{file} cannot be written: {error.strerror}") from None


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a temporary path whose file replaces another file, see `wotd_env.files.replacing`.

    Raises:
        OSError: saying that the file cannot be written, and why; an older file is unchanged.
    """
    try:
        with files.replacing(file) as part:
            yield part
    except OSError as error:
        raise OSError(f"{file} cannot be written: {error.strerror or error}") from error


def check_range(name: str, value: float, least: float, most: float) -> None:
    """Check the range of an option.

    Raises:
        ValueError: if the value is out of range or NaN.
    """
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, got {value}")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
