"""Promises of SECURITY.md: loading an untrusted network or training run executes no code from its files."""

import base64
import io
import json
import pathlib
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # it ships no types
import pytest
import torch as th

from agents import command, export
from agents.checkpoint import CHECKPOINT, CheckpointError
from tests.helpers.training import TINY_SB3, started
from wotd_env import make_policy


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return pathlib.Path.touch, (self.marker,)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "payload-was-run"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has just started. Tests must not modify it."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    with started(TINY_SB3, folder) as run:
        run.learner.export(folder)
    return folder


def plant(model: Path, marker: Path, target: Path) -> Path:
    """Copy a model.zip and replace every pickled value with the payload."""
    hidden = base64.b64encode(cloudpickle.dumps(Payload(marker))).decode()
    with zipfile.ZipFile(model) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    data = json.loads(parts["data"])
    for value in data.values():
        if isinstance(value, dict) and ":serialized:" in value:
            value[":serialized:"] = hidden
    parts["data"] = json.dumps(data).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return target


def torch_file(content: Any) -> bytes:
    buffer = io.BytesIO()
    th.save(content, buffer)
    return buffer.getvalue()


def test_the_payload_runs_without_protection(run: Path, marker: Path, tmp_path: Path):
    pickle.loads(pickle.dumps(Payload(marker)))
    assert marker.exists()
    marker.unlink()
    th.load(io.BytesIO(torch_file(Payload(marker))), weights_only=False)
    assert marker.exists()
    marker.unlink()
    file = plant(run / "model.zip", marker, tmp_path / "model.zip")
    with pytest.raises(ValueError, match="contains no model"):
        make_policy(f"sb3:{file}", trust=True)
    assert marker.exists()


def test_sb3_files_are_not_read_without_consent(run: Path, marker: Path, tmp_path: Path):
    file = plant(run / "model.zip", marker, tmp_path / "model.zip")
    with pytest.raises(ValueError, match="can run code that it contains"):
        make_policy(f"sb3:{file}")
    assert not marker.exists()


@pytest.mark.parametrize("make", [pickle.dumps, torch_file])
def test_resuming_a_run_executes_no_code_from_its_files(
    run: Path, marker: Path, tmp_path: Path, make: Callable[[Any], bytes], capsys: pytest.CaptureFixture[str]
):
    plant(run / "model.zip", marker, tmp_path / "model.zip")
    for file in (CHECKPOINT, "checkpoint.pt", "config.json", "curve.csv", "result.json"):
        (tmp_path / file).write_bytes(make(Payload(marker)))
    assert command.main(["--resume", str(tmp_path)]) == 2
    assert "is damaged, or not a checkpoint of train.py" in capsys.readouterr().err
    with pytest.raises(CheckpointError, match="damaged, or not a checkpoint"):
        export.load(tmp_path)
    assert not marker.exists()


@pytest.mark.parametrize("make", [pickle.dumps, torch_file])
def test_an_onnx_file_is_not_unpickled(marker: Path, tmp_path: Path, make: Callable[[Any], bytes]):
    pytest.importorskip("onnxruntime")
    (tmp_path / "model.onnx").write_bytes(make(Payload(marker)))
    with pytest.raises(ValueError, match=r"model\.onnx contains no network"):
        make_policy(f"onnx:{tmp_path / 'model.onnx'}")
    assert not marker.exists()
