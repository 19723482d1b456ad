"""The command that measures a GPU, with few games and without a GPU."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

from tools.speed import __main__ as command
from tools.speed import gpu


def no_such_part(sizes: gpu.Sizes) -> Any:
    raise NotImplementedError


def test_limits_of_the_parts_are_four_minutes_together():
    assert sum(gpu.LIMITS.values()) <= 240


def test_results_survive_a_failed_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "gpu.json"
    monkeypatch.setattr(gpu, "LIMITS", {gpu.prepare: 300, no_such_part: 300})
    assert gpu.measure(file, small=True) == 1
    parts = json.loads(file.read_text())["parts"]
    assert parts["prepare"]["rows"][0]["versions"]
    assert "ValueError" in parts["no_such_part"]["failed"]


def test_a_part_is_stopped_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "gpu.json"
    monkeypatch.setattr(gpu, "LIMITS", {gpu.prepare: 0.01})
    assert gpu.measure(file) == 1
    assert json.loads(file.read_text())["parts"]["prepare"]["failed"] == "stopped after 0.01 s"


def test_a_part_gets_the_time_that_the_part_before_it_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def another(sizes: gpu.Sizes) -> Any:
        raise NotImplementedError

    file = tmp_path / "gpu.json"
    monkeypatch.setattr(gpu, "LIMITS", {no_such_part: 300, another: 0})
    assert gpu.measure(file) == 1
    assert "ValueError" in json.loads(file.read_text())["parts"]["another"]["failed"]


def test_small_figures_do_not_replace_results(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("sys.argv", ["speed", "--gpu", "--small"])
    with pytest.raises(SystemExit):
        command.main()
    assert capsys.readouterr().err.endswith("--small needs --gpu FILE, because its figures mean nothing\n")


@pytest.mark.slow
def test_all_parts_run_with_few_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for package in ("numba_cuda", "pgx", "torch"):
        pytest.importorskip(package)
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    file = tmp_path / "gpu.json"
    assert gpu.measure(file, small=True) == 0
    parts = json.loads(file.read_text())["parts"]
    assert {name for name, about in parts.items() if about["rows"]} == {part.__name__ for part in gpu.LIMITS}
    compared = [
        row["equal decisions"] for name in ("jax_equality", "engine") for row in parts[name]["rows"][:2]
    ]
    assert min(compared) > 0
