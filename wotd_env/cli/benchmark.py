"""`wotd benchmark`: measure agents with fixed protocols, and compare result files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from wotd_env import files, models
from wotd_env.cli.common import FORFEITS, check_writable, explained, progress_bar, ready_policies, say
from wotd_env.cli.options import QUIET, SEED, TRUST, option, refuse, rules_options
from wotd_env.core.arguments import check_choice
from wotd_env.core.rules import Rules
from wotd_env.reporting import as_latex, as_markdown, as_table

_FORMATS = ("table", "markdown", "latex", "json")


@explained("Finished parts are printed, and written to the file of --out.")
@rules_options(
    "players", "spaces", "powers", "dead_pieces",
    players="2 in the positions, 2 to 5 in the games", spaces="the longest bundled board that the agent plays",
    powers="none", dead_pieces="none",
)  # fmt: skip
def command(
    context: typer.Context,
    rules: dict[str, Any],
    what: list[str] = typer.Argument(help="The agent; with --compare, two result files."),
    compare: bool = option(False, "Show two result files with their differences.", "--compare"),
    games: int = option(1000, "Games for each win share."),
    size: int | None = option(
        None, "Number of positions to grade for each kind of decision in each stage.", shown="all"
    ),
    seed: int = SEED,
    out: Path | None = option(None, "Write the result, .json."),
    format: str = option("table", f"Format of the output: {', '.join(_FORMATS)}."),
    trust: bool = TRUST,
    quiet: bool = QUIET,
) -> None:
    """Measure an agent: regret in fixed positions, win shares against perfect play and bundled policies, and speed.

    Regret is the equity that a decision loses compared with the best one. ± is a 95 % interval.
    """
    from wotd_env import benchmark
    from wotd_env.benchmark.measuring import tables

    check_choice("--format", format, _FORMATS)
    if compare:
        if len(what) != 2:
            raise ValueError(f"--compare needs two result files, got {len(what)}")
        names = sorted(set(context.params) - {"what", "compare", "format"})
        refuse(context, names, "cannot be combined with --compare, which measures nothing")
        if format == "json":
            raise ValueError("--compare has the formats table, markdown and latex, got json")
        _show([benchmark.compare(*map(benchmark.Result.read, what))], format)
        return
    if len(what) != 1:
        raise ValueError(f"give one agent, got {', '.join(what)}; --compare compares two result files")
    check_writable(out, ".json")
    board = None
    if "spaces" in rules:
        board = replace(models.rules_of(Rules(**rules)), dead_pieces=rules.get("dead_pieces", 0))
    elif "dead_pieces" in rules:
        raise ValueError("--dead-pieces needs --spaces: positions with dead pieces have 2 or 3 plain spaces")
    # Without --spaces, they select bundled positions.
    chosen = ("players",) if board else ("players", "powers")
    kind = {name: rules[name] for name in chosen if name in rules}
    ready_policies(what, trust, board)
    kept: list[benchmark.Result] = []

    def keep(result: benchmark.Result) -> None:
        kept[:] = [result]
        if out:
            files.write(out, result.to_json().encode())

    def show(result: benchmark.Result) -> None:
        if format == "json":
            typer.echo(result.to_json(), nl=False)
            return
        _show(tables(result), format)
        for part, why in result.left_out.items():
            say(f"left out: {part}: {why}", err=format != "table")

    try:
        with progress_bar("games", quiet) as progress:
            result = benchmark.measure(
                what[0], board, **kind, games=games, size=size, seed=seed, trust=trust, progress=progress,
                finished=keep,
            )  # fmt: skip
    except BaseException:  # such as Ctrl-C, or an agent that fails in some games
        if kept:
            show(kept[0])
        raise
    show(result)
    if result.forfeits:
        typer.echo(f"{result.forfeits} games were forfeited; `wotd arena` shows the reason", err=True)
        raise typer.Exit(FORFEITS)


def _show(shown: list[Any], format: str) -> None:
    if format == "table":
        console = Console(markup=False)
        for table in shown:
            console.print(as_table(table))
    else:
        typer.echo(as_markdown(shown) if format == "markdown" else as_latex(shown))
