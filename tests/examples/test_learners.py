"""The examples that learn a policy or action values: masks, gradients, targets, and equal seeds."""

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed: pip install 'wotd-env[train]'")


from examples import actor_critic_numpy, dqn, ppo, td0
from wotd_env import Game, evaluate
from wotd_env.analysis import regret
from wotd_env.policies.onnx import Onnx
from wotd_env.policies.oracle import Oracle
from wotd_env.wrappers import Judge

TINY_PPO = ppo.Settings(total_timesteps=512, num_envs=16, num_steps=16, minibatch_size=64, update_epochs=1)
TINY_DQN = dqn.Settings(total_timesteps=960, num_envs=16, batch_size=64, buffer_size=500)
TINY_TD0 = td0.Settings(total_timesteps=320, num_envs=16)


@pytest.mark.parametrize(
    ("example", "settings"), [(ppo, TINY_PPO), (dqn, TINY_DQN), (td0, TINY_TD0)], ids=["ppo", "dqn", "td0"]
)
def test_equal_seeds_give_equal_weights(example: Any, settings: Any, no_measuring: Any):
    no_measuring(example)
    one, other = (example.train(settings) for _ in range(2))
    networks = (getattr(trained, "network", trained).parameters() for trained in (one, other))
    assert all(mine.equal(its) for mine, its in zip(*networks, strict=True))


def test_ppo_advantages_are_returns_with_trace_one_and_zero_values():
    """With trace 1 and values 0, the advantage of a decision is the return of its seat."""
    game = Game(players=3, spaces=0)
    network = ppo.Network(game)
    for parameter in (network.whole_out.weight, network.whole_out.bias):
        parameter.data[14] = 0
    games = ppo.SelfPlay(game, 64, seed=0)
    rollout = games.play(network, 60, gae_lambda=1.0)
    assert set(np.unique(rollout.advantage)) <= {-0.5, 0.0, 0.25, 1.0}
    early = rollout.advantage[:5]
    assert (early < 0).sum() > (early > 0).sum() > 0  # two of three seats lose


def test_ppo_advantages_of_a_judge_are_regrets():
    game = Game(spaces=0)
    table = Oracle().table(game)
    network = ppo.Network(game)
    for parameter in (network.whole_out.weight, network.whole_out.bias):
        parameter.data[14] = 0
    rollout = ppo.SelfPlay(game, 16, 0, Judge(game, table)).play(network, 60, gae_lambda=0.9)
    state = game.reset(16, seed=0)
    for actions, advantage in zip(rollout.action, rollout.advantage, strict=True):
        assert advantage == pytest.approx(-regret(game, state, actions, table), abs=1e-6)
        game.step_autoreset(state, actions)
    assert rollout.advantage.min() < -0.1


@pytest.mark.filterwarnings("default")  # warnings of torch.onnx
@pytest.mark.parametrize("players", [2, 3, None])
def test_saved_networks_play_like_the_trained_ones(players: int | None, tmp_path: Path):
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    game = Game(players=players or 2)
    network = ppo.Network(game) if players else dqn.Network(Game(encoding=dqn.ENCODING))
    file, rng = tmp_path / "network.onnx", np.random.default_rng(0)
    network.save(str(file))
    state = game.reset(200, seed=0)
    for _ in range(3):
        actions = network.policy().act(game, state, rng)
        assert (Onnx(file).act(game, state, rng) == actions).all()
        game.step(state, actions)


def test_a_saved_actor_critic_plays_like_the_trained_one(tmp_path: Path):
    network, game = actor_critic_numpy.Network(np.random.default_rng(0)), Game()
    np.savez(tmp_path / "network.npz", *network.weights)
    state, rng = game.reset(200, seed=0), np.random.default_rng(0)
    loaded = actor_critic_numpy.load(str(tmp_path / "network.npz"))
    assert (loaded.act(game, state, rng) == network.policy().act(game, state, rng)).all()


def test_numpy_gradients_match_finite_differences_of_the_loss():
    game, rng = actor_critic_numpy.game, np.random.default_rng(0)
    network = actor_critic_numpy.Network(rng, width=8)
    network.weights = [w.astype(np.float64) + 0.1 * rng.normal(size=w.shape) for w in network.weights]
    state = game.reset(40, seed=0)
    observation, mask = game.observe(state), game.legal_actions(state)
    action = (mask * rng.random(mask.shape)).argmax(1)
    advantage = rng.normal(size=40) / 10
    answer = network(observation, mask)
    target, scaled = answer.value + advantage, advantage / advantage.std()

    def loss() -> float:
        _, _, _, policy, value = network(observation, mask)
        log_policy = np.log(np.maximum(policy, 1e-30))
        entropy = -(policy * log_policy).sum(1)
        chance, goal = (1 + value) / 2, (1 + target) / 2
        cross_entropy = -goal * np.log(chance) - (1 - goal) * np.log(1 - chance)
        gain = scaled * log_policy[np.arange(40), action] + 0.3 * entropy
        return float((cross_entropy / 2 - gain).mean())

    gradients = network.gradients(observation, mask, action, advantage, entropy=0.3)
    for weights, gradient in zip(network.weights, gradients, strict=True):
        flat = weights.reshape(-1)
        for i in rng.choice(flat.size, min(20, flat.size), replace=False):
            middle, losses = flat[i], []
            for change in (1e-5, -1e-5):
                flat[i] = middle + change
                losses.append(loss())
            flat[i] = middle
            assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(
                gradient.reshape(-1)[i], rel=1e-3, abs=1e-6
            )


def test_numpy_actor_critic_learns_to_beat_random_play(no_measuring: Any):
    no_measuring(actor_critic_numpy)
    network = actor_critic_numpy.train(actor_critic_numpy.Settings(total_timesteps=150 * 2048))
    untrained = actor_critic_numpy.Network(np.random.default_rng(0))
    before, after = (evaluate(each.policy(), "random", 100).share for each in (untrained, network))
    assert after > before + 0.2


def test_dqn_stores_n_step_returns():
    game = Game(encoding="features")
    memory = dqn.new_memory(10, game)
    zeros, masks = np.zeros((3, game.observation_size), np.int8), np.ones((3, game.num_actions), np.int8)
    # Game 0 continues; game 1 ends in the second step; game 2 restarts in the first one.
    steps = [
        ([0, 0, 0], [False, False, False], [True, True, False]),
        ([0, -1, 0], [False, True, False], [True, True, True]),
        ([0, 1, 1], [False, False, True], [True, False, True]),
    ]
    recent: deque[tuple[Any, ...]] = deque(
        (
            (zeros + i, np.arange(3), np.array(reward, float), np.array(ended), np.array(valid))
            for i, (reward, ended, valid) in enumerate(steps)
        ),
        maxlen=3,
    )
    assert dqn.remember(memory, 9, recent, zeros + 9, masks) == 2
    rows = memory[[9, 0]]
    assert rows["action"].tolist() == [0, 1]
    assert rows["reward"].tolist() == [0, -1]
    assert rows["final"].tolist() == [False, True]
    assert (rows["later"] == 9).all()


def test_dqn_values_illegal_actions_below_all_others():
    game = Game(encoding="features")
    state = game.reset(50, seed=0)
    mask = game.legal_actions(state)
    values = dqn.Network(game, 16).masked(game.observe(state), mask)
    assert (values.isneginf().numpy() == (mask == 0)).all()
