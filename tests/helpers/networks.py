"""Small networks in ONNX files."""

from pathlib import Path

import numpy as np
import pytest

from wotd_env import Game


def network(
    folder: Path, game: Game, weights: np.ndarray, observation: str = "INT8", mask: str = "BOOL"
) -> Path:
    """Write an ONNX file with the network logits = observation @ weights, masked; return its path."""
    onnx = pytest.importorskip("onnx")
    kind = onnx.TensorProto
    inputs = [
        onnx.helper.make_tensor_value_info(
            "observation", getattr(kind, observation), ["N", weights.shape[0]]
        ),
        onnx.helper.make_tensor_value_info("action_mask", getattr(kind, mask), ["N", game.num_actions]),
    ]
    nodes = [
        onnx.helper.make_node("Cast", ["observation"], ["x"], to=kind.FLOAT),
        onnx.helper.make_node("Cast", ["action_mask"], ["m"], to=kind.FLOAT),
        onnx.helper.make_node("MatMul", ["x", "weights"], ["y"]),
        onnx.helper.make_node("Mul", ["y", "m"], ["logits"]),
    ]
    output = onnx.helper.make_tensor_value_info("logits", kind.FLOAT, ["N", game.num_actions])
    constants = [onnx.numpy_helper.from_array(weights, "weights")]
    graph = onnx.helper.make_graph(nodes, "policy", inputs, [output], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "policy.onnx")
    return folder / "policy.onnx"


def with_metadata(file: Path, **entries: str) -> Path:
    """Add entries to the metadata of an ONNX file."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(file)
    for key, value in entries.items():
        model.metadata_props.add(key=key, value=value)
    onnx.save(model, file)
    return file
