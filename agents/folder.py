"""The folder of a training run: the names of its files, its lock, and a record of settings and versions.

checkpoint.pt     everything that `--resume` needs
model.onnx        the network of PPO, written at the end of the training
value.npz         the network of TD(lambda)
config.json       settings and versions, for people
curve.csv, .png   strength against `random`, `greedy` and `planner` at every milestone
result.json       the final strength
events.out.*      TensorBoard (PPO): losses, speed, results by opponent
.lock             keeps a second training out
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

import wotd_env
from agents.checkpoint import CheckpointError
from wotd_env import files

CHECKPOINT, RESULT, LOCK = "checkpoint.pt", "result.json", ".lock"

OF_THE_END = (RESULT, "model.onnx")
"""Files that exist only when the training is finished."""


def make_folder(folder: Path) -> None:
    """Make an empty run folder. Files that an interrupted start left behind are removed.

    Raises:
        FileExistsError: if the folder contains anything else.
        OSError: if it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / CHECKPOINT).exists():
        raise FileExistsError(f"folder {folder} already contains a run; resume it with --resume {folder}")
    names = sorted(path.name for path in folder.iterdir())
    if found := [name for name in names if name != LOCK and not name.startswith(files.PART)]:
        raise FileExistsError(f"folder {folder} is not empty, it contains {found[0]}; choose another folder")
    remove_parts(folder)


def remove_parts(folder: Path) -> None:
    """Remove the temporary files that a killed process has left in a run folder. Hold its lock, see `locked`."""
    for part in folder.glob(f"{files.PART}*"):
        part.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other trainings out of a run folder.

    Raises:
        CheckpointError: if another training uses the folder.
    """
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise CheckpointError(
            f"another training is running in {folder}; wait for its end or stop it"
        ) from error
    try:
        yield
    finally:
        lock.release()


def write_config(folder: Path, settings: Any, packages: Iterable[str]) -> None:
    """Write the settings of a run and the versions of packages to `config.json`.

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
    write_json(folder / "config.json", config)


def write_json(file: Path, content: Any) -> None:
    """Write a file of JSON for people; values that JSON lacks are written as text.

    Raises:
        OSError: naming the file, if it cannot be written.
    """
    files.write(file, (json.dumps(content, indent=2, default=str) + "\n").encode())
