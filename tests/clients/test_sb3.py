"""Stable-Baselines3 works with the environments, and `SB3VecEnv` equals SB3's own `DummyVecEnv`."""

import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed: pip install 'wotd-env[train]'")

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from wotd_env import Phase
from wotd_env.adapters.sb3 import Learner, SB3VecEnv
from wotd_env.envs.opponents import Pool

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"


@pytest.mark.client("Stable-Baselines3", "stable_baselines3", "make_vec_env(ID, 4)")
@pytest.mark.parametrize("kind", [DummyVecEnv, SubprocVecEnv])
def test_make_vec_env_plays_with_masks(kind):
    # The default, forkserver, needs a socket, and tests must not open sockets.
    vec_env_kwargs = {"start_method": "fork"} if kind is SubprocVecEnv else None
    env = make_vec_env(
        ID, 2, seed=0, vec_env_cls=kind, vec_env_kwargs=vec_env_kwargs, env_kwargs={"spaces": 1}
    )
    try:
        assert len(env.reset()) == 2
        for _ in range(5):
            masks = np.stack(env.env_method("action_masks"))
            _, rewards, _, _ = env.step(masks.argmax(1))
        assert rewards.shape == (2,)
    finally:
        env.close()


@pytest.mark.client("Stable-Baselines3", "stable_baselines3", 'A2C("MlpPolicy", ID)')
@pytest.mark.filterwarnings("ignore:.*lost by an illegal action")  # A2C does not support masks
def test_a_model_accepts_the_environment_id():
    model = A2C("MlpPolicy", ID, n_steps=8, seed=0, device="cpu").learn(64)
    assert model.num_timesteps == 64


@pytest.mark.parametrize(
    "options",
    [
        {"players": 2, "spaces": 1},
        {"players": 3, "spaces": 0, "powers": "any", "opponents": "random", "mask_in": "obs"},
        {"players": 2, "spaces": 1, "max_turns": 5, "observation_dtype": "float32"},
    ],
    ids=["two", "dicts", "expired"],
)
def test_sb3_vec_env_equals_dummy_vec_env(options):
    ours = SB3VecEnv(5, **options)
    theirs = DummyVecEnv([lambda: gymnasium.make(ID, **options)] * 5)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    for env in (ours, theirs):
        env.seed(7)
    np.testing.assert_equal(ours.reset(), theirs.reset())
    rng, ends = np.random.default_rng(0), 0
    for _ in range(150):
        masks = get_action_masks(ours)
        np.testing.assert_array_equal(masks, get_action_masks(theirs))
        actions = (masks * rng.random(masks.shape)).argmax(1)
        (ours_seen, *ours_end, ours_infos), (theirs_seen, *theirs_end, theirs_infos) = (
            ours.step(actions),
            theirs.step(actions),
        )
        np.testing.assert_equal(ours_seen, theirs_seen)
        np.testing.assert_array_equal(ours_end, theirs_end)
        for our_info, their_info in zip(ours_infos, theirs_infos, strict=True):
            assert ("episode" in our_info) == ("terminal_observation" in our_info)
            our_info.pop("episode", None)
            their_info.pop("action_mask", None)
            np.testing.assert_equal(our_info, their_info)
        ends += int(ours_end[1].sum())
    assert ends > 5


@pytest.mark.client("sb3-contrib", "sb3_contrib", 'MaskablePPO("MlpPolicy", SB3VecEnv(8))')
def test_maskable_ppo_trains_in_sb3_vec_env():
    env = SB3VecEnv(8, spaces=0, opponents="random")
    model = MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=1, seed=0, device="cpu").learn(
        512
    )
    assert model.num_timesteps == 512
    assert model.ep_info_buffer
    assert {episode["r"] for episode in model.ep_info_buffer} <= {-1.0, 1.0}  # no illegal action, no tie


