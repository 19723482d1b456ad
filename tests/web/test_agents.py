"""Agents: replacements for stuck ones, and the rules that they play."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")


from tests.helpers.server import (
    HERE,
    fewer,
    make,
    play,
    running,
)
from wotd_env import Game
from wotd_env.policy import Policy


class Stuck:
    """A policy that never answers, until it is let go."""

    go = Event()

    def act(self, game: Game, state: Any, rng: Any) -> Any:
        self.go.wait()
        return np.zeros(len(state), np.int64)


class Wrong:
    """A policy that is always wrong."""

    def act(self, game: Game, state: Any, rng: Any) -> Any:
        return np.full(len(state), 54)


class Failing:
    """A policy that fails where it is asked about more than one game at a time, or about a move."""

    def act(self, game: Game, state: Any, rng: Any) -> Any:
        if len(state) > 1 or state["phase"][0] == 2:
            raise RuntimeError("/secret/path")
        return np.full(len(state), 31)


def test_greedy_decides_for_stuck_and_failing_agents(tmp_path: Path) -> None:
    policies: dict[str, Policy] = {"stuck": Stuck(), "wrong": Wrong(), "failing": Failing()}
    with running(tmp_path / "tables", fewer(thinking=0.2), policies) as client:
        agents = {agent["name"] for agent in client.get("/api/setup").json()["agents"]}
        assert agents >= {"stuck", "wrong", "failing", "greedy", "planner"}
        tables = {
            name: make(client, HERE, {"kind": "agent", "agent": name}, rules={"spaces": 0})[0]
            for name in (*policies, "greedy")
        }
        tables["failing too"] = make(client, HERE, {"kind": "agent", "agent": "failing"})[0]
        for name, at in tables.items():
            play(at, 10)
            view = at.view
            notes = {step["note"] for step in view["log"] if step["seat"] == 1} - {None}
            what = "did not answer in time" if name == "stuck" else "failed"
            assert notes <= {f"{name.split()[0]} {what}; greedy chose"}
            assert bool(notes) == (name != "greedy")
            assert "secret" not in json.dumps(view)
    Stuck.go.set()  # it did not keep the server from stopping
