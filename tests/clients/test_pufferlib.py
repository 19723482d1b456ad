"""PufferLib's emulation runs the Gymnasium environment, serially and in worker processes."""

import functools
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("pufferlib", reason="PufferLib is not installed: make test-clients", exc_type=ImportError)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PufferLib's own deprecation warnings
    import pufferlib.vector
    from pufferlib.emulation import GymnasiumPufferEnv

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"
GAMES = 4

# The shared memory of PufferLib's workers is closed after they exit.
pytestmark = pytest.mark.filterwarnings("default")

OPTIONS: dict[str, Any] = {"mask_in": "obs", "illegal": "raise", "spaces": 0}


def make(buf: Any = None, seed: int = 0) -> GymnasiumPufferEnv:
    """Return one emulated game; illegal actions raise."""
    return GymnasiumPufferEnv(
        env_creator=functools.partial(gymnasium.make, ID, **OPTIONS), buf=buf, seed=seed
    )


def masks_of(envs: Any, observations: np.ndarray) -> np.ndarray:
    """Return the masks from the observations, which PufferLib flattens."""
    emulated = envs.driver_env.emulated["emulated_observation_dtype"]
    return np.asarray(observations.view(emulated)["action_mask"]).reshape(len(observations), -1)


@pytest.mark.client("PufferLib", "pufferlib-core", "GymnasiumPufferEnv(gymnasium.make(ID))")
def test_emulation_does_not_change_the_game():
    env, plain = GymnasiumPufferEnv(gymnasium.make(ID, spaces=1)), gymnasium.make(ID, spaces=1)
    seen, info = env.reset(seed=3)
    expected, _ = plain.reset(seed=3)
    over = False
    while not over:
        np.testing.assert_array_equal(np.ravel(seen), expected)
        action = int(np.flatnonzero(info["action_mask"])[-1])
        seen, reward, terminated, truncated, info = env.step(np.array([action]))
        expected, *outcome, _ = plain.step(action)
        assert [reward, terminated, truncated] == outcome
        over = terminated or truncated
    assert abs(reward) == 1


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
@pytest.mark.client("PufferLib", "pufferlib-core", 'pufferlib.vector.make(..., mask_in="obs")')
def test_every_backend_plays_games_with_action_masks(backend):
    workers = {"num_workers": 2, "batch_size": GAMES} if backend == "Multiprocessing" else {}
    envs = pufferlib.vector.make(make, backend=backend, num_envs=GAMES, **workers)
    try:
        rng = np.random.default_rng(0)
        observations, _ = envs.reset(seed=0)
        total_reward, ends = 0.0, 0
        for _ in range(200):
            masks = masks_of(envs, observations)
            actions = (rng.random(masks.shape) * masks).argmax(1)
            observations, rewards, terminated, *_ = envs.step(actions)
            ends += int(terminated.sum())
            total_reward += float(np.abs(rewards).sum())
        assert ends > 10
        assert total_reward == ends  # two players cannot tie
    finally:
        envs.close()
