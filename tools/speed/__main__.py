"""Measure the speed of this environment and of other installed environments (`make speed`).

A *case* is a measured loop; tools/speed/cases.py lists all cases. Each case has its own process. A round measures every
case once; `--repeats` is the number of rounds. The results go to tools/speed/results.json, and to the tables and the
plot of docs/results/speed.md.

A *ratio* is the speed of one case divided by the speed of another case. `make speed-check` compares new ratios with
those in the results. It does not compare speeds, because speeds depend on the machine much more than ratios do.
"""

import argparse
import contextlib
import json
import os
import platform
import re
import statistics
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tools import pages, speed
from tools.speed import gpu
from tools.speed.cases import BATCHES, CASES, Case, sample
from wotd_env import files
from wotd_env.process import prepare_streams
from wotd_env.reporting import markdown

RESULTS = Path(__file__).with_name("results.json")
PAGE = pages.ROOT / "docs" / "results" / "speed.md"
PLOT = PAGE.with_name("throughput.svg")
PACKAGES = ("wotd-env", "numpy", "numba", "gymnasium", "pettingzoo", "open-spiel", "pgx", "jax", "envpool")

CARTPOLE = "cartpole-vec-8192"

RATIOS = {
    "game with the default checks against CartPole vector, 8192 games": ("game-8192-checked", CARTPOLE),
    "game without checks against CartPole vector": ("game-8192", CARTPOLE),
    "checked game of five players with own powers against CartPole vector": ("game-8192-5p-own-checked", CARTPOLE),
    "game against pgx tic_tac_toe, 8192 games": ("game-8192", "pgx-tictactoe-8192"),
    "five players against two": ("game-8192-5p", "game-8192"),
    "two threads against one, 16384 games": ("game-16384-2t", "game-16384"),
    "two threads against one, 65536 games": ("game-65536-2t", "game-65536"),
    "vector environment against CartPole vector": ("vector-4096", CARTPOLE),
    "vector environment, unmasked learner against masked": ("vector-1024-unmasked", "vector-1024-masked"),
    "vector environment, with RegretReward against without": ("vector-1024-regret", "vector-1024-1-space"),
    "Game with one game against OpenSpiel maedn": ("game-one", "maedn"),
    "game in JAX against pgx backgammon, 64 games": ("jax-game-64", "jax-backgammon-64"),
    "game in JAX against pgx tic_tac_toe, 8192 games": ("jax-game-8192", "jax-tictactoe-8192"),
    "env() against PettingZoo tictactoe env()": ("aec", "tictactoe"),
    "raw_env against PettingZoo tictactoe raw_env": ("aec-raw", "tictactoe-raw"),
}  # fmt: skip
SLOWER = 0.8  # the check fails for a ratio below this share of the recorded ratio


def main() -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.speed", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--check", action="store_true", help="compare ratios with the recorded ones; change no file")
    add("--seconds", type=float, default=1.0, help="length of one measurement (default 1)")
    add("--repeats", type=int, default=5, help="measurements of every case (default 5)")
    add("--cases", nargs="+", metavar="NAME", help="print the table of these cases; change no file")
    add(
        "--gpu",
        nargs="?",
        type=Path,
        const=gpu.RESULTS,
        metavar="FILE",
        help="measure only a GPU, in four minutes, and write the results to FILE (default tools/speed/gpu.json);\n"
        "tools/speed/gpu.py lists what a bare machine needs",
    )
    add(
        "--small",
        action="store_true",
        help="with --gpu FILE: try all parts with few games, also without a GPU",
    )
    arguments = parser.parse_args()
    console = Console()

    if arguments.small and arguments.gpu in (None, gpu.RESULTS):
        parser.error("--small needs --gpu FILE, because its figures mean nothing")
    if arguments.gpu:
        return gpu.measure(arguments.gpu, arguments.small)

    if arguments.repeats < 1 or not 0 < arguments.seconds < float("inf"):
        parser.error("--repeats must be at least 1, and --seconds a positive number")
    names = set(arguments.cases or [])
    known = [case.name for case in CASES]
    if unknown := names - set(known):
        parser.error(f"unknown cases: {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    if arguments.check:
        names = {name for pair in RATIOS.values() for name in pair}
    cases = [case for case in CASES if case.installed and (not names or case.name in names)]
    for case in CASES:
        if not case.installed:
            console.print(f"skipped: {case.name} needs {case.needs} (extra bench)")
    rows = measure(cases, arguments.seconds, arguments.repeats)
    ratios = {
        words: rows[ours]["median"] / rows[theirs]["median"]
        for words, (ours, theirs) in RATIOS.items()
        if ours in rows and theirs in rows
    }
    if not (arguments.check or names):
        record(rows, ratios, arguments)
    table = Table(*COLUMNS)
    for name, row in rows.items():
        table.add_row(*cells(name, row))
    console.print(table)
    for words, ratio in ratios.items():
        console.print(f"{words}: {ratio:.2f}")
    if arguments.check:
        return check(ratios, console)
    return 0


def measure(cases: list[Case], seconds: float, repeats: int) -> dict[str, dict[str, Any]]:
    """Measure each case `repeats` times. Only one case runs at a time.

    Returns:
        Name of the case -> its row of the results. `median`, `least` and `most` are steps per second. `inside` is also
        a median of steps per second, but counts only the time inside the environment.
    """
    samples: dict[str, list[tuple[float, float]]] = {case.name: [] for case in cases}
    with ExitStack() as stack:
        spawn = get_context("spawn")
        workers = [
            stack.enter_context(ProcessPoolExecutor(1, spawn, speed.limit, (case.threads,))) for case in cases
        ]
        for _ in track(range(repeats + 1), "measuring"):
            for case, process in zip(cases, workers, strict=True):
                samples[case.name].append(process.submit(sample, case.name, seconds).result())
    rows = {}
    for case in cases:
        rates, inside = zip(*samples[case.name][1:], strict=True)  # the first sample includes compilation
        sizes = {"batch": case.batch, "players": case.players, "threads": case.threads}
        spread = {"median": statistics.median(rates), "least": min(rates), "most": max(rates)}
        rows[case.name] = {"what": case.what, **sizes, **spread, "inside": statistics.median(inside)}
    return rows


def check(ratios: dict[str, float], console: Console) -> int:
    """Compare the ratios with the recorded ratios and return the exit status."""
    last = json.loads(RESULTS.read_text())["ratios"]
    slower = [words for words, ratio in ratios.items() if words in last and ratio < SLOWER * last[words]]
    for words in slower:
        console.print(f"[red]slower[/]: {words}: {ratios[words]:.2f}, recorded {last[words]:.2f}")
    console.print(
        f"{len(ratios)} ratios compared, {len(slower)} below {100 * SLOWER:.0f} % of the recorded ones"
    )
    return int(bool(slower))


def record(rows: dict[str, dict[str, Any]], ratios: dict[str, float], arguments: argparse.Namespace) -> None:
    """Write results, table and plot."""
    about = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
        "versions": versions(),
        "seconds": arguments.seconds,
        "repeats": arguments.repeats,
    }
    RESULTS.write_text(json.dumps({**about, "cases": rows, "ratios": ratios}, indent=1) + "\n")
    speeds = ((*cells(name, row), row["what"]) for name, row in rows.items())
    text = (
        f"{about['date']}, {about['machine']}; {', '.join(f'{k} {v}' for k, v in about['versions'].items())}. "
        f"Median (minimum to maximum) of {arguments.repeats} measurements of {arguments.seconds:g} s.",
        markdown((*COLUMNS, "content of a step"), speeds, right=range(1, 6)),
        numbers("ratio of the speeds in the first table | value", ratios, 2),
        numbers("time of a decision by part, two players, 8192 games | ns", profile(rows), 1),
    )
    PAGE.write_text(pages.renew(PAGE.read_text(), {"speed": "\n\n".join(text)}))
    plot(rows)


