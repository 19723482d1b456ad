"""Compare rewards for one learner: results, exact regrets and regrets of imperfect judges.

    python -m tools.process_reward          # renews docs/results/process-reward.md, in about an hour on two cores

The learner is examples/ppo.py. A run that is in docs/results/process-reward.json is not repeated. Ctrl-C loses only
the runs in progress, and renews the page by the finished ones.
"""

import argparse
import json
import math
import multiprocessing
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from examples.ppo import Network, Reward, Settings, train
from tools import pages
from wotd_env import Game, files
from wotd_env.analysis import grade
from wotd_env.arena.results import mean_of
from wotd_env.policies.oracle import Oracle
from wotd_env.reporting import markdown
from wotd_env.solver import Table

PAGE = pages.ROOT / "docs" / "results" / "process-reward.md"
CHART, RESULTS = PAGE.with_suffix(".svg"), PAGE.with_suffix(".json")

REWARDS: dict[str, tuple[Reward, float]] = {
    # name: (judge, noise of its equities)
    "result of the game": ("result", 0.0),
    "exact regret": ("table", 0.0),
    "regret with noise 0.03": ("table", 0.03),
    "regret with noise 0.1": ("table", 0.1),
    "regret with noise 0.3": ("table", 0.3),
    "regret judged by `td`": ("td", 0.0),
    "regret judged by `planner`": ("planner", 0.0),
}
SPACES = (2, 3)
SEEDS = range(5)
LEARNER = Settings(total_timesteps=983_040, num_envs=128)  # 120 updates
GAMES = 1000  # graded games for each point of a curve


class Run(NamedTuple):
    """One training run."""

    reward: str
    spaces: int
    seed: int

    def __str__(self) -> str:
        return f"{self.reward}, {self.spaces} plain spaces, seed {self.seed}"


@cache
def table_of(spaces: int) -> Table:
    """Return the solution of a board, from the cache folder."""
    return Oracle().table(Game(spaces=spaces))


def curve(run: Run) -> tuple[Run, list[list[float]]]:
    """Train once. Return rows of decisions, processor seconds, regret in thousandths of equity, and win share in %.

    Both grades are from games against perfect play.
    """
    source, noise = REWARDS[run.reward]
    settings = replace(LEARNER, seed=run.seed, spaces=run.spaces, reward=source, noise=noise)
    rows = []

    def measure(network: Network, update: int, seconds: float, settings: Settings) -> None:
        grades = grade(network.policy(), table_of(run.spaces), GAMES, seed=1, opponent="oracle").all
        decisions = float(update * settings.num_envs * settings.num_steps)
        rows.append([decisions, seconds, 1000 * grades.regret, grades.share_against_perfect])

    train(settings, measure)
    return run, rows


def finished(file: Path) -> dict[str, Any]:
    """Return the numbers of all finished runs by name."""
    return json.loads(file.read_text()) if file.exists() else {}


def all_runs() -> list[Run]:
    """Return all runs, the first seed of each reward and board first."""
    return [Run(name, spaces, seed) for seed in SEEDS for spaces in SPACES for name in REWARDS]


def run_missing(measure: Callable[[Any], tuple[Any, list[Any]]], runs: Sequence[Any], file: Path) -> None:
    """Measure the runs that are not in the file, two at a time, and save the numbers of each at its end."""
    missing = [run for run in runs if str(run) not in finished(file)]
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        for done, (run, numbers) in enumerate(pool.imap_unordered(measure, missing), 1):
            known = finished(file) | {str(run): np.round(numbers, 3).tolist()}
            lines = (f"{json.dumps(name)}: {json.dumps(numbers)}" for name, numbers in sorted(known.items()))
            files.write(file, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
            print(f"{done} of {len(missing)}: {run}", flush=True)


def by_reward(curves: dict[Run, NDArray[np.float64]], spaces: int) -> dict[str, NDArray[np.float64]]:
    """Return the rows of all seeds, (seeds, points, 4), for each reward."""
    found = defaultdict(list)
    for run, rows in curves.items():
        if run.spaces == spaces:
            found[run.reward].append(rows)
    return {name: np.array(found[name]) for name in REWARDS if name in found}


def tables(curves: dict[Run, NDArray[np.float64]]) -> str:
    """Return the table of the final and first measurements of all runs."""
    head = "reward | plain spaces | seeds | regret after 10 % | regret at the end | win share at the end"
    rows = []
    for spaces in SPACES:
        for name, found in by_reward(curves, spaces).items():
            first, last = found[:, 0], found[:, -1]
            measured = (over_seeds(sample, 1) for sample in (first[:, 2], last[:, 2], last[:, 3]))
            rows.append((name, spaces, len(found), *measured, over_seeds(last[:, 1], 0)))
    return markdown(f"{head} | processor seconds", rows, right=range(1, 7))


def error_of(sample: NDArray[np.float64]) -> float:
    """Return half the width of the 95 % interval of the mean over the seeds (Student's t), or 0 for one seed."""
    if len(sample) == 1:
        return 0.0
    return mean_of(sample, -math.inf, math.inf).estimate().error


def over_seeds(sample: NDArray[np.float64], digits: int) -> str:
    """Format the mean over the seeds with its interval, if there are several seeds."""
    error = f" ± {error_of(sample):.{digits}f}" if len(sample) > 1 else ""
    return f"{sample.mean():.{digits}f}{error}"


def draw(curves: dict[Run, NDArray[np.float64]]) -> None:
    """Draw the regret of all rewards by decisions and by processor time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    axes = figure.subplots(len(SPACES), 2, sharey="row")
    for spaces, row in zip(SPACES, axes, strict=True):
        for name, found in by_reward(curves, spaces).items():
            mean = found.mean(0)
            error = np.array([error_of(points) for points in found[:, :, 2].T])
            for axis, column, unit in ((row[0], 0, 1e6), (row[1], 1, 60)):
                (line,) = axis.plot(
                    mean[:, column] / unit, mean[:, 2], marker=".", label=name.replace("`", "")
                )
                low, high = np.maximum(mean[:, 2] - error, 0.1), mean[:, 2] + error
                axis.fill_between(mean[:, column] / unit, low, high, color=line.get_color(), alpha=0.2)
                axis.set(yscale="log", title=f"{spaces} plain spaces")
                axis.yaxis.set_major_formatter("{x:.0f}")
                axis.yaxis.set_minor_formatter("{x:.0f}")
        row[0].set_ylabel("regret per decision in thousandths of equity")
    axes[-1][0].set_xlabel("million decisions")
    axes[-1][1].set_xlabel("minutes of processor time, without measurements")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    files.save_figure(figure, CHART)


def main() -> None:
    """Train the missing runs, and renew the page and its chart."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with suppress(KeyboardInterrupt):
        run_missing(curve, all_runs(), RESULTS)
    known = finished(RESULTS)
    found = {run: np.array(known[str(run)]) for run in all_runs() if str(run) in known}
    draw(found)
    PAGE.write_text(pages.renew(PAGE.read_text(), {"process_reward": tables(found)}))


if __name__ == "__main__":
    main()
