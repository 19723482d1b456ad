"""The checkpoint of a training run: written whole, read without running code, checked before it is used."""

from __future__ import annotations

import io
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch as th

from wotd_env import files

FORMAT = "wotd-env training checkpoint 3"
CURE = "Restore a copy of it, or start again in another folder"


class CheckpointError(ValueError):
    """A training run that cannot be resumed or read, and why."""


def unusable(path: Path, error: Exception) -> CheckpointError:
    """Return the error for a checkpoint with wrong content."""
    return CheckpointError(f"{path} cannot be used: {error}. {CURE}")


def save(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint: the output of `torch.save`, followed by its SHA-256.

    Raises:
        OSError: naming the file, if it cannot be written; the old checkpoint is unchanged.
    """
    buffer = io.BytesIO()
    th.save({"format": FORMAT, **content}, buffer)
    data = buffer.getvalue()
    files.write(path, data + sha256(data).digest())


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint. Only tensors and plain values are read; no code in the file is run. Use `check` on the values.

    Raises:
        CheckpointError: if the file is missing, damaged or not a checkpoint of this format.
    """
    try:
        file = path.read_bytes()
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no checkpoint {path}: start the run in an empty folder") from error
    except OSError as error:
        raise CheckpointError(f"the checkpoint cannot be read: {error}") from error
    data, digest = file[:-32], file[-32:]
    if sha256(data).digest() != digest:  # the checksums of PyTorch's archives do not cover their directory
        raise CheckpointError(f"{path} is damaged, or not a checkpoint of train.py. {CURE}")
    try:
        content = th.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises almost any kind
        raise CheckpointError(
            f"{path} is damaged, or not a checkpoint of train.py: {_short(error)}. {CURE}"
        ) from error
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of this version of train.py ({FORMAT}). {CURE}")
    return content


def check(name: str, saved: Any, like: Any) -> None:
    """Check that a value from a file has the structure of another value.

    Structure means: the types, the keys of dicts, the lengths of tuples, the dtypes and shapes of tensors. All elements
    of a list must have the structure of the first element of `like`. Tensors must be finite.

    Args:
        name: the name of the value in the error.
        saved: the value.
        like: the value to compare with.

    Raises:
        CheckpointError: if it has another structure.
    """
    if isinstance(like, dict):
        if not isinstance(saved, dict) or saved.keys() != like.keys():
            got = f"the keys {', '.join(map(str, saved))}" if isinstance(saved, dict) else _short(saved)
            raise CheckpointError(f"{name} must have the keys {', '.join(map(str, like))}, got {got}")
        for key in like:
            check(f"{name}.{key}", saved[key], like[key])
    elif isinstance(like, list):
        if type(saved) is not list:
            raise CheckpointError(f"{name} must be a list, got {_short(saved)}")
        for i, value in enumerate(saved):
            check(f"{name}[{i}]", value, like[0])
    elif isinstance(like, tuple):
        if not isinstance(saved, tuple) or len(saved) != len(like):
            raise CheckpointError(f"{name} must be like {tuple(like)!r}, got {_short(saved)}")
        for i, value in enumerate(like):
            check(f"{name}[{i}]", saved[i], value)
    elif isinstance(like, th.Tensor):
        # The type and the device too: a tensor on the device `meta` has no data.
        if type(saved) is not th.Tensor or _kind(saved) != _kind(like):
            got = str(_kind(saved)) if isinstance(saved, th.Tensor) else type(saved).__name__
            raise CheckpointError(f"{name} must be {_kind(like)}, got {got}")
        if not saved.isfinite().all():
            raise CheckpointError(f"{name} has values that are not finite")
    elif type(saved) not in ((int, float) if type(like) is float else (type(like),)):
        raise CheckpointError(f"{name} must be like {like!r}, got {_short(saved)}")


def adam_like(parameters: Any) -> dict[int, dict[str, th.Tensor]]:
    """Return the structure of the state of Adam for some parameters, for `check`."""
    return {
        i: {"step": th.tensor(0.0), "exp_avg": p.data, "exp_avg_sq": p.data} for i, p in enumerate(parameters)
    }


def _kind(tensor: th.Tensor) -> tuple[str, tuple[int, ...], str, str]:
    return str(tensor.dtype), tuple(tensor.shape), str(tensor.layout), tensor.device.type


def _short(value: Any) -> str:
    """Return the repr of a value in one line of at most 200 characters."""
    return " ".join(repr(value).split())[:200]
