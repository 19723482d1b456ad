"""Measurements of the speed: the cases, ratios, timing, and the check."""

import itertools
import json
import re

import pytest
from rich.console import Console

from tools.speed import __main__ as command
from tools.speed import cases
from tools.speed.cases import CASES
from wotd_env import Game, speed


def test_case_names_are_unique_and_ratios_use_them():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {name for pair in command.RATIOS.values() for name in pair} <= set(names)


def test_texts_name_existing_game_methods():
    texts = [*(case.what for case in CASES), command.RESULTS.read_text(), command.PAGE.read_text()]
    methods = set(re.findall(r"\bGame\.(\w+)", "\n".join(texts)))
    assert "step_autoreset" in methods
    assert [name for name in methods if not hasattr(Game, name)] == []


@pytest.mark.parametrize(
    "name", ["game-64", "game-one", "bytes-8192", "plan-2048-learned", "aec-raw", "aec", "single"]
)
def test_a_loop_counts_the_decisions_it_plays(name):
    chunk = next(case for case in CASES if case.name == name).make()
    decisions, inside = chunk()
    assert decisions > 1000
    assert inside > 0


@pytest.mark.parametrize("name", ["game-one", "aec-raw", "aec", "single", "openspiel", "maedn", "tictactoe"])
def test_environment_time_excludes_choosing_actions(name: str, monkeypatch: pytest.MonkeyPatch):
    case = next(case for case in CASES if case.name == name)
    if not case.installed:
        pytest.skip(f"needs {case.needs}")
    chunk = case.make()
    ticks = itertools.count()
    for module in (cases, speed):
        monkeypatch.setattr(module, "perf_counter", lambda: float(next(ticks)))
    decisions, inside = chunk()
    assert inside >= decisions > 0  # every reading advances the clock


def test_published_results_contain_every_case():
    published = set(json.loads(command.RESULTS.read_text())["cases"])
    assert published == {case.name for case in CASES}


def test_measure_returns_statistics_for_every_case():
    cases = [case for case in CASES if case.name in ("game-64", "bytes-8192")]
    rows = command.measure(cases, seconds=0.01, repeats=2)
    assert list(rows) == ["game-64", "bytes-8192"]
    for row in rows.values():
        assert 0 < row["least"] <= row["median"] <= row["most"]
        assert row["inside"] >= row["median"]


def test_the_check_fails_if_a_ratio_drops(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    command.RESULTS.write_text(json.dumps({"ratios": {"a": 2.0}}))
    assert command.check({"a": 1.9}, Console(quiet=True)) == 0
    assert command.check({"a": 1.5}, Console(quiet=True)) == 1
