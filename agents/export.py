"""A trained network as an ONNX file: `python -m agents.export RUN [FILE]`, then `wotd arena onnx:FILE greedy`."""

from __future__ import annotations

from pathlib import Path

import torch as th
import tyro
from gymnasium.spaces.utils import flatdim
from torch import nn

from agents.trained import Trained, load


class _Logits(nn.Module):
    """What is exported: observation and mask in, masked logits out."""

    def __init__(self, player: Trained) -> None:
        super().__init__()
        self.network = player.network.mlp_extractor

    def forward(self, observation: th.Tensor, action_mask: th.Tensor) -> th.Tensor:
        logits: th.Tensor = self.network.forward_actor(observation.float())
        return logits.masked_fill(action_mask == 0, th.finfo(th.float32).min)


def export_onnx(run: Path, file: Path) -> None:
    """Write the network of a run, or of an SB3 zip, as ONNX.

    Inputs are `observation`, int8 (N, D), and `action_mask`, int8 (N, A); the output is `logits`, float32 (N, A), of
    which illegal actions have the smallest there is. N is free.

    Raises:
        FileNotFoundError: if there is no model.
    """
    player = load(run)
    sizes = flatdim(player.network.observation_space), flatdim(player.network.action_space)
    batch = th.export.Dim("batch")
    th.onnx.export(
        _Logits(player).eval(),
        tuple(th.ones(2, size, dtype=th.int8) for size in sizes),
        str(file),
        input_names=["observation", "action_mask"],
        output_names=["logits"],
        dynamic_shapes=({0: batch}, {0: batch}),
        external_data=False,
        verbose=False,
    )


def main(run: tyro.conf.Positional[Path], file: tyro.conf.Positional[Path | None] = None) -> None:
    """Write a trained network as ONNX.

    Args:
        run: run folder of train.py, or SB3 zip.
        file: file to write; by default model.onnx beside the model.
    """
    file = file or (run if run.is_dir() else run.parent) / "model.onnx"
    export_onnx(run, file)
    print(file)


if __name__ == "__main__":
    tyro.cli(main)
