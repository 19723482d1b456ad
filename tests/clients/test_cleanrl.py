"""PPO with action masks in one plain PyTorch loop, like CleanRL's scripts."""

from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'wotd-env[train]'")

import torch as th
from torch import nn
from torch.distributions import Categorical

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"
GAMES, STEPS = 32, 32


class Agent(nn.Module):
    """Actor and critic."""

    def __init__(self, size: int, actions: int) -> None:
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(size, 32), nn.Tanh(), nn.Linear(32, 1))
        self.actor = nn.Sequential(nn.Linear(size, 32), nn.Tanh(), nn.Linear(32, actions))

    def forward(self, seen: th.Tensor, mask: th.Tensor) -> tuple[Categorical, th.Tensor]:
        logits = self.actor(seen).masked_fill(mask == 0, -1e9)
        return Categorical(logits=logits), self.critic(seen).squeeze(-1)


def ppo(updates: int, **options: Any) -> tuple[list[float], Agent]:
    """Train; return the final reward of each game, and the agent."""
    th.manual_seed(0)
    envs = gymnasium.make_vec(
        ID, num_envs=GAMES, autoreset_mode="SameStep", observation_dtype="float32", illegal="raise", **options
    )
    spaces: Any = envs.single_observation_space, envs.single_action_space
    agent = Agent(spaces[0].shape[0], spaces[1].n)
    optimizer = th.optim.Adam(agent.parameters(), lr=1e-2)
    seen, info = envs.reset(seed=0)
    final_rewards: list[float] = []
    for _ in range(updates):
        rollout = []
        for _ in range(STEPS):
            now, mask = th.as_tensor(seen), th.as_tensor(info["action_mask"])
            with th.no_grad():
                policy, value = agent(now, mask)
                action = policy.sample()
            seen, reward, terminated, truncated, info = envs.step(action.numpy())
            done = terminated | truncated
            final_rewards += reward[done].tolist()
            received, over = th.as_tensor(reward, dtype=th.float32), th.as_tensor(done)
            rollout.append((now, mask, action, policy.log_prob(action), value, received, over))
        nows, masks, actions, before, values, rewards, overs = map(th.stack, zip(*rollout, strict=True))
        with th.no_grad():
            _, following = agent(th.as_tensor(seen), th.as_tensor(info["action_mask"]))
        advantages, ahead = th.zeros_like(rewards), th.zeros(GAMES)
        for step in reversed(range(STEPS)):
            after = following if step == STEPS - 1 else values[step + 1]
            ahead = rewards[step] - values[step] + ~overs[step] * (after + 0.95 * ahead)
            advantages[step] = ahead
        returns = advantages + values
        for _ in range(4):
            policy, value = agent(nows, masks)
            ratio = (policy.log_prob(actions) - before).exp()
            clipped = th.min(advantages * ratio, advantages * ratio.clamp(0.8, 1.2))
            loss = -clipped.mean() + 0.5 * (value - returns).square().mean() - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    return final_rewards, agent


@pytest.mark.slow
@pytest.mark.client("PyTorch, a loop as CleanRL's", "torch", "gymnasium.make_vec(ID, num_envs=32)")
def test_a_plain_pytorch_loop_learns_with_action_masks():
    """On the smallest board, the agent improves against random play."""
    final_rewards, _ = ppo(70, spaces=0, opponents="random")
    third = len(final_rewards) // 3
    assert set(final_rewards) <= {-1.0, 0.0, 1.0}
    assert np.mean(final_rewards[-third:]) > np.mean(final_rewards[:third]) + 0.1


def test_the_same_seed_gives_the_same_network():
    (final_rewards, one), (again, other) = (ppo(2, spaces=0, players=3) for _ in range(2))
    assert final_rewards == again
    for ours, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert th.equal(ours, theirs)
