"""Check the entries of the benchmark and write their table: `python -m tools.entries [NAME...]`.

docs/how-to/enter-the-benchmark.md describes the folder of an entry. A check runs the code of its `run.py`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import bootstrap, trim_mean

from tools import pages
from wotd_env import Rules, benchmark
from wotd_env.arena.asking import Blamed
from wotd_env.arena.estimates import mean_of
from wotd_env.arena.fingerprints import policy_digest
from wotd_env.benchmark import Result, measuring
from wotd_env.benchmark.results import ALL, mean_regret
from wotd_env.cli.progress import progress_bar
from wotd_env.files import replacing, save_figure
from wotd_env.policy import Policy

FOLDER = pages.ROOT / "entries"
WEIGHTS = pages.ROOT / "runs" / "entries"  # folder for weights that are too large for the repository
PAGE = pages.ROOT / "docs" / "results" / "benchmark.md"
PICTURE = PAGE.with_name("entries.svg")
SEEDS = 5  # minimum number of seeds of a trained agent
CORES = 2  # for training in the tracks that limit the time
ROUNDING = 0.01  # share of decisions and games that may differ: sums round differently with other processors or threads


class Track(NamedTuple):
    """The protocol of a track, see docs/reference/tracks.md."""

    unit: str  # unit of the budgets
    budgets: tuple[int, ...]
    players: tuple[int, ...] = (2,)  # numbers of players whose win shares count
    games: int = measuring.GAMES
    size: int | None = None


TRACKS = {
    "samples": Track("decisions", (100_000, 1_000_000, 10_000_000)),
    "time": Track("minutes", (1, 5, 60)),
    "players": Track("minutes", (1, 5, 60), players=(3, 4, 5)),
    "offline": Track("games", (12_000,)),
    "planning": Track("simulations", (1, 3, 16, 50, 200), games=100, size=100),
}

FIELDS = {
    "title": ('".+"', "text"),
    "authors": (r'\[".+"\]', 'names, such as ["Ada Lovelace"]'),
    "track": (f'"({"|".join(TRACKS)})"', f"one of {', '.join(TRACKS)}"),
    "seeds": (r"\[\d+(, \d+)*\]", "integers, such as [0, 1, 2, 3, 4]"),
    "hardware": ('".+"', "text"),
    "commit": ('"[0-9a-f]{7,40}"', "what `git rev-parse HEAD` prints"),
    "claim": ('".+"', "text"),
    "minutes": (r'\{("\d+": \d+(\.\d+)?(, )?)+\}', "a table of budgets and minutes, such as { 100000 = 0.1 }"),
}  # fmt: skip
"""The fields of `entry.toml`: a pattern of each value as JSON, and its description."""


class Entry(NamedTuple):
    """The content of `entry.toml`."""

    title: str
    authors: list[str]
    track: str
    seeds: list[int]
    hardware: str  # in words
    commit: str  # of this repository, on which the entry is based
    claim: str
    minutes: dict[str, float]  # budget -> processor time to train one seed, in minutes


def read(name: str) -> Entry:
    """Read the `entry.toml` of an entry. Raise OSError if it cannot be read, and ValueError for a wrong field."""
    file = FOLDER / name / "entry.toml"
    values = tomllib.loads(file.read_text())
    if unknown := values.keys() - set(FIELDS):
        raise ValueError(f"{file}: {min(unknown)} is unknown; the fields are {', '.join(FIELDS)}")
    for field, (pattern, words) in FIELDS.items():
        if not re.fullmatch(pattern, json.dumps(values.get(field), default=str)):
            raise ValueError(f"{file}: {field} must be {words}, got {values.get(field)!r}")
    entry = Entry(**values)
    track = TRACKS[entry.track]
    for budget, minutes in entry.minutes.items():
        if int(budget) not in track.budgets:
            raise ValueError(
                f"{file}: budgets of {entry.track} are {track.budgets} {track.unit}, got {budget}"
            )
        if track.unit == "minutes" and minutes > CORES * int(budget):
            most = f"{CORES * int(budget)}, which is {budget} on {CORES} cores"
            raise ValueError(f"{file}: minutes of budget {budget} must be at most {most}, got {minutes}")
    if any(entry.minutes.values()) and len(set(entry.seeds)) < SEEDS:
        raise ValueError(
            f"{file}: seeds of a trained agent must be {SEEDS} or more, got {entry.seeds}: train others"
        )
    return entry


def results(name: str, entry: Entry) -> Iterator[tuple[int, int, Path]]:
    """Yield the budget, the seed and the file of each result."""
    for budget in map(int, entry.minutes):
        for seed in entry.seeds:
            yield budget, seed, FOLDER / name / "results" / f"{budget}-{seed}.json"


def run(file: str) -> None:
    """Run the command line of a `run.py`: train and measure the agents, and write their result files."""
    name = Path(file).resolve().parent.name
    entry = read(name)
    parser = argparse.ArgumentParser(prog=f"python -m entries.{name}.run", description=entry.title)
    parser.add_argument("--seed", type=int, choices=entry.seeds, help="default: all of entry.toml")
    chosen = parser.parse_args().seed
    module = importlib.import_module(f"entries.{name}.run")  # not __main__, because the digest covers names
    track = TRACKS[entry.track]
    for budget, seed, path in results(name, entry):
        if chosen not in (None, seed):
            continue
        path.parent.mkdir(exist_ok=True)
        started = sum(os.times()[:4])
        if hasattr(module, "train"):
            module.train(budget, seed)
        minutes = (sum(os.times()[:4]) - started) / 60
        agent = module.load(budget, seed)
        with progress_bar(f"games of {path.name}") as progress:
            result = benchmark.measure(
                agent, Rules(), games=track.games, size=track.size, seed=seed, progress=progress
            )
        with replacing(path) as part:
            part.write_text(result.to_json())
        regret = 1000 * result.regret[ALL][ALL].value
        print(f"{path.name}: {minutes:.2f} minutes of training, mean regret {regret:.2f}", flush=True)


def faults(name: str) -> Iterator[str]:
    """Yield every fault of an entry, with its cure."""
    try:
        entry = read(name)
        for file in ("run.py", "requirements.txt"):
            if not (FOLDER / name / file).is_file():
                raise ValueError(f"{FOLDER / name / file} is missing: copy it from entries/template")
        load = importlib.import_module(f"entries.{name}.run").load
    except Exception as error:  # run.py can raise anything
        yield f"{name}: {type(error).__name__}: {error}"
        return
    wanted = {path for _, _, path in results(name, entry)}
    for path in sorted({*(FOLDER / name / "results").glob("*.json")} - wanted):
        yield f"{path} has no budget or seed of entry.toml: add them, or remove it"
    for budget, seed, path in results(name, entry):
        try:
            result = Result.read(path)
            check(result, TRACKS[entry.track], seed)
            if (agent := load(budget, seed)) is not None:
                replay(agent, result)
        except FileNotFoundError as error:
            yield f"{error}: run python -m entries.{name}.run --seed {seed}"
        except ValueError as error:
            yield f"{path}: {error}"
        except Exception as error:  # run.py can raise anything
            yield f"{path}: {type(error).__name__}: {error}"


def check(result: Result, track: Track, seed: int) -> None:
    """Raise ValueError if a result does not follow the protocol, or its regrets do not follow from its actions."""
    again = "measure it again with run.py"
    for field, value in {"seed": seed, "rules": Rules(), "size": track.size, "games": track.games}.items():
        if (found := getattr(result, field)) != value:
            raise ValueError(f"{field} must be {value}, got {found}: {again}")
    if missing := set(track.players) - result.win_shares.keys():
        raise ValueError(
            f"win_shares must contain {min(missing)} players: let the agent play them, and {again}"
        )
    positions = result.positions()
    for kind, by_stage in mean_regret(positions, positions.regret(np.array(result.actions))).items():
        for stage, mean in by_stage.items():
            stored = result.regret.get(kind, {}).get(stage, (math.nan,))
            if not np.allclose(mean, stored, rtol=1e-9):
                raise ValueError(
                    f"regret of {kind}, {stage} must be {mean.value} by the actions, got {stored[0]}: {again}"
                )


def replay(agent: Policy, result: Result) -> None:
    """Raise ValueError unless an agent decides as in its result: in positions, and in the games of one win share.

    The digest of an agent covers the sources of the package, so it often changes without a change of the agent. If the
    digest is as stored, only the first positions are checked; otherwise all positions are.
    """
    positions = result.positions()
    same = policy_digest(result.agent, agent, given=True) == result.agent_digest
    cure = "take random numbers from rng only" if same else "the sources have changed, measure it again"
    if same:
        positions = positions.take(np.arange(min(measuring.BATCH, len(positions.game))))
    actions, _ = measuring.act(Blamed(result.agent, agent), positions, result.seed)
    stored = np.array(result.actions[: len(actions)])
    differs = np.flatnonzero(actions != stored)
    mine, its = (float(positions.regret(each).mean()) for each in (actions, stored))
    if differs.size > ROUNDING * len(actions) or not math.isclose(mine, its, rel_tol=ROUNDING, abs_tol=1e-5):
        example = f"such as action {differs[0]}, which is {stored[differs[0]]} and not {actions[differs[0]]}"
        raise ValueError(
            f"actions must be those of the agent, but {differs.size} of {len(actions)} differ, {example}: {cure}"
        )
    players, shares = min(result.win_shares.items())
    reference, share = next(iter(shares.items()))
    row = measuring.meet(result.agent, agent, reference, Rules(players=players), result.games, result.seed)
    if abs(row.share.value - share.value) > max(ROUNDING, 2 / result.games):
        words = f"against {reference} with {players} players"
        raise ValueError(
            f"win_shares {words} must be {row.share.value} by the agent, got {share.value}: {cure}"
        )


def measures(result: Result, track: Track) -> dict[str, tuple[float, float]]:
    """Return the columns of a result, each with half the width of its interval.

    The columns are the mean regret in thousandths and, in percent, the win shares: for two players against each
    reference, for more players the mean excess over an equal share.
    """
    regret = result.regret[ALL][ALL]
    found = {"mean regret": (1000 * regret.value, 1000 * (regret.high - regret.value))}
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
    """The results of an entry with one budget."""

    name: str
    entry: Entry
    budget: int
    measured: list[dict[str, tuple[float, float]]]  # of each seed, see `measures`

    def of_seeds(self, column: str) -> list[float]:
        """Return the values of a column, one for each seed."""
        return [values[column][0] for values in self.measured]

    def mean(self, column: str) -> tuple[float, float]:
        """Return the mean over seeds with half the width of its interval; for one seed, the interval over its games."""
        if len(self.measured) == 1:
            return self.measured[0][column]
        mean = mean_of(np.array(self.of_seeds(column)), -math.inf, math.inf)
        return mean.value, mean.estimate().error

    def middle(self, column: str) -> str:
        """Return the interquartile mean over seeds with its bootstrap interval, as text; empty for one seed.

        Source: Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS 2021.
        """
        if len(self.measured) == 1:
            return ""
        values = np.array(self.of_seeds(column))
        found = bootstrap(
            (values,), _interquartile_mean, method="percentile", rng=np.random.default_rng(0)
        ).confidence_interval
        return f"{_interquartile_mean(values):.2f} ({found.low:.2f}-{found.high:.2f})"


def _interquartile_mean(values: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = trim_mean(values, 0.25, axis=axis)
    return mean


def rows(names: list[str]) -> list[Row]:
    """Return the results of entries, by track."""
    found = []
    for name in names:
        entry = read(name)
        for budget in map(int, entry.minutes):
            paths = (path for each, _, path in results(name, entry) if each == budget)
            track = TRACKS[entry.track]
            found.append(Row(name, entry, budget, [measures(Result.read(path), track) for path in paths]))
    order = list(TRACKS)
    return sorted(found, key=lambda row: (order.index(row.entry.track), row.entry.title, row.budget))


def tables(rows: list[Row]) -> str:
    """Return a table of entries for each track that has any."""
    shown = []
    for track, of_track in groupby(rows, lambda row: row.entry.track):
        found = list(of_track)
        columns = list(found[0].measured[0])
        head = ["entry", f"budget, {TRACKS[track].unit}", "seeds", *columns, "interquartile mean", "minutes"]
        lines = [
            [
                f"[{row.entry.title}](../../entries/{row.name})",
                f"{row.budget:,}",
                len(row.measured),
                *("{:.2f} ±{:.2f}".format(*row.mean(column)) for column in columns),
                row.middle("mean regret"),
                f"{row.entry.minutes[str(row.budget)]:g}",
            ]
            for row in found
        ]
        shown.append(f"Track `{track}`:\n\n{pages.table(head, lines, right=range(1, len(head)))}")
    return "\n\n".join(shown)


def draw(rows: list[Row], file: Path) -> None:
    """Draw the learning curves of `samples`, and the win share of each entry against `td` with its largest budget."""
    figure = Figure((10, 5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
    curves: dict[str, list[Row]] = {}
    largest: dict[str, Row] = {}
    for row in rows:
        if row.entry.track == "samples":
            curves.setdefault(row.entry.title, []).append(row)
        if 2 in TRACKS[row.entry.track].players:
            largest[row.name] = row
    for number, (title, curve) in enumerate(curves.items()):
        budgets = [row.budget for row in curve]
        middle, errors = np.array([row.mean("`greedy`") for row in curve]).T
        low, high = (middle - errors).clip(0), middle + errors
        left.plot(budgets, middle, "o-", color=f"C{number}", markersize=4, label=title)
        left.fill_between(budgets, low, high, color=f"C{number}", alpha=0.15, linewidth=0)
    left.set(
        xscale="log", xlabel="decisions of training", ylabel="win share against greedy, %", ylim=(0, None)
    )
    left.set_title("Track samples: mean and 95 % interval of the seeds", fontsize=10)
    ranked = sorted(largest.values(), key=lambda row: row.mean("`td`")[0])
    for height, row in enumerate(ranked):
        share, error = row.mean("`td`")
        color = f"C{list(TRACKS).index(row.entry.track)}"
        right.errorbar(share, height, xerr=error, fmt="o", color=color, capsize=3, markersize=4)
    names = [f"{row.entry.title}, {row.budget:,} {TRACKS[row.entry.track].unit}" for row in ranked]
    right.set_yticks(range(len(ranked)), names)
    right.tick_params("y", labelsize=8)
    right.axvline(50, color="grey", linewidth=0.8, linestyle=":")
    right.set(xlabel="win share against td, %", xlim=(-1, 55))
    right.set_title("Every entry with its largest budget", fontsize=10)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    save_figure(figure, file)


def entries() -> list[str]:
    """Return the names of all entries."""
    return sorted(file.parent.name for file in FOLDER.glob("*/entry.toml"))


def main(arguments: list[str] | None = None) -> int:
    """Check entries; without names check all, and write their table. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.entries", description=__doc__)
    parser.add_argument("name", nargs="*", help="folders in entries/ (default: all)")
    names = parser.parse_args(arguments).name
    if unknown := set(names) - set(entries()):
        parser.error(f"{min(unknown)} has no entry.toml in entries/; there are {', '.join(entries())}")
    found = [fault for name in names or entries() for fault in faults(name)]
    print("\n".join(found) or "The entries have no faults.")
    if not names and not found:
        found_rows = rows(entries())
        PAGE.write_text(pages.renew(PAGE.read_text(), {"entries": tables(found_rows)}))
        draw(found_rows, PICTURE)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
