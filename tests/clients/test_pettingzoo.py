"""PettingZoo's tools and wrappers take the game as its users write it.

Its suite (`api_test`, `seed_test`, `render_test`, `state_test`) and the game for all seats at once are in
tests/envs/test_aec.py.
"""

from __future__ import annotations

import warnings

import numpy as np
import pettingzoo
import pytest
from pettingzoo.utils import (
    AssertOutOfBoundsWrapper,
    BaseWrapper,
    OrderEnforcingWrapper,
    TerminateIllegalWrapper,
    aec_to_parallel,
    random_demo,
    turn_based_aec_to_parallel,
    wrappers,
)

from wotd_env import way_of_the_dragon_v0

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where pygame is installed, they import a game in PettingZoo's old way
    from pettingzoo.test import parallel_api_test, parallel_seed_test
    from pettingzoo.test import performance_benchmark as benchmark

NAME = "wotd_env/way_of_the_dragon_v0"
in_registry = pytest.mark.skipif(
    not hasattr(pettingzoo, "make"), reason="PettingZoo has a registry from 1.27 on"
)


def game_of(env, seed=2):
    """Who acted how and was paid what, in a seeded game of random legal actions."""
    rng, told = np.random.default_rng(0), []
    env.reset(seed=seed)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        over = terminated or truncated
        action = None if over else int(rng.choice(np.flatnonzero(observation["action_mask"])))
        told.append((agent, reward, action))
        env.step(action)
    return told


# ------------------------------------------------------------------------------------------------ tools


@pytest.mark.client("PettingZoo", "pettingzoo", "way_of_the_dragon_v0.env()")
def test_the_random_demo_plays_a_game_to_its_end(capsys):
    env = way_of_the_dragon_v0.env(players=3, spaces=0)
    returns = random_demo(env, render=False, episodes=2)
    assert np.isfinite(returns)
    assert "Average total reward" in capsys.readouterr().out
    assert not env.agents


@pytest.mark.slow  # five seconds by PettingZoo's clock
def test_the_benchmark_measures_it(capsys):
    benchmark(way_of_the_dragon_v0.env())
    assert "turns per second" in capsys.readouterr().out


def test_all_seats_at_once_pass_the_tests_of_parallel_environments():
    def make():
        return turn_based_aec_to_parallel(way_of_the_dragon_v0.env(players=3, spaces=0))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an observation with a mask is a dict
        parallel_api_test(make(), num_cycles=200)
        parallel_seed_test(make, num_cycles=50)


def test_seats_that_take_turns_are_not_said_to_act_at_once():
    with pytest.raises(AssertionError, match="is_parallelizable"):
        aec_to_parallel(way_of_the_dragon_v0.env())


@pytest.mark.client("PettingZoo", "pettingzoo", 'pettingzoo.make("aec", "wotd_env/way_of_the_dragon_v0")')
@in_registry
def test_the_registry_makes_the_game_of_the_module():
    env = pettingzoo.make("aec", NAME, players=3, spaces=1)
    assert game_of(env) == game_of(way_of_the_dragon_v0.env(players=3, spaces=1))


# ------------------------------------------------------------------------------------------------ wrappers


@pytest.mark.parametrize(
    "wrap",
    [
        AssertOutOfBoundsWrapper,
        BaseWrapper,
        OrderEnforcingWrapper,
        lambda env: TerminateIllegalWrapper(env, illegal_reward=-1),
    ],
    ids=["AssertOutOfBounds", "Base", "OrderEnforcing", "TerminateIllegal"],
)
def test_a_wrapper_changes_nothing_in_the_game(wrap):
    told = game_of(wrap(way_of_the_dragon_v0.raw_env(players=3, spaces=1)))
    assert told == game_of(way_of_the_dragon_v0.env(players=3, spaces=1))
    assert sorted(reward for _, reward, action in told if action is None) == [-0.5, -0.5, 1]


def test_games_follow_one_another_in_one_episode():
    env = wrappers.MultiEpisodeEnv(way_of_the_dragon_v0.env(players=3, spaces=0), num_episodes=3)
    told = game_of(env)
    assert len(told) > 2 * len(game_of(way_of_the_dragon_v0.env(players=3, spaces=0)))


@pytest.mark.parametrize("agents", [2, 5])
def test_the_wrapper_of_sb3s_tutorial_gets_the_mask_as_the_second_value(agents):
    env = way_of_the_dragon_v0.env(players=agents)
    env.reset(seed=0)
    observation, mask = env.observe(env.agent_selection).values()
    assert env.observation_space("player_0")["observation"].contains(observation)
    np.testing.assert_array_equal(mask, env.unwrapped.action_masks())
