"""The checkpoint of a training run. It is written atomically, read without running code, and checked before use."""

import io
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch as th

from wotd_env import files

CHECKPOINT = "checkpoint.pt"
FORMAT = "wotd-env training checkpoint 4"
CURE = "Restore a copy of it, or start again in another folder"


class CheckpointError(ValueError):
    """A training run cannot be resumed or read."""


def unusable(path: Path, error: Exception) -> CheckpointError:
    """Return the error for a checkpoint with wrong content."""
    return CheckpointError(f"{path} cannot be used: {_short(str(error))}. {CURE}")


def save(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint: the output of `torch.save`, followed by its SHA-256.

    Raises:
        OSError: if the file cannot be written. The message names the file, and the old checkpoint is unchanged.
    """
    buffer = io.BytesIO()
    th.save({"format": FORMAT, **content}, buffer)
    data = buffer.getvalue()
    files.write(path, data + sha256(data).digest())


def load(path: Path) -> dict[str, Any]:
    """Read the tensors and plain values of a checkpoint, without running code.

    The caller must check the values with `check`.

    Raises:
        CheckpointError: if the file is missing, damaged or not a checkpoint of this format.
    """
    try:
        file = path.read_bytes()
    except FileNotFoundError as error:
        raise CheckpointError(
            f"there is no checkpoint {path}: check the path, or start the run in an empty folder"
        ) from error
    except OSError as error:
        raise CheckpointError(f"the checkpoint cannot be read: {error}") from error
    data, digest = file[:-32], file[-32:]
    if sha256(data).digest() != digest:  # `torch.load` does not check the ZIP directory of a file
        raise CheckpointError(f"{path} is damaged, or not a checkpoint of train.py. {CURE}")
    try:
        content = th.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # torch can raise any exception if the file is damaged
        why = _short(repr(error))
        raise CheckpointError(f"{path} is damaged, or not a checkpoint of train.py: {why}. {CURE}") from error
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of this version of train.py ({FORMAT}). {CURE}")
    return content


def check(name: str, saved: Any, like: Any) -> None:
    """Check that a value from a checkpoint (`saved`) has the same types, keys and tensor shapes as `like`.

    A list in `like` matches any list; an empty dict in `like` matches any dict.

    Raises:
        CheckpointError: if a type, key or shape differs. The message starts with `name`.
    """
    if isinstance(like, th.Tensor) and isinstance(saved, th.Tensor):
        if _kind(saved) != _kind(like):
            raise CheckpointError(f"{name} must be {_kind(like)}, got {_kind(saved)}")
    elif isinstance(like, dict) and isinstance(saved, dict):
        if like and saved.keys() != like.keys():
            keys, got = (", ".join(map(str, each)) for each in (like, saved))
            raise CheckpointError(f"{name} must have the keys {keys}, got the keys {got}")
        for key in like:
            check(f"{name}.{key}", saved[key], like[key])
    elif type(saved) is not type(like) and (type(saved), type(like)) != (int, float):
        raise CheckpointError(f"{name} must be of type {type(like).__name__}, got {_short(repr(saved))}")


def load_adam(optimizer: th.optim.Optimizer, saved: dict[int, Any]) -> None:
    """Load the state of Adam from a checkpoint. `saved` is empty if Adam had not taken a step.

    Raises:
        CheckpointError: if the state does not fit the weights.
    """
    groups = optimizer.state_dict()["param_groups"]
    if saved:
        parameters = enumerate(p.cpu().data for group in optimizer.param_groups for p in group["params"])
        moments = {i: {"step": th.tensor(0.0), "exp_avg": p, "exp_avg_sq": p} for i, p in parameters}
        check("optimizer", saved, moments)
    optimizer.load_state_dict({"state": saved, "param_groups": groups})


def _kind(tensor: th.Tensor) -> tuple[str, tuple[int, ...], str, str]:
    return str(tensor.dtype), tuple(tensor.shape), str(tensor.layout), tensor.device.type


def _short(text: str) -> str:
    return " ".join(text.split())[:300]
