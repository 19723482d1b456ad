"""Actor-critic by self-play in NumPy only, for the basic game of two players.

One network plays both seats and learns from the results of the games only. All gradients are written by hand. Each
decision is used in only one gradient step. One thread is enough:

    OPENBLAS_NUM_THREADS=1 python examples/actor_critic_numpy.py
"""

import argparse
import time
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from wotd_env import Game

Array = NDArray[Any]

ENCODING = "features"  # a few dozen handcrafted features, which suit small networks
game = Game(encoding=ENCODING)
DICE = game.observation_layout["dice"]  # slice of an observation: the number of dice of each face

# The network scores each pair (face, number of kept dice). The logit of a hold is the sum of six scores, one per face.
# KEPT[roll, hold, (face, number)] is 1 if the hold keeps exactly `number` dice of the face.
HOLDS, SCORES = 32, 6 * 6
ROLLS = game.chance_outcomes(5)[0]  # (252, 5): the faces of each roll, ascending
KEPT_DICE: Array = np.arange(HOLDS)[:, None] >> np.arange(5) & 1  # (hold, die)
COUNTS = (KEPT_DICE[..., None] * (ROLLS[:, None, :, None] == np.arange(6))).sum(2)  # (roll, hold, face)
KEPT = (COUNTS[..., None] == np.arange(6)).reshape(len(ROLLS), HOLDS, SCORES).astype(np.float32)
CODE = 6 ** np.arange(6)
ROLL_OF_CODE = np.zeros(6**6, np.int64)
ROLL_OF_CODE[COUNTS[:, -1] @ CODE] = np.arange(len(ROLLS))  # the last hold keeps the whole roll


class Answer(NamedTuple):
    """The output of the network for N observations, and the intermediate arrays that `gradients` needs."""

    inputs: Array
    hidden: Array
    kept: Array
    policy: Array
    """(N, A): probabilities, 0 for illegal actions"""
    value: Array
    """(N,): expected reward of the seat to act"""


class Network:
    """A network with one hidden layer, a softmax over the legal actions, a tanh value head and the optimizer Adam."""

    def __init__(self, rng: np.random.Generator, width: int = 64) -> None:
        outputs = SCORES + game.num_actions - HOLDS + 1
        first = rng.normal(0, 0.2, (game.observation_size, width))
        second = rng.normal(0, 0.01, (width, outputs))
        self.weights: list[Array] = [
            w.astype(np.float32) for w in (first, np.zeros(width), second, np.zeros(outputs))
        ]
        self.moments = [(np.zeros_like(w), np.zeros_like(w)) for w in self.weights]
        self.steps = 0

    def __call__(self, observation: Array, mask: Array) -> Answer:
        """Return the policy and the values for observations, int8 (N, D), and action masks, int8 (N, A)."""
        w1, b1, w2, b2 = self.weights
        x = observation.astype(np.float32) / 5
        hidden = np.maximum(x @ w1 + b1, 0)
        y = hidden @ w2 + b2
        kept = KEPT[ROLL_OF_CODE[observation[:, DICE] @ CODE]]
        holds = (kept @ np.ascontiguousarray(y[:, :SCORES])[:, :, None])[:, :, 0]
        logits = np.where(mask, np.concatenate((holds, y[:, SCORES:-1]), 1), -np.inf)
        policy = np.exp(logits - logits.max(1, keepdims=True))
        return Answer(x, hidden, kept, policy / policy.sum(1, keepdims=True), np.tanh(y[:, -1]))

    def gradients(
        self, observation: Array, mask: Array, action: Array, advantage: Array, entropy: float
    ) -> tuple[Array, ...]:
        """Return the gradient of the mean loss over N decisions, as one array for each array in `weights`.

        The loss is the sum of two terms. The policy term is -A / std(A) * log pi(a|s) - entropy * H(pi(.|s)).
        The value term is half the cross-entropy between two win probabilities: the prediction (1 + V) / 2, and the
        correct value (1 + target) / 2, where target = V + A.
        """
        x, hidden, kept, policy, _ = self(observation, mask)
        log_policy = np.log(np.maximum(policy, 1e-30))
        h = -(policy * log_policy).sum(1, keepdims=True)
        scaled = (advantage / advantage.std())[:, None]
        # d/dlogits = A (pi - 1_a) + entropy * pi (log pi + H);  d/dy = (V - target) / 2 for V = tanh(y)
        d_logits = policy * (scaled + entropy * (log_policy + h))
        d_logits[np.arange(len(action)), action] -= scaled[:, 0]
        d_scores = (np.ascontiguousarray(d_logits[:, None, :HOLDS]) @ kept)[:, 0]
        d_y = np.concatenate((d_scores, d_logits[:, HOLDS:], -0.5 * advantage[:, None]), 1) / len(action)
        d_hidden = d_y @ self.weights[2].T * (hidden > 0)
        return x.T @ d_hidden, d_hidden.sum(0), hidden.T @ d_y, d_y.sum(0)

    def step(self, gradients: tuple[Array, ...], rate: float) -> None:
        """Update the weights with one step of Adam."""
        self.steps += 1
        for w, gradient, (mean, square) in zip(self.weights, gradients, self.moments, strict=True):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            w -= rate * mean / (1 - 0.9**self.steps) / (np.sqrt(square / (1 - 0.999**self.steps)) + 1e-8)


