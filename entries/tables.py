"""The tables of the tracks and of the entries, and the picture of the entries (`make docs-tables` writes them)."""

import functools
import math
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import bootstrap, trim_mean

from entries.entry import TRACKS, Entry, Track, read, results
from wotd_env.arena.results import mean_of
from wotd_env.benchmark import Result
from wotd_env.benchmark.generalization import TRAIN
from wotd_env.benchmark.measuring import ALL, difference
from wotd_env.files import save_figure
from wotd_env.reporting import markdown


def tracks() -> str:
    """Return the table of the tracks."""
    head = ("track", "unit", "budgets", "players in the games", "games per win share", "graded positions")
    rows = []
    for name, (unit, budgets, players, games, size, _) in TRACKS.items():
        graded = "all" if size is None else f"{size} of each kind in each stage"
        numbers = ("; ".join(f"{number:,}" for number in each) for each in (budgets, players))
        rows.append((f"[`{name}`](#{name})", unit, *numbers, f"{games:,}", graded))
    return markdown(head, rows, right=[4])


def measures(result: Result, track: Track) -> dict[str, tuple[float, float]]:
    """Return the columns of a result as a dict: name -> (value, half the width of its interval).

    The regret is in thousandths of equity, and win shares are in percent. For n > 2, the column `n players` is the mean
    win share minus 1 / n, in percentage points.
    """
    regrets = {"mean regret": result.score}
    if TRAIN in result.regret:
        train = result.regret[TRAIN][ALL]
        regrets |= {"in training layouts": train, "difference": difference(result.score, train)}
    found = {name: (1000 * each.value, 1000 * (each.high - each.value)) for name, each in regrets.items()}
    for players in track.players:
        shares = result.win_shares[players]
        if players == 2:
            found |= {f"`{name}`": (100 * share.value, 100 * share.error) for name, share in shares.items()}
        else:
            points = 100 * sum(share.value - 1 / players for share in shares.values()) / len(shares)
            error = 100 * math.hypot(*(share.error for share in shares.values())) / len(shares)
            found[f"{players} players"] = points, error
    return found


class Row(NamedTuple):
    """The results of an entry at one of its budgets."""

    name: str
    entry: Entry
    budget: int
    measured: list[dict[str, tuple[float, float]]]  # the columns of each seed
    minutes: float  # mean training time of a seed

    def of_seeds(self, column: str) -> Any:
        """Return the values of a column, one for each seed, float64 (seeds,)."""
        return np.array([of_seed[column][0] for of_seed in self.measured])

    def mean(self, column: str) -> tuple[float, float]:
        """Return the mean of a column over the seeds, and half the width of its interval."""
        if len(self.measured) == 1:
            return self.measured[0][column]
        mean = mean_of(self.of_seeds(column), -math.inf, math.inf)
        return mean.value, mean.estimate().error

    def middle(self, column: str) -> str:
        """Return the interquartile mean over the seeds and its bootstrap interval, as text; return "" for one seed.

        Source: Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS 2021.
        """
        if len(self.measured) == 1:
            return ""
        values, mean = self.of_seeds(column), functools.partial(trim_mean, proportiontocut=0.25)
        drawn = bootstrap((values,), mean, method="percentile", rng=np.random.default_rng(0))
        low, high = drawn.confidence_interval
        return f"{mean(values):.2f} ({low:.2f}-{high:.2f})"


def rows(names: list[str]) -> list[Row]:
    """Return the results of entries, sorted by track, title and budget."""
    found = []
    for name in names:
        entry = read(name)
        for budget in entry.budgets:
            of_seeds = [Result.read(path) for each, _, path in results(name, entry) if each == budget]
            measured = [measures(result, TRACKS[entry.track]) for result in of_seeds]
            minutes = np.mean([result.training_minutes or 0 for result in of_seeds])
            found.append(Row(name, entry, budget, measured, float(minutes)))
    order = list(TRACKS)
    return sorted(found, key=lambda row: (order.index(row.entry.track), row.entry.title, row.budget))


def tables(rows: list[Row]) -> str:
    """Return a table of entries for each track that has entries."""
    shown = []
    for track, of_track in groupby(rows, lambda row: row.entry.track):
        found = list(of_track)
        columns = list(found[0].measured[0])
        middles = [row.middle("mean regret") for row in found]
        robust = ["interquartile mean"] if any(middles) else []
        head = ["entry", f"budget, {TRACKS[track].unit}", "seeds", *columns, *robust, "training minutes"]
        lines = [
            [
                f"[{row.entry.title}](../../entries/{row.name})",
                f"{row.budget:,}",
                len(row.measured),
                *("{:.2f} ±{:.2f}".format(*row.mean(column)) for column in columns),
                *([middle] if robust else []),
                f"{float(f'{row.minutes:.2g}'):g}",
            ]
            for row, middle in zip(found, middles, strict=True)
        ]
        shown.append(f"Track `{track}`:\n\n{markdown(head, lines, right=range(1, len(head)))}")
    return "\n\n".join(shown)


def draw(rows: list[Row], file: Path) -> None:
    """Draw the learning curves of track `samples`, and each entry's win share against `td` at its largest budget."""
    figure = Figure((10, 5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    samples = [row for row in rows if row.entry.track == "samples"]
    colors = {title: f"C{i}" for i, title in enumerate(dict.fromkeys(row.entry.title for row in samples))}
    for title, of_title in groupby(samples, lambda row: row.entry.title):
        budgets, means = zip(*((row.budget, row.mean("`greedy`")) for row in of_title), strict=True)
        middle, errors = np.array(means).T
        low, high = (middle - errors).clip(0), middle + errors
        left.plot(budgets, middle, "o-", color=colors[title], markersize=4, label=title)
        left.fill_between(budgets, low, high, color=colors[title], alpha=0.15, linewidth=0)
    left.set(xscale="log", xlabel="decisions of training")
    left.set(ylabel="win share against greedy, %", ylim=(0, None))
    left.set_title("Track samples: mean and 95 % interval", fontsize=10)
    largest = {row.name: row for row in rows if "`td`" in row.measured[0]}
    ranked = sorted(largest.values(), key=lambda row: row.mean("`td`")[0])
    names = []
    for height, row in enumerate(ranked):
        share, error = row.mean("`td`")
        color = colors.get(row.entry.title, "grey")
        right.errorbar(share, height, xerr=error, fmt="o", color=color, capsize=3, markersize=4)
        unit = TRACKS[row.entry.track].unit.removesuffix("s" if row.budget == 1 else "")
        names.append(f"{row.entry.title}, {row.budget:,} {unit}")
    right.set_yticks(range(len(ranked)), names)
    right.tick_params("y", labelsize=8)
    right.axvline(50, color="grey", linewidth=0.8, linestyle=":")
    right.set(xlabel="win share against td, % (grey: other tracks)", xlim=(-1, 55))
    right.set_title("Largest budget of each entry", fontsize=10)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    save_figure(figure, file)
