"""`wotd positions`: draw positions from games, for the benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from wotd_env.cli.common import check_writable, explained, progress_bar
from wotd_env.cli.options import QUIET, option, rules_options
from wotd_env.core.rules import Rules


@explained()
@rules_options(
    "players", "spaces", "powers", "dead_pieces", "colors",
    colors="random for --powers own with more than two players",
)  # fmt: skip
def command(
    rules: dict[str, Any],
    split: str = option("test", "The games to draw from: train, validation or test."),
    size: int = option(800, "Positions for each kind of decision in each stage; rare kinds have fewer."),
    seed: int = option(0, "Seed of the games; 0 draws the published positions."),
    table: Path | None = option(None, "The table of `wotd solve`.", shown="in the cache folder"),
    out: Path = option(Path("positions.parquet"), "The .parquet file to write."),
    quiet: bool = QUIET,
) -> None:
    """Draw positions from games of weak to strong policies, with the equity of every legal action.

    With two players, equities are exact. With more, they come from rollouts by td, which take seconds per position.
    The positions of a larger --size include those of a smaller --size.
    """
    from wotd_env import Game, benchmark
    from wotd_env.benchmark.positions import has_errors
    from wotd_env.planning.learned import LearnedValue
    from wotd_env.policies.oracle import Oracle
    from wotd_env.policies.td import Td
    from wotd_env.solver import Table

    check_writable(out, ".parquet")
    wanted = Rules(**rules)
    source: Table | LearnedValue
    if has_errors(wanted):
        if table:
            raise ValueError("--table is for two players, whose equities are exact")
        source = Td().learned(wanted)
        if "colors" in rules and source.rules != wanted:
            raise ValueError(
                "leave out --colors: rollouts have the colors with which the network of td was trained"
            )
    else:
        source = Oracle(table).table(Game(wanted))
    with progress_bar("positions" if has_errors(wanted) else "games", quiet) as progress:
        positions = benchmark.draw(source, out, split, size, seed=seed, progress=progress)
    typer.echo(f"{out}: {len(positions.game):,} positions, digest {positions.digest()[:16]}")