def train(updates: int = 3000, seed: int = 0, evaluation_games: int = 500) -> Network:
    """Train a network, print its progress ten times, and return it.

    Args:
        updates: number of gradient steps. Each step uses 2,048 decisions: 16 in each of 128 games.
        seed: equal seeds give equal networks.
        evaluation_games: number of games for each win rate.
    """
    games, steps, trace = 128, 16, 0.9
    rng, started = np.random.default_rng(seed), time.process_time()
    network, everyone = Network(rng), np.arange(games)
    state = game.reset(games, seed=seed)
    observation, mask = game.observe(state), game.legal_actions(state)
    rewards, done = np.empty((games, 2), np.float32), np.empty(games, np.bool_)
    for update in range(updates):
        decisions = []
        for _ in range(steps):
            answer, actor = network(observation, mask), state["player"].copy()
            seen = observation.copy(), mask.copy()
            up_to = answer.policy.cumsum(1)
            action = (up_to > rng.random((games, 1)) * up_to[:, -1:]).argmax(1)
            game.step_autoreset(state, action, observation, mask, rewards, done)
            # The game is zero-sum: if the other seat acts next, the next value counts with the opposite sign.
            sign = np.where(done, 0, np.where(state["player"] == actor, 1, -1))
            decisions.append((*seen, action, answer.value, rewards[everyone, actor], sign))
        observations, masks, actions, value, reward, sign = map(np.stack, zip(*decisions, strict=True))
        # A_t = r_t + sign_t * (V(s_t+1) + trace * A_t+1) - V(s_t)
        advantage, ahead, value_ahead = (
            np.empty_like(value),
            np.zeros(games),
            network(observation, mask).value,
        )
        for t in reversed(range(steps)):
            ahead = advantage[t] = reward[t] + sign[t] * (value_ahead + trace * ahead) - value[t]
            value_ahead = value[t]
        flat = [part.reshape(-1, *part.shape[2:]) for part in (observations, masks, actions, advantage)]
        left = 1 - update / updates
        network.step(network.gradients(flat[0], flat[1], flat[2], flat[3], 0.01 * left), rate=3e-3 * left)
        if 10 * (update + 1) // updates > 10 * update // updates:
            spent = time.process_time() - started
            greedy, random = (win_rate(network, name, evaluation_games) for name in ("greedy", "random"))
            print(f"update {update + 1}, {spent:.0f} s of processor time: ", end="")
            print(f"{greedy:.1%} against greedy, {random:.1%} against random", flush=True)
    return network


def win_rate(network: Network, opponent: str, games: int) -> float:
    """Return a network's win rate in random seats against a named policy. The network plays its most likely actions."""
    name = "wotd_env:wotd_env/WayOfTheDragon-v0"
    envs = gymnasium.make_vec(name, num_envs=games, opponents=opponent, encoding=ENCODING)
    observation, info = envs.reset(seed=1 << 40)
    won, running = np.zeros(games, np.bool_), np.ones(games, np.bool_)
    while running.any():
        action = network(observation, info["action_mask"]).policy.argmax(1)
        observation, reward, terminated, truncated, info = envs.step(action)
        won |= running & (reward == 1)
        running &= ~(terminated | truncated)
    return float(won.mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train an actor-critic by self-play in NumPy.")
    parser.add_argument("--updates", type=int, default=3000, help="gradient steps, on 2,048 decisions each")
    parser.add_argument("--seed", type=int, default=0)
    train(**vars(parser.parse_args()))
