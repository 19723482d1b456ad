"""Gymnasium's three ways to many games play the same ones, and its wrappers go around one game and around many.

What one environment promises is in tests/envs/test_single.py, what the native vector environment does in
tests/envs/test_vector.py.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skip where a package is not installed that Gymnasium needs for a wrapper."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


# ------------------------------------------------------------------------------------------------ many games


def many(how: str, mode: AutoresetMode) -> gymnasium.vector.VectorEnv:
    """Four games, as `make_vec` makes them."""
    if how == "vector_entry_point":
        return gymnasium.make_vec(ID, 4, how, spaces=0, autoreset_mode=mode)
    more = {"autoreset_mode": mode} | ({"context": "fork"} if how == "async" else {})
    return gymnasium.make_vec(ID, 4, how, vector_kwargs=more, spaces=0)


def told(env: gymnasium.vector.VectorEnv, mode: AutoresetMode) -> Iterator[tuple[Any, ...]]:
    """All that four seeded games of random legal actions tell, with the masks of the infos."""
    rng = np.random.default_rng(0)
    observations, infos = env.reset(seed=3)
    yield observations, infos["action_mask"]
    for _ in range(100):
        masks = infos["action_mask"]
        observations, rewards, terminated, truncated, infos = env.step(
            (masks * rng.random(masks.shape)).argmax(1)
        )
        yield observations, infos["action_mask"], rewards, terminated, truncated
        done = terminated | truncated
        if mode == AutoresetMode.DISABLED and done.any():
            _, fresh = env.reset(options={"reset_mask": done})
            infos["action_mask"] = np.where(done[:, None], fresh["action_mask"], infos["action_mask"])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.client("Gymnasium", "gymnasium", "gymnasium.make_vec(ID, num_envs=4)")
@pytest.mark.parametrize("how", ["sync", "async"])
def test_make_vec_makes_the_same_games_in_every_way(how, mode):
    stock, native = many(how, mode), many("vector_entry_point", mode)
    try:
        assert stock.metadata["autoreset_mode"] == native.metadata["autoreset_mode"] == mode
        assert stock.observation_space == native.observation_space
        assert stock.action_space == native.action_space
        ends = 0
        for theirs, ours in zip(told(stock, mode), told(native, mode), strict=True):
            np.testing.assert_equal(theirs, ours)
            ends += ours[3].sum() if len(ours) > 2 else 0
        assert ends > 10
    finally:
        stock.close()


# ------------------------------------------------------------------------------------------------ around one game

Wrap = Callable[[Any], gymnasium.Env]


def plus_one(env: gymnasium.Env) -> gymnasium.Env:
    space = gymnasium.spaces.Box(1, 127, env.observation_space.shape, np.int8)
    return wrappers.TransformObservation(env, lambda seen: seen + np.int8(1), space)


AROUND_ONE: dict[str, Wrap] = {
    "Autoreset": wrappers.Autoreset,
    "ClipReward": lambda env: wrappers.ClipReward(env, -1, 1),
    "DelayObservation": lambda env: wrappers.DelayObservation(env, 2),
    "DtypeObservation": lambda env: wrappers.DtypeObservation(env, np.float32),
    "FlattenObservation": wrappers.FlattenObservation,
    "FrameStackObservation": lambda env: wrappers.FrameStackObservation(env, 3),
    "OrderEnforcing": wrappers.OrderEnforcing,
    "PassiveEnvChecker": wrappers.PassiveEnvChecker,
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "ReshapeObservation": lambda env: wrappers.ReshapeObservation(env, (1, *env.observation_space.shape)),
    "TimeAwareObservation": lambda env: wrappers.TimeAwareObservation(wrappers.TimeLimit(env, 10_000)),
    "TimeLimit": lambda env: wrappers.TimeLimit(env, 10_000),
    "TransformAction": lambda env: wrappers.TransformAction(env, int, env.action_space),
    "TransformObservation": plus_one,
    "TransformReward": lambda env: wrappers.TransformReward(env, float),
}


def game_of(env: gymnasium.Env) -> list[tuple[Any, ...]]:
    """The masks, reward and end of each step of a seeded game of random legal actions."""
    rng, steps = np.random.default_rng(1), []
    observation, info = env.reset(seed=5)
    over = False
    while not over:
        assert env.observation_space.contains(observation)
        mask = info["action_mask"]
        np.testing.assert_array_equal(mask, env.get_wrapper_attr("action_masks")())
        observation, reward, terminated, truncated, info = env.step(rng.choice(np.flatnonzero(mask)))
        steps.append((mask, reward, terminated, truncated))
        over = terminated or truncated
    return steps


@functools.cache
def plain_game() -> list[tuple[Any, ...]]:
    return game_of(gymnasium.make(ID, spaces=1))


@pytest.mark.client("Gymnasium", "gymnasium", "gymnasium.make(ID)")
@pytest.mark.parametrize("name", AROUND_ONE)
def test_a_wrapper_changes_nothing_in_the_game(name):
    env = AROUND_ONE[name](gymnasium.make(ID, spaces=1))
    np.testing.assert_equal(game_of(env), plain_game())
    assert abs(plain_game()[-1][1]) == 1


@pytest.mark.parametrize("wrapper", [wrappers.NormalizeObservation, wrappers.NormalizeReward])
def test_a_normalising_wrapper_leaves_the_dice_as_they_are(wrapper):
    ours = [mask for mask, *_ in game_of(wrapper(gymnasium.make(ID, spaces=1, observation_dtype="float32")))]
    np.testing.assert_equal(ours, [mask for mask, *_ in plain_game()])


def test_a_part_of_the_observation_can_be_filtered():
    env = wrappers.FilterObservation(gymnasium.make(ID, mask_in="obs"), ["observation"])
    observation, _ = env.reset(seed=0)
    assert list(observation) == ["observation"]
    assert env.get_wrapper_attr("action_masks")().any()  # the method is still there


@needs("torch", "array_api_compat")
def test_observations_become_tensors():
    env = wrappers.NumpyToTorch(gymnasium.make(ID, observation_dtype="float32"))
    seen, info = env.reset(seed=0)
    assert (str(seen.dtype), str(info["action_mask"].dtype)) == ("torch.float32", "torch.int8")
    seen, reward, terminated, truncated, _ = env.step(info["action_mask"].argmax())
    assert (reward, terminated, truncated) == (0, False, False)
    assert seen.shape == env.observation_space.shape


@needs("resvg_py")
def test_pictures_are_collected():
    env: Any = wrappers.RenderCollection(gymnasium.make(ID, render_mode="rgb_array"))
    _, info = env.reset(seed=0)
    env.step(info["action_mask"].argmax())
    assert [picture.dtype for picture in env.render()] == [np.uint8] * 2


@needs("resvg_py")
@pytest.mark.parametrize("only", [True, False])
def test_pictures_are_observed(only):
    env = gymnasium.make(ID, render_mode="rgb_array")
    seen = wrappers.AddRenderObservation(env, render_only=only, obs_key="state")
    assert seen.observation_space.contains(seen.reset(seed=0)[0])


@needs("resvg_py", "pygame")
def test_human_rendering_shows_the_pictures(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env: Any = wrappers.HumanRendering(gymnasium.make(ID, render_mode="rgb_array"))
    env.reset(seed=0)
    assert env.window is not None
    env.close()


@needs("resvg_py", "moviepy")
def test_a_game_is_filmed(tmp_path):
    folder = tmp_path / "films"
    env = wrappers.RecordVideo(gymnasium.make(ID, render_mode="rgb_array", max_turns=3), str(folder))
    game_of(env)
    env.close()
    assert len(list(folder.glob("*.mp4"))) == 1


# ------------------------------------------------------------------------------------------------ around many games

AROUND_MANY: dict[str, Callable[[Any], Any]] = {
    "ClipReward": lambda env: vector.ClipReward(env, -1, 1),
    "DictInfoToList": vector.DictInfoToList,
    "DtypeObservation": lambda env: vector.DtypeObservation(env, np.float32),
    "FlattenObservation": vector.FlattenObservation,
    "NormalizeObservation": vector.NormalizeObservation,
    "NormalizeReward": vector.NormalizeReward,
    "RecordEpisodeStatistics": vector.RecordEpisodeStatistics,
    "ReshapeObservation": lambda env: vector.ReshapeObservation(
        env, (1, *env.single_observation_space.shape)
    ),
    "TransformReward": lambda env: vector.TransformReward(env, lambda reward: reward),
}


@pytest.mark.parametrize("name", AROUND_MANY)
def test_a_vector_wrapper_leaves_the_games_as_they_are(name):
    arguments: dict[str, Any] = {"num_envs": 3, "spaces": 0, "observation_dtype": "float32"}
    env, plain = AROUND_MANY[name](gymnasium.make_vec(ID, **arguments)), gymnasium.make_vec(ID, **arguments)
    native: Any = plain
    observations, _ = env.reset(seed=4)
    plain.reset(seed=4)
    ends = 0
    for _ in range(60):
        assert observations.shape == env.observation_space.shape
        np.testing.assert_array_equal(env.unwrapped.action_masks(), native.action_masks())
        actions = native.action_masks().argmax(1)
        observations, rewards, *over, _ = env.step(actions)
        _, expected, *expected_over, _ = plain.step(actions)
        np.testing.assert_array_equal(over, expected_over)
        if name != "NormalizeReward":
            np.testing.assert_array_equal(rewards, expected)
        ends += over[0].sum()
    assert ends > 3


def test_infos_of_many_games_become_lists():
    _, infos = vector.DictInfoToList(gymnasium.make_vec(ID, num_envs=3)).reset(seed=0)
    assert [sorted(info) for info in infos] == [["action_mask"]] * 3


def test_what_needs_an_observation_of_its_own_refuses_same_step():
    """Gymnasium's rule, which the clients that ask for this mode run into."""
    env = gymnasium.make_vec(ID, num_envs=2, autoreset_mode="SameStep")
    # Before 1.4 it is an assertion without words.
    with pytest.raises((ValueError, AssertionError), match=f"^$|{re.escape(str(AutoresetMode.SAME_STEP))}"):
        vector.DtypeObservation(env, np.float32)
