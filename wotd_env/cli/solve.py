"""`wotd solve`: solve a game of two players exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wotd_env.cli.common import FAILED, cores, explained, fail
from wotd_env.cli.options import Quiet, option, rules_options
from wotd_env.cli.progress import progress_bar
from wotd_env.core.rules import Rules

_RESIDUAL = 1e-6
"""The largest Bellman error of a correct table is below this bound."""


@rules_options("players", "spaces", "powers", "immunity", "colors", spaces="solves nothing")
def command(
    rules: dict[str, Any],
    out: Annotated[
        Path | None, option("The table to write.", "in the cache folder, where `oracle` finds it")
    ] = None,
    verify: Annotated[
        Path | None, option("Compute the largest Bellman error over all positions of this table.")
    ] = None,
    compact: Annotated[
        Path | None, option("Convert this table to 16 bits per value, half the size; needs --out.")
    ] = None,
    threads: Annotated[int | None, option("Number of threads.", "one per core")] = None,
    quiet: Quiet = False,
) -> None:
    """Solve a game of two players exactly, or verify or compress a solution.

    The command prints the value of the start for the starting player: 1 is a certain win, -1 a certain loss. With own
    powers it prints one value for each color of the starting player. Each layer is saved when it is solved; after an
    interruption run the same command again to continue. The command waits while another process writes the same table.
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
        wanted = solver.as_rules(Rules(**rules)) if spaces is not None else None
        threads = cores() if threads is None else threads
        exists = False
        if wanted:
            out = out or solver.cache_file(wanted)
            exists = out.exists()
            if not quiet:
                what = "exists; nothing is solved" if exists else f"needs {describe_needs(wanted)}"
                typer.echo(f"{out} {what}", err=True)
        with progress_bar("positions", quiet or exists) as progress:
            if verify:
                residual = solver.verify(verify, threads, progress)
                table = solver.load(verify)
            elif compact:
                if out is None:
                    raise ValueError("--compact needs --out, the table to write")
                table = solver.compact(compact, out, progress)
            else:
                assert wanted is not None
                assert out is not None
                table = solver.solve(wanted, out, threads, progress)
        starts = ", ".join(f"{value:.7f}{name and f' ({name})'}" for name, value in table.starts.items())
        typer.echo(f"{table.file}: {table.spaces} plain spaces, value of the start {starts}")
        if compact:
            typer.echo(f"largest difference from {compact}: {table.header['compact_error']:.2g}")
        if verify:
            typer.echo(f"largest Bellman error: {residual:.2g}")
            if residual >= _RESIDUAL:
                what = f"its error must be below {_RESIDUAL:g}; solve the board again"
                fail(FAILED, f"the table is not a solution: {what}")
