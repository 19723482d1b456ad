"""`wotd record`: games of policies as data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wotd_env.cli.common import check_writable, explained, progress_bar, ready_policies
from wotd_env.cli.options import Quiet, Seed, Trust, rules_options
from wotd_env.core.observation import ENCODINGS
from wotd_env.core.rules import Rules


@rules_options(players="one for each policy, at least 2")
def command(
    policies: Annotated[list[str], typer.Argument(help="One for each seat, or one for all.")],
    games: Annotated[int, typer.Option(help="Games to record.")] = 1000,
    out: Annotated[Path, typer.Option(help="The file, .parquet; the columns are in docs/data.md.")] = Path(
        "games.parquet"
    ),
    table: Annotated[
        Path | None,
        typer.Option(help="A table of `wotd solve`: record the equity of every legal action and the regret."),
    ] = None,
    minari: Annotated[
        str | None, typer.Option(help="Write the first policy's view as a Minari dataset of this id too.")
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Of the observations in the Minari dataset: one_hot, compact, tokens or features.",
            show_default="one_hot",
        ),
    ] = None,
    seed: Seed = 0,
    trust: Trust = False,
    quiet: Quiet = False,
    *,
    rules: dict[str, Any],
) -> None:
    """Record games of policies: every decision of every seat is a row of a Parquet file.

    The policies move on by a seat from game to game. The same seed gives the same games.
    """
    with explained(f"What is done is kept in {out}.parts: the same command goes on."):
        from wotd_env import solver
        from wotd_env.adapters import parquet

        if encoding and not minari:
            raise ValueError(f"--encoding is for the Minari dataset, which --minari asks for, got {encoding}")
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
            decisions = parquet.record(policies, out, games, game_rules, seed, solution, trust, progress)
        typer.echo(f"{out}: {games:,} games, {decisions:,} decisions")
    if minari:
        with explained(f"The games are in {out}; wotd_env.adapters.minari.write makes a dataset of them."):
            episodes = write(out, minari, policies[0], encoding)
            typer.echo(f"{minari}: {episodes:,} episodes of {policies[0]}")
