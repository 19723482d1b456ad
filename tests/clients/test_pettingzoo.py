"""PettingZoo's tools and wrappers work with the environment.

PettingZoo's test suite (`api_test`, `seed_test`, `render_test`, `state_test`) runs in tests/envs/test_aec.py.
"""

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
    warnings.simplefilter("ignore")  # with pygame installed, they import a game in a deprecated way
    from pettingzoo.test import parallel_api_test, parallel_seed_test
    from pettingzoo.test import performance_benchmark as benchmark

NAME = "wotd_env/way_of_the_dragon_v0"
in_registry = pytest.mark.skipif(
    not hasattr(pettingzoo, "make"), reason="PettingZoo has a registry from 1.27 on"
)


def game_of(env, seed=2):
    """Return the agent, reward and action of each step of a seeded game of random legal actions."""
    rng, steps = np.random.default_rng(0), []
    env.reset(seed=seed)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        over = terminated or truncated
        action = None if over else int(rng.choice(np.flatnonzero(observation["action_mask"])))
        steps.append((agent, reward, action))
        env.step(action)
    return steps


# ------------------------------------------------------------------------------------------------ tools


@pytest.mark.client("PettingZoo", "pettingzoo", "way_of_the_dragon_v0.env()")
def test_random_demo_plays_complete_games(capsys):
    env = way_of_the_dragon_v0.env(players=3, spaces=0)
    returns = random_demo(env, render=False, episodes=2)
    assert np.isfinite(returns)
    assert "Average total reward" in capsys.readouterr().out
    assert not env.agents


@pytest.mark.slow  # the benchmark takes five seconds
def test_performance_benchmark_runs(capsys):
    benchmark(way_of_the_dragon_v0.env())
    assert "turns per second" in capsys.readouterr().out


def test_the_parallel_conversion_passes_pettingzoos_tests():
    def make():
        return turn_based_aec_to_parallel(way_of_the_dragon_v0.env(players=3, spaces=0))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an observation with a mask is a dict
        parallel_api_test(make(), num_cycles=200)
        parallel_seed_test(make, num_cycles=50)


def test_the_environment_is_not_marked_as_parallelizable():
    with pytest.raises(AssertionError, match="is_parallelizable"):
        aec_to_parallel(way_of_the_dragon_v0.env())


@pytest.mark.client("PettingZoo", "pettingzoo", 'pettingzoo.make("aec", "wotd_env/way_of_the_dragon_v0")')
@in_registry
def test_pettingzoo_make_returns_the_environment_of_the_module():
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
def test_wrappers_do_not_change_the_game(wrap):
    steps = game_of(wrap(way_of_the_dragon_v0.raw_env(players=3, spaces=1)))
    assert steps == game_of(way_of_the_dragon_v0.env(players=3, spaces=1))
    assert sorted(reward for _, reward, action in steps if action is None) == [-0.5, -0.5, 1]


def test_multi_episode_env_plays_several_games():
    env = wrappers.MultiEpisodeEnv(way_of_the_dragon_v0.env(players=3, spaces=0), num_episodes=3)
    steps = game_of(env)
    assert len(steps) > 2 * len(game_of(way_of_the_dragon_v0.env(players=3, spaces=0)))
