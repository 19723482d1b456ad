"""`wotd analyze`: grade policies, recorded games and positions against the exact solution."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from wotd_env import files
from wotd_env.cli.common import PICTURES, check_writable, explained, ready_policies, say
from wotd_env.cli.options import Quiet, Seed, Trust, given_options, option, rules_options
from wotd_env.cli.progress import progress_bar
from wotd_env.core.arguments import check_integer
from wotd_env.core.rules import Phase, Rules
from wotd_env.policies import POLICIES

if TYPE_CHECKING:
    from rich.table import Table

    from wotd_env.analysis import Grades


@explained()
@rules_options(
    "spaces", "powers", "immunity", "colors",
    spaces="those of --table, or else 7", powers="those of --table", immunity="that of --table",
)  # fmt: skip
def command(
    context: typer.Context,
    rules: dict[str, Any],
    what: Annotated[
        list[str], typer.Argument(help="Policies to grade, or one recorded game (.txt), or one position.")
    ],
    table: Annotated[
        Path | None,
        option("The table of `wotd solve`.", "in the cache folder; created in seconds if it is small"),
    ] = None,
    games: Annotated[int, option("Games that each policy plays.")] = 10_000,
    seed: Seed = 0,
    against: Annotated[str | None, option("The opponent.", "the policy itself")] = None,
    blunders: Annotated[int, option("Number of the worst decisions to list, 0 to 20.")] = 5,
    out: Annotated[Path | None, option("Write the grades, .json.")] = None,
    plot: Annotated[Path | None, option("Draw regret by kind and stage: .png, .svg or .pdf.")] = None,
    trust: Trust = False,
    quiet: Quiet = False,
) -> None:
    """Grade decisions of games of two players against the exact solution.

    Regret is the equity that a decision loses compared with the best one. The maximum is 2: a certain win
    becomes a certain loss.
    """
    from wotd_env import analysis, solver
    from wotd_env.arena.asking import Blamed
    from wotd_env.core.game import Game
    from wotd_env.policies.oracle import Oracle

    alone = [name for name in what if name.endswith(".txt") or (" " in name and not _is_policy(name))]
    if alone:
        if len(what) > 1:
            raise ValueError(f"give policies, or one recorded game or position, got {', '.join(what)}")
        kind = "recorded game" if what[0].endswith(".txt") else "position"
        for name in given_options(context, sorted(set(context.params) - {"what", "table", "quiet"})):
            raise ValueError(f"--{name} is for grading policies, and {what[0]} is a {kind}")
        for line in _lines(what[0], table):
            typer.echo(line)
        return

    check_integer("--blunders", blunders, 0, analysis.WORST)
    if out:
        check_writable(out, ".json")
    if plot:
        check_writable(plot, *PICTURES)
    if table:
        solution = solver.load(table)
        solution.check_rules(replace(solution.rules, **rules))
    else:
        solution = Oracle().table(Game(Rules(**rules)))
    ready = ready_policies([*what, against] if against else what, trust, solution.rules)
    players = {name: Blamed(name, policy) for name, policy in ready.items()}
    opponent = players[against] if against else None
    grades = {}
    for name in what:
        with progress_bar(f"games of {name}", quiet) as progress:
            grades[name] = analysis.grade(
                players[name], solution, games, seed, opponent=opponent, progress=progress
            )
    console = Console(markup=False)
    for name, graded in grades.items():
        console.print(_grades(name, graded, against))
        for blunder in graded.worst[:blunders]:
            typer.echo(f"  {blunder}")
    say(analysis.define_errors(2))
    if out:
        content = json.dumps({name: grades[name].as_dict() for name in grades}, indent=1) + "\n"
        files.write(out, content.encode())
    if plot:
        with files.replacing(plot) as part:
            analysis.picture(grades, part)


def _is_policy(name: str) -> bool:
    """Return whether a text with spaces is a policy with spaces in its file name, or the folder of a training run."""
    return name.partition(":")[0] in POLICIES or Path(name).is_dir()


def _lines(what: str, table: Path | None) -> Iterator[str]:
    """Yield the output lines: notes on a recorded game, or the equities of a position and its actions, best first."""
    from wotd_env import Game, analysis, notation
    from wotd_env.policies.oracle import Oracle

    if what.endswith(".txt"):
        recorded = notation.read_game(what)
        game = Game(recorded.rules)
        solution = Oracle(table).table(game)
        notes = analysis.review(recorded, analysis.Advisor(game, solution)).notes
        yield f"{what}: {game.rules.spaces} plain spaces, graded by {solution.file}"
        yield from map(str, notes)
        yield analysis.define_errors(game.rules.players)
        return
    rules, state = notation.parse_position(what)
    game = Game(rules)
    solution = Oracle(table).table(game)
    result = analysis.analyze(game, state, solution)
    yield f"{result.equity[0]:+.3f} for seat {state['player'][0]}, by {solution.file}"
    values = result.actions[0]
    for action in (-values).argsort(kind="stable").tolist():
        if state["phase"][0] in (Phase.KEEP, Phase.MOVE, Phase.EXTRA) and math.isfinite(values[action]):
            word = notation.action_text(game, state, action)
            yield f"{values[action]:+.3f}  {word:<16} {game.describe_action(state, action)}"


def _grades(name: str, grades: Grades, against: str | None) -> Table:
    """Return the grades of a policy as a table. Without `against`, the policy played against itself."""
    from wotd_env.arena.show import Shown, as_table

    games = f"{grades.games:,} games against {against or 'itself'} on {grades.spaces} plain spaces"
    result = f"{grades.result:+.4f} ±{grades.result_error:.4f}"
    title = f"{name}: {games}\nmean result of {name if against else 'the starting player'}: {result}"
    columns = ["decision", "decisions", "regret", "regret per game", "errors", "blunders"]
    rows = [
        [
            grade.kind,
            f"{grade.decisions:,}",
            f"{grade.regret:.6f} ±{grade.regret_error:.6f}",
            f"{grade.per_game:.4f} ±{grade.per_game_error:.4f}",
            f"{grade.errors:.1%}",
            f"{grade.blunders:.1%}",
        ]
        for grade in grades.kinds
    ]
    return as_table(Shown(title, columns, rows))
