"""The `wotd` command."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.rules import POWER_MODES, Phase, Rules

if TYPE_CHECKING:
    from wotd_env.analysis import Grades

try:
    import typer
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TimeRemainingColumn,
    )
    from rich.table import Column, Table
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
HOUR = 3600  # seconds

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
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Read files of policies that can run code: sb3:FILE of somebody you trust."),
]
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
def _no_traceback(kept: str = "") -> Iterator[None]:
    """Turn what a user can do wrong into a message and an exit code; `kept` is added when one is interrupted."""
    try:
        yield
    except (typer.Exit, BrokenPipeError):
        raise
    except (ValueError, OSError, ImportError) as error:
        _fail(WRONG_USE, error)
    except (sqlite3.Error, RuntimeError) as error:
        _fail(FAILED, error)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. {kept}".rstrip(), err=True)
        raise typer.Exit(INTERRUPTED) from None


def _policy(name: str, trust: bool = False) -> Any:
    """Return a policy; whatever goes wrong in a user's own module is a message."""
    from wotd_env.policies import make_policy

    try:
        return make_policy(name, trust=trust)
    except (ValueError, OSError, ImportError):
        raise
    except Exception as error:
        raise ValueError(f"policy {name!r} cannot be made: {type(error).__name__}: {error}") from error


