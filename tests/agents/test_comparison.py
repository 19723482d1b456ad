"""The comparison of training methods: interruption, grading, and the page."""

from __future__ import annotations

import dataclasses
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
from wotd_env import analysis

QUICK = comparison.QUICK


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the page and for cached tables."""
    shutil.copy(comparison.FOLDER / comparison.PAGE, tmp_path)
    monkeypatch.setattr(
        "wotd_env.policies.oracle.cache_file", lambda rules: tmp_path / f"{rules.spaces}.wotd"
    )
    return tmp_path


def saved_curve(place: Path, run: str) -> dict[str, Any]:
    """Return the saved learning curve of a run."""
    content: dict[str, Any] = json.loads((place / "comparison" / "0-quick" / f"{run}.json").read_text())
    return content


def test_an_interrupted_comparison_resumes_and_writes_table_and_picture(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    learn, updates = td.Run.learn, 0

    def interrupted(self: td.Run) -> float:
        nonlocal updates
        updates += 1
        if updates == 2:
            signal.raise_signal(signal.SIGINT)
        return learn(self)

    monkeypatch.setattr(td.Run, "learn", interrupted)
    command = ["--quick", "--spaces", "0", "--into", str(place), "--methods", "td"]
    assert comparison.main(command) == 130
    assert "continue with the same command" in capsys.readouterr().err
    half = saved_curve(place, "td-0")
    assert not half["done"]
    assert len(half["points"]) == 2  # the current update is saved and graded after the interruption
    assert not (place / comparison.PICTURE).exists()

    assert comparison.main(command) == 0
    assert updates == QUICK.seeds * QUICK.changes["td"]["updates"]
    assert saved_curve(place, "td-0")["points"][:2] == half["points"]
    page = (place / comparison.PAGE).read_text()
    assert f"| {comparison.METHODS['td'].words} | {QUICK.seeds} |" in page
    assert f"]({comparison.PICTURE})" in page
    picture = (place / comparison.PICTURE).read_text()
    assert "<svg" in picture

    assert comparison.main(command) == 0  # nothing is trained again
    assert updates == QUICK.seeds * QUICK.changes["td"]["updates"]
    assert (place / comparison.PICTURE).read_text() == picture


def test_training_time_excludes_grading_even_after_a_crash(place: Path, monkeypatch: pytest.MonkeyPatch):
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
    command = ["--quick", "--spaces", "0", "--into", str(place), "--seeds", "1"]
    command += ["--methods", "td", "sb3-unmasked"]
    with monkeypatch.context() as patch:
        patch.setattr(td.Run, "learn", Mock(side_effect=MemoryError))  # cut off after the first grading
        with pytest.raises(MemoryError):
            comparison.main(command)
    assert len(saved_curve(place, "td-0")["points"]) == 1
    assert comparison.main(command) == 0
    for name in "td", "sb3-unmasked":
        seconds = [point[0] for point in saved_curve(place, f"{name}-0")["points"]]
        assert 0 < seconds[0] < seconds[-1] < 1000


def test_a_run_with_other_settings_is_not_resumed(place: Path, capsys: pytest.CaptureFixture[str]):
    folder = place / "comparison" / "0-quick"
    settings = comparison.settings_of(comparison.METHODS["td"], QUICK, 0, 0, folder / "td-0")
    td.Run(dataclasses.replace(settings, explore=0.3)).begin()
    command = ["--quick", "--spaces", "0", "--seeds", "1", "--into", str(place), "--methods", "td"]
    assert comparison.main(command) == 2
    assert "was started with other settings; remove the folder" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["games", "settings"])
def test_a_finished_run_with_other_settings_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], change: str
):
    command = ["--quick", "--spaces", "0", "--seeds", "1", "--into", str(place), "--methods", "td"]
    assert comparison.main(command) == 0
    before = (place / comparison.PAGE).read_text()
    scale = QUICK._replace(games=QUICK.games + 1)
    if change == "settings":
        scale = QUICK._replace(changes={**QUICK.changes, "td": {**QUICK.changes["td"], "explore": 0.3}})
    monkeypatch.setattr(comparison, "QUICK", scale)
    assert comparison.main(command) == 2
    assert "td-0.json belongs to other settings; remove it and " in capsys.readouterr().err
    assert (place / comparison.PAGE).read_text() == before


@pytest.mark.parametrize("partial", [["--quick"], ["--methods", "td"], ["--spaces", "0"]], ids=str)
def test_only_the_full_comparison_writes_the_page(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], partial: list[str]
):
    (place / "pages").mkdir()
    page = place / "pages" / comparison.PAGE
    (place / comparison.PAGE).rename(page)
    before = page.read_text()
    monkeypatch.setattr(comparison, "ROOT", place)
    monkeypatch.setattr(comparison, "FOLDER", page.parent)
    curves = {"td": [[comparison.Point(0.0, -40.0, 1.0), comparison.Point(60.0, 49.0, 0.1)]]}
    monkeypatch.setattr(comparison, "compare", lambda *_: curves)
    assert comparison.main(partial) == 0
    assert "| TD(lambda), self-play | 1 | 1.0 | 49.00 % |" in capsys.readouterr().out
    assert page.read_text() == before
    assert comparison.main([]) == 0
    assert "| TD(lambda), self-play | 1 | 1.0 | 49.00 % |" in page.read_text()


@pytest.mark.parametrize("seeds", ["0", "-1"])
def test_seeds_must_be_positive(seeds: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        comparison.main(["--seeds", seeds])
    assert f"--seeds must be at least 1, got {seeds}" in capsys.readouterr().err


@pytest.mark.slow
def test_every_method_is_trained_and_graded(place: Path):
    assert comparison.main(["--quick", "--spaces", "0", "--into", str(place)]) == 0
    page = (place / comparison.PAGE).read_text()
    for name, method in comparison.METHODS.items():
        assert method.words in page
        for seed in range(QUICK.seeds):
            curve = saved_curve(place, f"{name}-{seed}")
            assert curve["done"]
            assert len(curve["points"]) == QUICK.changes[method.learner]["milestones"] + 1, name
            seconds = [point[0] for point in curve["points"]]
            assert seconds == sorted(seconds)
            assert all(-20 < share < 55 for _, share, _ in curve["points"])


def test_training_without_masks_uses_the_threads_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(MaskablePPO, "learn", lambda *_, **__: None)
    settings = comparison.settings_of(comparison.METHODS["sb3-unmasked"], QUICK, 0, 0, tmp_path)
    no_table: Any = None  # nothing is graded
    before = th.get_num_threads()
    try:
        th.set_num_threads(settings.threads + 1)
        comparison.train_unmasked(settings, comparison.Curve(tmp_path / "curve.json", no_table, 1, settings))
        assert th.get_num_threads() == settings.threads
    finally:
        th.set_num_threads(before)


def test_a_missing_table_error_names_the_solve_command(place: Path, capsys: pytest.CaptureFixture[str]):
    assert comparison.main(["--quick", "--spaces", "2", "--into", str(place)]) == 2
    assert "wotd solve --spaces 2 " in capsys.readouterr().err
