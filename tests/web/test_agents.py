"""Agents: replacements for stuck agents, and the rules that agents can play."""

import gc
import json
from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from tests.helpers.server import HERE, LINE, fewer, make, play, running, touched
from wotd_env import Game, Rules
from wotd_env.analysis import Advisor
from wotd_env.core.state import States
from wotd_env.planning.learned import LearnedValue
from wotd_env.policies import STRENGTHS
from wotd_env.policies.onnx import Onnx
from wotd_env.policy import Policy


class Stuck:
    """A policy that blocks until it is released."""

    go = Event()

    def act(self, game: Game, state: Any, rng: Any) -> Any:
        self.go.wait()
        return np.zeros(len(state), np.int64)


class Wrong:
    """A policy that always chooses an illegal action."""

    def act(self, game: Game, state: Any, rng: Any) -> Any:
        return np.full(len(state), 54)


class Failing:
    """A policy that raises an error for batches of games and for moves."""

    def act(self, game: Game, state: Any, rng: Any) -> Any:
        if len(state) > 1 or state["phase"][0] == 2:
            raise RuntimeError("/secret/path")
        return np.full(len(state), 31)


def test_setup_describes_every_rule(client: httpx.Client) -> None:
    rules = client.get("/api/setup").json()["rules"]
    assert Rules.from_dict({name: valid["default"] for name, valid in rules.items()}) == Rules()
    assert [(valid.get("most"), valid.get("values")) for valid in (rules["max_turns"], rules["colors"])] == [
        (1000, None),
        (None, [None, "random"]),
    ]


def test_setup_has_the_largest_numbers_of_dead_pieces(client: httpx.Client) -> None:
    most = client.get("/api/setup").json()["most_dead_pieces"]
    for players in range(2, 6):
        for spaces in range(11):
            assert most[players - 2][spaces] == 5 * min(5 - players, spaces)  # R15


def test_strengths_are_listed_and_play(client: httpx.Client) -> None:
    listed = client.post("/api/agents", json={"rules": {"players": 2, "spaces": 4}}).json()["agents"]
    levels = {agent["name"]: agent["level"] for agent in listed if agent["level"]}
    assert levels == {name: level for level, name in enumerate(STRENGTHS, 1)}
    (why,) = (agent["why"]["error"] for agent in listed if agent["name"] == "near perfect")
    assert why == "near perfect is not made for spaces=4"
    agents = [{"kind": "agent", "agent": name} for name in ("beginner", "very easy")]
    at, _ = make(client, HERE, *agents, rules={"players": 3, "spaces": 1})
    assert {step["note"] for step in play(at)["log"]} == {None}


def notes_of(client: httpx.Client, agent: str, **rules: Any) -> set[str]:
    """Play against an agent; return the notes on its decisions."""
    at, _ = make(client, HERE, {"kind": "agent", "agent": agent}, rules=rules)
    play(at, 20)
    view = at.view
    assert "secret" not in json.dumps(view)
    return {step["note"] for step in view["log"] if step["seat"] == 1} - {None}


def test_greedy_decides_for_stuck_agents(tmp_path: Path) -> None:
    with running(tmp_path / "tables", fewer(thinking=0.1), {"stuck": Stuck()}) as client:
        assert notes_of(client, "stuck", spaces=0) == {"late"}
    Stuck.go.set()  # the stuck agent did not prevent the server from stopping


def test_greedy_decides_for_failing_agents(tmp_path: Path) -> None:
    policies: dict[str, Policy] = {"wrong": Wrong(), "failing": Failing()}
    with running(tmp_path / "tables", fewer(thinking=600), policies) as client:
        agents = {agent["name"] for agent in client.get("/api/setup").json()["agents"]}
        assert agents >= {"wrong", "failing", "greedy", "planner"}
        for agent in policies:
            assert notes_of(client, agent, spaces=0) == {"failed"}
        assert notes_of(client, "failing") == {"failed"}
        assert notes_of(client, "greedy", spaces=0) == set()


class Choosy:
    """A policy for the default board only. Its error message contains a path. `asked` counts its checks."""

    asked = 0

    def check_rules(self, rules: Rules) -> None:
        self.asked += 1
        if rules.spaces != 7:
            raise ValueError(f"/secret/model is made for {Rules()}, not for {rules}")

    def act(self, game: Game, state: States, rng: Any) -> Any:
        return game.legal_actions(state).argmax(1)


