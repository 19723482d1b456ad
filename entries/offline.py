"""Train MARWIL on logged games, for the entries `bc` and `marwil` of the track `offline`.

The network imitates every logged decision with the weight exp(beta * advantage). The advantage is the result of the
game minus the value of the position. A second head of the network learns this value. With beta = 0, MARWIL is behavior
cloning.

Source: Wang et al., "Exponentially Weighted Imitation Learning for Batched Historical Data", NeurIPS 2018.
"""

from pathlib import Path

import numpy as np
import torch as th
from torch import nn

from agents.checkpoint import step
from agents.export import NetworkPolicy
from agents.network import Network
from entries.entry import WEIGHTS
from wotd_env import Game, Rules, recording

GAMES = {
    "random-greedy": (["random", "greedy"], 1),
    "greedy-planner": (["greedy", "planner"], 2),
    "planner-random": (["planner", "random"], 3),
}
"""The files of logged games: name -> the policies that play the games, and the seed of the games."""
LOGGED = 4000  # games per file

WIDTH = 64
BATCH = 1024
EPOCHS = 3
LEARNING_RATE = 2e-3


def logged(folder: Path) -> list[recording.Decisions]:
    """Return the logged games of all files. Record the games of missing files first."""
    files = {folder / f"{name}.parquet": how for name, how in GAMES.items()}
    for file, (policies, seed) in files.items():
        if not file.is_file():
            recording.record(policies, file, games=LOGGED, seed=seed)
    return [recording.load(file) for file in files]


class Learner:
    """A learner that imitates logged decisions.

    Args:
        beta: the factor in the weight exp(beta * advantage). Results are 1 (win) and -1 (loss).
    """

    def __init__(self, name: str, beta: float) -> None:
        self.weights, self.beta = WEIGHTS / name, beta

    def train(self, budget: int, seed: int) -> None:
        """Learn from all logged games, and save the weights. `budget` is used only in the file name."""
        self.weights.mkdir(parents=True, exist_ok=True)
        th.set_num_threads(1)  # so that rounding does not depend on the number of cores
        th.manual_seed(seed)
        rng, game = np.random.default_rng(seed), Game()
        files = logged(self.weights.parent)
        state, action, mask, result = (
            np.concatenate([getattr(each, name) for each in files])
            for name in ("state", "action", "mask", "reward")
        )
        network, value = Network(game.rules, WIDTH), nn.Linear(2 * WIDTH, 1)
        optimizer = th.optim.Adam([*network.parameters(), *value.parameters()])
        total = EPOCHS * len(action) // BATCH
        rows = np.concatenate([rng.permutation(len(action)) for _ in range(EPOCHS)])
        for number, batch in enumerate(rows[: total * BATCH].reshape(total, BATCH)):
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - number / total)
            observation = th.from_numpy(game.observe(state[batch]))
            logits, position = network(observation.float())
            logits = logits.masked_fill(th.from_numpy(mask[batch]) == 0, -1e9)
            chosen = logits.log_softmax(1).gather(1, th.from_numpy(action[batch])[:, None])[:, 0]
            advantage = th.from_numpy(result[batch]).float() - value(position)[:, 0]
            weight = (self.beta * advantage.detach()).exp()
            loss = advantage.square().mean() - (weight * chosen).mean()
            step(optimizer, loss)
        th.save(network.state_dict(), self._file(budget, seed))

    def load(self, budget: int = 12_000, seed: int = 0) -> NetworkPolicy | None:
        if not self._file(budget, seed).is_file():
            return None
        th.set_num_threads(1)
        network = Network(Rules(), WIDTH)
        network.load_state_dict(th.load(self._file(budget, seed), weights_only=True))
        return NetworkPolicy(network)

    def _file(self, budget: int, seed: int) -> Path:
        return self.weights / f"{budget}-{seed}.pt"
