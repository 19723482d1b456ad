"""The `wotd` command."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np

from wotd_env.rules import POWER_MODES, Phase, Rules

try:
    import typer
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TimeRemainingColumn,
    )
    from rich.table import Table
    from rich.text import Text
except ModuleNotFoundError as missing:
    raise SystemExit(f"the wotd command needs {missing.name}: pip install 'wotd-env[arena]'") from None

app = typer.Typer(
    name="wotd",
    help="Way of the Dragon for reinforcement learning: tournaments, games to watch, the exact solution.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong use, 3 done but policies forfeited games, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FAILED, WRONG_USE, FORFEITS, INTERRUPTED = 1, 2, 3, 130

_RULES = "Rules"
Players = Annotated[int | None, typer.Option(help="Seats, 2 to 5.", show_default="2", rich_help_panel=_RULES)]
Spaces = Annotated[int, typer.Option(help="Plain spaces on each path, 0 to 10.", rich_help_panel=_RULES)]
Powers = Annotated[str, typer.Option(help=f"{', '.join(POWER_MODES)}.", rich_help_panel=_RULES)]
Immunity = Annotated[
    bool,
    typer.Option(
        "--immunity", help="Pieces on paths of their own colour are never swapped.", rich_help_panel=_RULES
    ),
]
DeadPieces = Annotated[int, typer.Option(help="Pieces of unused colours in the way.", rich_help_panel=_RULES)]
Colors = Annotated[
    str | None,
    typer.Option(help="Colours of the seats, such as water,fire, or random.", rich_help_panel=_RULES),
]
Start = Annotated[str, typer.Option(help="Who begins: dragons, loser, or a seat.", rich_help_panel=_RULES)]
MaxTurns = Annotated[int, typer.Option(help="Turns after which a game is a draw.", rich_help_panel=_RULES)]
Seed = Annotated[int, typer.Option(help="All dice and all random policies follow from it.")]


def main() -> None:
    """Run the `wotd` command."""
    sys.path.append(os.getcwd())  # policies of the folder one is in, as MODULE:OBJECT
    app()


def _rules(
    players: int,
    spaces: int,
    powers: str,
    immunity: bool,
    dead_pieces: int,
    colors: str | None,
    start: str,
    max_turns: int,
) -> Rules:
    """Return the rules that the options describe."""
    return Rules(
        players=players,
        spaces=spaces,
        powers=powers,
        immunity=immunity,
        dead_pieces=dead_pieces,
        colors=tuple(colors.split(",")) if colors and colors != "random" else colors,
        start=int(start) if start.isdigit() else start,
        max_turns=max_turns,
    )


def _fail(code: int, message: object) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def _no_traceback() -> Iterator[None]:
    """Turn what a user can do wrong into a message and an exit code."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError) as error:
        _fail(WRONG_USE, error)
    except (sqlite3.Error, RuntimeError) as error:
        _fail(FAILED, error)
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _policy(name: str) -> Any:
    """Return a policy; whatever goes wrong in a user's own module is a message."""
    from wotd_env.policies import make_policy

    try:
        return make_policy(name)
    except (ValueError, OSError, ImportError):
        raise
    except Exception as error:
        raise ValueError(f"policy {name!r} cannot be made: {type(error).__name__}: {error}") from error


@app.command()
def policies() -> None:
    """List the policies that ship with the package."""
    from wotd_env.policies import POLICIES

    table = Table("policy", "plays", box=None)
    for name, words in POLICIES.items():
        table.add_row(name, words)
    table.add_row("MODULE:OBJECT", "your own: an object with act(game, state, rng), or what makes one")
    Console().print(table)


