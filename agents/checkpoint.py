"""The checkpoint of a training run: tensors as safetensors, settings and counters as JSON in the header of the file.

Neither format can contain code. The file is written atomically, and a digest of its whole content is checked.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch as th
from safetensors import SafetensorError
from safetensors.torch import load as read
from safetensors.torch import save as content_of

from wotd_env import files

CHECKPOINT = "checkpoint.safetensors"
FORMAT = "wotd-env training checkpoint 5"
CURE = "Restore a copy of it, or start again in another folder"


class CheckpointError(ValueError):
    """A training run cannot be resumed or read."""


def unusable(path: Path, error: object) -> CheckpointError:
    """Return the error for a checkpoint with wrong content."""
    return CheckpointError(f"{path} cannot be used: {' '.join(str(error).split())[:300]}. {CURE}")


def save(path: Path, tensors: Mapping[str, th.Tensor], facts: Mapping[str, Any]) -> None:
    """Write a checkpoint. `facts` contains plain values for JSON.

    Raises:
        OSError: if the file cannot be written. The message names the file, and the old checkpoint is unchanged.
    """
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps({"format": FORMAT, **facts})
    files.write(path, content_of(stored, {"facts": text, "digest": _digest(stored, text)}))


def load(path: Path) -> tuple[dict[str, th.Tensor], dict[str, Any]]:
    """Read the tensors and the facts of a checkpoint.

    Raises:
        CheckpointError: if the file is missing, damaged or not a checkpoint of this format.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise CheckpointError(
            f"there is no checkpoint {path}: check the path, or start the run in an empty folder"
        ) from error
    except OSError as error:
        raise CheckpointError(f"the checkpoint cannot be read: {error}") from error
    try:
        tensors = read(content)
        # safetensors has no function that reads the metadata of a file in memory. The header is JSON after its length.
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
        if header["digest"] != _digest(tensors, header["facts"]):
            raise ValueError("its content does not match its digest")
        facts = json.loads(header["facts"])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path} is damaged, or not a checkpoint of train.py: {error}. {CURE}"
        ) from error
    if not isinstance(facts, dict) or facts.pop("format", None) != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of this version of train.py ({FORMAT}). {CURE}")
    return tensors, facts


def restore(saved: Mapping[str, th.Tensor], into: Mapping[str, th.Tensor]) -> None:
    """Copy saved tensors into the live tensors with the same names.

    Raises:
        CheckpointError: if the names, dtypes or shapes differ; nothing is copied.
    """
    if saved.keys() != into.keys():
        differing = ", ".join(sorted(saved.keys() ^ into.keys())[:5])
        raise CheckpointError(f"its tensors are not those of the settings; they differ in {differing}")
    for name, live in into.items():
        kinds = [(str(tensor.dtype), tuple(tensor.shape)) for tensor in (saved[name], live)]
        if kinds[0] != kinds[1]:
            raise CheckpointError(f"{name} must be {kinds[1]}, got {kinds[0]}")
    with th.no_grad():
        for name, live in into.items():
            live.copy_(saved[name])


def adam(parameters: list[th.Tensor], learning_rate: float) -> th.optim.Adam:
    """Return the optimizer Adam. Its state exists before the first step, so a checkpoint always has the same names."""
    optimizer = th.optim.Adam(parameters, lr=learning_rate, fused=True)
    fill(optimizer)
    return optimizer


def step(optimizer: th.optim.Optimizer, loss: th.Tensor) -> th.Tensor:
    """Take a gradient step; return the norm of the gradient."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    weights = (weights for group in optimizer.param_groups for weights in group["params"])
    return th.nn.utils.get_total_norm([each.grad for each in weights if each.grad is not None])


def fill(optimizer: th.optim.Optimizer) -> None:
    """Set the state of Adam before its first step."""
    for group in optimizer.param_groups:
        for weights in group["params"]:
            step = th.zeros((), device=weights.device if group.get("fused") else "cpu")
            zeros = {name: th.zeros_like(weights) for name in ("exp_avg", "exp_avg_sq")}
            optimizer.state[weights] = {"step": step, **zeros}


def tensors_of(module: th.nn.Module, optimizer: th.optim.Optimizer) -> dict[str, th.Tensor]:
    """Return the live weights of a network and the live state of its optimizer, by name."""
    found: dict[str, th.Tensor] = {f"network.{name}": weights for name, weights in module.named_parameters()}
    of_optimizer = optimizer.state_dict()["state"]
    return found | {
        f"optimizer.{i}.{name}": tensor for i, state in of_optimizer.items() for name, tensor in state.items()
    }


def _digest(tensors: dict[str, th.Tensor], text: str) -> str:
    return sha256(text.encode() + content_of(tensors)).hexdigest()
