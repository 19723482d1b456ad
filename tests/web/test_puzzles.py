"""Positions with their choices, and the puzzles that are shipped with the page."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from tests.helpers.server import LINE
from tools import puzzles
from wotd_env import Game, Rules, make_policy, notation
from wotd_env.analysis import Advisor
from wotd_env.solver import solve

PUZZLES: list[dict[str, Any]] = json.loads(puzzles.FILE.read_text())


def test_choices_of_a_position_are_all_legal_actions(client: httpx.Client) -> None:
    study = client.post("/api/choices", json={"position": LINE}).raise_for_status().json()
    rules, state = notation.parse_position(LINE)
    game = Game(rules, skip_forced=False)
    actions = [choice["action"] for choice in study["choices"]]
    assert actions == np.flatnonzero(game.legal_actions(state)[0]).tolist()
    assert study["rules"]["powers"] == "own"
    assert notation.parse_position(study["position"])[1].tobytes() == state.tobytes()


def test_choices_need_a_position(client: httpx.Client) -> None:
    refused = client.post("/api/choices", json={"rules": {"spaces": 3}})
    assert (refused.status_code, refused.json()["error"]) == (400, "position is missing")


def test_values_are_the_chances_to_win_after_each_choice(client: httpx.Client) -> None:
    study = client.post("/api/choices", json={"position": LINE, "values": True}).raise_for_status().json()
    rules, state = notation.parse_position(LINE)
    advisor = Advisor(Game(rules, skip_forced=False))
    equities = advisor.analyze(state).actions[0, [choice["action"] for choice in study["choices"]]]
    assert study["chances"] == pytest.approx((1 + equities) / 2, abs=1e-4)
    assert (study["source"], study["exact"]) == (advisor.kind, advisor.exact)


def test_choices_of_agents_are_named(client: httpx.Client) -> None:
    body = {"position": LINE, "agents": ["planner", "greedy"]}
    study = client.post("/api/choices", json=body).raise_for_status().json()
    rules, state = notation.parse_position(LINE)
    game, rng = Game(rules, skip_forced=False), np.random.default_rng(0)
    assert study["agents"] == {
        name: int(make_policy(name).act(game, state, rng)[0]) for name in body["agents"]
    }
    for wrong in (["nobody"], ["greedy"] * 3):
        refused = client.post("/api/choices", json={"position": LINE, "agents": wrong})
        assert (refused.status_code, refused.json()["field"].partition("[")[0]) == (400, "agents")


def test_position_before_a_roll_has_no_choices(client: httpx.Client) -> None:
    game = Game(Rules())
    line = notation.position(game.rules, game.new(1, roll=False))
    assert client.post("/api/choices", json={"position": line}).raise_for_status().json()["choices"] == []


def test_shipped_puzzles_have_one_clearly_best_choice() -> None:
    assert len({puzzle["position"] for puzzle in PUZZLES}) == len(PUZZLES) >= 200
    for puzzle in PUZZLES:
        rules, state = notation.parse_position(puzzle["position"])
        legal = np.flatnonzero(Game(rules, skip_forced=False).legal_actions(state)[0])
        best, second, *_ = sorted(puzzle["lost"])
        assert len(puzzle["lost"]) == len(legal)
        assert best == 0
        assert second >= puzzles.GAP * 500
        assert puzzles.kind_of(rules, state[0], legal) == puzzle["kind"]
    kinds = Counter((puzzle["kind"], puzzle["level"]) for puzzle in PUZZLES)
    assert set(kinds) == {(kind, level) for kind in puzzles.KINDS for level in (1, 2, 3)}


def test_losses_of_puzzles_are_those_of_the_solution(tmp_path: Path) -> None:
    rules = Rules(spaces=1)
    game = Game(rules, skip_forced=False)
    advisor = Advisor(game, solve(rules, tmp_path / "table"))
    checked = 0
    for puzzle in PUZZLES:
        own, state = notation.parse_position(puzzle["position"])
        if (own.spaces, own.powers) == (1, "none"):
            equities = advisor.analyze(state).actions[0]
            losses = (equities.max() - equities[np.isfinite(equities)]) * 500
            assert losses == pytest.approx(puzzle["lost"], abs=0.51)
            checked += 1
    assert checked > 20


def test_puzzles_are_reproducible() -> None:
    game = Game(Rules(spaces=0), skip_forced=False)
    first, again = (puzzles.decisions(game, 20, np.random.default_rng(5)) for _ in range(2))
    assert first.tobytes() == again.tobytes()
    assert (game.legal_actions(first).sum(1) > 1).all()
