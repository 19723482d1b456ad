"""The benchmark entry of examples/td0.py, a value learner that plans turns exactly."""

from pathlib import Path

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch import nn

from examples import td0 as example
from wotd_env import Game, Rules
from wotd_env.core.state import States
from wotd_env.policy import check_made_for

RESULTS = Path(__file__).parent / "results"


class Agent:
    """A policy that plans its turns with a learned value function."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network

    def check_rules(self, rules: Rules) -> None:
        check_made_for("the agent", example.game.rules, rules)

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.asarray(example.choose(self.network, state))


def train(budget: int, seed: int) -> None:
    """Train with the settings of the example, and save the weights."""
    network = example.train(turns=1500, seed=seed, evaluation_games=100)
    np.savez(
        RESULTS / f"{budget}-{seed}.npz", *(weights.detach().numpy() for weights in network.parameters())
    )


def load(budget: int = 1, seed: int = 0) -> Agent:
    with np.load(RESULTS / f"{budget}-{seed}.npz") as arrays:
        w1, b1, w2, b2 = map(th.from_numpy, arrays.values())
    network = nn.Sequential(nn.Linear(w1.shape[1], w1.shape[0]), nn.ReLU(), nn.Linear(w2.shape[1], 1))
    network.load_state_dict({"0.weight": w1, "0.bias": b1, "2.weight": w2, "2.bias": b2})
    th.set_num_threads(1)  # so that rounding does not depend on the number of cores
    return Agent(network)