@app.command()
def arena(
    policies: Annotated[list[str], typer.Argument(help="Two or more to compare; one alone plays itself.")],
    games: Annotated[
        int, typer.Option(help="Games at each table: for two players, of each pairing.")
    ] = 10_000,
    seed: Seed = 0,
    until: Annotated[
        float | None,
        typer.Option(
            help="Stop a table once all its win shares are known to plus or minus this, such as 0.005."
        ),
    ] = None,
    luck: Annotated[
        str | None,
        typer.Option(
            help="Take the luck of the dice out, as measured by a policy that knows equities: planner."
        ),
    ] = None,
    file: Annotated[
        Path, typer.Option(help="Where games are kept; the same command goes on from there.")
    ] = Path("arena.sqlite"),
    workers: Annotated[
        int | None, typer.Option(help="Processes that play.", show_default="one for each core")
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            help="Seconds for one batch of decisions; a policy that takes longer forfeits its games."
        ),
    ] = 60.0,
    out: Annotated[
        list[Path] | None,
        typer.Option(help="Write the results too: .json, .csv or .parquet; can be repeated."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw ratings and pairings: .png, .svg or .pdf.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    players: Players = None,
    spaces: Spaces = 7,
    powers: Powers = "none",
    immunity: Immunity = False,
    dead_pieces: DeadPieces = 0,
    colors: Colors = None,
    start: Start = "dragons",
    max_turns: MaxTurns = 1000,
) -> None:
    """Let policies play a tournament.

    With at least as many policies as seats every choice of them meets at a table; with fewer they share the seats in
    every way. Every game is played from all seats with the same dice, and intervals take that into account. The same
    seed gives the same results, on any number of workers.

    A policy is a name (see `wotd policies`), a file (onnx:FILE), or MODULE:OBJECT of your own.
    """
    from wotd_env.arena import Tournament, run, show

    with _no_traceback():
        rules = _rules(players or 2, spaces, powers, immunity, dead_pieces, colors, start, max_turns)
        tournament = Tournament(tuple(policies), rules, games, seed, until, luck)
        for name in policies:
            _policy(name)
        for target in [*(out or []), *([plot] if plot else [])]:
            if not target.parent.is_dir():
                raise FileNotFoundError(f"no folder {target.parent} to write {target.name} to")
        for target in out or []:
            if target.suffix not in show.FORMATS:
                raise ValueError(f"--out must end in {', '.join(show.FORMATS)}, got {target}")

        columns = (BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
            task = bar.add_task("", total=None)
            results = run(
                tournament,
                file,
                workers=_cores() if workers is None else workers,
                time_limit=time_limit,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
        console = Console()
        for table in show.tables(results):
            console.print(table)
        for target in out or []:
            show.write(results, target)
        if plot:
            show.draw(results, plot)
        if results.forfeits:
            typer.echo(_forfeits(results.forfeits), err=True)
            raise typer.Exit(FORFEITS)


class _Rate(ProgressColumn):
    """Games a second."""

    def render(self, task: Task) -> Text:
        return Text(f"games, {task.speed or 0:,.0f}/s, left:")


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _forfeits(forfeits: list[Any], most: int = 5) -> str:
    """Say which games were forfeited, and how to see the first of them again."""
    lines = [f"{len(forfeits)} games were forfeited:", *(f"  {forfeit}" for forfeit in forfeits[:most])]
    if len(forfeits) > most:
        lines.append(f"  ... and {len(forfeits) - most} more, all of them in a JSON file (--out)")
    first = forfeits[0]
    lines.append(f"The first: wotd_env.arena.replay(rules, {first.game_seed}, {first.moves})")
    return "\n".join(lines)


@app.command()
def watch(
    policies: Annotated[list[str], typer.Argument(help="One for each seat, or one for all.")],
    seed: Seed = 0,
    delay: Annotated[float, typer.Option(help="Seconds to wait after every turn.")] = 0.0,
    players: Players = None,
    spaces: Spaces = 7,
    powers: Powers = "none",
    immunity: Immunity = False,
    dead_pieces: DeadPieces = 0,
    colors: Colors = None,
    start: Start = "dragons",
    max_turns: MaxTurns = 1000,
) -> None:
    """Watch policies play a game, move by move, in words."""
    with _no_traceback():
        seats = players or max(2, len(policies))
        if len(policies) not in (1, seats):
            raise ValueError(
                f"policies must be one for each of the {seats} seats, or one for all, got {len(policies)}"
            )
        rules = _rules(seats, spaces, powers, immunity, dead_pieces, colors, start, max_turns)
        names = policies * (seats // len(policies))
        for turn in _narrate(rules, names, seed):
            typer.echo(turn)
            time.sleep(delay)


def _narrate(rules: Rules, names: list[str], seed: int) -> Iterator[str]:
    """Play a game and tell it, turn by turn."""
    from wotd_env.actions import describe_action
    from wotd_env.game import Game, show_dice
    from wotd_env.rendering import render_text

    game = Game(rules, skip_forced=False)
    players = {name: _policy(name) for name in names}
    rng = np.random.default_rng(seed)
    state = game.reset(1, seed=seed)
    while state["phase"][0] != Phase.OVER:
        turn, seat = int(state["turn"][0]), int(state["player"][0])
        lines = [render_text(game, state), ""]
        while state["phase"][0] != Phase.OVER and state["turn"][0] == turn:
            shown = state.copy()
            shown["rng"] = rng.integers(0, 1 << 64, 1, np.uint64)  # the dice to come stay hidden
            action = int(players[names[seat]].act(game, shown, rng)[0])
            lines.append(f"{names[seat]}, {show_dice(state['dice'][0])}: {describe_action(action, rules)}")
            game.step(state, [action])
        yield "\n".join([*lines, ""])
    yield render_text(game, state)


if __name__ == "__main__":
    main()
