"""Actor-critic by self-play in NumPy only, for the basic game of two players.

One network plays both seats and learns from the results of the games only. All gradients are written by hand. Each
decision is used in only one gradient step. One thread is enough:

    OPENBLAS_NUM_THREADS=1 python examples/actor_critic_numpy.py --save actor_critic.npz
    python examples/actor_critic_numpy.py --help         # all settings
"""

import argparse
import os
import shlex
import time
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env import Game, evaluate
from wotd_env.policies.function import FunctionPolicy

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


@dataclass(frozen=True)
class Settings:
    """The settings of a training run."""

    save: str = ""  # file for the trained network, such as actor_critic.npz
    seed: int = 0
    total_timesteps: int = 6_144_000  # decisions of both seats
    num_envs: int = 128  # number of parallel games
    num_steps: int = 16  # decisions of each game in a rollout; each rollout has one gradient step
    learning_rate: float = 3e-3  # initial learning rate of Adam; it falls linearly to 0
    gae_lambda: float = 0.9  # lambda of generalized advantage estimation; there is no discount
    ent_coef: float = 0.01  # initial weight of the entropy bonus; it falls linearly to 0
    evaluation_games: int = 500

    def __post_init__(self) -> None:
        least = {"save": "", "seed": 0, "total_timesteps": self.num_envs * self.num_steps}
        for name, value in vars(self).items():
            if not value >= (low := least.get(name, int(isinstance(value, int)))):
                raise ValueError(f"{name} must be at least {low}, got {value}")
        if os.path.isdir(self.save) or not os.path.isdir(os.path.dirname(self.save) or "."):
            raise ValueError(f"save must be a file in an existing folder, got {self.save}")


class Answer(NamedTuple):
    """The output of the network for N observations, and the intermediate arrays that `gradients` needs."""

    inputs: Array
    hidden: Array
    kept: Array
    policy: Array  # (N, A): probabilities, 0 for illegal actions
    value: Array  # (N,): expected reward of the seat to act


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

    def best(self, observation: Array, mask: Array) -> Array:
        """Return the most likely actions, int64 (N,)."""
        return np.asarray(self(observation, mask).policy.argmax(1))

    def policy(self) -> FunctionPolicy:
        """Return the policy that plays the most likely actions."""
        return FunctionPolicy(self.best, batched=True, encoding=ENCODING, rules=game.rules)

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


def train(settings: Settings) -> Network:
    """Train a network, print its strength ten times, and return it."""
    games, steps, gae_lambda = settings.num_envs, settings.num_steps, settings.gae_lambda
    rng, started = np.random.default_rng(settings.seed), time.process_time()
    network, everyone = Network(rng), np.arange(games)
    state = game.reset(games, seed=settings.seed)
    observation, mask = game.observe(state), game.legal_actions(state)
    rewards, done = np.empty((games, 2), np.float32), np.empty(games, np.bool_)
    updates = settings.total_timesteps // (games * steps)
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
        # A_t = r_t + sign_t * (V(s_t+1) + gae_lambda * A_t+1) - V(s_t)
        advantage, ahead = np.empty_like(value), np.zeros(games)
        value_ahead = network(observation, mask).value
        for t in reversed(range(steps)):
            ahead = advantage[t] = reward[t] + sign[t] * (value_ahead + gae_lambda * ahead) - value[t]
            value_ahead = value[t]
        flat = [part.reshape(-1, *part.shape[2:]) for part in (observations, masks, actions, advantage)]
        left = 1 - update / updates
        gradients = network.gradients(flat[0], flat[1], flat[2], flat[3], settings.ent_coef * left)
        network.step(gradients, rate=settings.learning_rate * left)
        if 10 * (update + 1) // updates > 10 * update // updates:
            spent, compared = time.process_time() - started, settings.evaluation_games
            shares = (evaluate(network.policy(), name, compared).share for name in ("greedy", "random"))
            print(f"update {update + 1}, {spent:.0f} s of processor time: ", end="")
            print("{:.1%} against greedy, {:.1%} against random".format(*shares), flush=True)
    return network


def load(file: str) -> FunctionPolicy:
    """Return the policy with the saved network, e.g. for `wotd arena examples.actor_critic_numpy:load:FILE greedy`."""
    network = Network(np.random.default_rng(0))
    with np.load(file) as arrays:
        network.weights = list(arrays.values())
    return network.policy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train an actor-critic by self-play in NumPy.")
    for each in fields(Settings):
        parser.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), default=each.default)
    try:
        settings = Settings(**vars(parser.parse_args()))
    except ValueError as error:
        parser.error(str(error))
    trained = train(settings)
    if settings.save:
        with open(settings.save, "wb") as out:
            np.savez(out, *trained.weights)
        module = os.path.relpath(__file__).removesuffix(".py").replace(os.sep, ".")
        policy = shlex.quote(f"{module}:load:{settings.save}")
        print(f"wotd arena {policy} greedy\nwotd benchmark {policy}")
