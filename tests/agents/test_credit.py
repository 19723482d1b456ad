"""Credit for decisions: games go on as they would without it, and it is what exact analysis says."""

from __future__ import annotations

import numpy as np
import pytest

from agents.credit import Creditor
from wotd_env import Game, IllegalActionError, Rules, analysis, make_policy, solver
from wotd_env.planning.values import hand_made
from wotd_env.policy import ask

VARIANTS = [
    Rules(),
    Rules(spaces=2, powers="any", dead_pieces=3),
    Rules(players=3, powers="own", colors="random", max_turns=20),
    Rules(players=5, spaces=1, immunity=True),
]


@pytest.mark.parametrize("skip_forced", [True, False])
@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_games_go_on_as_they_would_without_credit(rules, skip_forced):
    game, random, rng = Game(rules, skip_forced=skip_forced), make_policy("random"), np.random.default_rng(0)
    creditor = Creditor(game, hand_made)
    state = game.new(60, seed=1)
    for _ in range(80):
        state = state[~game.is_over(state)]
        if not len(state):
            break
        actions, plain = ask(random, game, state, rng), state.copy()
        game.step(plain, actions)
        credit = creditor.step(state, actions)
        assert np.array_equal(state, plain)
        assert credit.shape == (len(state), rules.players)
        assert np.allclose(credit.sum(1), 0, atol=1e-5)


def test_an_illegal_action_changes_nothing():
    game = Game()
    state = game.new(3)
    before = state.copy()
    with pytest.raises(IllegalActionError, match="game 1: action 50"):
        Creditor(game, hand_made).step(state, np.array([31, 50, 31]))
    assert np.array_equal(state, before)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return solver.solve(0, tmp_path_factory.mktemp("table") / "0.wotd", threads=1)


@pytest.mark.parametrize("name", ["oracle", "greedy", "random"])
def test_by_a_perfect_value_the_credit_is_minus_the_regret(table, name):
    policy = make_policy(f"oracle:{table.file}" if name == "oracle" else name)
    game, rng = Game(Rules(spaces=0)), np.random.default_rng(0)
    creditor = Creditor(game, table.for_seats)
    state = game.new(200, seed=3)
    for _ in range(40):
        state = state[~game.is_over(state)]
        if not len(state):
            break
        actions, mover = ask(policy, game, state, rng), state["player"].copy()
        regret = analysis.regret(game, state, actions, table)
        credit = creditor.step(state, actions)
        assert np.allclose(credit[np.arange(len(state)), mover], -regret, atol=2e-5)
        if name == "oracle":
            assert np.abs(credit).max() < 2e-5


def test_credits_leave_the_mean_result_as_it_is():
    game, rng = Game(Rules(spaces=2, start=0)), np.random.default_rng(0)
    creditor, policy = Creditor(game, hand_made), make_policy("greedy")
    games = 4000
    state, total = game.new(games, seed=5), np.zeros(games)
    began = make_policy("planner").equity(game, game.new(games, seed=5, roll=False)).mean()  # type: ignore[attr-defined]
    while (live := np.flatnonzero(~game.is_over(state))).size:
        part = state[live]
        total[live] += creditor.step(part, ask(policy, game, part, rng))[:, 0]
        state[live] = part
    results = game.rewards(state)[:, 0]
    error = np.std(total + began - results) / games**0.5
    assert abs((total + began - results).mean()) < 4 * error
    assert total.std() < 0.7 * results.std()
