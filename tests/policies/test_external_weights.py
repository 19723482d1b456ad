"""The promise of SECURITY.md: weights of an ONNX network are read only from the folder of the network.

onnxruntime keeps this promise from the minimum version in pyproject.toml on. Older releases read other files, or crash
on crafted names, so a process of its own loads the networks.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import ROOT

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

SIZE = 12
MEMORY = "*/_ORT_MEM_ADDR_/*"  # marks an address in memory; only onnxruntime itself may write it
LOAD = """
import sys
from wotd_env import make_policy
for file in sys.argv[1:]:
    try:
        make_policy(f"onnx:{file}")
    except ValueError as error:
        assert "contains no network that onnxruntime can read" in str(error), error
        print("refused", flush=True)
    else:
        print("read", flush=True)
"""
INSIDE = {
    "beside": {"location": "beside"},
    "with a dot": {"location": "./beside"},
    "in a folder": {"location": "folder/weights"},
}
OUTSIDE = {
    "above": {"location": "../secret"},
    "above by a detour": {"location": "folder/../../secret"},
    "absolute": {"location": "{root}/secret"},
    "link": {"location": "link"},
    "relative link": {"location": "relative"},
    "link to a link": {"location": "chain"},
    "linked folder": {"location": "outer/secret"},
    "process": {"location": "/proc/self/environ"},
}
CRAFTED = {
    "address": {"location": MEMORY, "offset": "4096", "length": str(SIZE)},
    "odd address": {"location": MEMORY, "offset": "1", "length": str(SIZE)},
    "address without offset": {"location": MEMORY},
    "folder": {"location": "folder"},
    "no name": {"location": ""},
    "long name": {"location": "a" * 5000},
    "many folders": {"location": "/".join(["a" * 200] * 100)},
    "negative offset": {"location": "beside", "offset": "-4", "length": str(SIZE)},
    "far offset": {"location": "beside", "offset": str(10**12), "length": str(SIZE)},
    "huge offset": {"location": "beside", "offset": "9" * 40},
    "no number": {"location": "beside", "offset": "abc"},
    "huge length": {"location": "beside", "offset": "0", "length": str(10**14)},
    "short length": {"location": "beside", "length": "4"},
}


def network(entries: dict[str, str], constant: bool) -> bytes:
    """Return a network whose weights are in another file, as an initializer or as a constant node."""
    kind, tool = onnx.TensorProto, onnx.helper
    weights = tool.make_tensor("weights", kind.FLOAT, [SIZE // 4], bytes(SIZE), raw=True)
    weights.ClearField("raw_data")
    weights.data_location = kind.EXTERNAL
    for key, value in entries.items():
        weights.external_data.add(key=key, value=value)
    nodes = [tool.make_node("Add", ["observation", "weights"], ["logits"])]
    if constant:
        nodes.insert(0, tool.make_node("Constant", [], ["weights"], value=weights))
    ends = [
        tool.make_tensor_value_info(name, kind.FLOAT, ["N", SIZE // 4]) for name in ("observation", "logits")
    ]
    graph = tool.make_graph(nodes, "network", ends[:1], ends[1:], [] if constant else [weights])
    model = tool.make_model(graph, opset_imports=[tool.make_opsetid("", 17)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data


@pytest.fixture
def outcome(tmp_path: Path) -> Callable[[dict[str, dict[str, str]], bool], dict[str, str]]:
    """Return a function that loads networks whose weights have these names; the result is "read" or "refused"."""
    folder = tmp_path / "network"
    (folder / "folder").mkdir(parents=True)
    for file in (tmp_path / "secret", folder / "beside", folder / "folder" / "weights"):
        file.write_bytes(bytes(SIZE))
    targets = {"link": f"{tmp_path}/secret", "relative": "../secret", "chain": "link", "outer": ".."}
    for link, target in targets.items():
        (folder / link).symlink_to(target)

    def load(cases: dict[str, dict[str, str]], constant: bool) -> dict[str, str]:
        files = []
        for i, entries in enumerate(cases.values()):
            files.append(folder / f"{i}.onnx")
            named = {key: value.replace("{root}", str(tmp_path)) for key, value in entries.items()}
            files[-1].write_bytes(network(named, constant))
        done = subprocess.run([sys.executable, "-c", LOAD, *files], cwd=ROOT, capture_output=True, text=True)
        results = done.stdout.split()
        assert done.returncode == 0, f"{list(cases)[len(results)]}: {done.returncode} {done.stderr}"
        return dict(zip(cases, results, strict=True))

    return load


@pytest.mark.parametrize("constant", [False, True], ids=["initializer", "constant"])
@pytest.mark.parametrize("cases", [OUTSIDE, CRAFTED], ids=["outside", "crafted"])
def test_other_files_and_memory_are_never_read(outcome, cases, constant):
    assert outcome(cases, constant) == dict.fromkeys(cases, "refused")


def test_weights_in_the_folder_are_read(outcome):
    assert outcome(INSIDE, False) == dict.fromkeys(INSIDE, "read")
