"""Exit codes, error messages, the progress bar, and early checks of policies and output files."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from wotd_env.core.rules import Rules
from wotd_env.process import FAILED, exit_code

if TYPE_CHECKING:
    from wotd_env.policy import Policy

FORFEITS, INTERRUPTED = 3, 130

PERSON = "me"
"""The player name for a person at the keyboard."""

PICTURES = (".png", ".svg", ".pdf")


def fail(code: int, message: object) -> NoReturn:
    """Print an error message and end the command with an exit code."""
    say(f"Error: {message}", err=True)
    raise typer.Exit(code)


def say(text: str, *, err: bool = False) -> None:
    """Print text. In a terminal, wrap long lines between words."""
    if (sys.stderr if err else sys.stdout).isatty():
        # A line break inside of a command would end the command when it is pasted into a shell.
        width = shutil.get_terminal_size().columns
        wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
        text = "\n".join(line if ": wotd " in line else wrapper.fill(line) for line in text.split("\n"))
    typer.echo(text, err=err)


@contextmanager
def explained(kept: str = "") -> Iterator[None]:
    """Turn exceptions into a message and an exit code. On Ctrl-C, also print `kept`, which says what is saved."""
    try:
        yield
    except typer.Exit:
        raise
    except OSError as error:
        fail(exit_code(error), f"{error.filename}: {error.strerror}" if error.filename else error)
    except (ValueError, ImportError) as error:
        from wotd_env.core.checks import IllegalActionError

        # An illegal action is the fault of a policy; the command was used correctly.
        fail(FAILED if isinstance(error, IllegalActionError) else exit_code(error), error)
    except (sqlite3.Error, RuntimeError) as error:
        fail(FAILED, error)
    except MemoryError as error:
        fail(FAILED, f"not enough memory: {error}")
    except KeyboardInterrupt:
        say(f"Interrupted. {kept}".rstrip(), err=True)
        raise typer.Exit(INTERRUPTED) from None


def ready_policies(names: list[str], trust: bool, rules: Rules | None = None) -> dict[str, Policy]:
    """Make policies and return them by name. If `rules` are given, check that each policy can play with these rules.

    Exceptions in user-defined policies become ValueErrors.
    """
    from wotd_env import Game, make_policy
    from wotd_env.policies.oracle import Oracle
    from wotd_env.policy import check_plays

    made = {}
    for name in names:
        failed = "cannot be made"
        try:
            made[name] = policy = make_policy(name, trust=trust)
            if rules is not None:
                failed = "cannot check its rules"
                check_plays(policy, rules)
        except ValueError as error:
            if name in str(error):
                raise
            raise ValueError(f"policy {name!r}: {error}") from error
        except (OSError, ImportError):
            raise
        except Exception as error:  # a user's class can raise any exception
            raise ValueError(f"policy {name!r} {failed}: {type(error).__name__}: {error}") from error
    for policy in made.values():  # last, because it can take minutes to solve a game
        if isinstance(policy, Oracle) and rules is not None:
            policy.table(Game(rules))
    return made


def check_writable(file: Path | None, *endings: str) -> None:
    """Raise ValueError if the suffix is not in `endings`, and OSError if the file is unwritable. No file is changed."""
    if file is None:
        return
    if file.suffix not in endings:
        raise ValueError(f"the output file must end in {', '.join(endings)}, got {file}")
    try:
        target = file.resolve()
        if not target.parent.is_dir():
            raise NotADirectoryError(0, f"no folder {file.parent}")
        try:
            # `Path.exists` cannot be used: since Python 3.14, it returns False for a name that is too long.
            if not stat.S_ISREG(target.stat().st_mode):
                raise FileExistsError(0, "it exists and is not a regular file")
            target.open("ab").close()
        except FileNotFoundError:
            tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise type(error)(f"{file} cannot be written: {error.strerror}") from error


def is_person(name: str) -> bool:
    """Return whether a player's name stands for a person: `me` or `me:NAME`."""
    return name.partition(":")[0] == PERSON


def check_seconds(name: str, value: float, least: float = 0) -> None:
    """Raise ValueError if the value of an option is not from `least` to 3600 seconds."""
    if not least <= value <= 3600:
        raise ValueError(f"{name} must be from {least} to 3600, got {value}")


@contextmanager
def progress_bar(unit: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; yield the function f(done, total) that updates the bar.

    If the error stream is not a terminal, print a line every ten seconds instead.
    """
    columns = (
        BarColumn(None, table_column=Column(min_width=8, ratio=1)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.description}{task.fields[rate]}, {task.fields[word]}", markup=False),
        TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet, expand=True, speed_estimate_period=300) as bar:
        short = unit if len(unit) <= 24 else f"{unit[:23]}…"  # keeps the bar within 80 columns
        task = bar.add_task(short, total=None, rate="", word="left")
        first: list[float] = []  # `done` and the time at the first call; the rate excludes earlier work
        printed = 0.0  # time of the last printed line

        def move(done: int, total: int) -> None:
            nonlocal printed
            now = time.monotonic()
            if not first:
                first[:] = done, now
                printed = now
            rate = (done - first[0]) / (now - first[1]) if done > first[0] and now > first[1] else 0
            shown = f", {rate:,.0f}/s" if rate >= 1 else ""
            word = "took" if done >= total else "left"  # describes the time in the last column
            bar.update(task, completed=done, total=total, rate=shown, word=word)
            if not (quiet or console.is_terminal) and now - printed >= 10 and done < total:
                bar.print(f"{done:,} of {total:,} {unit}{shown}", highlight=False, markup=False)
                printed = now

        yield move
