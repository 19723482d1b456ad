"""Measure the table of results in docs/results/benchmark.md (`python -m tools.benchmark`, a few minutes).

It contains every bundled board and every policy that plays on it.
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

import wotd_env
from tools import pages
from tools.ladder import plays
from wotd_env import benchmark
from wotd_env.arena.estimates import Estimate
from wotd_env.cli.progress import progress_bar

PAGE = Path(__file__).parents[1] / "docs" / "results" / "benchmark.md"
POLICIES = ("random", "greedy", "planner", "td", "ppo")
KINDS = ("all", "first hold", "second hold", "move", "swap", "extra turn")
GAMES = 4000


def wanted() -> list[tuple[wotd_env.Rules, str]]:
    """Return the rows of the table: the boards, those without powers first, and the policies that play on them."""
    boards = sorted(benchmark.bundled(), key=lambda rules: (rules.powers != "none", rules.spaces))
    return [(rules, name) for rules in boards for name in POLICIES if plays(name, rules)]


def table(results: list[benchmark.Result]) -> str:
    """Return the table of some results."""
    played = {name for result in results for name in result.win_shares[2]}
    references = [name for name in benchmark.REFERENCES if name in played]
    rows = []
    for result in results:
        regrets = (result.regret[kind]["all"] for kind in KINDS)
        cells = [f"{1000 * mean.value:.2f} ±{1000 * (mean.high - mean.value):.2f}" for mean in regrets]
        shares = (result.against_perfect, *map(result.win_shares[2].get, references))
        rows.append((_board(result.rules), f"`{result.agent}`", *cells, *map(_percent, shares)))
    head = ("plain spaces", "agent", *KINDS, "perfect play", *(f"`{name}`" for name in references))
    return pages.table(head, rows, right=range(2, len(head)))


def _board(rules: wotd_env.Rules) -> str:
    return str(rules.spaces) if rules.powers == "none" else f"{rules.spaces}, {rules.powers} powers"


def _percent(share: Estimate | None) -> str:
    return "" if share is None else f"{share.value:.1%} ±{100 * share.error:.1f}"


def main() -> None:
    """Measure all rows and write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--games", type=int, default=GAMES, help=f"games for each share (default {GAMES})")
    options = parser.parse_args()
    results = []
    for rules, name in wanted():
        with progress_bar(f"games of {name} on {rules.spaces} spaces") as progress:
            results.append(benchmark.measure(name, rules, games=options.games, progress=progress))
    missing = [f"`{name}`" for name in POLICIES if name not in {result.agent for result in results}]
    absent = f" {', '.join(missing)}: no bundled board." if missing else ""
    when = f"Measured on {date.today()} with version {wotd_env.__version__}, {options.games:,} games a share.{absent}"
    PAGE.write_text(pages.renew(PAGE.read_text(), {"results": f"{when}\n\n{table(results)}"}))


if __name__ == "__main__":
    main()
