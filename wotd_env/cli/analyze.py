"""`wotd analyze`: policies and recorded games graded against the exact solution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from wotd_env.cli.common import PICTURES, check_writable, explained, progress_bar, ready_policies
from wotd_env.cli.options import Quiet, Seed, Trust
from wotd_env.core.arguments import check_integer
from wotd_env.core.rules import Rules

if TYPE_CHECKING:
    from wotd_env.analysis import Grades


@explained()
def command(
    context: typer.Context,
    what: Annotated[list[str], typer.Argument(help="Policies to grade, or one recorded game (.json).")],
    spaces: Annotated[
        int | None,
        typer.Option(
            help="Plain spaces of the board on which policies are graded.",
            show_default="those of --table, or else 7",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            help="The table of `wotd solve`.",
            show_default="in the cache folder; 0 and 1 spaces: made in seconds",
        ),
    ] = None,
    games: Annotated[int, typer.Option(help="Games that each policy plays.")] = 10_000,
    seed: Seed = 0,
    against: Annotated[
        str | None, typer.Option(help="The opponent.", show_default="the policy itself")
    ] = None,
    blunders: Annotated[int, typer.Option(help="How many of the worst decisions to list, 0 to 20.")] = 5,
    out: Annotated[Path | None, typer.Option(help="Write the grades, .json.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw regret by kind and stage: .png, .svg or .pdf.")
    ] = None,
    trust: Trust = False,
    quiet: Quiet = False,
) -> None:
    """Grade decisions of the two-player basic game against its exact solution.

    Regret is what a decision gives away against the best one, in results: 2 is the way from a sure win to a sure loss.
    """
    from wotd_env import analysis, solver
    from wotd_env.core.game import Game
    from wotd_env.policies.oracle import Oracle

    recorded = [name for name in what if name.endswith(".json")]
    if recorded:
        if len(what) > 1:
            raise ValueError(f"give policies, or one recorded game alone, got {', '.join(what)}")
        for option in sorted(set(context.params) - {"what", "table", "quiet"}):
            source = context.get_parameter_source(option)
            if source and source.name == "COMMANDLINE":
                raise ValueError(f"--{option} is for grading policies, and {what[0]} is a recorded game")
        rules = analysis.read_game(what[0])[0]
        solution = Oracle(table).table(Game(rules))
        notes = analysis.annotate(what[0], solution)
        typer.echo(f"{what[0]}: {rules.spaces} plain spaces, graded by {solution.file}")
        for note in notes:
            typer.echo(str(note))
        return

    check_integer("--blunders", blunders, 0, analysis.WORST)
    if out:
        check_writable(out, ".json")
    if plot:
        check_writable(plot, *PICTURES)
    players = ready_policies(what, trust)
    opponent = ready_policies([against], trust)[against] if against else None
    if table:
        solution = solver.load(table)
        if spaces not in (None, solution.spaces):
            raise ValueError(f"--spaces is {spaces}, but {table} is for {solution.spaces} plain spaces")
    else:
        solution = Oracle().table(Game(Rules(spaces=7 if spaces is None else spaces)))
    grades = {}
    for name, player in players.items():
        with progress_bar(f"games of {name}", quiet) as progress:
            grades[name] = analysis.grade(player, solution, games, seed, opponent, progress)
    console = Console()
    for name, graded in grades.items():
        console.print(_grades(name, graded))
        for blunder in graded.worst[:blunders]:
            typer.echo(f"  {blunder}")
    if out:
        out.write_text(
            json.dumps({name: graded.as_dict() for name, graded in grades.items()}, indent=1) + "\n"
        )
    if plot:
        analysis.picture(grades, plot)


def _grades(name: str, grades: Grades) -> Table:
    """Return the grades of a policy as a table."""
    played = f"{grades.games:,} games on {grades.spaces} plain spaces"
    result = f"mean result {grades.result:+.4f} ±{grades.result_error:.4f}"
    table = Table(title=f"{name}, {played}, {result}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("decision")
    for heading in ("decisions", "regret", "regret a game", "errors", "blunders"):
        table.add_column(heading, justify="right")
    for grade in grades.kinds:
        table.add_row(
            grade.kind,
            f"{grade.decisions:,}",
            f"{grade.regret:.4f} ±{grade.regret_error:.4f}",
            f"{grade.per_game:.4f} ±{grade.per_game_error:.4f}",
            f"{grade.errors:.1%}",
            f"{grade.blunders:.1%}",
        )
    return table
