"""The benchmark entry of examples/actor_critic_numpy.py. For your own entry, copy this folder and replace the agent."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from examples import actor_critic_numpy as example
from wotd_env import Game, Rules
from wotd_env.core.state import States
from wotd_env.policy import check_made_for

RESULTS = Path(__file__).parent / "results"


class Agent:
    """A policy that plays the most likely action of a network."""

    def __init__(self, network: example.Network) -> None:
        self.network = network

    def check_rules(self, rules: Rules) -> None:
        """Raise ValueError if the agent was trained with other rules."""
        check_made_for("the agent", example.game.rules, rules)

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the most likely actions, int64 (N,), for games STATE (N,)."""
        answer = self.network(example.game.observe(state), game.legal_actions(state))
        return np.asarray(answer.policy.argmax(1))


def train(budget: int, seed: int) -> None:
    """Train for `budget` decisions, and save the weights."""
    network = example.train(example.Settings(seed=seed, total_timesteps=budget, evaluation_games=100))
    np.savez(RESULTS / f"{budget}-{seed}.npz", *network.weights)


def load(budget: int = 1_000_000, seed: int = 0) -> Agent:
    """Return the trained agent."""
    network, file = example.Network(np.random.default_rng(seed)), RESULTS / f"{budget}-{seed}.npz"
    if not file.is_file():
        how = f"python -m entries {RESULTS.parent.name} --measure --budget {budget} --seed {seed}"
        raise FileNotFoundError(f"{file} is missing; train the agent with {how}")
    with np.load(file) as arrays:
        network.weights = list(arrays.values())
    return Agent(network)
