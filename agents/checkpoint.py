"""Checkpoints: everything a training run needs to go on as if it had not been interrupted, in one file.

A checkpoint holds tensors and plain values only, so reading one runs no code from it.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import torch as th

FORMAT = "wotd-env training checkpoint 1"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, and why."""


def save(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint; the file is either the old one or the new one at any time."""
    replace(path, lambda new: th.save({"format": FORMAT, **content}, new))


def replace(path: Path, write: Any) -> None:
    """Call `write` with the path of a new file, then put that in the place of `path`."""
    new = path.with_name(f"new-{path.name}")
    write(new)
    os.replace(new, path)


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint.

    Raises:
        CheckpointError: if it is missing, damaged or something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise CheckpointError(f"{path} is damaged: {damaged} has a wrong checksum")
        content = th.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no checkpoint {path}") from error
    except CheckpointError:
        raise
    except Exception as error:  # a damaged archive raises almost anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} is no readable checkpoint: {reason}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path} is no checkpoint of train.py ({FORMAT})")
    return content
