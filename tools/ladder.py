"""`make ladder`: play the tournaments of docs/results/ladder.md; write the page, its pictures and the bundled ratings.

Games are saved in runs/ladder.sqlite. The same command continues after an interruption. If a policy has changed, only
its matchups are played again.
"""

import argparse
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import wotd_env
from tools import pages
from wotd_env import Rules
from wotd_env.arena import Results, Tournament, run, show
from wotd_env.cli.common import progress_bar
from wotd_env.core.arguments import check_integer
from wotd_env.policies import plays
from wotd_env.reporting import markdown

PAGE = pages.ROOT / "docs" / "results" / "ladder.md"
STORE = pages.ROOT / "runs" / "ladder.sqlite"
POLICIES = ("random", "first", "greedy", "planner", "td", "ppo")
PLAYERS = (2, 3, 4, 5)
KINDS = {"basic game": Rules(), "powers": Rules(powers="own", colors="random")}
GAMES = 12_800  # games of a matchup; the standard error of a win share is then below half a percentage point
SEED = 2026


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.ladder", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--games", type=int, default=GAMES, help=f"games of each matchup (default {GAMES})")
    add("--seed", type=int, default=SEED, help=f"default {SEED}")
    add("--workers", type=int, default=os.cpu_count(), help="number of processes (default: one per core)")
    add("--into", type=Path, help="write all files to this folder instead (a trial)")
    options = parser.parse_args(arguments)
    try:
        Tournament(POLICIES, Rules(), options.games, options.seed)
        check_integer("workers", options.workers, 0)
    except ValueError as error:
        parser.error(str(error))
    if options.games != GAMES and not options.into:
        parser.error(
            "--games makes another page than the published one: name a folder for it with --into FOLDER"
        )

    folder = options.into or PAGE.parent
    ratings = (options.into or pages.ROOT / "wotd_env" / "arena") / "ladder.json"
    file = (options.into or STORE.parent) / STORE.name
    file.parent.mkdir(parents=True, exist_ok=True)

    played, sections = {}, []
    for players in PLAYERS:
        for kind, rules in KINDS.items():
            title = f"{players} players, {kind}"
            rules = replace(rules, players=players)
            names = tuple(name for name in POLICIES if plays(name, rules))
            tournament = Tournament(names, rules, options.games, options.seed)
            with progress_bar(f"games of {title}") as progress:
                played[title] = run(tournament, file, workers=options.workers, progress=progress)
            picture = f"ladder-{players}-{kind.split()[0]}.svg"
            show.draw(played[title], folder / picture, title)
            sections.append(section(played[title], title, picture))

    date, release = f"{datetime.now(UTC):%Y-%m-%d}", wotd_env.__version__
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    made = f"{date}, with wotd-env {release}, {packages}, Python {platform.python_version()}; seed {options.seed}"
    parts = {
        "made": f"Made by `make ladder` on {made}.",
        "shares": summary(played),
        "ladder": "\n\n".join(sections),
    }
    (folder / PAGE.name).write_text(pages.renew(PAGE.read_text(), parts))
    if basic := played.get("2 players, basic game"):
        of_policies = {name: rating._asdict() for name, rating in basic.ratings.items()}
        shipped = {"date": date, "version": release, "games": options.games, "ratings": of_policies}
        ratings.write_text(json.dumps(shipped, indent=1) + "\n")
    print(f"wrote {folder / PAGE.name}")


def summary(played: dict[str, Results]) -> str:
    """Return the table of win shares."""
    shares = {}
    for title, results in played.items():
        overall = (row for row in results.rows if row.matchup is None and row.seat is None)
        shares[title] = {row.policy: f"{100 * row.share.value:.2f} %" for row in overall}
    names = dict.fromkeys(name for row in shares.values() for name in row)
    rows = [[title, *(row.get(name, "") for name in names)] for title, row in shares.items()]
    head = ["win share", *(f"`{name}`" for name in names)]
    return markdown(head, rows, right=range(1, len(head)))


def section(results: Results, title: str, picture: str) -> str:
    """Return the section of the page about one tournament."""
    n = results.tournament.rules.players
    matchups = f"{len(results.games)} {'matchup' if len(results.games) == 1 else 'matchups'}"
    parts = [
        f"## {title}",
        f"{sum(map(len, results.games.values())):,} games of {matchups}; "
        f"a win share of {100 / n:.1f} % means equal strength.",
    ]
    for i, shown in enumerate(show.as_text(results, digits=2)):
        rows = [[f"`{name}`", *cells] for name, *cells in shown.rows]
        parts += [f"{shown.title}:"] if i else []
        parts += [markdown(shown.columns, rows, right=range(1, len(shown.columns)))]
    parts += [f"![ratings and pairings, {title}]({picture})"]
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
