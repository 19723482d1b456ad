"""`wotd record`: record games between policies as a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from wotd_env.cli.common import check_writable, explained, progress_bar, ready_policies
from wotd_env.cli.options import POLICIES, QUIET, SEED, TRUST, option, rules_options
from wotd_env.core.observation import ENCODINGS
from wotd_env.core.rules import Rules


@rules_options(players="one for each policy, at least 2")
def command(
    rules: dict[str, Any],
    policies: list[str] = POLICIES,
    games: int = option(1000, "Number of games."),
    out: Path = option(Path("games.parquet"), "The .parquet file to write."),
    table: Path | None = option(None, "Also record equities and regret from this table of `wotd solve`."),
    minari: str | None = option(
        None, "Also write a Minari dataset with this id: the games as seen by the first policy."
    ),
    encoding: str | None = option(
        None, f"Observations of the Minari dataset: {', '.join(ENCODINGS)}.", shown=ENCODINGS[0]
    ),
    seed: int = SEED,
    trust: bool = TRUST,
    quiet: bool = QUIET,
) -> None:
    """Record games between policies as a Parquet file with a row for every decision.

    The policies change seats from game to game. The same seed gives the same games.
    """
    with explained(f"Finished games are in {out}.parts; run the same command to continue."):
        from wotd_env import recording, solver

        if encoding and not minari:
            raise ValueError(f"--encoding {encoding} needs --minari")
        encoding = encoding or ENCODINGS[0]
        rules.setdefault("players", max(2, len(policies)))
        game_rules = Rules(**rules)
        check_writable(out, ".parquet")
        ready_policies(policies, trust, game_rules)
        if minari:
            from wotd_env.adapters.minari import check, write

            check(minari, game_rules, policies, policies[0], encoding)
        solution = solver.load(table) if table else None
        with progress_bar("games", quiet) as progress:
            decisions = recording.record(
                policies, out, games, game_rules, seed=seed, table=solution, trust=trust, progress=progress
            )
    recorded = f"{out}: {games:,} games, {decisions:,} decisions"
    if minari:
        with explained(f"The games are in {out}; wotd_env.adapters.minari.write converts them to a dataset."):
            episodes = write(out, minari, policies[0], encoding, trust=True)  # the user named the policies
        recorded += f"\n{minari}: {episodes:,} episodes of {policies[0]}"
    typer.echo(recorded)
