"""Measure the results in docs/results/benchmark.md (`python -m tools.benchmark`, about half an hour).

The tables of results have a row for every pair of a bundled board and a policy that can play on it. Rows for more than
two players contain only regrets; docs/results/ladder.md has the win shares.
"""

import argparse
from datetime import date

import numpy as np
from numpy.typing import NDArray

import wotd_env
from tools import pages
from wotd_env import benchmark, make_policy
from wotd_env.benchmark import measuring
from wotd_env.benchmark.measuring import Regrets, mean_regret
from wotd_env.benchmark.positions import has_errors
from wotd_env.cli.common import progress_bar
from wotd_env.policies import plays
from wotd_env.reporting import markdown, percent, thousandths

PAGE = pages.ROOT / "docs" / "results" / "benchmark.md"
POLICIES = ("random", "greedy", "planner", "td", "ppo")
KINDS = ("all", "first hold", "second hold", "move", "swap", "extra turn")
GAMES = 40_000  # so 95 % intervals of win shares are at most ± 0.5 points, as pages that quote them need


def wanted(rolled_out: bool) -> list[tuple[wotd_env.Rules, str]]:
    """Return the rows of a table: pairs of a board and a policy that can play on it.

    The boards are the solved boards without dead pieces or, if `rolled_out`, those with equities from rollouts.
    """
    bare = [rules for rules in benchmark.bundled() if not rules.dead_pieces]
    boards = [rules for rules in bare if has_errors(rules) == rolled_out]
    boards.sort(key=lambda rules: (rules.powers != "none", rules.players, rules.spaces))
    return [(rules, name) for rules in boards for name in POLICIES if plays(name, rules)]


def table(results: list[benchmark.Result]) -> str:
    """Return a table with a row for each result."""
    played = {name for result in results for name in result.win_shares[2]}
    references = [name for name in benchmark.REFERENCES if name in played]
    rows = []
    for result in results:
        board, cells = _named(result.rules.spaces, result.rules), _regrets(result.regret)
        shares = (result.against_perfect, *map(result.win_shares[2].get, references))
        rows.append((board, f"`{result.agent}`", *cells, *map(percent, shares)))
    head = ("plain spaces", "agent", *KINDS, "perfect play", *(f"`{name}`" for name in references))
    return markdown(head, rows, right=range(2, len(head)))


def rolled_out_table() -> str:
    """Return the table of regrets in games of more than two players."""
    rows = []
    for rules in dict.fromkeys(rules for rules, _ in wanted(True)):
        positions = benchmark.load(rules=rules)
        regrets = {"noise": noise(positions)}
        for name in (name for board, name in wanted(True) if board == rules):
            actions, _ = measuring.act(make_policy(name), positions, seed=0)
            regrets[f"`{name}`"] = positions.regret(actions)
        rows += [
            (_named(rules.players, rules), name, *_regrets(mean_regret(positions, each)))
            for name, each in regrets.items()
        ]
    return markdown(("players", "agent", *KINDS), rows, right=range(2, 2 + len(KINDS)))


def noise(positions: benchmark.Positions, draws: int = 1000) -> NDArray[np.float64]:
    """Return the mean regret caused by errors of the stored equities in each of M positions, float64 (M,).

    Each of `draws` samples adds normal noise to the equities; its scale is their standard error. The result is the
    mean, over these samples, of the regret of the action with the largest stored equity.
    """
    rng, total = np.random.default_rng(0), np.zeros(len(positions.game))
    best = np.nanargmax(positions.equity, 1)
    for _ in range(draws):
        again = positions.equity + positions.error * rng.standard_normal(positions.error.shape, np.float32)
        total += positions._replace(equity=again).regret(best)
    return total / draws


def _regrets(regret: Regrets) -> list[str]:
    return [thousandths(regret[kind]["all"]) for kind in KINDS]


def _named(number: int, rules: wotd_env.Rules) -> str:
    return str(number) if rules.powers == "none" else f"{number}, {rules.powers} powers"


def main() -> None:
    """Measure all rows and write them into the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    results = []
    for rules, name in wanted(False):
        with progress_bar(f"games of {name} on {rules.spaces} spaces") as progress:
            results.append(benchmark.measure(name, rules, players=2, games=GAMES, progress=progress))
    missing = [f"`{name}`" for name in POLICIES if name not in {result.agent for result in results}]
    absent = f" {', '.join(missing)}: no bundled board." if missing else ""
    when = f"Measured on {date.today()} with version {wotd_env.__version__}, {GAMES:,} games per win share.{absent}"
    tables = {"results": f"{when}\n\n{table(results)}", "rollouts": rolled_out_table()}
    PAGE.write_text(pages.renew(PAGE.read_text(), tables))


if __name__ == "__main__":
    main()