def test_agents_are_listed_with_the_reason_why_they_cannot_play(tmp_path: Path) -> None:
    with running(tmp_path / "tables", policies={"choosy": Choosy()}) as client:

        def obstacles(**body: Any) -> dict[str, str]:
            """Return the rules that agents cannot play, by the names of the agents."""
            answer = client.post("/api/agents", json=body).raise_for_status().json()
            return {
                agent["name"]: agent["why"]["values"]["rules"] for agent in answer["agents"] if agent["why"]
            }

        assert obstacles() == {}
        assert obstacles(rules={"spaces": 6})["choosy"] == "spaces=6"
        found = obstacles(rules={"players": 3, "spaces": 6, "powers": "own"})
        assert "greedy" not in found
        assert found["ppo"] == "these rules"
        assert obstacles(rules={"players": 3})["ppo"] == "players=3"
        assert "ppo" in obstacles(position=LINE)  # a position brings its rules
        seats = [HERE, {"kind": "agent", "agent": "choosy"}]
        refused = client.post("/api/tables", json={"seats": seats, "rules": {"spaces": 6}})
        assert (refused.status_code, refused.json()["field"]) == (400, "seats[1]")
        assert refused.json()["error"] == "choosy is not made for spaces=6"


def test_a_full_server_refuses_before_it_asks_an_agent(tmp_path: Path) -> None:
    choosy = Choosy()
    with running(tmp_path / "tables", fewer(tables=1), {"choosy": choosy}) as client:
        make(client, HERE, HERE)
        before = choosy.asked
        seats = [HERE, {"kind": "agent", "agent": "choosy"}]
        assert client.post("/api/tables", json={"seats": seats}).status_code == 503
        assert choosy.asked == before


def test_a_refused_agent_removes_no_idle_table(tmp_path: Path) -> None:
    with running(tmp_path / "tables") as client:
        old, _ = make(client, HERE, HERE)
    touched(tmp_path / "tables", old, 100_000)
    with running(tmp_path / "tables", fewer(tables=1)) as client:
        seats = [HERE, {"kind": "agent", "agent": "nobody"}]
        assert client.post("/api/tables", json={"seats": seats}).status_code == 400
        assert client.get(old.url).status_code == 401  # still there


@pytest.mark.parametrize("count", [300, pytest.param(2000, marks=pytest.mark.slow)])
def test_many_different_rules_keep_caches_bounded(tmp_path: Path, count: int) -> None:
    kinds = Game, Advisor, LearnedValue, Onnx

    def alive() -> list[int]:
        gc.collect()
        found = Counter(type(each) for each in gc.get_objects())
        return [found[kind] for kind in kinds]

    with running(tmp_path / "tables", fewer(tables=1)) as client:
        make(client, HERE, HERE)
        before = alive()
        for number in range(count):
            rules = {"max_turns": 1 + number % 1000, "colors": None if number < 1000 else "random"}
            for agent in ("ppo", "td"):
                seats = [HERE, {"kind": "agent", "agent": agent}]
                refused = client.post("/api/tables", json={"seats": seats, "rules": rules})
                assert refused.status_code == 503
            told = client.post("/api/agents", json={"rules": rules}).json()["agents"]
            assert {agent["why"] for agent in told} == {None}
            # The position is in turn 12, so max_turns stays above it.
            text = LINE.replace("powers=own", f"powers=own max_turns={1000 - number % 980}")
            assert client.post("/api/games", json={"text": text, "review": True}).status_code == 200
        grown = [now - then for now, then in zip(alive(), before, strict=True)]
    assert grown[0] <= 256 + 64 + 8  # the caches of games and advisors
    assert grown[1] <= 64
    assert max(grown[2:]) <= 8  # one for each bundled model, however many rules


def test_long_games_are_refused_in_every_request(client: httpx.Client) -> None:
    text = f"{LINE} max_turns=1001"
    for path, body in (
        ("/api/games", {"text": text}),
        ("/api/games", {"text": text, "review": True}),
        ("/api/agents", {"position": text}),
        ("/api/agents", {"rules": {"max_turns": 1001}}),
        ("/api/tables", {"position": text, "seats": [HERE, HERE]}),
    ):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]) == (
            400,
            "max_turns must be at most 1000 here, got 1001",
        )
