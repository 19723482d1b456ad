"""Ties: rounding in a value function does not change the actions of policies that plan.

Values differ between kinds of processors by a few units in the last place. The tests add such differences to a value
function.
"""

import numpy as np
import pytest

from tests.helpers import run_python
from tests.helpers.planned import by_decisions
from wotd_env import Game, Rules
from wotd_env.analysis import analyze, grade
from wotd_env.planning.deeper import Deeper
from wotd_env.planning.planner import TIE, Value, best_actions
from wotd_env.planning.playing import play_turns
from wotd_env.planning.values import hand_made
from wotd_env.policies.deep import Deep
from wotd_env.policies.planner import Planner
from wotd_env.solver import solve

RULES = [
    Rules(),
    Rules(players=3),
    Rules(players=3, powers="any"),
    Rules(players=4, powers="own"),
    Rules(players=5),
]
NOISE = 2e-7


def noisy(value: Value, seed: int = 0) -> Value:
    """Return `value` plus noise that is larger than the rounding errors of float32."""
    rng = np.random.default_rng(seed)

    def noised(game, afterstates):
        values = value(game, afterstates)
        return (values + rng.uniform(-NOISE, NOISE, values.shape)).astype(np.float32)

    return noised


def test_the_lowest_action_wins_among_ties():
    values = np.array(
        [
            [0.5, 0.5, 0.5],
            [0.5, 0.5 + TIE / 2, 0.5 + 3 * TIE],
            [-np.inf, 0.5 - TIE / 2, 0.5],
            [-np.inf, -np.inf, -1],
            [-np.inf, -np.inf, -np.inf],
        ],
        np.float32,
    )
    largest = values.max(1)
    assert best_actions(values, largest).tolist() == [0, 2, 1, 2, 0]
    assert best_actions(values[:0], largest[:0]).shape == (0,)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_rounding_does_not_change_the_actions_of_the_planner(rules):
    game = Game(rules)
    state = game.reset(400, seed=0)
    exact, rounded = (
        Planner(value).act(game, state, np.random.default_rng()) for value in (hand_made, noisy(hand_made))
    )
    np.testing.assert_array_equal(exact, rounded)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_rounding_does_not_change_planned_turns(rules):
    """The other seats get the values of the same choices, except if two choices differ by about TIE."""
    game = Game(rules)
    exact, rounded = game.reset(400, seed=0, roll=False), game.reset(400, seed=0, roll=False)
    for turn in range(6):
        turns = [play_turns(game, exact, hand_made), play_turns(game, rounded, noisy(hand_made, turn))]
        assert (np.abs(turns[0].before - turns[1].before).max(1) > 1e-5).mean() < 0.01
        assert (exact == rounded).all()


def test_rounding_does_not_change_the_actions_of_two_turns():
    game = Game()
    state = game.reset(60, seed=0)
    exact, rounded = Deep("planner"), Deep("planner")
    rounded.value = Deeper(noisy(hand_made))
    actions = [policy.act(game, state, np.random.default_rng()) for policy in (exact, rounded)]
    np.testing.assert_array_equal(actions[0], actions[1])


def test_planned_turns_follow_the_planner_in_ties():
    """An extra turn and its refusal have equal values here, and so do all moves."""
    game = Game(players=3, powers="any", spaces=1, skip_forced=False)

    def value(game, afterstates):
        return np.zeros((len(afterstates), 3), np.float32)

    state = game.reset(300, seed=1, roll=False)
    player = Planner(noisy(value))
    for turn in range(6):
        stepped = by_decisions(game, state, player)
        play_turns(game, state, noisy(value, turn))
        assert (state == stepped).all()
        game.reset(state, where=game.is_over(state), roll=False)


def test_an_analysis_has_the_actions_of_perfect_play(tmp_path):
    table = solve(Rules(spaces=0), tmp_path / "table")
    game = Game(table.rules)
    state = game.reset(300, seed=0)
    analysis = analyze(game, state, table)
    np.testing.assert_array_equal(
        analysis.best, Planner(table.for_seats).act(game, state, np.random.default_rng())
    )
    assert grade(Planner(table.for_seats), table, games=20).all.regret == 0


@pytest.mark.slow
def test_another_kind_of_processor_plays_the_same_actions():
    """The kernels are compiled again, without fused multiply-add and wide vectors."""
    script = f"""
import hashlib, sys
import numpy as np
from wotd_env import Game, Rules, make_policy
for rules in {RULES!r}:
    game = Game(rules)
    state = game.reset(1000, seed=0)
    for name in ("planner", "td"):
        actions = make_policy(name).act(game, state, np.random.default_rng(0))
        print(hashlib.sha256(actions.tobytes()).hexdigest())
"""
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    found = {run_python("-c", script, **changed).stdout for changed in ({}, generic)}
    assert len(found) == 1
