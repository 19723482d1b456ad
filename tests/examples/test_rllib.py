"""The RLlib example. `make test-clients` runs it, because RLlib pins Gymnasium."""

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("ray.rllib", exc_type=ImportError)

from examples import rllib_ppo

pytestmark = [pytest.mark.usefixtures("small_ray"), pytest.mark.filterwarnings("default")]  # warnings of Ray


def test_rllib_plays_and_learns_from_legal_actions():
    settings = rllib_ppo.Settings(
        total_timesteps=128, num_envs=8, batch_size=64, minibatch_size=64, evaluation_games=4
    )
    algorithm = rllib_ppo.train(settings)
    checked = 0
    for episode in algorithm.env_runner.sample(num_timesteps=100):
        for each in episode.agent_episodes.values():
            masks = each.get_observations()["action_mask"][: len(each)]
            assert masks[np.arange(len(each)), each.get_actions()].all()
            checked += len(each)
    algorithm.stop()
    assert checked >= 100


def test_a_saved_network_plays_in_the_arena_and_the_benchmark(save_and_measure: Callable[[str, str], None]):
    pytest.importorskip("onnxscript")
    save_and_measure("rllib_ppo", "--total-timesteps 64 --num-envs 8 --batch-size 64 --minibatch-size 64")
