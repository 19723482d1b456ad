"""Gymnasium's vectorization modes play the same games, and its wrappers work on single and vector environments.

The environments' own tests are in tests/envs/test_single.py and tests/envs/test_vector.py.
"""

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.wrappers import vector

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skip the test if one of these packages, which a wrapper needs, is not installed."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


# ------------------------------------------------------------------------------------------ vectorization modes


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.client("Gymnasium", "gymnasium", "gymnasium.make_vec(ID, num_envs=4)")
@pytest.mark.parametrize(("vectorization", "options"), [("sync", {}), ("async", {"context": "fork"})])
def test_stock_vector_environments_play_the_native_games(vectorization, options):
    """tests/envs/test_vector.py compares all modes of autoreset."""
    stock = gymnasium.make_vec(ID, 4, vectorization, vector_kwargs=options, spaces=0)
    native = gymnasium.make_vec(ID, 4, spaces=0)
    assert stock.metadata["autoreset_mode"] == native.metadata["autoreset_mode"]
    assert stock.observation_space == native.observation_space
    assert stock.action_space == native.action_space
    (*theirs, their_info), (*ours, info) = stock.reset(seed=3), native.reset(seed=3)
    ends = 0
    for _ in range(100):
        np.testing.assert_equal([*theirs, their_info["action_mask"]], [*ours, info["action_mask"]])
        actions = info["action_mask"].argmax(1)
        (*theirs, their_info), (*ours, info) = stock.step(actions), native.step(actions)
        ends += ours[2].sum()
    stock.close()
    assert ends > 5


# ----------------------------------------------------------------------------------------- wrappers of one game

Wrap = Callable[[Any], gymnasium.Env]


def plus_one(env: gymnasium.Env) -> gymnasium.Env:
    space = gymnasium.spaces.Box(1, 127, env.observation_space.shape, np.int8)
    return wrappers.TransformObservation(env, lambda seen: seen + np.int8(1), space)


WRAPPERS: dict[str, Wrap] = {
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
    """Return the mask, reward and end of each step of a seeded game of random legal actions."""
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
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_do_not_change_the_game(name):
    env = WRAPPERS[name](gymnasium.make(ID, spaces=1))
    np.testing.assert_equal(game_of(env), plain_game())
    assert abs(plain_game()[-1][1]) == 1


@pytest.mark.parametrize("wrapper", [wrappers.NormalizeObservation, wrappers.NormalizeReward])
def test_normalizing_wrappers_do_not_change_the_dice(wrapper):
    ours = [mask for mask, *_ in game_of(wrapper(gymnasium.make(ID, spaces=1, observation_dtype="float32")))]
    np.testing.assert_equal(ours, [mask for mask, *_ in plain_game()])


def test_filter_observation_keeps_only_the_named_part():
    env = wrappers.FilterObservation(gymnasium.make(ID, mask_in="obs"), ["observation"])
    observation, _ = env.reset(seed=0)
    assert list(observation) == ["observation"]
    assert env.get_wrapper_attr("action_masks")().any()


@needs("torch", "array_api_compat")
def test_numpy_to_torch_returns_tensors():
    env = wrappers.NumpyToTorch(gymnasium.make(ID, observation_dtype="float32"))
    seen, info = env.reset(seed=0)
    assert (str(seen.dtype), str(info["action_mask"].dtype)) == ("torch.float32", "torch.int8")
    seen, reward, terminated, truncated, _ = env.step(info["action_mask"].argmax())
    assert (reward, terminated, truncated) == (0, False, False)
    assert seen.shape == env.observation_space.shape


@needs("resvg_py")
def test_render_collection_returns_all_images():
    env: Any = wrappers.RenderCollection(gymnasium.make(ID, render_mode="rgb_array"))
    _, info = env.reset(seed=0)
    env.step(info["action_mask"].argmax())
    assert [picture.dtype for picture in env.render()] == [np.uint8] * 2


@needs("resvg_py")
@pytest.mark.parametrize("only", [True, False])
def test_add_render_observation_matches_its_space(only):
    env = gymnasium.make(ID, render_mode="rgb_array")
    seen = wrappers.AddRenderObservation(env, render_only=only, obs_key="state")
    assert seen.observation_space.contains(seen.reset(seed=0)[0])


@needs("resvg_py", "moviepy", "av")
def test_record_video_writes_a_file(tmp_path):
    import av

    env: Any = gymnasium.make(ID, render_mode="rgb_array")
    env = wrappers.RecordVideo(env, str(tmp_path / "videos"), video_length=3)
    _, info = env.reset(seed=0)
    for _ in range(3):
        *_, info = env.step(int(info["action_mask"].argmax()))
    env.close()
    (file,) = (tmp_path / "videos").glob("*.mp4")
    with av.open(str(file)) as video:
        shapes = [frame.to_ndarray(format="rgb24").shape for frame in video.decode(video=0)]
        assert video.streams.video[0].average_rate == env.metadata["render_fps"]
    assert shapes == [(480, 640, 3)] * (3 + 1)


# ------------------------------------------------------------------------------ wrappers of vector environments

VECTOR_WRAPPERS: dict[str, Callable[[Any], Any]] = {
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


@pytest.mark.parametrize("name", VECTOR_WRAPPERS)
def test_vector_wrappers_do_not_change_the_games(name):
    arguments: dict[str, Any] = {"num_envs": 3, "spaces": 0, "observation_dtype": "float32"}
    plain: Any = gymnasium.make_vec(ID, **arguments)
    env = VECTOR_WRAPPERS[name](gymnasium.make_vec(ID, **arguments))
    observations, _ = env.reset(seed=4)
    plain.reset(seed=4)
    ends = 0
    for _ in range(60):
        assert observations.shape == env.observation_space.shape
        np.testing.assert_array_equal(env.unwrapped.action_masks(), plain.action_masks())
        actions = plain.action_masks().argmax(1)
        observations, rewards, *over, _ = env.step(actions)
        _, expected, *expected_over, _ = plain.step(actions)
        np.testing.assert_array_equal(over, expected_over)
        if name != "NormalizeReward":
            np.testing.assert_array_equal(rewards, expected)
        ends += over[0].sum()
    assert ends > 3


def test_dict_info_to_list_returns_one_info_per_game():
    _, infos = vector.DictInfoToList(gymnasium.make_vec(ID, num_envs=3)).reset(seed=0)
    names = ["action_mask", "illegal_action", "places", "scores", "seat", "winners"]
    assert [sorted(info) for info in infos] == [names] * 3
