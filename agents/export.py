"""A trained network as an ONNX file: `python -m agents.export RUN [FILE]`, then `wotd arena onnx:FILE greedy`."""

from __future__ import annotations

import argparse
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
from torch import nn

from agents.checkpoint import CheckpointError
from agents.network import PathNetwork
from agents.trained import load_network
from wotd_env import Game, files
from wotd_env.policies.onnx import ENCODING, RULES

LARGE = 64
"""Size of the integer tables that are stored in 16 bits, at least."""


class _Logits(nn.Module):
    """The exported function: from observation and mask to masked logits."""

    def __init__(self, network: PathNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, observation: th.Tensor, action_mask: th.Tensor) -> th.Tensor:
        logits: th.Tensor = self.network.forward_actor(observation.float())
        return logits.masked_fill(action_mask == 0, th.finfo(th.float32).min)


def export_onnx(run: Path, file: Path) -> None:
    """Write the network of a run folder as ONNX, see `to_onnx`; no code in the run's files is run.

    Raises:
        FileNotFoundError: if the folder of the file does not exist.
        CheckpointError: if the run has no network of PPO, or its checkpoint is damaged.
        OSError: if the file cannot be written; an older file is unchanged.
    """
    network = load_network(run)
    if not file.parent.is_dir():
        raise FileNotFoundError(f"no folder {file.parent} to write {file.name} to")
    files.write(file, to_onnx(network))


def to_onnx(network: PathNetwork) -> bytes:
    """Return a network as ONNX.

    The inputs are `observation`, int8 (N, D), and `action_mask`, int8 (N, A). The output is `logits`, float32 (N, A),
    with the smallest float for illegal actions. N is free. The metadata contain the rules and the encoding.
    """
    game = Game(network.rules)
    batch = th.export.Dim("batch")
    log = logging.getLogger("torch.onnx")
    level = log.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about itself
        log.setLevel(logging.ERROR)
        try:
            program = th.onnx.export(
                _Logits(network).eval(),
                tuple(th.ones(2, size, dtype=th.int8) for size in (game.observation_size, game.num_actions)),
                input_names=["observation", "action_mask"],
                output_names=["logits"],
                dynamic_shapes=({0: batch}, {0: batch}),
                verbose=False,
            )
        finally:
            log.setLevel(level)
    assert program is not None
    model = program.model_proto
    shrink(model.graph)
    model.metadata_props.add(key=RULES, value=json.dumps(asdict(network.rules)))
    model.metadata_props.add(key=ENCODING, value="one_hot")
    content: bytes = model.SerializeToString()
    return content


def shrink(graph: onnx.GraphProto) -> None:
    """Remove descriptions, which contain paths of this machine, and store large integer tables in 16 bits."""
    del graph.value_info[:]
    for node in graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
    widened = []
    for table in graph.initializer:
        del table.metadata_props[:]
        numbers = onnx.numpy_helper.to_array(table)
        if numbers.dtype == np.int64 and numbers.size >= LARGE and abs(numbers).max() < 2**15:
            name = table.name
            table.CopyFrom(onnx.numpy_helper.from_array(numbers.astype(np.int16), f"{name}_small"))
            widened.append(onnx.helper.make_node("Cast", [table.name], [name], to=onnx.TensorProto.INT64))
    nodes = [*widened, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, or 2 for a user's mistake."""
    parser = argparse.ArgumentParser(prog="python -m agents.export", description=__doc__)
    parser.add_argument("run", type=Path, help="run folder of train.py")
    parser.add_argument(
        "file", type=Path, nargs="?", help="file to write (default model.onnx in the run folder)"
    )
    options = parser.parse_args(arguments)
    file = options.file or options.run / "model.onnx"
    try:
        export_onnx(options.run, file)
    except (CheckpointError, OSError) as error:
        print(f"agents.export: error: {error}", file=sys.stderr)
        return 2
    print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
