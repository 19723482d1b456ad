"""`wotd positions`: draw the positions of the benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wotd_env.cli.common import check_writable, explained
from wotd_env.cli.options import Quiet, option, rules_options
from wotd_env.cli.progress import progress_bar
from wotd_env.core.rules import Rules


@explained()
@rules_options("spaces", "powers", "colors")
def command(
    rules: dict[str, Any],
    split: Annotated[str, option("The games to draw from: train, validation or test.")] = "test",
    size: Annotated[int, option("Positions of each kind and stage; rare kinds have fewer.")] = 800,
    seed: Annotated[int, option("Seed of the games; 0 draws the published positions.")] = 0,
    table: Annotated[Path | None, option("The table of `wotd solve`.", "in the cache folder")] = None,
    out: Annotated[Path, option("The .parquet file to write.")] = Path("positions.parquet"),
    quiet: Quiet = False,
) -> None:
    """Draw positions with the exact equity of every legal action, from games of policies of many strengths.

    Equal options write equal positions. A larger size contains the positions of a smaller one.
    """
    from wotd_env import Game, benchmark
    from wotd_env.policies.oracle import Oracle

    check_writable(out, ".parquet")
    game = Game(Rules(**rules))
    oracle = Oracle(table)
    oracle.check_rules(game.rules)
    with progress_bar("games", quiet) as progress:
        positions = benchmark.draw(oracle.table(game), out, split, size, seed=seed, progress=progress)
    typer.echo(f"{out}: {len(positions.game):,} positions, digest {positions.digest()[:16]}")