COLUMNS = ("case", "games", "players", "threads", "steps/s", "steps/s in the environment")


def cells(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    """Return the table cells of a case in the order of `COLUMNS`."""
    sizes = (f"{row[column]:,}" if row[column] else "" for column in ("batch", "players", "threads"))
    rates = f"{row['median']:,.0f} ({row['least']:,.0f} to {row['most']:,.0f})", f"{row['inside']:,.0f}"
    return name, *sizes, *rates


def numbers(head: str, values: dict[str, float], digits: int) -> str:
    """Return a table of two columns: names and numbers."""
    return markdown(head, ((words, f"{value:.{digits}f}") for words, value in values.items()), right=[1])


def profile(rows: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return the time of each part of a decision, in nanoseconds."""
    spent = {name: 1e9 / row["inside"] for name, row in rows.items()}
    rules, mask, ends = (spent[f"game-8192-{part}"] for part in ("rules", "mask", "ends"))
    every = spent["game-8192"]
    return {
        "the rules: decide, roll, continue to the next decision, restart": rules,
        "action mask": mask - rules,
        "rewards and ends": ends - mask,
        "observation": every - ends,
        "sum of the parts above": every,
        "checking the actions first, unless `validate=False`": spent["game-8192-checked"] - every,
        "lower bound: writing as many bytes": spent["bytes-8192"],
    }


def processor() -> str:
    """Return the processor's name."""
    file = Path("/proc/cpuinfo")
    found = re.search("model name.*: (.*)", file.read_text()) if file.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the version of each package that is installed."""
    found = {}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def plot(rows: dict[str, dict[str, Any]]) -> None:
    """Plot the decisions per second against the number of games and against the number of players."""
    figure = Figure((11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    left.plot(
        BATCHES, [rows[f"game-{batch}"]["median"] for batch in BATCHES], "o-", label="wotd-env, unchecked"
    )
    paper = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 0.5}
    for name, words in (
        ("cartpole-vec-8192", "Gymnasium CartPole vector"),
        ("pgx-tictactoe-8192", "pgx tic_tac_toe"),
        ("envpool-cartpole-1024", "EnvPool CartPole"),
        ("maedn", "OpenSpiel maedn"),
        ("pgx-backgammon-64", "pgx backgammon"),
        ("tictactoe", "PettingZoo tictactoe"),
    ):
        if name in rows:
            point = rows[name]["batch"], rows[name]["median"]
            left.plot(*point, "s", color="grey")
            left.annotate(words, point, (6, -4), textcoords="offset points", fontsize=8, bbox=paper)
    left.set(xscale="log", yscale="log", title="One core, two players")
    left.set(xlabel="games side by side", ylabel="decisions per second")
    left.grid(alpha=0.3)
    left.legend(loc="lower right")
    players = {"2": "game-8192", "3": "game-8192-3p", "4": "game-8192-4p", "5": "game-8192-5p"}
    right.bar(list(players), [rows[name]["median"] / 1e6 for name in players.values()])
    right.set(xlabel="players", ylabel="million decisions per second", title="8,192 games, one core")
    files.save_figure(figure, PLOT)


if __name__ == "__main__":
    prepare_streams()
    sys.exit(main())
