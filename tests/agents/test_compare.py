"""The command that overlays the learning curves of several runs."""

from pathlib import Path
from typing import Any

import pytest

from agents import command, evaluate
from agents.evaluate import Curves, Measurement
from tests.helpers.training import TINY_PPO, TINY_TD, started, trained


def test_runs_that_differ_only_in_the_seed_give_one_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    drawn: list[tuple[Curves, str]] = []
    draw = evaluate.draw_curves

    def noted(curves: Curves, unit: str, players: int) -> bytes:
        drawn.append((curves, unit))
        return draw(curves, unit, players)

    monkeypatch.setattr(evaluate, "draw_curves", noted)
    runs: dict[str, Any] = {"a": {}, "b": {"seed": 1}, "c": {"td_lambda": 0.5}}
    for name, changes in runs.items():
        trained(TINY_TD, tmp_path / name, updates=2, **changes)
    trained(TINY_PPO, tmp_path / "d", updates=2)
    file = tmp_path / "curves.png"
    assert command.main(["compare", *(str(tmp_path / name) for name in "abcd"), "--file", str(file)]) == 0
    assert file.read_bytes().startswith(b"\x89PNG")
    ((curves, unit),) = drawn
    assert unit == "decisions or turns"
    assert {label: len(runs) for label, runs in curves.items()} == {
        "planner: td td_lambda=0.8, runs: 2": 2,
        "planner: td td_lambda=0.5, runs: 1": 1,
        "planner: ppo, runs: 1": 1,
    }
    assert [row.done for row in curves["planner: ppo, runs: 1"][0]] == [0, 32, 64]


def test_intervals_over_runs_are_those_of_student_s_t():
    def share(*wins: int) -> tuple[float, float, float]:
        return evaluate.mean_share([Measurement(0, 0.0, "planner", 100, won, 0, 100 - won) for won in wins])

    margin = 4.3027 * 0.1 / 3**0.5  # quantile, standard deviation and number of the runs
    assert share(40, 50, 60) == pytest.approx((0.5, 0.5 - margin, 0.5 + margin), abs=1e-4)
    assert share(50) == pytest.approx((0.5, 0.4038, 0.5962), abs=1e-3)  # the interval over its games


def test_unusable_runs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert command.main(["compare"]) == command.main(["compare", str(tmp_path / "missing")]) == 2
    with started(TINY_TD, tmp_path / "new"):
        pass
    assert command.main(["compare", str(tmp_path / "new")]) == 2
    assert "has no milestone yet" in capsys.readouterr().err
    assert command.main(["compare", str(tmp_path / "new"), "--file", "curves.svg"]) == 2
    assert "file must end in .png, got curves.svg" in capsys.readouterr().err
