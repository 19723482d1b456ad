"""`wotd solve`: the exact solution of the two-player basic game."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wotd_env.cli.common import FAILED, cores, explained, fail, progress_bar
from wotd_env.cli.options import Quiet
from wotd_env.core.rules import Rules

_RESIDUAL = 1e-6
"""The largest Bellman error of a table that is a solution."""


def command(
    spaces: Annotated[
        int | None, typer.Option(help="Plain spaces on each path, 0 to 10, of the board to solve.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The table to make.", show_default="in the cache folder, where `oracle` looks"),
    ] = None,
    verify: Annotated[
        Path | None, typer.Option(help="Check this table: the largest Bellman error over all its positions.")
    ] = None,
    compact: Annotated[
        Path | None,
        typer.Option(help="Make of this table one of half the size, with 16 bits a value, in --out."),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads.", show_default="one for each core")] = None,
    quiet: Quiet = False,
) -> None:
    """Solve the two-player basic game exactly, or verify a solution, or make it compact.

    The work is on disk layer by layer: after an interruption the same command goes on. While another process makes the
    same table, this one waits. Prints the value of the start to the player who begins: 1 is a sure win, -1 a sure loss.
    """
    from wotd_env import solver

    with explained("" if spaces is None else "What is done is kept: the same command goes on."):
        if [spaces, verify, compact].count(None) != 2:
            raise ValueError(
                "give one of --spaces, to solve a board, --verify, to check a table, and --compact, to halve one"
            )
        if verify and out:
            raise ValueError("--verify writes nothing, so it takes no --out")
        if spaces is not None:
            Rules(spaces=spaces)
        threads = cores() if threads is None else threads
        with progress_bar("positions", quiet) as progress:
            if verify:
                residual = solver.verify(verify, threads, progress)
                table = solver.load(verify)
            elif compact:
                if out is None:
                    raise ValueError("--compact needs --out, the table to make")
                table = solver.compact(compact, out, progress)
            else:
                assert spaces is not None
                out = out or solver.cache_file(spaces)
                table = solver.solve(spaces, out, threads, progress)
        typer.echo(f"{table.file}: {table.spaces} plain spaces, the start is worth {table.start:.7f}")
        if compact:
            typer.echo(f"largest difference to {compact}: {table.header['compact_error']:.2g}")
        if verify:
            typer.echo(f"largest Bellman error: {residual:.2g}")
            if residual >= _RESIDUAL:
                fail(
                    FAILED, f"the table is no solution: its error must be below {_RESIDUAL:g}; solve it again"
                )
