"""Distillation: fit the network of TD(lambda) to a solved board (`python -m experiments.distil --table FILE`).

The experiment shows how strong a network of a given size can be. The exact values are known, so errors come only from
the size of the network or the duration of the fit.

Perfect players play games in which some turns end with a random move. The training positions are all positions before
a turn, and a random part of the positions at the possible ends of each turn.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch as th
import tyro
from numpy.typing import NDArray
from rich.progress import track
from torch import nn

from agents import runs
from agents.evaluate import FINAL
from agents.td import Network
from wotd_env import Game, Phase, Rules, files
from wotd_env.analysis import Grades, grade
from wotd_env.core.state import States
from wotd_env.planning import learned
from wotd_env.planning.learned import Features
from wotd_env.planning.playing import play_turns
from wotd_env.planning.vectors import BLOCK
from wotd_env.policies.planner import Planner
from wotd_env.process import exit_code, prepare_streams
from wotd_env.solver import Table, load


@dataclass(frozen=True)
class Settings:
    """Fit the network of TD(lambda) to the exact values of a solved board.

    It takes some minutes on one core. An interrupted run cannot be resumed.
    """

    table: Path
    """Table of the solved board, made by `wotd solve`."""

    folder: Path | None = None
    """Run folder to create; by default runs/ followed by the time."""

    seed: int = 0
    """Random seed. Equal seeds and settings give equal networks on the same kind of machine."""

    width: int = 64
    """Units of the network's first layer, a multiple of 32."""

    games: int = 2048
    """Games played side by side."""

    turns: int = 300
    """Turns played in each game."""

    explore: float = 0.1
    """Share of the turns that end with a random move."""

    share: float = 0.6
    """Share of the positions at the possible ends of turns that is used for training."""

    steps: int = 30_000
    """Gradient steps."""

    batch_size: int = 2048
    """Positions in a gradient step."""

    learning_rate: float = 5e-3
    """Initial learning rate of Adam; it falls to a hundredth by cosine decay."""

    final_games: int = 10_000
    """Games in which the trained network is graded."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.width % BLOCK:
            raise ValueError(f"width must be a multiple of {BLOCK}, got {self.width}")


class Positions(NamedTuple):
    """The training data: M positions before a turn, each with K features."""

    active: th.Tensor  # int16 (M, K)
    value: th.Tensor  # float32 (M,): the expected reward of the seat to act


def gather(table: Table, settings: Settings) -> Positions:
    """Play games with perfect players, and return the training positions in random order."""
    game = Game(Rules(spaces=table.spaces))
    features = Features.of(game.rules)
    rng = np.random.default_rng([settings.seed, 0])
    active, value = [], []

    def keep(state: States, values: NDArray[np.float32]) -> None:
        active.append(features.write(game, state).astype(np.int16))
        value.append(values[np.arange(len(state)), state["player"]])

    def perfect(game: Game, afterstates: States) -> NDArray[np.float32]:
        values = table.for_seats(game, afterstates)
        kept = (afterstates["phase"] != Phase.OVER) & (rng.random(len(afterstates)) < settings.share)
        keep(afterstates[kept], values[kept])
        return values

    state = game.reset(settings.games, seed=settings.seed << 32, roll=False)
    for _ in track(range(settings.turns), "perfect play"):
        keep(state, table.for_seats(game, state))
        play_turns(game, state, perfect, rng.random(len(state)) < settings.explore)
        game.reset(state, where=game.is_over(state), roll=False)
    order = rng.permutation(sum(map(len, value)))
    return Positions(*(th.from_numpy(np.concatenate(each)[order]) for each in (active, value)))


def fit(rules: Rules, positions: Positions, settings: Settings) -> Network:
    """Fit a network to positions."""
    th.manual_seed(settings.seed)
    rng = np.random.default_rng([settings.seed, 1])
    network = Network(rules, settings.width)
    optimizer = th.optim.Adam(network.parameters(), lr=settings.learning_rate, fused=True)
    for step in track(range(settings.steps), "gradient steps"):
        falling = 0.01 + 0.99 * (1 + np.cos(np.pi * step / settings.steps)) / 2
        optimizer.param_groups[0]["lr"] = settings.learning_rate * falling
        chosen = th.from_numpy(rng.integers(len(positions.value), size=settings.batch_size))
        value = positions.value[chosen]
        chances = th.stack((1 + value, 1 - value), 1) / 2
        loss = nn.functional.cross_entropy(network(positions.active[chosen].int()), chances)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return network


def distil(settings: Settings) -> Grades:
    """Fit and grade the network; write `value.npz`, `config.json` and `result.json` to the run folder."""
    assert settings.folder is not None
    table = load(settings.table)
    runs.make_folder(settings.folder)
    runs.write_json(settings.folder / "config.json", asdict(settings))
    th.set_num_threads(1)  # so that the order of sums does not depend on the number of threads
    positions = gather(table, settings)
    value = fit(Rules(spaces=table.spaces), positions, settings).value()
    files.write(settings.folder / "value.npz", learned.save(value))
    # The regret determines the win share only against a perfect opponent.
    opponent = f"oracle:{table.file}"
    grades = grade(Planner(value), table, settings.final_games, seed=FINAL, opponent=opponent)
    runs.write_json(settings.folder / runs.RESULT, {"positions": len(positions.value), **grades.as_dict()})
    return grades


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 1 if the machine failed, or 2 for a user's mistake."""
    settings = tyro.cli(Settings, args=arguments)
    into = settings.folder or Path("runs", f"{datetime.now():%Y-%m-%d_%H-%M-%S}")
    try:
        every = distil(replace(settings, folder=into)).all
    except (ValueError, OSError) as problem:
        print(f"distil: error: {problem}", file=sys.stderr)
        return exit_code(problem)
    print(
        f"Against perfect play: {every.share_against_perfect:.3f} % (± {every.share_against_perfect_error:.3f}); "
        f"its regret is {every.regret:.6f} per decision. The network is the policy td:{into}"
    )
    return 0


if __name__ == "__main__":
    prepare_streams()
    sys.exit(main())
