"""`wotd play`: play against policies in the terminal."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Column, Table

from wotd_env.cli.common import FAILED, check_writable, explained, fail, ready_policies, say
from wotd_env.cli.options import Position, Trust, check_no_rules, rules_options
from wotd_env.core.rules import Rules

if TYPE_CHECKING:
    from wotd_env.analysis import Review
    from wotd_env.cli.person import Decision
    from wotd_env.core.state import States
    from wotd_env.notation import RecordedGame
    from wotd_env.policy import Policy

PERSON = "me"
"""Name of a seat that a person plays; `me:Anna` gives the person a name."""

LONGEST = 500
"""Characters of a seat's name as JSON; the notation limits the length of a line."""

MOST = 10
"""Number of choices that `equity` shows, and of decisions per seat in the review."""


@rules_options(players="one for each seat, at least 2")
def command(
    context: typer.Context,
    seats: Annotated[
        list[str] | None,
        typer.Argument(
            help="The player of each seat: me, me:NAME, or a policy. A single policy plays all other seats.",
            show_default="me planner",
        ),
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue the game in this .txt file.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="The .txt file to save the game to.",
            show_default="game.txt, or game-2.txt and so on if it exists",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of all dice and of all random policies.", show_default="random"),
    ] = None,
    position: Position = None,
    trust: Trust = False,
    *,
    rules: dict[str, Any],
) -> None:
    """Play against policies, or with other people at one keyboard.

    Type help in the game for the possible input. Every decision is saved at once. A review follows the game.
    """
    with explained():
        if resume:
            check_no_rules(context, rules, "--resume")
            for option, value in (("--file", file), ("--seed", seed), ("--position", position)):
                if value is not None:
                    raise ValueError(f"{option} starts a new game and cannot be combined with --resume")
            recorded = _left(resume, seats, trust)
        else:
            if position is not None:
                check_no_rules(context, rules, "--position")
            recorded = _begun(seats, rules, seed, position)
        if not any(map(_is_person, recorded.players)):
            raise ValueError("one seat must be me; use wotd watch for games between policies")
        names = [name for name in recorded.players if not _is_person(name)]
        players = ready_policies(names, trust, recorded.rules)
        game = _Match(recorded, resume or _free(file), players)
    with explained(game.kept):
        game.play()


def _begun(
    seats: list[str] | None, rules: dict[str, Any], seed: int | None, position: str | None
) -> RecordedGame:
    """Return a new game."""
    from wotd_env import Game, notation
    from wotd_env.core.game import check_seed

    drawn = secrets.randbits(63) if seed is None else int(check_seed(seed))
    begin: dict[str, Any] = {"seed": drawn}
    if position is not None:
        game_rules, state = notation.parse_position(position)
        if not state["rng"][0]:  # the line says nothing of the dice to come
            state["rng"] = Game(game_rules).reset(1, seed=drawn)["rng"]
        begin = {"state": state}
    else:
        rules.setdefault("players", max(2, len(seats or ())))
        game_rules = Rules(**rules)
    return notation.record_game(game_rules, [], players=_seated(seats, game_rules.players), **begin)


def _left(file: Path, seats: list[str] | None, trust: bool) -> RecordedGame:
    """Return the game in a file. Names in the file that could run code need `trust`."""
    from wotd_env import notation
    from wotd_env.core.position import SEATS
    from wotd_env.policies import POLICIES, full_name

    check_writable(file, ".txt")
    recorded = notation.read_game(file)
    if seats:
        return recorded._replace(players=_seated(seats, recorded.rules.players))
    for seat, name in enumerate(recorded.players):
        known = _is_person(name) or full_name(name).partition(":")[0] in POLICIES
        if not known and (name == "?" or not trust):
            raise ValueError(
                f"{file} names {name!r} for seat {SEATS[seat]}: name the players on the command line, such as: "
                f"wotd play {' '.join(_seated(None, recorded.rules.players))} --resume {file}"
            )
    return recorded


def _seated(seats: list[str] | None, players: int) -> tuple[str, ...]:
    """Return the players by seat. By default, a person plays against `planner` or a single given policy."""
    names = seats or [PERSON]
    if len(names) == 1:
        person, policy = (names[0], "planner") if _is_person(names[0]) else (PERSON, names[0])
        names = [person, *[policy] * (players - 1)]
    for name in names:
        if (length := len(json.dumps(name))) > LONGEST:
            raise ValueError(
                f"a seat name must have at most {LONGEST} characters, got {name[:20]}... of {length}"
            )
    if len(names) != players:
        raise ValueError(
            f"give a player for each of the {players} seats, got {len(names)}: {', '.join(names)}"
        )
    return tuple(names)


