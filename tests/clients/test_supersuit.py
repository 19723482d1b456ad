"""SuperSuit's wrappers work with the PettingZoo environment; most need observations without the mask."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("supersuit", reason="SuperSuit is not installed: make test-clients")

import supersuit

from wotd_env import way_of_the_dragon_v0


def returns_of(env: Any, seed: int = 1) -> dict[str, float]:
    """Return the return of every agent in a game of random legal actions, with the masks of the infos."""
    rng = np.random.default_rng(0)
    env.reset(seed=seed)
    returns = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        assert observation.shape == env.observation_space(agent).shape
        returns[agent] += reward
        over = terminated or truncated
        env.step(None if over else int(rng.choice(np.flatnonzero(info["action_mask"]))))
    return returns


WRAPPERS = {
    "agent_indicator_v0": supersuit.agent_indicator_v0,
    "clip_reward_v0": lambda env: supersuit.clip_reward_v0(env, -0.5, 1.0),
    "delay_observations_v0": lambda env: supersuit.delay_observations_v0(env, 2),
    "dtype_v0": lambda env: supersuit.dtype_v0(env, np.float32),
    "flatten_v0": supersuit.flatten_v0,
    "frame_stack_v1": lambda env: supersuit.frame_stack_v1(env, 3),
    "normalize_obs_v0": lambda env: supersuit.normalize_obs_v0(supersuit.dtype_v0(env, np.float32)),
    "observation_lambda_v0": lambda env: supersuit.observation_lambda_v0(env, lambda seen, space: seen[:9]),
    "pad_action_space_v0": supersuit.pad_action_space_v0,
    "pad_observations_v0": supersuit.pad_observations_v0,
    "reshape_v0": lambda env: supersuit.reshape_v0(env, (1, *env.observation_space("player_0").shape)),
}


@pytest.mark.client(
    "SuperSuit", "supersuit", 'supersuit.frame_stack_v1(way_of_the_dragon_v0.env(mask_in="info"))'
)
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_do_not_change_the_returns(name):
    def game() -> Any:
        return way_of_the_dragon_v0.env(players=3, spaces=1, mask_in="info")

    plain, wrapped = game(), WRAPPERS[name](game())
    assert returns_of(wrapped) == returns_of(plain)
    assert max(returns_of(wrapped).values()) > 0


@pytest.mark.filterwarnings("ignore:agent_selector is deprecated")  # SuperSuit uses it
@pytest.mark.client(
    "SuperSuit", "supersuit", 'vectorize_aec_env_v0(way_of_the_dragon_v0.raw_env(mask_in="info"), 4)'
)
def test_vectorize_aec_env_plays_games_with_masks():
    """Illegal actions raise."""
    envs = supersuit.vectorize_aec_env_v0(way_of_the_dragon_v0.raw_env(spaces=0, mask_in="info"), 4)
    rng = np.random.default_rng(0)
    envs.reset(seed=0)
    ends = 0
    for _ in envs.agent_iter(600):
        _, _, terminated, *_, infos = envs.last()
        ends += int(terminated.sum())
        masks = np.stack([info["action_mask"] for info in infos])
        envs.step((rng.random(masks.shape) * masks).argmax(1))
    assert ends > 3


def test_frame_stack_rejects_observations_with_masks():
    """docs/how-to/libraries.md states this."""
    with pytest.raises(AssertionError):
        supersuit.frame_stack_v1(way_of_the_dragon_v0.env(), 3)
