"""`wotd analyze`: grade policies, recorded games and positions against the exact solution."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from wotd_env import files
from wotd_env.cli.common import PICTURES, check_writable, explained, progress_bar, ready_policies, say
from wotd_env.cli.options import QUIET, TRUST, option, refuse, rules_options
from wotd_env.core.arguments import check_integer
from wotd_env.core.rules import Phase, Rules
from wotd_env.policies import POLICIES, STRENGTHS
from wotd_env.reporting import Estimate, Shown, as_table, plain_spaces, thousandths


@explained()
@rules_options(
    "players", "spaces", "powers", "immunity", "dead_pieces", "colors",
    players="2, the only number with exact equities", spaces="those of --table, or else 7",
    powers="those of --table", immunity="that of --table", dead_pieces="those of --table",
)  # fmt: skip
def command(
    context: typer.Context,
    rules: dict[str, Any],
    what: list[str] = typer.Argument(help="Policies to grade, or one recorded game (.txt), or one position."),
    table: Path | None = option(
        None, "The table of `wotd solve`.", shown="in the cache folder; created in seconds if it is small"
    ),
    games: int = option(10_000, "Games that each policy plays."),
    seed: int = option(
        0, "Seed of the first game; the others have the next numbers, so close seeds share games."
    ),
    against: str | None = option(None, "The opponent.", shown="the policy itself"),
    blunders: int = option(5, "Number of the worst decisions to list, 0 to 20."),
    out: Path | None = option(None, "Write the grades, .json."),
    plot: Path | None = option(None, "Draw regret by kind of decision and stage: .png, .svg or .pdf."),
    trust: bool = TRUST,
    quiet: bool = QUIET,
) -> None:
    """Grade decisions of games of two players against the exact solution.

    Regret is the equity that a decision loses compared with the best one. The maximum is 2: a certain win
    becomes a certain loss.
    """
    from wotd_env import analysis, solver
    from wotd_env.core.game import Game
    from wotd_env.policies.blamed import Blamed
    from wotd_env.policies.oracle import Oracle

    # An argument with a space is a position, unless it begins with a policy's name or is a folder.
    spaced = [name for name in what if " " in name and name.partition(":")[0] not in (*POLICIES, *STRENGTHS)]
    if any(name.endswith(".txt") for name in what) or not all(Path(name).is_dir() for name in spaced):
        if len(what) > 1:
            raise ValueError(f"give policies, or one recorded game or position, got {', '.join(what)}")
        kind = "recorded game" if what[0].endswith(".txt") else "position"
        names = sorted(set(context.params) - {"what", "table", "quiet"})
        refuse(context, names, f"is for grading policies, and {what[0]} is a {kind}")
        for line in _lines(what[0], table):
            typer.echo(line)
        return

    _check_players(rules.pop("players", 2), "wotd benchmark AGENT --players N")
    check_integer("--blunders", blunders, 0, analysis.WORST)
    check_writable(out, ".json")
    check_writable(plot, *PICTURES)
    names = [*what, against] if against else what
    if table:
        ready_policies(names, trust)  # a wrong name is reported before a missing table
        solution = solver.load(table)
        solution.check_rules(replace(solution.rules, **rules))
        ready = ready_policies(names, trust, solution.rules)
    else:
        board = Rules(**rules)
        ready = ready_policies(names, trust, board)  # before the table, which can take minutes
        solution = Oracle().table(Game(board))
    players = {name: Blamed(name, policy) for name, policy in ready.items()}
    opponent = players[against] if against else None
    grades = {}
    for name in what:
        with progress_bar(f"games of {name}", quiet) as progress:
            grades[name] = analysis.grade(
                players[name], solution, games, seed, opponent=opponent, progress=progress
            )
    if out:
        content = json.dumps({name: grades[name].as_dict() for name in grades}, indent=1) + "\n"
        files.write(out, content.encode())
    if plot:
        analysis.picture(grades, plot)
    console = Console(markup=False)
    for name, graded in grades.items():
        where = f"against {against}" if against else "in self-play"
        result = f"{graded.result:+.4f} ±{graded.result_error:.4f}"
        title = (
            f"{name}: {graded.games:,} games {where} on {plain_spaces(graded.spaces)}\n"
            f"mean result of {name if against else 'the starting player'}: {result}\n"
            f"mean regret in thousandths of equity: of a decision, and of a game, one seat, {where}"
        )
        columns = ["decision", "decisions", "regret", "regret of a game", "errors", "blunders"]
        rows = [
            [
                grade.kind,
                f"{grade.decisions:,}",
                thousandths(Estimate.around(grade.regret, grade.regret_error)),
                thousandths(Estimate.around(grade.per_game, grade.per_game_error), 1),
                f"{100 * grade.errors:.1f} %",
                f"{100 * grade.blunders:.1f} %",
            ]
            for grade in graded.kinds
        ]
        console.print(as_table(Shown(title, columns, rows)))
        for blunder in graded.worst[:blunders]:
            typer.echo(f"  {blunder}")
    say(analysis.define_errors(2))


def _lines(what: str, table: Path | None) -> Iterator[str]:
    """Yield text: notes on a recorded game, or the equities of a position and of its actions, best action first."""
    from wotd_env import Game, analysis, notation
    from wotd_env.policies.oracle import Oracle

    if what.endswith(".txt"):
        recorded = notation.read_game(what)
        game = Game(recorded.rules)
        estimates = f"wotd_env.analysis.review(wotd_env.notation.read_game({what!r})) in Python"
        _check_players(game.rules.players, estimates)
        solution = Oracle(table).table(game)
        notes = analysis.review(recorded, analysis.Advisor(game, solution)).notes
        yield f"{what}: {plain_spaces(game.rules.spaces)}, graded by {solution.file}"
        yield from map(str, notes)
        yield analysis.define_errors(game.rules.players)
        return
    rules, state = notation.parse_position(what)
    game = Game(rules)
    _check_players(rules.players, "wotd_env.analysis.Advisor(game).analyze(state) in Python")
    solution = Oracle(table).table(game)
    result = analysis.analyze(game, state, solution)
    yield f"{result.equity[0]:+.3f} for seat {state['player'][0]}, by {solution.file}"
    values = result.actions[0]
    for action in (-values).argsort(kind="stable").tolist():
        if state["phase"][0] in (Phase.KEEP, Phase.MOVE, Phase.EXTRA) and math.isfinite(values[action]):
            word = notation.action_text(game, state, action)
            yield f"{values[action]:+.3f}  {word:<16} {game.describe_action(state, action)}"


def _check_players(players: int, estimates: str) -> None:
    """Raise ValueError unless there are two players. `estimates` grades decisions with more players."""
    if players != 2:
        raise ValueError(
            f"players must be 2, got {players}: only games of two players have exact equities. For estimates, "
            f"use: {estimates}"
        )
