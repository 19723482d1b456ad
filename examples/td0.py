"""TD(0) on afterstates with exactly planned turns, for the basic game of two players.

A small network estimates the value of positions between turns. Within a turn only one seat decides, and the dice have
known probabilities. So the turn planner (`wotd_env.planning`) computes the expected value of a turn exactly, for any
value function. This value is the target of TD(0):

    V(s)  <-  E[max over holds and moves of V(afterstate)]

    python examples/td0.py --save td0.npz
    python examples/td0.py --help         # all settings
"""

import os
import shlex
import time
from dataclasses import dataclass

import numpy as np
import torch as th
import tyro
from numpy.typing import NDArray
from torch import nn

from wotd_env import Game, Rules, evaluate
from wotd_env.core.state import States
from wotd_env.planning.playing import play_turns
from wotd_env.policies.planner import Planner
from wotd_env.policy import check_made_for

game = Game()
PIECES = game.observation_layout["pieces"]  # slice of an observation: the spaces of all pieces, one-hot


@dataclass(frozen=True)
class Settings:
    """Train a value network with TD(0) in self-play, and measure it against greedy and random."""

    save: str = ""
    """File for the trained network, such as td0.npz."""
    seed: int = 0
    total_timesteps: int = 192_000
    """Turns. Each game plays one turn between two gradient steps."""
    num_envs: int = 128
    """Number of parallel games."""
    learning_rate: float = 3e-3
    """Learning rate of Adam at the start; it falls linearly to 0."""
    evaluation_games: int = 500

    def __post_init__(self) -> None:
        least = {"save": "", "seed": 0, "total_timesteps": self.num_envs, "learning_rate": 0.0}
        for name, value in vars(self).items():
            if not value >= (low := least.get(name, 1)):
                raise ValueError(f"{name} must be at least {low}, got {value}")
        if os.path.isdir(self.save) or not os.path.isdir(os.path.dirname(self.save) or "."):
            raise ValueError(f"save must be a file in an existing folder, got {self.save}")


class Value:
    """A network as a value function for the turn planner."""

    def __init__(self) -> None:
        size = PIECES.stop - PIECES.start
        self.network = nn.Sequential(nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))

    def logits(self, state: States) -> th.Tensor:
        """Return logits (N,) of the win probability of the seat to act, in games STATE (N,)."""
        logits: th.Tensor = self.network(th.from_numpy(game.observe(state)[:, PIECES]).float())
        return logits

    def __call__(self, game: Game, state: States) -> NDArray[np.float32]:
        """Return the expected rewards of both seats, float32 (N, 2). They sum to 0."""
        with th.no_grad():
            reward = (self.logits(state) / 2).tanh().numpy()  # 2 sigmoid(logit) - 1 = tanh(logit / 2)
        seat_to_act = state["player"][:, None] == np.arange(2)
        return np.where(seat_to_act, reward[:, None], -reward[:, None])

    def check_rules(self, rules: Rules) -> None:
        """Raise ValueError if the network is not made for these rules."""
        check_made_for("the network of td0.py", game.rules, rules)


def train(settings: Settings) -> Value:
    """Train a network by self-play, print its strength ten times, and return it as a value function."""
    th.set_num_threads(1)  # with one thread, the same seed gives the same weights
    th.manual_seed(settings.seed)
    value, everyone, started = Value(), np.arange(settings.num_envs), time.process_time()
    optimizer = th.optim.Adam(value.network.parameters())
    state = game.reset(settings.num_envs, seed=settings.seed << 32, roll=False)
    updates = settings.total_timesteps // settings.num_envs
    for update in range(updates):
        logits, player = value.logits(state), state["player"].copy()
        planned = play_turns(game, state, value).before[everyone, player]  # expected rewards before the roll
        game.reset(state, where=game.is_over(state), roll=False)
        target = th.from_numpy(1 + planned) / 2
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (1 - update / updates)
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(logits, target).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if 10 * (update + 1) // updates > 10 * update // updates:
            spent, games = time.process_time() - started, settings.evaluation_games
            shares = (evaluate(Planner(value), name, games).share for name in ("greedy", "random"))
            print(f"update {update + 1}, {spent:.0f} s of processor time: ", end="")
            print("{:.1%} against greedy, {:.1%} against random".format(*shares), flush=True)
    return value


def save(value: Value, file: str) -> None:
    """Write the weights to a NumPy archive, which `load` reads."""
    with open(file, "wb") as out:
        np.savez(out, **{name: weights.numpy() for name, weights in value.network.state_dict().items()})


def load(file: str) -> Planner:
    """Return the policy with the saved network. Its name is `examples.td0:load:FILE`."""
    th.set_num_threads(1)
    value = Value()
    with np.load(file) as arrays:
        weights = map(th.from_numpy, arrays.values())
        value.network.load_state_dict(dict(zip(value.network.state_dict(), weights, strict=True)))
    return Planner(value)


if __name__ == "__main__":
    settings = tyro.cli(Settings)
    trained = train(settings)
    if settings.save:
        save(trained, settings.save)
        module = os.path.relpath(__file__).removesuffix(".py").replace(os.sep, ".")
        policy = shlex.quote(f"{module}:load:{settings.save}")
        print(f"wotd arena {policy} greedy\nwotd benchmark {policy}")
