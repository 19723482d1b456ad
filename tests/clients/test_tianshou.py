"""Tianshou plays all seats or one seat with action masks, and its DQN learns."""

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("tianshou", reason="Tianshou is not installed: make test-clients", exc_type=ImportError)

import torch as th

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Tianshou's own deprecation warnings
    from tianshou.algorithm import DQN, MARLRandomDiscreteMaskedOffPolicyAlgorithm
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv, PettingZooEnv
    from tianshou.trainer import OffPolicyTrainerParams
    from tianshou.utils.net.common import Net

from wotd_env import way_of_the_dragon_v0
from wotd_env.adapters.tianshou import single_agent_env

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"

pytestmark = pytest.mark.filterwarnings("default")  # Tianshou's own warnings are not errors


def all_seats(**rules: Any) -> PettingZooEnv:
    """Return the environment of all seats; illegal actions raise."""
    return PettingZooEnv(way_of_the_dragon_v0.raw_env(observation_dtype="float32", **rules))


def dqn(observation: Any, actions: Any) -> DQN[Any]:
    """Return a new learner, after seeding the generators of its weights and of its exploration."""
    th.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  # Tianshou explores with the global generator
    network = Net(state_shape=observation.shape, action_shape=actions.n, hidden_sizes=[16])
    policy: Any = DiscreteQLearningPolicy(
        model=network, action_space=actions, observation_space=observation, eps_training=0.1
    )
    return DQN(
        policy=policy, optim=AdamOptimizerFactory(lr=0.01), n_step_return_horizon=5, target_update_freq=10
    )


def check_learns(learner: DQN[Any], algorithm: Any, make: Any) -> None:
    """Train for two short epochs. Games must finish, and the weights of the learner must change."""
    before = [weights.clone() for weights in learner.policy.parameters()]
    envs = DummyVectorEnv([make] * 2)
    envs.seed(0)
    collector = Collector(algorithm, envs, VectorReplayBuffer(2000, 2), exploration_noise=True)
    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=2,
            epoch_num_steps=100,
            collection_step_num_env_steps=50,
            batch_size=16,
            update_step_num_gradient_steps_per_sample=0.1,
            test_step_num_episodes=1,
            multi_agent_return_reduction=lambda returns: returns.reshape(len(returns), -1)[:, 0],
            verbose=False,
            show_progress=False,
        )
    )
    assert collector.buffer.done.sum() > 3
    assert any(not th.equal(*pair) for pair in zip(before, learner.policy.parameters(), strict=True))


@pytest.mark.client("Tianshou", "tianshou", "PettingZooEnv(way_of_the_dragon_v0.raw_env())")
@pytest.mark.parametrize("players", [2, 3])
def test_all_seats_play_random_games_with_masks(players):
    env = all_seats(players=players, spaces=0)
    agents: Any = [MARLRandomDiscreteMaskedOffPolicyAlgorithm(action_space=env.action_space)] * players
    algorithm = MultiAgentOffPolicyAlgorithm(algorithms=agents, env=env)
    envs = DummyVectorEnv([lambda: all_seats(players=players, spaces=0)] * 2)
    envs.seed(0)
    played = Collector(algorithm, envs).collect(n_episode=6, reset_before_collect=True)
    assert played.returns.shape == (6, players)
    np.testing.assert_allclose(played.returns.sum(axis=1), 0, atol=1e-6)
    assert (played.returns.max(axis=1) > 0).all()


def test_dqn_learns_against_a_random_seat():
    env = all_seats(spaces=0)
    space: Any = env.observation_space
    learner = dqn(space["observation"], env.action_space)
    other: Any = MARLRandomDiscreteMaskedOffPolicyAlgorithm(action_space=env.action_space)
    algorithm = MultiAgentOffPolicyAlgorithm(algorithms=[learner, other], env=env)
    check_learns(learner, algorithm, lambda: all_seats(spaces=0))


def test_single_agent_observations_have_tianshous_format():
    env, plain = single_agent_env(players=3), gymnasium.make(ID, players=3)
    observation, _ = env.reset(seed=4)
    expected, info = plain.reset(seed=4)
    assert env.observation_space.contains(observation)
    assert (observation["obs"].dtype, observation["mask"].dtype) == (np.float32, bool)
    np.testing.assert_array_equal(observation["obs"], expected)
    np.testing.assert_array_equal(observation["mask"], info["action_mask"])


@pytest.mark.client("Tianshou", "tianshou", "wotd_env.adapters.tianshou.single_agent_env()")
@pytest.mark.parametrize("encoding", ["one_hot", "features"])
def test_dqn_learns_in_the_single_agent_environment(encoding):
    def one_seat() -> gymnasium.Env[Any, Any]:
        """Return a single-agent environment; illegal actions raise."""
        return single_agent_env(spaces=0, illegal="raise", encoding=encoding)

    env = one_seat()
    space: Any = env.observation_space
    learner = dqn(space["obs"], env.action_space)
    check_learns(learner, learner, one_seat)
