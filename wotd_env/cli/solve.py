"""`wotd solve`: solve the two-player basic game exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wotd_env.cli.common import FAILED, cores, explained, fail
from wotd_env.cli.options import Quiet, option
from wotd_env.cli.progress import progress_bar
from wotd_env.core.rules import Rules

_RESIDUAL = 1e-6
"""Upper bound of the Bellman error of a correct table."""


def command(
    spaces: Annotated[
        int | None, option("Solve the board with this number of plain spaces on each path, 0 to 10.")
    ] = None,
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
    """Solve the two-player basic game exactly, or verify or compress a solution.

    The command prints the value of the start for the starting player: 1 is a certain win, -1 a certain loss. Each
    layer is saved when it is solved; after an interruption run the same command again to continue. The command waits
    while another process writes the same table.
    """
    from wotd_env import solver

    with explained("" if spaces is None else "Finished layers are saved; run the same command to continue."):
        if [spaces, verify, compact].count(None) != 2:
            raise ValueError(
                "give one of --spaces (solve a board), --verify (check a table), --compact (halve one)"
            )
        if verify and out:
            raise ValueError("--verify writes nothing: leave out --out")
        if spaces is not None:
            Rules(spaces=spaces)
        threads = cores() if threads is None else threads
        with progress_bar("positions", quiet) as progress:
            if verify:
                residual = solver.verify(verify, threads, progress)
                table = solver.load(verify)
            elif compact:
                if out is None:
                    raise ValueError("--compact needs --out, the table to write")
                table = solver.compact(compact, out, progress)
            else:
                assert spaces is not None
                out = out or solver.cache_file(spaces)
                table = solver.solve(spaces, out, threads, progress)
        typer.echo(f"{table.file}: {table.spaces} plain spaces, value of the start {table.start:.7f}")
        if compact:
            typer.echo(f"largest difference from {compact}: {table.header['compact_error']:.2g}")
        if verify:
            typer.echo(f"largest Bellman error: {residual:.2g}")
            if residual >= _RESIDUAL:
                what = f"its error must be below {_RESIDUAL:g}; solve the board again"
                fail(FAILED, f"the table is not a solution: {what}")
