"""The demo without a server (`python -m tools.demo`): it agrees with the package, and can be played."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import ROOT
from tools import demo
from wotd_env import Game, Phase
from wotd_env.planning.planner import plan
from wotd_env.policies.td import BundledValue
from wotd_env.web import views

NAMES = ["Player", "td"]
GAMES = 20


def test_demo_agrees_with_the_package_over_whole_games(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    demo.build(tmp_path)
    rng, game = np.random.default_rng(0), Game(skip_forced=False)
    played = [play(game, seed, rng) for seed in range(GAMES)]
    kinds = {decision["step"]["notation"][-3:] for each in played for decision in each["decisions"]}
    assert {"A-B", "ass", "ium", "ion"} <= {kind for kind in kinds}
    (tmp_path / "games.json").write_text(json.dumps({"names": NAMES, "games": played}))
    file = Path(__file__).with_name("agreement.js")
    command = [node, "--test", "--test-reporter=spec", file]
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "WOTD_DEMO": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    print(ran.stdout)
    assert ran.returncode == 0, ran.stdout


def play(game: Game, seed: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a game of random actions as JSON. Every second roll has few faces, so that all kinds of moves occur."""
    state = game.reset(1, seed=seed)
    states, actions = [], []
    while not game.is_over(state)[0]:
        states.append(state.copy())
        actions.append(int(rng.choice(np.flatnonzero(game.legal_actions(state)[0]))))
        game.decide(state, actions[-1:])
        if state["phase"][0] == Phase.CHANCE:
            faces = rng.choice(6, 2, replace=False) if rng.random() < 0.5 else np.arange(6)
            dice = state["dice"][0]
            game.roll(state, np.sort(np.where(dice < 0, rng.choice(faces, 5), dice))[None])
    afters = [*states[1:], state]
    equity = plan(game, np.concatenate(states), BundledValue())[0]
    decisions = []
    for ply, (before, action, after) in enumerate(zip(states, actions, afters, strict=True)):
        legal = np.flatnonzero(game.legal_actions(before)[0]).tolist()
        decisions.append(
            {
                "state": show(game, before),
                "choices": views.choices(game, before, NAMES),
                "values": {each: float(equity[ply, each]) for each in legal},
                "action": action,
                "step": {"ply": ply, **views.step(game, before, action, after, NAMES)},
            }
        )
    end = {"state": show(game, state), "result": views.result(game, state, NAMES)}
    return {"decisions": decisions, "end": end}


def show(game: Game, state: np.ndarray) -> dict[str, Any]:
    """Return a position as the demo shows it: without its line of text."""
    return views.show(game, state, NAMES) | {"position": ""}
