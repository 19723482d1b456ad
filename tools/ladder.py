"""Play the tournaments of docs/results/ladder.md; write the page, its pictures and the bundled ratings (`make ladder`).

Games are saved in runs/ladder.sqlite, so the same command continues after an interruption. If a policy has changed,
only its matchups are played again.
"""

import json
import os
import platform
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from types import SimpleNamespace

import wotd_env
from tools import pages
from wotd_env import Rules
from wotd_env.arena import Results, Tournament, run, show
from wotd_env.cli.common import progress_bar
from wotd_env.policies import plays
from wotd_env.reporting import markdown

PAGE = pages.ROOT / "docs" / "results" / "ladder.md"
RATINGS = pages.ROOT / "wotd_env" / "arena" / "ladder.json"
STORE = pages.ROOT / "runs" / "ladder.sqlite"
POLICIES = ("random", "first", "greedy", "planner", "td", "ppo")
KINDS = {"basic": Rules(), "powers": Rules(powers="own", colors="random")}
TOURNAMENTS = {
    f"{kind}_{n}": replace(rules, players=n) for n in (2, 3, 4, 5) for kind, rules in KINDS.items()
}
GAMES = 12_800  # games of a matchup; the standard error of a win share is then below half a percentage point
SEED = 2026


def section(name: str) -> str:
    """Play a tournament, draw its picture, and return its generated part of the page."""
    rules = TOURNAMENTS[name]
    policies = tuple(policy for policy in POLICIES if plays(policy, rules))
    STORE.parent.mkdir(exist_ok=True)
    with progress_bar(f"games of {name}") as progress:
        tournament = Tournament(policies, rules, GAMES, SEED)
        results = run(tournament, STORE, workers=os.cpu_count() or 1, progress=progress)
    kind, players = name.split("_")
    picture, title = f"ladder-{players}-{kind}.svg", f"{players} players, {kind}"
    show.draw(results, PAGE.with_name(picture), title)
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    if rules == Rules():
        of_policies = {policy: rating._asdict() for policy, rating in results.ratings.items()}
        shipped = {"date": date, "version": wotd_env.__version__, "games": GAMES, "ratings": of_policies}
        RATINGS.write_text(json.dumps(shipped, indent=1) + "\n")
    return "\n\n".join(
        [described(results, date), *tables(results), f"![ratings and pairings, {title}]({picture})"]
    )


def described(results: Results, date: str) -> str:
    """Return how the tournament was played."""
    matchups = f"{len(results.games)} {'matchup' if len(results.games) == 1 else 'matchups'}"
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    return (
        f"{sum(map(len, results.games.values())):,} games of {matchups} ({date}, wotd-env {wotd_env.__version__}, "
        f"{packages}, Python {platform.python_version()}, seed {SEED}). A win share of "
        f"{100 / results.tournament.rules.players:.1f} % means equal strength."
    )


def tables(results: Results) -> list[str]:
    """Return the tables of a tournament, all but the first with a title."""
    parts = []
    for i, shown in enumerate(show.as_text(results, digits=2)):
        rows = [[f"`{name}`", *cells] for name, *cells in shown.rows]
        parts += [f"{shown.title}:"] if i else []
        parts += [markdown(shown.columns, rows, right=range(1, len(shown.columns)))]
    return parts


def shares() -> str:
    """Return the table of win shares of all tournaments, from the first table of their sections."""
    found = {}
    sections = r"^## (\d players, .*?)\n(.*?)(?=^##|\Z)"
    for title, text in re.findall(sections, PAGE.read_text(), re.DOTALL | re.MULTILINE):
        first_table = text.partition("\nShare of games")[0]
        found[title] = dict(re.findall(r"^\| (`\w+`) \| [^|]* \| ([\d.]+ %)", first_table, re.MULTILINE))
    policies = list(dict.fromkeys(policy for row in found.values() for policy in row))
    rows = [[title, *(row.get(policy, "") for policy in policies)] for title, row in found.items()]
    return markdown(["win share", *policies], rows, right=range(1, 1 + len(policies)))


def main() -> None:
    """Play the named tournaments, by default all, and renew the page."""
    names = pages.parser_of(PAGE, __doc__).parse_args().names or [*TOURNAMENTS]
    findings = SimpleNamespace(shares=shares, **{name: partial(section, name) for name in TOURNAMENTS})
    pages.write(PAGE, findings, [*names, "shares"])


if __name__ == "__main__":
    main()
