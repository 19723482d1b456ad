"""PPO: its rollouts, its objective and its critic."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch as th

from agents import ppo
from agents.network import Network
from agents.ppo import Rollout
from tests.helpers.training import TINY_PPO, trained
from wotd_env import Game, Rules
from wotd_env.planning.planner import plan
from wotd_env.planning.values import hand_made


def rollout_of(rules: Rules, steps: int) -> tuple[Network, Rollout]:
    """Return a network and decisions that it played."""
    th.manual_seed(3)
    network, game = Network(rules, 8), Game(rules)
    state = game.reset(6, seed=1)
    return network, ppo.play(network, game, state, hand_made, steps, np.random.default_rng(0))


def test_advantages_are_the_planner_s_returns_minus_their_mean_under_the_playing_policy():
    rules = Rules(spaces=2)
    _, rollout = rollout_of(rules, 5)
    game = Game(rules)
    state = game.reset(6, seed=1)
    rng = np.random.default_rng(0)
    for step in range(5):
        rows = slice(6 * step, 6 * step + 6)
        np.testing.assert_array_equal(rollout.observation[rows], game.observe(state))
        np.testing.assert_array_equal(rollout.mask[rows], game.legal_actions(state))
        returns, old = plan(game, state, hand_made)[0], rollout.log_old[rows].exp().numpy()
        legal = rollout.mask[rows].numpy() == 1
        for i in range(6):
            mean = (old[i, legal[i]] * returns[i, legal[i]]).sum()
            np.testing.assert_allclose(
                rollout.advantage[rows][i, legal[i]], returns[i, legal[i]] - mean, atol=1e-6
            )
        assert not rollout.advantage[rows].numpy()[~legal].any()
        log_old = rollout.log_old[rows].numpy()
        game.step_autoreset(state, (log_old + rng.gumbel(size=log_old.shape)).argmax(1))
    np.testing.assert_allclose((rollout.log_old.exp() * rollout.advantage).sum(1), 0, atol=1e-6)
    np.testing.assert_allclose(rollout.log_old.exp().sum(1), 1, rtol=1e-5)
    assert not rollout.log_old.exp()[rollout.mask == 0].any()


def test_the_objective_is_clipped_as_in_ppo():
    """Outside the clip range, the surrogate has no gradient where a step would enlarge the ratio's deviation."""
    network, rollout = rollout_of(Rules(spaces=2), 4)
    settings = dataclasses.replace(TINY_PPO, minibatch_size=24, update_epochs=1, clip_coef=0.2)
    old, legal = rollout.log_old.exp(), rollout.mask != 0
    other = Network(network.rules, 8)
    with th.no_grad():
        other.path_out.weight.mul_(100)
        log_pi = ppo.log_probabilities(other, rollout.observation, rollout.mask)
    ratio = (log_pi.exp() / old)[legal]
    assert ((ratio < 0.8) | (ratio > 1.2)).any()
    weights, advantage = old[legal], rollout.advantage[legal]
    expected = (weights * th.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)).sum() / len(old)
    entropy = -(log_pi.exp() * log_pi).sum(1).mean()
    still = th.optim.SGD(other.parameters(), lr=0.0)
    rollout = rollout._replace(over=th.arange(len(old)) < 3)
    numbers = ppo.learn(other, still, rollout, settings, 0.5, np.random.default_rng(0))
    assert numbers["loss"] == pytest.approx(float(-expected - 0.5 * entropy), rel=1e-4)
    assert numbers["entropy"] == pytest.approx(float(entropy), rel=1e-4)
    assert numbers["clipfrac"] == pytest.approx(
        float(weights[(ratio < 0.8) | (ratio > 1.2)].sum()) / len(old), rel=1e-3
    )
    assert numbers["regret"] == pytest.approx(float(rollout.advantage.amax(1).mean()), rel=1e-4)
    assert numbers["episode_length"] == len(old) / 3
    gradients = [weights.grad.norm() for weights in other.parameters() if weights.grad is not None]
    assert numbers["gradient_norm"] == pytest.approx(float(th.stack(gradients).norm()), rel=1e-4)


def test_gradient_steps_lower_the_regret():
    network, rollout = rollout_of(Rules(spaces=2), 40)
    optimizer = th.optim.Adam(network.parameters(), lr=3e-3)
    settings = dataclasses.replace(TINY_PPO, minibatch_size=60, update_epochs=40, clip_coef=1.0)

    def regret() -> float:
        with th.no_grad():
            pi = ppo.log_probabilities(network, rollout.observation, rollout.mask).exp()
        return float((rollout.advantage.amax(1) - (pi * rollout.advantage).sum(1)).mean())

    before = regret()
    ppo.learn(network, optimizer, rollout, settings, 0.0, np.random.default_rng(0))
    assert regret() < 0.8 * before


def test_actions_of_any_probability_give_a_finite_loss():
    _, rollout = rollout_of(Rules(spaces=2), 4)
    log_old = rollout.log_old.clone()
    log_old[rollout.mask != 0] = -200.0  # a probability that float32 rounds to 0
    rollout = rollout._replace(log_old=log_old)
    network = Network(Rules(spaces=2), 8)
    optimizer = th.optim.SGD(network.parameters(), lr=1.0)
    numbers = ppo.learn(network, optimizer, rollout, TINY_PPO, 0.01, np.random.default_rng(0))
    assert np.isfinite(list(numbers.values())).all(), numbers
    assert all(weights.isfinite().all() for weights in network.parameters())


@pytest.mark.slow
def test_ppo_learns_to_beat_random_and_greedy_play(tmp_path: Path):
    changes = {"num_envs": 256, "num_steps": 16, "minibatch_size": 256, "width": 64, "update_epochs": 2}
    run = trained(
        TINY_PPO, tmp_path / "run", rules=Rules(spaces=2), updates=80, milestones=1, milestone_games=1000,
        critic_turns=16_384, **changes,
    )  # fmt: skip
    random, greedy, _ = (row.wins / row.games for row in run.curve[-3:])
    assert random > 0.95
    assert greedy > 0.5
