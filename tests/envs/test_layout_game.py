"""`LayoutGame`: every new game draws a layout of dead pieces."""

import numpy as np
import pytest

from wotd_env import Rules, benchmark
from wotd_env.core.layouts import layout_of
from wotd_env.envs.layouts import LayoutGame

RULES = Rules(spaces=2, dead_pieces=5)
LAYOUTS = benchmark.layouts("train", 2)


def names(state):
    return [layout_of(dead, RULES.spaces) for dead in state["dead"]]


def test_all_layouts_are_drawn_about_equally_often():
    drawn = names(LayoutGame(RULES, LAYOUTS).reset(44 * 200, seed=0))
    counts = [drawn.count(layout) for layout in LAYOUTS]
    assert sum(counts) == len(drawn)
    assert 140 < min(counts) <= max(counts) < 260


def test_a_game_keeps_its_layout_and_the_next_game_draws_another():
    game = LayoutGame(RULES, LAYOUTS)
    state, rng = game.reset(64, seed=1), np.random.default_rng(0)
    observation, changed = np.zeros((64, game.observation_size), np.int8), 0
    for _ in range(400):
        before, done = names(state), np.zeros(64, np.bool_)
        actions = (game.legal_actions(state) * rng.random((64, game.num_actions))).argmax(1)
        game.step_autoreset(state, actions, observation=observation, done=done)
        assert {*names(state)} <= {*LAYOUTS}
        moved = np.array(before) != np.array(names(state))
        assert not moved[~done].any()
        assert np.array_equal(observation, game.observe(state))
        changed += moved.sum()
    assert changed > 20


def test_a_restart_in_place_changes_only_the_chosen_games():
    game = LayoutGame(RULES, LAYOUTS)
    state = game.reset(32, seed=2, roll=False)
    before, where = state.copy(), np.arange(32) < 16
    game.reset(state, where=where, roll=False)
    assert np.array_equal(state[16:], before[16:])
    assert names(state)[:16] != names(before)[:16]


def test_without_layouts_the_rules_place_the_dead_pieces():
    state = LayoutGame(RULES).reset(50, seed=3)
    assert {name.count("#") for name in names(state)} == {5}


@pytest.mark.parametrize(
    ("rules", "layouts", "message"),
    [
        (Rules(spaces=2), LAYOUTS, "dead_pieces must be at least 1 if layouts are given, got 0"),
        (RULES, [], "layouts must be a list of layouts"),
        (RULES, ["##/##"], r"layouts\[0\]: dead_pieces must be a number or 5 paths"),
        (RULES, ["#./../../../.#", "##./##/../../.."], r"layouts\[1\]: dead_pieces must be on plain spaces"),
        (Rules(spaces=5, dead_pieces=5), ["#####/...../...../...../....."], r"fewer than 5 in a row.*R15"),
    ],
)
def test_impossible_layouts_are_refused(rules, layouts, message):
    with pytest.raises(ValueError, match=message):
        LayoutGame(rules, layouts)
