"""The comparison of ways to train: it goes on after interruptions, and writes what it has found."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch as th
from sb3_contrib import MaskablePPO

from agents import td
from tools import comparison
from wotd_env import analysis, solver

QUICK = comparison.QUICK


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page and, when it is needed, the table."""
    shutil.copy(comparison.ROOT / "docs" / comparison.PAGE, tmp_path)
    monkeypatch.setattr(solver, "cache_file", lambda spaces: tmp_path / f"{spaces}.wotd")
    return tmp_path


def kept(place: Path, run: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((place / "comparison" / "0-quick" / f"{run}.json").read_text())
    return content


def test_the_comparison_goes_on_and_writes_table_and_picture(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    learn, rounds = td.Run._learn, 0

    def interrupted(self: td.Run) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            signal.raise_signal(signal.SIGINT)
        learn(self)

    monkeypatch.setattr(td.Run, "_learn", interrupted)
    command = ["--quick", "--spaces", "0", "--into", str(place), "--methods", "td"]
    assert comparison.main(command) == 130
    assert "the same command goes on" in capsys.readouterr().err
    half = kept(place, "td-0")
    assert not half["done"]
    assert len(half["points"]) == 2  # the round in progress is saved, and graded when it goes on
    assert not (place / comparison.PICTURE).exists()

    assert comparison.main(command) == 0
    assert rounds == QUICK.seeds * QUICK.changes["td"]["rounds"]
    assert kept(place, "td-0")["points"][:2] == half["points"]
    page = (place / comparison.PAGE).read_text()
    assert f"| {comparison.METHODS['td'].words} | {QUICK.seeds} |" in page
    assert f"]({comparison.PICTURE})" in page
    picture = (place / comparison.PICTURE).read_text()
    assert "<svg" in picture

    assert comparison.main(command) == 0  # nothing is trained again
    assert rounds == QUICK.seeds * QUICK.changes["td"]["rounds"]
    assert (place / comparison.PICTURE).read_text() == picture


def test_the_time_of_grading_is_not_counted_whatever_ends_the_run(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    clock, grade = 0.0, analysis.grade

    def grade_slowly(*arguments: Any, **options: Any) -> Any:
        nonlocal clock
        clock += 1000
        return grade(*arguments, **options)

    def tick() -> float:
        nonlocal clock
        clock += 1
        return clock

    monkeypatch.setattr("time.process_time", tick)
    monkeypatch.setattr(analysis, "grade", grade_slowly)
    command = [
        "--quick",
        "--spaces",
        "0",
        "--into",
        str(place),
        "--seeds",
        "1",
        "--methods",
        "td",
        "ppo-unmasked",
    ]
    with monkeypatch.context() as patch:
        patch.setattr(td.Run, "_learn", Mock(side_effect=MemoryError))  # cut off after the first grading
        with pytest.raises(MemoryError):
            comparison.main(command)
    assert len(kept(place, "td-0")["points"]) == 1
    assert comparison.main(command) == 0
    for name in "td", "ppo-unmasked":
        seconds = [point[0] for point in kept(place, f"{name}-0")["points"]]
        assert 0 < seconds[0] < seconds[-1] < 1000


@pytest.mark.slow
def test_every_method_is_trained_and_graded(place: Path):
    assert comparison.main(["--quick", "--spaces", "0", "--into", str(place)]) == 0
    page = (place / comparison.PAGE).read_text()
    for name, method in comparison.METHODS.items():
        assert method.words in page
        for seed in range(QUICK.seeds):
            curve = kept(place, f"{name}-{seed}")
            assert curve["done"]
            assert len(curve["points"]) == QUICK.changes[method.learner]["milestones"] + 1, name
            seconds = [point[0] for point in curve["points"]]
            assert seconds == sorted(seconds)
            assert all(-20 < share < 55 for _, share, _ in curve["points"])


def test_training_without_masks_works_by_the_threads_that_are_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(MaskablePPO, "learn", lambda *_, **__: None)
    settings = comparison.settings_of(comparison.METHODS["ppo-unmasked"], QUICK, 0, 0, tmp_path)
    no_table: Any = None  # nothing is graded
    before = th.get_num_threads()
    try:
        th.set_num_threads(settings.threads + 1)
        comparison.train_unmasked(settings, comparison.Curve(tmp_path / "curve.json", no_table, 1))
        assert th.get_num_threads() == settings.threads
    finally:
        th.set_num_threads(before)


def test_a_missing_table_is_named(place: Path, capsys: pytest.CaptureFixture[str]):
    assert comparison.main(["--quick", "--spaces", "2", "--into", str(place)]) == 2
    assert "wotd solve" in capsys.readouterr().err
