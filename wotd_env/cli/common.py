"""Exit codes, error messages, and functions that make policies and check outputs before long work."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from wotd_env.core.rules import Rules
    from wotd_env.policy import Policy

FAILED, WRONG_USE, FORFEITS, INTERRUPTED = 1, 2, 3, 130
"""Exit codes."""

PERSON = "me"
"""Player's name for a person at the keyboard; `me:Anna` also gives the person a name."""

HOUR = 3600  # seconds

PICTURES = (".png", ".svg", ".pdf")
"""Allowed file name endings of pictures."""


def fail(code: int, message: object) -> NoReturn:
    """Print an error message and end the command with an exit code."""
    say(f"Error: {message}", err=True)
    raise typer.Exit(code)


def say(text: str, *, err: bool = False) -> None:
    """Print text. In a terminal, wrap long lines between words, and indent the continuation to the last column."""
    if (sys.stderr if err else sys.stdout).isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(line if len(line) <= width else _wrapped(line, width) for line in text.split("\n"))
    typer.echo(text, err=err)


def _wrapped(line: str, width: int) -> str:
    columns = re.match(r"(.*\s\s)?", line)  # at least two spaces separate columns
    indent = " " * min(columns.end() if columns else 0, width // 2)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


@contextmanager
def explained(kept: str = "") -> Iterator[None]:
    """Turn exceptions into a message and an exit code. On Ctrl-C, also print `kept`, which says what is saved."""
    try:
        yield
    except (typer.Exit, BrokenPipeError):
        raise
    except OSError as error:
        fail(WRONG_USE, f"{error.filename}: {error.strerror}" if error.filename else error)
    except (ValueError, ImportError) as error:
        from wotd_env.core.game import IllegalActionError

        # An illegal action is the fault of a policy; the command was used correctly.
        fail(FAILED if isinstance(error, IllegalActionError) else WRONG_USE, error)
    except (sqlite3.Error, RuntimeError) as error:
        fail(FAILED, error)
    except KeyboardInterrupt:
        say(f"Interrupted. {kept}".rstrip(), err=True)
        raise typer.Exit(INTERRUPTED) from None


def ready_policies(names: list[str], trust: bool, rules: Rules | None = None) -> dict[str, Policy]:
    """Make policies and return them by name. With `rules`, check that each policy can play these rules.

    An exception in the user's own class becomes a ValueError.
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
                if isinstance(policy, Oracle):
                    policy.table(Game(rules))
        except (ValueError, OSError, ImportError):
            raise
        except Exception as error:  # a user's class can raise any exception
            raise ValueError(f"policy {name!r} {failed}: {type(error).__name__}: {error}") from error
    return made


def check_writable(file: Path, *endings: str) -> None:
    """Check that a file has one of the endings and can be written, without creating or changing a file."""
    if file.suffix not in endings:
        raise ValueError(f"the output file must end in {', '.join(endings)}, got {file}")
    try:
        target = file.resolve()  # follows symbolic links
        if not target.parent.exists():
            raise FileNotFoundError(f"cannot write {file.name}: no folder {file.parent}")
        if not target.parent.is_dir():
            raise NotADirectoryError(f"cannot write {file.name}: {file.parent} is not a folder")
        if target.exists() and not target.is_file():
            raise IsADirectoryError(f"{file} exists and is not a regular file")
        with target.open("ab") if target.exists() else tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        if error.errno is None:  # one of the errors raised above
            raise
        raise type(error)(f"{file} cannot be written: {error.strerror}") from None


def is_person(name: str) -> bool:
    """Return whether a player's name stands for a person: `me` or `me:NAME`."""
    return name.partition(":")[0] == PERSON


def check_range(name: str, value: float, least: float, most: float) -> None:
    """Check that the value of an option is in a range and not NaN."""
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, got {value}")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
