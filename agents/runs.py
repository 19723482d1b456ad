"""The folder of a training run, and what all learners do with it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

import wotd_env
from agents import checkpoint
from agents.checkpoint import CheckpointError
from wotd_env import Rules
from wotd_env.core.intervals import proportion_confint

CHECKPOINT, LOCK = "checkpoint.pt", ".lock"

S = TypeVar("S", bound=Any)
"""The settings of a learner: a dataclass with `rules`, `resume` and `folder`, all of which have defaults."""


class Stopped(Exception):
    """The training was stopped on request; its checkpoint is written."""


def make_folder(folder: Path) -> None:
    """Make an empty run folder, or take one that is empty but for what a start cut short leaves behind.

    Raises:
        FileExistsError: if there is something in it.
        OSError: if it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / CHECKPOINT).exists():
        raise FileExistsError(f"there is a run in folder {folder}; --resume {folder} goes on with it")
    if found := {path.name for path in folder.iterdir()} - {LOCK, f"new-{CHECKPOINT}"}:
        raise FileExistsError(
            f"folder {folder} is not empty, choose another one; there is {min(found)} in it"
        )


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other trainings out of a run folder.

    Raises:
        CheckpointError: if another one is at work in it.
    """
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise CheckpointError(
            f"another training is at work in {folder}; wait for its end or stop it"
        ) from error
    try:
        yield
    finally:
        lock.release()


def best(results: Sequence[tuple[int, int, int]]) -> int:
    """Return which of some snapshots to keep: the last one that is not surely weaker than the best.

    The best of many results is so by luck above all, and learning goes on.

    Args:
        results: games, wins and ties of each snapshot, the oldest first.
    """
    shares = [(wins + ties / 2) / games for games, wins, ties in results]
    bands = [
        proportion_confint(share * games, games) for share, (games, *_) in zip(shares, results, strict=True)
    ]
    surely, _ = bands[shares.index(max(shares))]
    return max(i for i, (_, at_most) in enumerate(bands) if at_most >= surely)


def plain(settings: Any) -> dict[str, Any]:
    """Return settings as plain values; where the run lies and where it is worked on does not belong to them."""
    return {
        name: value for name, value in asdict(settings).items() if name not in ("resume", "folder", "ray")
    }


def read_settings(kind: type[S], path: Path, saved: dict[str, Any]) -> S:
    """Return the settings in a checkpoint, to go on with it.

    Raises:
        CheckpointError: if they are not of this kind.
    """
    try:
        values: Any = saved.get("settings")
        rules: Any = values.get("rules") if isinstance(values, dict) else None  # checked by themselves
        checkpoint.check("settings", values, {**plain(kind()), "rules": rules})
        changed = {"rules": Rules.from_dict(rules), "resume": path.parent, "folder": path.parent}
        settings: S = kind(**values | changed)
        return settings
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be used: {error}. {checkpoint.CURE}") from error


def check_unchanged(settings: Any, before: Any, names: Iterable[str]) -> None:
    """Make sure that a run is resumed with the settings that it was begun with, as far as they are named.

    Raises:
        CheckpointError: naming the first one that differs.
    """
    for name in names:
        if getattr(settings, name) != getattr(before, name):
            raise CheckpointError(
                f"{name} cannot change when the run in {settings.resume} is resumed: it is {getattr(before, name)}"
            )


def write_config(folder: Path, settings: Any, packages: Iterable[str]) -> None:
    """Write down, for people, what a run is made with: its settings, and versions of packages.

    Raises:
        OSError: naming the file, if it cannot be written.
    """
    config = {
        "settings": asdict(settings),
        "versions": {
            "wotd-env": wotd_env.__version__,
            "python": platform.python_version(),
            **{package: version(package) for package in packages},
        },
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
    }
    checkpoint.write(folder / "config.json", (json.dumps(config, indent=2, default=str) + "\n").encode())