@pytest.mark.parametrize("encoding", ["one_hot", "compact"])
def test_maskable_ppo_plays_against_itself(encoding):
    opponent = Learner(encoding)
    env = SB3VecEnv(8, spaces=0, players=3, opponents=opponent, encoding=encoding)
    model = MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=1, seed=0, device="cpu")
    opponent.model = model
    model.learn(512)
    state = env.env.record
    assert (state["phase"] == Phase.KEEP).any()
    network: Any = model.policy
    network.action_net.bias.data[0] = 100.0  # force the action that re-rolls all dice
    actions = opponent.act(env.env.game, state, np.random.default_rng(0))
    assert (actions[state["phase"] == Phase.KEEP] == 0).all()


def test_options_must_be_the_same_for_all_games():
    env = SB3VecEnv(2, players=3)
    env.set_options({"starting_player": 2})
    env.reset()
    assert env.env.seat.shape == (2,)
    env.set_options([{"starting_player": 2}, {"starting_player": 1}])
    with pytest.raises(ValueError, match="options must be the same"):
        env.reset()


def test_render_shows_all_games():
    pytest.importorskip("resvg_py")
    env = SB3VecEnv(2, render_mode="rgb_array")
    env.reset()
    assert len(env.get_images()) == 2
    together = env.render()
    assert together is not None
    assert together.ndim == 3


def test_evaluation_uses_the_statistics_of_the_games():
    """SB3 warns about an environment without Monitor, because wrappers could change its rewards."""
    env = SB3VecEnv(4, spaces=0, opponents="random")
    assert env.env_is_wrapped(Monitor) == [True] * 4
    assert env.env_is_wrapped(TimeLimit, [0, 2]) == [False] * 2
    model = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=0, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results: Any = evaluate_policy(model, env, 8, return_episode_rewards=True)
        returns, lengths = results
    assert len(returns) == len(lengths) == 8
    assert set(returns) <= {-1.0, 1.0}


def test_attributes_and_methods_of_one_environment():
    env = SB3VecEnv(3, render_mode="ansi", opponents=Pool(["greedy", "random"]))
    env.seed(0)
    env.reset()
    pictures = env.env_method("render")
    assert [type(picture) for picture in pictures] == [str] * 3
    assert env.env_method("render", indices=[2]) == pictures[2:]
    np.testing.assert_array_equal(env.env_method("action_masks", indices=1), env.action_masks()[1:2])
    assert env.get_attr("seat", [2, 0]) == [env.env.seat[2], env.env.seat[0]]
    assert env.get_attr("num_envs") == [3] * 3
    pool = Pool({"first": "first"})
    with pytest.raises(ValueError, match="indices must contain all 3 environments"):
        env.set_attr("opponents", pool, indices=[0])
    for indices in (None, [2, 1, 0], range(3)):
        env.set_attr("opponents", pool, indices=indices)
    assert env.env.opponents is pool


@pytest.mark.filterwarnings("ignore:render. does nothing")
def test_render_without_a_mode_returns_nothing():
    env = SB3VecEnv(2)
    env.reset()
    with pytest.warns(UserWarning, match="does nothing without a render_mode"):
        assert env.env_method("render") == [None, None]


def test_infos_name_the_drawn_opponent():
    env = SB3VecEnv(6, spaces=0, opponents=Pool(["greedy", "random"]))
    env.seed(0)
    env.reset()
    names = [info["opponent"] for info in env.reset_infos]
    assert set(names) == {"greedy", "random"}
    ends = 0
    for _ in range(60):
        masks = env.action_masks()
        _, _, dones, infos = env.step(masks.argmax(1))
        for i, info in enumerate(infos):
            assert info["opponent"] == names[i]
            if dones[i]:
                ends, names[i] = ends + 1, env.env._running["opponent"][i]
    assert ends > 6


def test_sb3_and_gymnasium_check_the_environment_without_the_extra_render():
    """Gymnasium's checker makes an environment of every render mode in the metadata."""
    code = """
import sys
from importlib.machinery import PathFinder
missing = ("pygame", "resvg_py", "PIL")
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *args: None if name.partition(".")[0] in missing else find(name, *args)
import gymnasium
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check
env = gymnasium.make("wotd_env:wotd_env/WayOfTheDragon-v0").unwrapped
check_env(env)
check(env)
print(env.metadata["render_modes"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['svg', 'ansi', 'ansi_color']"
