"""`wotd solve`: solve a game exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from wotd_env.cli.common import explained, fail, progress_bar
from wotd_env.cli.options import CORES, QUIET, option, rules_options
from wotd_env.core.rules import Rules
from wotd_env.process import FAILED
from wotd_env.reporting import plain_spaces


@rules_options(
    "players", "spaces", "powers", "immunity", "dead_pieces", "colors", spaces="none; no board is solved"
)
def command(
    rules: dict[str, Any],
    out: Path | None = option(None, "The table to write.", shown="in the cache folder, for oracle"),
    verify: Path | None = option(None, "Compute the largest Bellman error over all positions of this table."),
    compact: Path | None = option(None, "Convert this table to 16 bits per value; needs --out."),
    threads: int = option(CORES, "Number of threads.", shown="one per core"),
    quiet: bool = QUIET,
) -> None:
    """Solve a game of two or three players exactly, or verify or compress a solution.

    The command prints the value of the first position for the starting player: 1 is a certain win, -1 a certain loss.
    With --powers own, it prints a value for each color of the starting player. With three players, it prints the
    expected reward that each seat can guarantee. Solved parts of the table are saved; after an interruption, run the
    same command again to continue. The command waits while another process writes the same table.
    """
    from wotd_env import solver
    from wotd_env.solver.table import describe_needs

    spaces = rules.get("spaces")
    with explained("" if spaces is None else "Finished layers are saved; run the same command to continue."):
        if [spaces, verify, compact].count(None) != 2:
            raise ValueError(
                "give one of --spaces (solve a board), --verify (check a table), --compact (halve one)"
            )
        if verify and out:
            raise ValueError("--verify writes nothing: leave out --out")
        if compact and not out:
            raise ValueError("--compact needs --out, the table to write")
        if rules.get("players", 2) not in (2, 3):
            raise ValueError(
                f"only games of two players, or three in the basic game, are solved, got {rules['players']}"
            )
        wanted = solver.as_rules(Rules(**rules)) if spaces is not None else None
        exists = False
        if wanted:
            out = out or solver.cache_file(wanted)
            exists = out.exists()
            if not quiet:
                what = "is solved already" if exists else f"needs {describe_needs(wanted)}"
                typer.echo(f"{out} {what}", err=True)
        with progress_bar("positions", quiet or exists) as progress:
            if verify:
                residual = solver.verify(verify, threads, progress)
                table = solver.load(verify)
            elif compact and out:
                table = solver.compact(compact, out, progress)
            elif wanted and out:
                table = solver.solve(wanted, out, threads, progress)
        starts = ", ".join(f"{value:.7f}{name and f' ({name})'}" for name, value in table.starts.items())
        typer.echo(f"{table.file}: {plain_spaces(table.spaces)}, value of the start {starts}")
        if compact:
            typer.echo(f"largest difference from {compact}: {table.header['compact_error']:.2g}")
        if verify:
            typer.echo(f"largest Bellman error: {residual:.2g}")
            if residual >= 1e-6:
                fail(FAILED, "this is not a solution, whose error is below 1e-06; solve the board again")
