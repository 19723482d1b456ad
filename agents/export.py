"""A trained network as an ONNX file: `python -m agents.export RUN [FILE]`, then `wotd arena onnx:FILE greedy`."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx
import torch as th
import tyro
from gymnasium.spaces.utils import flatdim
from torch import nn

from agents import checkpoint
from agents.checkpoint import CheckpointError
from agents.network import PathPolicy
from agents.trained import load
from wotd_env.policies.onnx import ENCODING, RULES
from wotd_env.policies.sb3 import Trained

WORTHWHILE = 64
"""Numbers in a table that is kept in fewer bits."""


class _Logits(nn.Module):
    """What is exported: observation and mask in, masked logits out."""

    def __init__(self, player: Trained) -> None:
        super().__init__()
        self.network = player.network.mlp_extractor

    def forward(self, observation: th.Tensor, action_mask: th.Tensor) -> th.Tensor:
        logits: th.Tensor = self.network.forward_actor(observation.float())
        return logits.masked_fill(action_mask == 0, th.finfo(th.float32).min)


def export_onnx(run: Path, file: Path) -> None:
    """Write the network of a run, or of its `model.zip`, as ONNX; no code in the model's file is run.

    Inputs are `observation`, int8 (N, D), and `action_mask`, int8 (N, A); the output is `logits`, float32 (N, A), of
    which illegal actions have the smallest there is. N is free. The metadata say what rules and encoding it is for.

    Raises:
        FileNotFoundError: if there is no model, or no folder to write to.
        CheckpointError: if the model is damaged, or not of train.py.
        OSError: if the file cannot be written; an older one is still there.
    """
    player = load(run)
    if not file.parent.is_dir():
        raise FileNotFoundError(f"no folder {file.parent} to write {file.name} to")
    checkpoint.write(file, to_onnx(player))


def to_onnx(player: Trained) -> bytes:
    """Return a network as ONNX, see `export_onnx`."""
    sizes = flatdim(player.network.observation_space), flatdim(player.network.action_space)
    batch = th.export.Dim("batch")
    log = logging.getLogger("torch.onnx")
    level = log.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter about itself
        log.setLevel(logging.ERROR)
        try:
            program = th.onnx.export(
                _Logits(player).eval(),
                tuple(th.ones(2, size, dtype=th.int8) for size in sizes),
                input_names=["observation", "action_mask"],
                output_names=["logits"],
                dynamic_shapes=({0: batch}, {0: batch}),
                verbose=False,
            )
        finally:
            log.setLevel(level)
    assert program is not None
    assert isinstance(player.network, PathPolicy)
    model = program.model_proto
    make_small(model.graph)
    model.metadata_props.add(key=RULES, value=json.dumps(asdict(player.network.rules)))
    model.metadata_props.add(key=ENCODING, value=player.encoding)
    content: bytes = model.SerializeToString()
    return content


def make_small(graph: onnx.GraphProto) -> None:
    """Take away what only describes a graph, and keep tables of indices in 16 bits; they are widened when it is loaded.

    What describes it names the folders of this machine, too.
    """
    del graph.value_info[:]
    for node in graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
    widened = []
    for table in graph.initializer:
        del table.metadata_props[:]
        numbers = onnx.numpy_helper.to_array(table)
        if numbers.dtype == np.int64 and numbers.size >= WORTHWHILE and abs(numbers).max() < 2**15:
            name = table.name
            table.CopyFrom(onnx.numpy_helper.from_array(numbers.astype(np.int16), f"{name}_small"))
            widened.append(onnx.helper.make_node("Cast", [table.name], [name], to=onnx.TensorProto.INT64))
    nodes = [*widened, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, or 2 for a user's mistake."""

    def export(run: tyro.conf.Positional[Path], file: tyro.conf.Positional[Path | None] = None) -> int:
        """Write a trained network as ONNX.

        Args:
            run: run folder of train.py, or its model.zip.
            file: file to write; by default model.onnx beside the model.
        """
        file = file or (run if run.is_dir() else run.parent) / "model.onnx"
        try:
            export_onnx(run, file)
        except (CheckpointError, OSError) as error:
            print(f"agents.export: error: {error}", file=sys.stderr)
            return 2
        print(file)
        return 0

    return tyro.cli(export, args=arguments, prog="python -m agents.export")


if __name__ == "__main__":
    sys.exit(main())