@contextmanager
def _bar(unit: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; gives the function that moves it: f(done, all)."""
    columns = (
        BarColumn(None, table_column=Column(min_width=8, ratio=1)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        _Rate(unit if len(unit) <= 24 else f"{unit[:23]}…", Column(no_wrap=True)),  # in all 80 characters
        TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet, expand=True) as bar:
        task = bar.add_task("", total=None, rate="")
        first: list[float] = []  # done and time at the first call: what was there before took no time

        def move(done: int, total: int) -> None:
            now = time.monotonic()
            if not first:
                first[:] = done, now
            rate = (done - first[0]) / (now - first[1]) if done > first[0] and now > first[1] else 0
            bar.update(task, completed=done, total=total, rate=f", {rate:,.0f}/s" if rate >= 1 else "")

        yield move


class _Rate(ProgressColumn):
    """Of what, and how many a second on average; the time that follows it is what is left, or was taken."""

    def __init__(self, unit: str, column: Column) -> None:
        super().__init__(column)
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{self._unit}{task.fields['rate']}, {'took' if task.finished else 'left'}")


@app.command()
@_no_traceback()
def policies() -> None:
    """List the policies that ship with the package, and how strong they are.

    Ratings are in Elo points, with 95 % intervals, for the basic game of two players; see docs/ladder.md for others.
    """
    from wotd_env.policies import POLICIES

    ladder = files("wotd_env.arena") / "ladder.json"
    ratings = json.loads(ladder.read_text())["ratings"] if ladder.is_file() else {}
    table = Table("policy", "plays", Column("rating", justify="right"), box=None)
    for name, known in POLICIES.items():
        rating = ratings.get(name)
        error = (rating["high"] - rating["low"]) / 2 if rating else 0
        table.add_row(name, known.words, f"{rating['value']:+.0f} ±{error:.0f}" if rating else "")
    table.add_row("MODULE:OBJECT", "your own: an object with act(game, state, rng), or what makes one", "")
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
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Play everything anew; the games that are kept are replaced.")
    ] = False,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="Read files of policies that can run code when they are read: sb3:FILE."
        ),
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Processes that play.", show_default="one for each core")
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="Play on a Ray cluster instead: its address, or auto.")
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
    goes_on = "the same command without --fresh goes on" if fresh else "the same command goes on"
    with _no_traceback(f"What is done is kept in {file}: {goes_on}."):
        from wotd_env import Game
        from wotd_env.arena import Tournament, run, show
        from wotd_env.policies.oracle import Oracle

        rules = _rules(players or 2, spaces, powers, immunity, dead_pieces, colors, start, max_turns)
        tournament = Tournament(tuple(policies), rules, games, seed, until, luck)
        for name in policies:
            policy = _policy(name, trust)
            if isinstance(policy, Oracle):  # better no table now than a forfeit in every game
                policy.table(Game(rules))
        for target in out or []:
            _writable(target, *show.FORMATS)
        if plot:
            _writable(plot, *_PICTURES)
        if file.resolve() in {target.resolve() for target in (*(out or []), plot) if target}:
            raise ValueError(f"{file} is where games are kept: results must be written to another file")

        pool = None
        if ray:
            from wotd_env.adapters.ray import Cluster

            pool = Cluster(tournament, time_limit, ray, trust)
        with _bar("games", quiet) as progress:
            results = run(
                tournament,
                file,
                fresh=fresh,
                workers=_cores() if workers is None else workers,
                time_limit=time_limit,
                trust=trust,
                pool=pool,
                progress=progress,
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


_PICTURES = (".png", ".svg", ".pdf")


def _writable(file: Path, *endings: str) -> None:
    """Find out before the work begins whether its results can be written; nothing is made, nothing changed.

    Raises:
        ValueError: if the name has another ending.
        OSError: if the file cannot be written.
    """
    if file.suffix not in endings:
        raise ValueError(f"the name of a file to write here must end in {', '.join(endings)}, got {file}")
    try:
        target = file.resolve()  # where a link leads
        if not target.parent.exists():
            raise FileNotFoundError(f"no folder {file.parent} to write {file.name} to")
        if not target.parent.is_dir():
            raise NotADirectoryError(f"{file.parent} is no folder to write {file.name} to")
        if not target.exists():
            with tempfile.TemporaryFile(dir=target.parent):
                pass
        elif target.is_file():
            with target.open("ab"):
                pass
        else:
            raise IsADirectoryError(f"{file} is there, and is no file that could be written")
    except OSError as error:
        if error.errno is None:  # one of those above
            raise
        raise type(error)(f"{file} cannot be written: {error.strerror}") from None


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


@app.command("compile")
def compile_everything() -> None:
    """Compile everything at once, so that nothing is compiled when it is first used.

    What is compiled is kept beside the package or, where nothing can be written there, in the user's cache folder; the
    environment variable NUMBA_CACHE_DIR names another one.
    """
    from wotd_env.cli.compile import PARTS, compile_all

    with _no_traceback(), _bar("parts") as progress:
        progress(0, len(PARTS))
        for done, _ in enumerate(compile_all(_cores()), 1):
            progress(done, len(PARTS))


@app.command()
@_no_traceback()
def bench(
    players: Annotated[int, typer.Option(help="Seats, 2 to 5.")] = 2,
    powers: Powers = "none",
    batch: Annotated[int, typer.Option(help="Games side by side in the batched interfaces.")] = 8192,
    threads: Annotated[int, typer.Option(help="Threads of the batched interfaces.")] = 1,
    seconds: Annotated[float, typer.Option(help="Length of each measurement.")] = 1.0,
) -> None:
    """Measure how many decisions a second this machine plays, interface by interface."""
    with _no_traceback():
        _check_range("batch", batch, 1, 1_000_000)
        _check_range("threads", threads, 1, 1024)
        _check_range("seconds", seconds, 0.01, HOUR)
        Rules(players=players, powers=powers)
        _measure(players, powers, batch, threads, seconds)


def _check_range(name: str, value: float, least: float, most: float) -> None:
    """Refuse an option that is out of its range or, as a float can be, no number."""
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, got {value}")


def _measure(players: int, powers: str, batch: int, threads: int, seconds: float) -> None:
    """Print how fast every interface is."""
    from wotd_env.cli import speed

    console, table = (
        Console(),
        Table("interface", "games", "decisions/s", "environment alone", box=SIMPLE_HEAD),
    )
    rows: list[tuple[str, Callable[..., speed.Chunk], int, dict[str, Any]]] = [
        ("Game.advance", speed.game, batch, {}),
        ("vector environment against greedy", speed.vector, batch, {}),
        ("Game, one game", speed.one_game, 1, {}),
        ("Gymnasium against greedy", speed.single, 1, {}),
        ("PettingZoo raw_env", speed.aec, 1, {}),
        ("PettingZoo env()", speed.aec, 1, {"wrapped": True}),
    ]
    for words, loop, games, more in rows:
        with console.status(words):
            chunk = loop(
                batch=games, players=players, threads=threads if games > 1 else 1, powers=powers, **more
            )
            rates = speed.rate(chunk, seconds)
        table.add_row(words, f"{games:,}", *(f"{rate:,.0f}" for rate in rates))
    console.print(table)


@app.command()
def watch(
    policies: Annotated[list[str], typer.Argument(help="One for each seat, or one for all.")],
    seed: Seed = 0,
    delay: Annotated[float, typer.Option(help="Seconds to wait after every turn.")] = 0.0,
    record: Annotated[Path | None, typer.Option(help="Record the game, .json, for `wotd analyze`.")] = None,
    trust: Trust = False,
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
    from wotd_env.core.game import Game, check_seed
    from wotd_env.policies.oracle import Oracle

    with _no_traceback():
        seats = max(2, len(policies)) if players is None else players
        if len(policies) not in (1, seats):
            raise ValueError(
                f"policies must be one for each of the {seats} seats, or one for all, got {len(policies)}"
            )
        rules = _rules(seats, spaces, powers, immunity, dead_pieces, colors, start, max_turns)
        check_seed(seed)
        _check_range("delay", delay, 0, HOUR)
        names = policies * (seats // len(policies))
        made = {name: _policy(name, trust) for name in names}
        for policy in made.values():
            if isinstance(policy, Oracle):  # better no table now than in the middle of the game
                policy.table(Game(rules))
        if record:
            _writable(record, ".json")
        actions: list[int] = []
        for turn in _narrate(rules, names, made, seed, actions):
            typer.echo(turn)
            time.sleep(delay)
        if record:
            from wotd_env.analysis import write_game

            write_game(record, rules, seed, actions)


def _narrate(
    rules: Rules, names: list[str], players: dict[str, Any], seed: int, actions: list[int]
) -> Iterator[str]:
    """Play a game and tell it, turn by turn; all actions but forced moves are added to `actions`."""
    from wotd_env.core.game import Game, show_dice
    from wotd_env.core.policy import ask, play_out
    from wotd_env.rendering import render_text

    game = Game(rules, skip_forced=False)
    state = game.reset(1, seed=seed)
    rng = np.random.default_rng(seed)

    def choose(seat: int, _: NDArray[np.int64]) -> NDArray[np.int64]:
        return ask(players[names[seat]], game, state, rng)

    lines: list[str] = []
    turn = -1
    for chosen in play_out(game, state, np.arange(rules.players)[None], choose):
        action = int(chosen[0])
        if state["turn"][0] != turn:
            if lines:
                yield "\n".join([*lines, ""])
            turn, lines = int(state["turn"][0]), [render_text(game, state), ""]
        name, dice = names[int(state["player"][0])], show_dice(state["dice"][0])
        lines.append(f"{name}, {dice}: {game.describe_action(state, action)}")
        if state["phase"][0] != Phase.MOVE or game.legal_actions(state).sum() > 1:
            actions.append(action)
    yield "\n".join([*lines, ""])
    yield render_text(game, state)


@app.command()
def solve(
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
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Solve the two-player basic game exactly, or verify a solution, or make it compact.

    The work is on disk layer by layer: after an interruption the same command goes on. While another process makes the
    same table, this one waits. Prints the value of the start to the player who begins: 1 is a sure win, -1 a sure loss.
    """
    from wotd_env import solver

    with _no_traceback("" if spaces is None else "What is done is kept: the same command goes on."):
        if [spaces, verify, compact].count(None) != 2:
            raise ValueError(
                "give one of --spaces, to solve a board, --verify, to check a table, and --compact"
            )
        if verify and out:
            raise ValueError("--verify writes nothing, so it takes no --out")
        if spaces is not None:
            Rules(spaces=spaces)
        threads = _cores() if threads is None else threads
        with _bar("positions", quiet) as progress:
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
                _fail(
                    FAILED, f"the table is no solution: its error must be below {_RESIDUAL:g}; solve it again"
                )


_RESIDUAL = 1e-6


@app.command()
def analyze(
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
    trust: Annotated[
        bool, typer.Option("--trust", help="Read policies from files that can run code (sb3:FILE).")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Grade decisions of the two-player basic game against its exact solution.

    Regret is what a decision gives away against the best one, in results: 2 is the way from a sure win to a sure loss.
    """
    from wotd_env import analysis, solver
    from wotd_env.core.game import Game
    from wotd_env.policies.oracle import Oracle

    with _no_traceback():
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

        if not 0 <= blunders <= analysis.WORST:
            raise ValueError(f"--blunders must be from 0 to {analysis.WORST}, got {blunders}")
        if out:
            _writable(out, ".json")
        if plot:
            _writable(plot, *_PICTURES)
        opponent = _policy(against, trust) if against else None
        players = {name: _policy(name, trust) for name in what}
        if table:
            solution = solver.load(table)
            if spaces not in (None, solution.spaces):
                raise ValueError(f"--spaces is {spaces}, but {table} is for {solution.spaces} plain spaces")
        else:
            solution = Oracle().table(Game(Rules(spaces=7 if spaces is None else spaces)))
        grades = {}
        for name, player in players.items():
            with _bar(f"games of {name}", quiet) as progress:
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
