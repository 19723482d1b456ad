"""RLlib's environments, and RLlib's PPO on them."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.rllib", exc_type=ImportError)

from gymnasium import VectorizeMode
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

from wotd_env import Game, Rules
from wotd_env.adapters.rllib import multi_agent_env, single_agent_env

pytestmark = [
    pytest.mark.usefixtures("small_ray"),
    pytest.mark.filterwarnings("default"),  # Ray's own warnings are not errors
]


@pytest.mark.parametrize("players", [2, 3])
def test_the_multi_agent_environment_plays_the_native_game(players: int):
    env = multi_agent_env({"players": players, "spaces": 1})
    rng = np.random.default_rng(0)
    observations, _ = env.reset(seed=5)
    game = Game(Rules(players=players, spaces=1))
    state = game.reset(1, seed=5)
    returns = dict.fromkeys(env.possible_agents, 0.0)
    while True:
        (agent,) = observations
        seen = observations[agent]
        assert env.observation_spaces[agent].contains(seen)
        assert {part.dtype for part in seen.values()} == {np.dtype(np.float32)}
        np.testing.assert_array_equal(seen["observations"], game.observe(state)[0])
        np.testing.assert_array_equal(seen["action_mask"], game.legal_actions(state)[0])
        action = rng.choice(np.flatnonzero(seen["action_mask"]))
        game.step(state, [action])
        observations, rewards, terminated, _, _ = env.step({agent: action})
        for each, reward in rewards.items():
            returns[each] += reward
        if terminated["__all__"]:
            break
    assert [returns[f"player_{seat}"] for seat in range(players)] == game.rewards(state)[0].tolist()


@pytest.mark.parametrize("extra", [{}, {"num_envs": 3}], ids=["one", "vector"])
def test_single_agent_observations_have_rllibs_format(extra: dict[str, Any]):
    env = single_agent_env({"players": 3, "opponents": "random", **extra})
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    assert list(seen) == ["observations", "action_mask"]
    action = seen["action_mask"].argmax(-1)
    seen, *_ = env.step(action)
    assert env.observation_space.contains(seen)


@pytest.mark.client("RLlib", "ray", 'register_env("wotd", multi_agent_env)')
@pytest.mark.parametrize("seats", ["all", "one", "vector"])
def test_rllibs_ppo_trains_with_its_action_masking_module(seats: str):
    register_env("wotd", multi_agent_env if seats == "all" else single_agent_env)
    mode = VectorizeMode.VECTOR_ENTRY_POINT if seats == "vector" else VectorizeMode.SYNC
    config = (
        PPOConfig()
        .environment("wotd", env_config={"players": 3, "spaces": 0})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=2, gym_env_vectorize_mode=mode)
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
    )
    if seats == "all":
        config.multi_agent(policies={"all"}, policy_mapping_fn=lambda agent, episode, **kwargs: "all")
    algorithm = config.build_algo()
    results = algorithm.train()
    algorithm.stop()
    assert results["env_runners"]["num_env_steps_sampled_lifetime"] >= 64
    (loss,) = [each["total_loss"] for name, each in results["learners"].items() if name != "__all_modules__"]
    assert np.isfinite(loss)
