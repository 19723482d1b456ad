"""AgileRL's DQN and PPO learn with the masks in the infos of the vector environment."""

import warnings
from typing import Any

import gymnasium
import pytest

pytest.importorskip("agilerl", reason="AgileRL is not installed: make test-clients", exc_type=ImportError)

import torch as th

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # AgileRL's own deprecation warnings
    from agilerl.algorithms import DQN, PPO
    from agilerl.components.replay_buffer import ReplayBuffer
    from agilerl.rollouts.on_policy import collect_rollouts
    from agilerl.training.train_off_policy import train_off_policy

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"
GAMES = 4
NETWORK = {"encoder_config": {"hidden_size": [16]}, "head_config": {"hidden_size": [16]}}

pytestmark = pytest.mark.filterwarnings("default")  # AgileRL's own warnings are not errors


def make(**options: Any) -> Any:
    """Return a vector environment in which illegal actions raise."""
    return gymnasium.make_vec(
        ID, num_envs=GAMES, observation_dtype="float32", illegal="raise", spaces=0, **options
    )


def weights_of(agent: Any) -> list[th.Tensor]:
    return [weights.detach().clone() for weights in agent.actor.parameters()]


def changed(before: list[th.Tensor], agent: Any) -> bool:
    return any(not th.equal(*pair) for pair in zip(before, weights_of(agent), strict=True))


@pytest.mark.parametrize("mode", ["vector_entry_point", "sync"])
@pytest.mark.client("AgileRL", "agilerl", "collect_rollouts(agent, gymnasium.make_vec(ID, num_envs=4))")
def test_ppo_learns_with_action_masks(mode):
    th.manual_seed(0)
    envs = make(vectorization_mode=mode)
    agent = PPO(
        envs.single_observation_space,
        envs.single_action_space,
        num_envs=GAMES,
        learn_step=64 * GAMES,
        batch_size=32,
        update_epochs=1,
        net_config=NETWORK,
    )
    before = weights_of(agent)
    scores, *_ = collect_rollouts(agent, envs, n_steps=64)
    agent.learn()
    envs.close()
    assert len(scores) > 3
    assert changed(before, agent)


@pytest.mark.client("AgileRL", "agilerl", "train_off_policy(gymnasium.make_vec(ID, num_envs=4), ...)")
def test_dqn_learns_with_action_masks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    th.manual_seed(0)
    envs = make()
    agent = DQN(envs.single_observation_space, envs.single_action_space, batch_size=16, net_config=NETWORK)
    before = weights_of(agent)
    (trained,), _ = train_off_policy(
        envs,
        "wotd",
        "DQN",
        [agent],
        ReplayBuffer(max_size=1000),
        max_steps=400,
        evo_steps=200,
        eval_steps=20,
        verbose=False,
    )
    envs.close()
    assert changed(before, trained)
