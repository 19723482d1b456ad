"""The game of `wotd play`. People and policies take turns, every decision is saved, and a review follows."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.table import Column, Table

from wotd_env import notation
from wotd_env.analysis import ERROR, Advisor, define_errors, review
from wotd_env.cli import person
from wotd_env.cli.common import FAILED, fail, is_person, say
from wotd_env.core.game import Game
from wotd_env.core.position import SEATS
from wotd_env.core.state import States
from wotd_env.core.words import show_dice
from wotd_env.notation import RecordedGame
from wotd_env.policy import Policy, ask
from wotd_env.rendering.text import render_text, roll_off_text, seat_names

MOST = 10
"""Maximum number of choices that `equity` shows, and of decisions that the review lists for each seat."""


class Match:
    """A game in progress that is saved to a file after every decision.

    `players` maps names to policies. `kept` is a message that says how to continue the game.
    """

    def __init__(self, recorded: RecordedGame, file: Path, players: Mapping[str, Policy]) -> None:
        self._game = Game(recorded.rules, skip_forced=False)
        self._recorded, self._file, self._players = recorded, file, players
        self._on_disk = file.read_text("utf-8")
        self._shown_names = seat_names(recorded.players, recorded.rules.players)
        self._names = [f"{name} ({SEATS[seat]})" for seat, name in enumerate(self._shown_names)]
        self.kept = f"The game is saved in {file}; continue with: wotd play --resume {file}"
        self._color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._advisor = Advisor(self._game)
        self._shown_turn = -1  # the turn in which the board was last shown

    def play(self) -> None:
        """Play to the end, or until a person leaves."""
        if sys.stdin.isatty():
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - gives `input` line editing and a history
        game, state = self._game, self._recorded.states[-1:].copy()
        if not state["rng"][0]:  # a game written by hand has no random stream
            state["rng"] = secrets.randbits(64)
        game.roll(state)  # the moves of a game written by hand can stop before a roll
        self._save(self._recorded._replace(states=np.concatenate([self._recorded.states[:-1], state])))
        say(f"{', '.join(self._names)} play. The game is saved in {self._file}. Type help for help.")
        if self._recorded.seed is not None and not len(self._recorded.actions):
            for line in roll_off_text(game.roll_off(self._recorded.seed)):
                say(line)
        while not game.is_over(state)[0]:
            action = self._choose(state)
            if action is None:
                say(self.kept)
                return
            game.step(state, [action])
            states = np.concatenate([self._recorded.states, state])
            actions = np.append(self._recorded.actions, action)
            self._save(self._recorded._replace(states=states, actions=actions))
        typer.echo(f"\n{self._text(state)}\n")
        self._review()

    def _save(self, recorded: RecordedGame) -> None:
        """Save the game, unless another program has changed the file."""
        if self._file.exists() and self._file.read_text("utf-8", "replace") != self._on_disk:
            raise OSError(
                f"another program has changed {self._file}, so this game stops; continue the game in the file with: "
                f"wotd play --resume {self._file}"
            )
        notation.write_game(self._file, recorded)
        self._recorded, self._on_disk = recorded, str(recorded)

    def _choose(self, state: States) -> int | None:
        """Return and print the action of the seat to act; return None if a person leaves."""
        seat = int(state["player"][0])
        name = self._recorded.players[seat]
        legal = np.flatnonzero(self._game.legal_actions(state)[0])
        action: int | None
        if len(legal) == 1:
            action = int(legal[0])
        elif is_person(name):
            if (action := self._ask(state)) is None:
                return None
        else:
            # The number of the decision is in the seed, so that a resumed game equals an uninterrupted one.
            rng = np.random.default_rng([int(self._recorded.states["rng"][0]), len(self._recorded.actions)])
            try:
                action = int(ask(self._players[name], self._game, state, rng)[0])
                self._game.check(state, [action])
            except Exception as error:
                fail(FAILED, f"policy {name!r} failed: {type(error).__name__}: {error}. {self.kept}")
        dice = show_dice(state["dice"][0])
        say(f"{self._names[seat]}, {dice}: {self._game.describe_action(state, action)}")
        return action

    def _ask(self, state: States) -> int | None:
        """Ask a person until the input is a valid choice; return the action, or None if the person leaves."""
        decision = person.Decision(self._game, state)
        if self._shown_turn != state["turn"][0]:
            self._shown_turn = int(state["turn"][0])
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

    def _answer(self, decision: person.Decision, line: str) -> bool:
        """Run a line that is a command, such as `help`; return False for any other line."""
        match line.lower().split():
            case ["help" | "?"]:
                say(person.HELP)
            case ["list" | "l"]:
                say(person.listed(decision))
            case ["board" | "b"]:
                self._show_board(decision)
                self._show(decision)
            case ["hint" | "h"]:
                say(person.hint(decision, self._advisor))
            case ["equity"]:
                say(person.equities(decision, self._advisor, MOST))
            case ["equity", "all"]:
                say(person.equities(decision, self._advisor))
            case ["position"]:
                say(notation.position(self._game.rules, decision.state))
            case ["undo" | "u"]:
                decision.undo()
                self._show_dice(decision)
            case _:
                return False
        return True

    def _text(self, state: States) -> str:
        """Return a position as text in three parts, separated by empty lines: phase and dice, board, seats."""
        return render_text(self._game, state, self._color, self._shown_names)

    def _show_board(self, decision: person.Decision) -> None:
        _, _, board = self._text(decision.state).partition("\n\n")
        typer.echo(f"\n{board}\n")

    def _show(self, decision: person.Decision) -> None:
        """Print the question, then the dice if the person chooses a hold, or else the list of choices."""
        state = decision.state[0]
        say(f"Turn {state['turn'] + 1}, {self._names[state['player']]}: {person.question(decision)}")
        if decision.is_hold:
            self._show_dice(decision)
        else:
            say(person.listed(decision))

    def _show_dice(self, decision: person.Decision) -> None:
        typer.echo(person.dice_line(decision, self._color))

    def _review(self) -> None:
        """Print regret and luck of each seat, then the decisions with the largest regret of each person."""
        result = review(self._recorded, self._advisor)
        columns = ("decisions", "errors", "blunders", "regret", "luck", "result", "luck-adjusted")
        numbers = (Column(name, justify="right", no_wrap=True) for name in columns)
        table = Table(Column("", no_wrap=True), *numbers, box=None)
        for name, played in zip(self._names, result.seats, strict=True):
            counts = map(str, (played.decisions, played.errors, played.blunders))
            regret, luck, reward = f"{played.regret:.3f}", f"{played.luck:+.3f}", f"{played.result:+.2f}"
            table.add_row(name, *counts, regret, luck, reward, f"{played.result - played.luck:+.3f}")
        Console(markup=False).print(table)
        say(
            f"Regret is lost equity. Equity is the expected result, from -1 (loss) to 1 (win). "
            f"{define_errors(len(self._names))}\nSource of the equities: {result.source}."
        )
        for seat, name in enumerate(self._names):
            notes = [note for note in result.notes if note.seat == seat and note.regret >= ERROR]
            worst = sorted(sorted(notes, key=lambda note: -note.regret)[:MOST])
            if worst and is_person(self._recorded.players[seat]):
                lines = "\n".join(f"  {note}" for note in worst)
                say(f"\n{name}, the decisions with the largest regret:\n{lines}")
        say(f"\nThe game is saved in {self._file}; show it with: wotd replay {self._file}")
