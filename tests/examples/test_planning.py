"""The examples that plan turns by hand agree with the compiled planner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'wotd-env[train]'")

import torch as th
from torch import nn

from examples import expectimax, td0
from wotd_env import Game, Phase, make_policy
from wotd_env.planning.planner import plan


def middle_game(game: Game, games: int) -> Any:
    """Return games between greedy players at different decisions. None can end in this turn."""
    state, rng = game.reset(games, seed=3), np.random.default_rng(0)
    for step in range(30):
        live = np.flatnonzero(np.arange(games) % 30 >= step)
        part = state[live]
        game.step(part, make_policy("greedy").act(game, part, rng))
        state[live] = part
    assert {Phase.KEEP, Phase.MOVE} <= set(state["phase"].tolist())
    numbered = (state["pieces"] > game.rules.spaces).sum(2)
    assert numbered.max() < 4
    return state


@pytest.mark.parametrize("rules", [{}, {"players": 3, "powers": "any"}], ids=["basic", "powers"])
def test_expectimax_action_values_match_the_planner(rules: dict[str, Any]):
    game = Game(**rules, skip_forced=False)
    state = middle_game(game, 15)

    def value(game: Game, afterstates: Any) -> Any:
        seats = np.full(len(afterstates), 1)[:, None] * np.arange(game.rules.players)
        return np.stack([expectimax.heuristic(game, afterstates, seat) for seat in seats.T], 1)

    expected, _ = plan(game, state, value)
    roots = state.copy()
    roots["rng"] = np.arange(len(roots))
    decision, action, values = expectimax.action_values(game, roots, roots)
    assert len(values) == np.isfinite(expected).sum()
    np.testing.assert_allclose(values, expected[decision, action], rtol=1e-4, atol=1e-4)
    actions = expectimax.Expectimax().act(Game(**rules), state, np.random.default_rng(0))
    best = expected.max(1)
    np.testing.assert_allclose(expected[np.arange(len(state)), actions], best, rtol=1e-4, atol=1e-4)


def test_td_planning_matches_the_planner():
    th.manual_seed(0)
    network = nn.Sequential(nn.Linear(td0.PIECES.stop, 64), nn.ReLU(), nn.Linear(64, 1))
    game = td0.game
    state = middle_game(game, 60)

    def value(game: Game, afterstates: Any) -> Any:
        with th.no_grad():
            mine = (td0.logits(network, afterstates) / 2).tanh().numpy()
        first = afterstates["player"] == 0
        return np.stack([np.where(first, mine, -mine), np.where(first, -mine, mine)], 1)

    expected, _ = plan(game, state, value)
    chosen = expected[np.arange(len(state)), td0.choose(network, state)]
    np.testing.assert_allclose(chosen, expected.max(1), atol=1e-5)
    before_roll = game.reset(5, seed=1, roll=False)
    _, expected_value = plan(game, before_roll, value)
    np.testing.assert_allclose(td0.plan(network, before_roll).value, expected_value, atol=1e-5)


def test_td_learns_the_same_from_the_same_seed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(td0, "win_rate", lambda *_: 0.0)  # the measurements take longer than the learning
    one, other = (td0.train(turns=20, games=16) for _ in range(2))
    for mine, its in zip(one.parameters(), other.parameters(), strict=True):
        assert mine.equal(its)


def test_td_learns_to_beat_random_play(monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(td0, "win_rate", lambda *_: 0.0)
        network = td0.train(turns=200, games=16)
    th.manual_seed(0)
    untrained = nn.Sequential(nn.Linear(td0.PIECES.stop, 64), nn.ReLU(), nn.Linear(64, 1))
    assert td0.win_rate(network, "random", 100) > td0.win_rate(untrained, "random", 100) + 0.15
