"""Best responses: sampled turns of a policy without the luck of its dice, and the training run."""

from pathlib import Path

import numpy as np
import pytest

from agents.td import against
from tests.helpers.learned import some_value
from tests.helpers.training import LEARNING_TD, trained
from wotd_env import Game, Phase, Rules, make_policy
from wotd_env.core.state import States
from wotd_env.evaluation import match
from wotd_env.planning.playing import play_turns, sample_turns
from wotd_env.policies.planner import Planner

VARIANTS = [
    Rules(spaces=1),
    Rules(players=3, spaces=1, powers="any"),
    Rules(players=4, spaces=0, powers="own", dead_pieces=0, start="loser", max_turns=9),
]


def before_turns(rules: Rules, games: int, turns: int = 6) -> States:
    """Return games before the first roll of a turn, some turns after their start."""
    game, value = Game(rules), some_value(rules)
    state = game.reset(games, seed=3, roll=False)
    for _ in range(turns):
        play_turns(game, state, value)
        game.reset(state, where=game.is_over(state), roll=False)
    return state


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_a_sampled_turn_is_the_turn_of_the_policy(rules: Rules):
    game, value, policy = Game(rules), some_value(rules), make_policy("first")
    state = before_turns(rules, 60)
    mine = state.copy()
    turns = sample_turns(game, state, value, policy, np.random.default_rng(0))
    single = Game(rules, skip_forced=False)
    for i in range(len(mine)):
        one = mine[i : i + 1]
        turn = one["turn"].copy()
        while one["phase"][0] != Phase.OVER and one["turn"] == turn:
            single.roll(one, validate=False)
            single.decide(one, policy.act(game, one, np.random.default_rng(0)))
    assert (mine == state).all()
    over = game.is_over(state)[:, None]
    np.testing.assert_allclose(
        turns.after, np.where(over, game.rewards(state), value(game, state)), atol=1e-6
    )
    np.testing.assert_allclose(turns.before.sum(1), 0, atol=1e-5)


@pytest.mark.parametrize("rules", VARIANTS[:2], ids=str)
def test_only_the_luck_of_the_dice_is_removed(rules: Rules):
    game, value, times = Game(rules), some_value(rules), 4000
    state = np.repeat(before_turns(rules, 8)[1:2], times)
    seat = int(state["player"][0])
    state["rng"] = np.random.default_rng(1).integers(0, 1 << 64, times, dtype=np.uint64)
    for policy in (make_policy("random"), Planner(value)):
        turns = sample_turns(game, state.copy(), value, policy, np.random.default_rng(2))
        luck = turns.after - turns.before
        assert (abs(luck.mean(0)) < 4 * luck.std(0) / times**0.5 + 1e-6).all()
        assert turns.before[:, seat].std() < turns.after[:, seat].std()
    # The decisions of the planner have no regret.
    np.testing.assert_allclose(turns.before[:, seat], turns.before[0, seat], atol=1e-4)


def test_only_the_learner_explores_and_plans():
    rules = Rules(players=3, spaces=1)
    state, value = before_turns(rules, 90), some_value(rules)
    seat = np.arange(len(state)) % 3
    at_random = np.ones(len(state), np.bool_)
    own, alone = state["player"] == seat, state.copy()
    play = against(make_policy("first"), seat, np.random.default_rng(0))
    turns = play(Game(rules), state, value, at_random)
    np.testing.assert_array_equal(at_random, own)
    planned = alone[own]
    expected = play_turns(Game(rules), planned, value, at_random[own])
    assert (state[own] == planned).all()
    np.testing.assert_array_equal(turns.before[own], expected.before)
    sampled = alone[~own]
    sample_turns(Game(rules), sampled, value, make_policy("first"), np.random.default_rng(0))
    assert (state[~own] == sampled).all()


@pytest.mark.slow
def test_a_best_response_beats_its_policy(tmp_path: Path):
    run = trained(LEARNING_TD, tmp_path / "run", against="planner", width=64)
    game, games = Game(run.settings.rules), 20_000
    counts = match(game, run.learner.policy(), make_policy("planner"), games, seed=5)
    assert counts.wins > 0.5 * games  # at first 0.36; perfect play has 0.516
