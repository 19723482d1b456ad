"""Files of a training run: written whole or not at all, read without running code, checked before they are used."""

from __future__ import annotations

import io
import math
import os
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch as th

FORMAT = "wotd-env training checkpoint 2"
CURE = "Put back a copy of it, or begin again in another folder"


class CheckpointError(ValueError):
    """A file of a training run that cannot be used, and why."""


def save(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint, see `write`: what `torch.save` makes, then the SHA-256 of that."""
    buffer = io.BytesIO()
    th.save({"format": FORMAT, **content}, buffer)
    data = buffer.getvalue()
    write(path, data + sha256(data).digest())


def write(path: Path, content: bytes) -> None:
    """Write a file; at any time it is either the old one or the new one.

    Raises:
        OSError: naming the file, if it cannot be written; the old one is still there.
    """
    new = path.with_name(f"new-{path.name}")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint; what is in it is not checked yet.

    Raises:
        CheckpointError: if it is missing, damaged or something else.
    """
    try:
        file = path.read_bytes()
        data, digest = file[:-32], file[-32:]
        if sha256(data).digest() != digest:  # PyTorch's archives have checksums, but not of where things lie
            raise CheckpointError(f"{path} is damaged, or not of train.py")
        content = tensors(str(path), data)
    except FileNotFoundError as error:
        raise CheckpointError(
            f"there is no checkpoint {path}: begin the run anew, in an empty folder"
        ) from error
    except OSError as error:
        raise CheckpointError(f"the checkpoint cannot be read: {error}") from error
    except CheckpointError as error:
        raise CheckpointError(f"{error}. {CURE}") from error
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise CheckpointError(f"{path} is no checkpoint of this version of train.py ({FORMAT}). {CURE}")
    return content


def tensors(name: str, data: bytes) -> Any:
    """Return what `torch.save` has written, if that is tensors and plain values.

    Args:
        name: what the error calls it.
        data: the file.

    Raises:
        CheckpointError: if it is something else; no code in it is run.
    """
    try:
        return th.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # it can be almost any
        raise CheckpointError(f"{name} is damaged, or not of train.py: {_short(error)}") from error


def members(name: str, data: bytes) -> dict[str, bytes]:
    """Return the files in a zip archive.

    Raises:
        CheckpointError: if it is damaged or something else.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {member: archive.read(member) for member in archive.namelist()}  # compares the checksums
    except Exception as error:  # it can be almost any
        raise CheckpointError(f"{name} is damaged, or not of train.py: {_short(error)}") from error


def check(name: str, saved: Any, like: Any) -> None:
    """Make sure that a value from a file may stand in the place of another one.

    Args:
        name: what the error calls it.
        saved: the value.
        like: a value of the same type; numbers of `saved` are finite, tensors have the same dtype and shape, tuples the
            same length, dicts the same keys, and all their values are such values.

    Raises:
        CheckpointError: if it may not.
    """
    if isinstance(like, dict):
        if not isinstance(saved, dict) or saved.keys() != like.keys():
            got = f"the keys {', '.join(map(str, saved))}" if isinstance(saved, dict) else _short(saved)
            raise CheckpointError(f"{name} must have the keys {', '.join(map(str, like))}, got {got}")
        for key in like:
            check(f"{name}.{key}", saved[key], like[key])
    elif isinstance(like, tuple):
        if not isinstance(saved, tuple) or len(saved) != len(like):
            raise CheckpointError(f"{name} must be like {like!r}, got {_short(saved)}")
        for i, value in enumerate(like):
            check(f"{name}[{i}]", saved[i], value)
    elif isinstance(like, th.Tensor):
        # By type and device too: a parameter, or a tensor without data, is none of ours.
        if type(saved) is not th.Tensor or _kind(saved) != _kind(like):
            got = str(_kind(saved)) if isinstance(saved, th.Tensor) else type(saved).__name__
            raise CheckpointError(f"{name} must be {_kind(like)}, got {got}")
        if not saved.isfinite().all():
            raise CheckpointError(f"{name} has values that are not finite")
    else:
        types = (int, float) if type(like) is float else (type(like),)
        if type(saved) not in types or (isinstance(saved, float) and not math.isfinite(saved)):
            raise CheckpointError(f"{name} must be like {like!r}, got {_short(saved)}")


def _kind(tensor: th.Tensor) -> tuple[str, tuple[int, ...], str, str]:
    return str(tensor.dtype), tuple(tensor.shape), str(tensor.layout), tensor.device.type


def _short(value: Any) -> str:
    """Return a value in words, in one line of at most 200 characters."""
    return " ".join(repr(value).split())[:200]