def _is_person(name: str) -> bool:
    return name.partition(":")[0] == PERSON


def _free(file: Path | None) -> Path:
    """Create an empty file for a new game and return its name; existing files are never overwritten."""
    names = (Path("game.txt" if number == 1 else f"game-{number}.txt") for number in count(1))
    for name in names if file is None else [file]:
        check_writable(name, ".txt")
        with contextlib.suppress(FileExistsError):
            name.touch(exist_ok=False)
            return name
    raise FileExistsError(f"{file} already exists: continue it with --resume, or choose another file")


class _Match:
    """A game in progress: its players, its record, and its file."""

    def __init__(self, recorded: RecordedGame, file: Path, players: dict[str, Policy]) -> None:
        from wotd_env import Game
        from wotd_env.analysis import Advisor
        from wotd_env.core.position import SEATS
        from wotd_env.rendering.text import seat_names

        self.rules = Game(recorded.rules, skip_forced=False)
        self.recorded, self.file, self.players = recorded, file, players
        self.on_disk = file.read_text("utf-8")
        self.shown_names = seat_names(recorded.players, recorded.rules.players)
        self.names = [f"{name} ({SEATS[seat]})" for seat, name in enumerate(self.shown_names)]
        self.kept = f"The game is saved in {file}; continue with: wotd play --resume {file}"
        self.color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self.advisor = Advisor(self.rules)
        self.shown = -1  # the turn in which the board was last shown

    def play(self) -> None:
        """Play to the end, or until a person leaves."""
        from wotd_env.rendering import roll_off_text

        if sys.stdin.isatty():
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - lets `input` edit lines and remember them
        state = self.recorded.states[-1:].copy()
        if not state["rng"][0]:  # a game written by hand
            state["rng"] = secrets.randbits(64)
        self.rules.roll(state)  # a game written by hand may end before a roll
        self._keep(self.recorded._replace(states=np.concatenate([self.recorded.states[:-1], state])))
        recorded = self.recorded
        say(f"{', '.join(self.names)} play. The game is saved in {self.file}. Type help for help.")
        if recorded.seed is not None and not len(recorded.actions):
            for line in roll_off_text(self.rules.roll_off(recorded.seed)):
                say(line)
        while not self.rules.is_over(state)[0]:
            action = self._choose(state)
            if action is None:
                say(self.kept)
                return
            self.rules.step(state, [action])
            recorded = self.recorded
            states, actions = np.concatenate([recorded.states, state]), np.append(recorded.actions, action)
            self._keep(recorded._replace(states=states, actions=actions))
        typer.echo(f"\n{self._text(state)}\n")
        self._review()

    def _keep(self, recorded: RecordedGame) -> None:
        """Save the game, unless another program has changed the file."""
        from wotd_env import notation

        if self.file.exists() and self.file.read_text("utf-8", "replace") != self.on_disk:
            raise OSError(
                f"another program has changed {self.file}, so this game stops; continue the game in the file with: "
                f"wotd play --resume {self.file}"
            )
        notation.write_game(self.file, recorded)
        self.recorded, self.on_disk = recorded, str(recorded)

    def _choose(self, state: States) -> int | None:
        """Return and show the decision of the seat to act; None if a person leaves."""
        from wotd_env.core.words import show_dice
        from wotd_env.policy import ask

        seat = int(state["player"][0])
        name = self.recorded.players[seat]
        legal = np.flatnonzero(self.rules.legal_actions(state)[0])
        if len(legal) == 1:
            action = int(legal[0])
        elif _is_person(name):
            chosen = self._ask(state)
            if chosen is None:
                return None
            action = chosen
        else:
            # From the number of the decision, so that a resumed game equals an uninterrupted one.
            rng = np.random.default_rng([int(self.recorded.states["rng"][0]), len(self.recorded.actions)])
            try:
                action = int(ask(self.players[name], self.rules, state, rng)[0])
                self.rules.check(state, [action])
            except Exception as error:
                fail(FAILED, f"policy {name!r} failed: {type(error).__name__}: {error}. {self.kept}")
        dice = show_dice(state["dice"][0])
        say(f"{self.names[seat]}, {dice}: {self.rules.describe_action(state, action)}")
        return action

    # ---------------------------------------------------------------------------------------------- a person

    def _ask(self, state: States) -> int | None:
        """Ask a person until the input is a choice; None if the person leaves."""
        from wotd_env.cli.person import Decision

        decision = Decision(self.rules, state)
        if self.shown != state["turn"][0]:
            self.shown = int(state["turn"][0])
            self._show_board(decision)
        self._show(decision)
        while True:
            try:
                line = input("> " if sys.stdin.isatty() else "").strip()
            except EOFError:  # end of the piped input, or Ctrl-D
                return None
            if line.lower() in ("quit", "q", "exit"):
                return None
            try:
                if not self._answer(decision, line):
                    action = decision.read(line)
                    if action is not None:
                        return action
                    self._show_dice(decision)
            except ValueError as error:
                say(str(error))

    def _answer(self, decision: Decision, line: str) -> bool:
        """Run the command of a line; return False if the line is not a command."""
        from wotd_env.cli import person
        from wotd_env.notation import position

        told: list[str] = []
        match line.lower().split():
            case ["help" | "?"]:
                told = person.HELP.split("\n")
            case ["list" | "l"]:
                told = list(person.numbered(decision))
            case ["board" | "b"]:
                self._show_board(decision)
                self._show(decision)
            case ["hint" | "h"]:
                told = person.hint(decision, self.advisor)
            case ["equity"]:
                told = person.equities(decision, self.advisor, MOST)
            case ["equity", "all"]:
                told = person.equities(decision, self.advisor)
            case ["position"]:
                told = [position(self.rules.rules, decision.state)]
            case ["undo" | "u"]:
                decision.undo()
                self._show_dice(decision)
            case _:
                return False
        for text in told:
            say(text)
        return True

    def _text(self, state: States) -> str:
        """Return a position as text: phase, board and seats, with an empty line between them."""
        from wotd_env.rendering import render_text

        return render_text(self.rules, state, self.color, self.shown_names)

    def _show_board(self, decision: Decision) -> None:
        _, _, board = self._text(decision.state).partition("\n\n")
        typer.echo(f"\n{board}\n")

    def _show(self, decision: Decision) -> None:
        """Show the question and the choices or dice."""
        from wotd_env.cli import person

        state = decision.state[0]
        say(f"Turn {state['turn'] + 1}, {self.names[state['player']]}: {person.question(decision)}")
        if decision.is_hold:
            self._show_dice(decision)
        else:
            for line in person.numbered(decision):
                say(line)

    def _show_dice(self, decision: Decision) -> None:
        from wotd_env.cli.person import dice_line

        typer.echo(dice_line(decision, self.color))

    # ---------------------------------------------------------------------------------------------- afterwards

    def _review(self) -> None:
        """Show regret and luck of each seat, and the worst decisions of people."""
        from wotd_env.analysis import ERROR, define_errors, review

        told = review(self.recorded, self.advisor)
        Console(markup=False).print(self._table(told))
        say(
            f"Regret is lost equity. Equity is the expected result, from -1 (loss) to 1 (win). "
            f"{define_errors(len(self.names))}\nSource of the equities: {told.source}."
        )
        for seat, name in enumerate(self.names):
            notes = [note for note in told.notes if note.seat == seat and note.regret >= ERROR]
            worst = sorted(notes, key=lambda note: -note.regret)[:MOST]
            if worst and _is_person(self.recorded.players[seat]):
                say(f"\n{name}, the decisions with the largest regret:")
                for note in sorted(worst):
                    say(f"  {note}")
        say(f"\nThe game is saved in {self.file}; show it with: wotd replay {self.file}")

    def _table(self, told: Review) -> Table:
        columns = ("decisions", "errors", "blunders", "regret", "luck", "result", "luck-adjusted")
        numbers = (Column(name, justify="right", no_wrap=True) for name in columns)
        table = Table(Column("", no_wrap=True), *numbers, box=None)
        for name, seat in zip(self.names, told.seats, strict=True):
            table.add_row(
                name,
                str(seat.decisions),
                str(seat.errors),
                str(seat.blunders),
                f"{seat.regret:.3f}",
                f"{seat.luck:+.3f}",
                f"{seat.result:+.2f}",
                f"{seat.result - seat.luck:+.3f}",
            )
        return table
