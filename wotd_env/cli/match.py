"""The game of `wotd play`. People and policies take turns, every decision is saved, and a review follows."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Column, Table

from wotd_env import notation
from wotd_env.analysis import ERROR, Advisor, define_errors, review
from wotd_env.cli.common import fail, is_person, say
from wotd_env.core.game import Game
from wotd_env.core.position import LETTERS, SEATS
from wotd_env.core.rules import DICE, ELEMENTS, Phase, win_share
from wotd_env.core.starting import roll_off_of
from wotd_env.core.state import States
from wotd_env.core.words import show_dice
from wotd_env.notation import RecordedGame, action_text
from wotd_env.policy import Policy, ask
from wotd_env.process import FAILED, shell_command
from wotd_env.rendering.text import paint, render_text, roll_off_text, seat_names

MOST = 10
"""Maximum length of two lists: the choices that the command `equity` shows, and each seat's decisions in the review."""

HELP = """\
Choose a move by its number, by its short word, or in words:
  3              the third move of the list (dice are kept with k)
  w3, pass       a short word from the second column of the list
  fire           part of a description, if it fits only one move
Choose the dice to keep:
  k 1 3          keep dice 1 and 3
  r 2            re-roll die 2
  u              undo the last change
  Enter          roll the dice that are not kept
  keep water fire, re-roll earth, wwf
                 choose and roll at once, by the names or letters of the dice;
                 one name or letter is one die
  stop           keep all dice
  none           re-roll all dice
Other commands:
  list           list all choices
  board          show the board
  hint           show the two best choices
  equity         show the equity of the best choices
  equity all     show the equity of every choice
  position       show the position as a line of text
  quit           leave; the game is saved
  help           show this help"""

_NAMES = (*ELEMENTS, "dragon")


class Choice(NamedTuple):
    """A legal action."""

    action: int
    notation: str
    words: str


class Decision:
    """A decision of a person in the game `state`, STATE (1,).

    `choices` are the legal actions in ascending order.
    """

    def __init__(self, game: Game, state: States) -> None:
        self.game, self.state = game, state
        legal = np.flatnonzero(game.legal_actions(state)[0]).tolist()
        self.choices = [
            Choice(action, action_text(game, state, action), game.describe_action(state, action))
            for action in legal
        ]
        self.dice: list[int] = state["dice"][0].tolist()
        self._holds: list[frozenset[int]] = []  # the kept dice after each change, for `undo`
        holds = legal if self.is_hold else []
        self._hold_of = {self._faces(die for die in range(DICE) if hold >> die & 1): hold for hold in holds}

    @property
    def is_hold(self) -> bool:
        """Whether the decision is about the dice to keep."""
        return bool(self.state["phase"][0] == Phase.KEEP)

    @property
    def kept(self) -> frozenset[int] | None:
        """Indices of the dice kept so far; None before the first change of the hold."""
        return self._holds[-1] if self._holds else None

    def undo(self) -> None:
        """Undo the last change of the kept dice."""
        if not self._holds:
            raise ValueError("nothing to undo: rolls and moves are final")
        self._holds.pop()

    def read(self, text: str) -> int | None:
        """Return the action chosen by a line of text, or None if the line only changes the hold.

        Raises:
            ValueError: for invalid input; the message lists valid input.
        """
        line = _normalized(text)
        return self._read_hold(line) if self.is_hold else self._read_move(line)

    def _spelled(self, line: str) -> int | None:
        fitting = (c.action for c in self.choices if line in (c.notation.lower(), _normalized(c.words)))
        return next(fitting, None)

    def _read_move(self, line: str) -> int:
        """Return the action that a line chooses; raise ValueError if no action or several actions match."""
        if (spelled := self._spelled(line)) is not None:
            return spelled
        if line.isdecimal() and line.isascii():
            index = int(line) - 1 if len(line) < 5 else -1
            if not 0 <= index < len(self.choices):
                raise ValueError(
                    f"the number of a choice must be from 1 to {len(self.choices)}, got {line[:20]}"
                )
            return self.choices[index].action
        typed = line.split()
        found = []
        for choice in self.choices:
            parts = re.findall(r"[\w-]+", choice.words.lower())
            if typed and all(any(part.startswith(word) for part in parts) for word in typed):
                found.append(choice)
        if len(found) == 1:
            return found[0].action
        fitting = "; ".join(f"{choice.notation} ({choice.words})" for choice in found or self.choices)
        if found:
            raise ValueError(f"{_quoted(line)} is ambiguous; it fits {fitting}")
        raise ValueError(f"unknown choice {_quoted(line)}; legal are {fitting}")

    def _faces(self, places: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(self.dice[place] for place in places))

    def _read_hold(self, line: str) -> int | None:
        """Return the final hold that a line chooses, or None if the line only changes the dice kept so far."""
        if line in ("", "roll"):
            if self.kept is None:
                raise ValueError(
                    "no dice are chosen yet: k 1 3 keeps dice 1 and 3, stop keeps all, help shows more"
                )
            return self._hold_of[self._faces(self.kept)]
        if line not in _NAMES and (found := self._spelled(line)) is not None:
            return found
        what = re.fullmatch(r"(k|keep|r|re-?roll)(?:\b|(?=[1-9])) ?(.*)", line)
        if what is None:
            return self._hold_of[() if line == "none" else self._named(line, line.split())]
        keep = what[1].startswith("k")
        words = [word for word in what[2].split() if word not in ("dice", "die", "and")]
        if "".join(words).isdecimal():
            self._change("".join(words), keep=keep)
            return None
        if words == ["all"]:
            return self._hold_of[self._faces(range(DICE) if keep else ())]
        faces = self._named(line, words)
        if not keep:
            faces = tuple(sorted((Counter(self.dice) - Counter(faces)).elements()))
        return self._hold_of[faces]

    def _change(self, numbers: str, *, keep: bool) -> None:
        """Add the dice with these numbers to the kept dice, or remove them if `keep` is False."""
        if not set(numbers) <= set("12345"):
            raise ValueError(f"the number of a die must be from 1 to 5, got {', '.join(numbers[:20])}")
        dice = frozenset(int(number) - 1 for number in numbers)
        none = frozenset[int]() if keep else frozenset(range(DICE))
        before = none if self.kept is None else self.kept
        self._holds.append(before | dice if keep else before - dice)

    def _named(self, line: str, words: list[str]) -> tuple[int, ...]:
        """Return the faces named in `words`, sorted; raise ValueError if too few dice show one of these faces."""
        letters = [LETTERS[_NAMES.index(word)] if word in _NAMES else word for word in words]
        faces = [LETTERS.find(letter) for letter in "".join(letters)]
        if not faces or -1 in faces:
            raise ValueError(
                f"unknown choice {_quoted(line)}; keep dice by number (k 1 3), name (keep water fire) or letter (wf); "
                "stop keeps all, none re-rolls all, list shows every choice"
            )
        if missing := Counter(faces) - Counter(self.dice):
            named, there = (", ".join(_NAMES[face] for face in dice) for dice in (faces, self.dice))
            raise ValueError(f"too few dice show {_NAMES[min(missing)]} for {named}; the dice are {there}")
        return tuple(sorted(faces))


def _normalized(text: str) -> str:
    return " ".join(text.lower().replace(",", " ").split())


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def question(decision: Decision) -> str:
    """Return the prompt for a person's decision."""
    state = decision.state[0]
    if state["phase"] == Phase.EXTRA:
        return "an extra turn?"
    if not decision.is_hold:
        return f"your move with {show_dice(state['dice'])}"
    left = int(state["rolls_left"])
    if not left:
        return "re-roll once more with the eye of the tiger, or stop?"
    return f"which dice do you keep? {left} re-roll{'s' * (left != 1)} left"


def dice_line(decision: Decision, color: bool = False) -> str:
    """Return a line that shows the dice with their numbers; kept dice are in brackets."""
    parts = []
    for place, face in enumerate(decision.dice):
        name = paint(_NAMES[face], face) if color else _NAMES[face]
        parts.append(f"[{place + 1} {name}]" if place in (decision.kept or ()) else f" {place + 1} {name} ")
    if decision.kept is None:
        return "".join(parts).rstrip()
    return f"{''.join(parts)}  Enter: {'stop' if len(decision.kept) == DICE else 'roll the others'}"


def listed(decision: Decision) -> str:
    """Return the choices, one per line. Holds have no numbers, because a number in the input selects a die."""
    return "\n".join(
        f"{'' if decision.is_hold else number:>3}  {choice.notation:<16} {choice.words}"
        for number, choice in enumerate(decision.choices, 1)
    )


def equities(decision: Decision, advisor: Advisor, most: int | None = None) -> str:
    """Return a table of the choices with equity, win probability and regret, best choice first."""
    equity = advisor.analyze(decision.state).actions[0].tolist()
    ranked = sorted(decision.choices, key=lambda choice: -equity[choice.action])
    players, best = decision.game.rules.players, equity[ranked[0].action]
    lines = ["equity  to win   regret  choice"]
    for action, short, words in ranked[:most]:
        chance = win_share(equity[action], players)
        regret = best - equity[action]
        lines.append(
            f"{equity[action]:+.3f}  {100 * chance:5.1f} % {1000 * regret:6.1f}  {short:<16} {words}"
        )
    if most is not None and len(ranked) > most:
        lines.append(f"and {len(ranked) - most} more: equity all")
    return "\n".join([*lines, f"regret in thousandths of equity; by {advisor.source}"])


class Match:
    """A game in progress that is saved to a file after every decision.

    `kept` is a message that says how to continue the game.
    """

    def __init__(self, recorded: RecordedGame, file: Path, players: Mapping[str, Policy]) -> None:
        self._game = Game(recorded.rules, skip_forced=False)
        self._recorded, self._file, self._players = recorded, file, players
        self._on_disk = file.read_text("utf-8")
        self._shown_names = seat_names(recorded.players, recorded.rules.players)
        self._names = [f"{name} ({SEATS[seat]})" for seat, name in enumerate(self._shown_names)]
        self._resume = shell_command("wotd", "play", "--resume", file)
        self.kept = f"The game is saved in {file}; continue with: {self._resume}"
        self._color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._advisor = Advisor(self._game)
        self._shown_turn = -1

    def play(self) -> None:
        """Play to the end, or until a person leaves."""
        if sys.stdin.isatty():
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - adds line editing and a history to `input`
        game, state = self._game, self._recorded.states[-1:].copy()
        if not state["rng"][0]:  # a game written by hand has no random stream
            state["rng"] = secrets.randbits(64)
        game.roll(state)  # the text of a game written by hand can stop before a roll
        self._save(self._recorded._replace(states=np.concatenate([self._recorded.states[:-1], state])))
        say(f"{', '.join(self._names)} play. The game is saved in {self._file}. Type help for help.")
        if self._recorded.seed is not None and not len(self._recorded.actions):
            for line in roll_off_text(roll_off_of(game, self._recorded.seed)):
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
        typer.echo(f"\n{render_text(game, state, self._color, self._shown_names)}\n")
        self._review()

    def _save(self, recorded: RecordedGame) -> None:
        """Save the game; raise OSError if another program has changed the file."""
        if self._file.exists() and self._file.read_text("utf-8", "replace") != self._on_disk:
            raise OSError(
                f"another program has changed {self._file}, so this game stops; continue the game in the file with: "
                f"{self._resume}"
            )
        notation.write_game(self._file, recorded)
        self._recorded, self._on_disk = recorded, str(recorded)

    def _choose(self, state: States) -> int | None:
        """Choose and print the action of the seat to act; return None if a person leaves."""
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
            # The number of the decision is part of the seed, so that a resumed game equals an uninterrupted one.
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
        decision = Decision(self._game, state)
        if self._shown_turn != state["turn"][0]:
            self._shown_turn = int(state["turn"][0])
            self._show_board(decision)
        self._show(decision)
        while True:
            try:
                line = input("> " if sys.stdin.isatty() else "").strip()
            except EOFError:
                return None
            try:
                match line.lower().split():
                    case ["quit" | "q" | "exit"]:
                        return None
                    case ["help" | "?"]:
                        say(HELP)
                    case ["list" | "l"]:
                        say(listed(decision))
                    case ["board" | "b"]:
                        self._show_board(decision)
                        self._show(decision)
                    case ["hint" | "h"]:
                        say(equities(decision, self._advisor, 2))
                    case ["equity"]:
                        say(equities(decision, self._advisor, MOST))
                    case ["equity", "all"]:
                        say(equities(decision, self._advisor))
                    case ["position"]:
                        say(notation.position(self._game.rules, decision.state))
                    case ["undo" | "u"]:
                        decision.undo()
                        typer.echo(dice_line(decision, self._color))
                    case _:
                        if (action := decision.read(line)) is not None:
                            return action
                        typer.echo(dice_line(decision, self._color))
            except ValueError as error:
                say(str(error))

    def _show_board(self, decision: Decision) -> None:
        board = render_text(self._game, decision.state, self._color, self._shown_names).split("\n\n", 1)[1]
        typer.echo(f"\n{board}\n")

    def _show(self, decision: Decision) -> None:
        state = decision.state[0]
        say(f"Turn {state['turn'] + 1}, {self._names[state['player']]}: {question(decision)}")
        if decision.is_hold:
            typer.echo(dice_line(decision, self._color))
        else:
            say(listed(decision))

    def _review(self) -> None:
        result = review(self._recorded, self._advisor)
        columns = ("decisions", "errors", "blunders", "regret", "luck", "result", "luck-adjusted")
        numbers = (Column(name, justify="right", no_wrap=True) for name in columns)
        table = Table(Column("", no_wrap=True), *numbers, box=None)
        for name, played in zip(self._names, result.seats, strict=True):
            counts = map(str, (played.decisions, played.errors, played.blunders))
            regret, luck = f"{1000 * played.regret:.0f}", f"{played.luck:+.3f}"
            reward, adjusted = f"{played.result:+.2f}", f"{played.result - played.luck:+.3f}"
            table.add_row(name, *counts, regret, luck, reward, adjusted)
        Console(markup=False).print(table)
        say(
            f"Regret is lost equity, in thousandths. Equity is the expected result, from -1 (loss) to 1 (win). "
            f"{define_errors(len(self._names))}\nSource of the equities: {result.source}."
        )
        for seat, name in enumerate(self._names):
            notes = [note for note in result.notes if note.seat == seat and note.regret >= ERROR]
            worst = sorted(sorted(notes, key=lambda note: -note.regret)[:MOST])
            if worst and is_person(self._recorded.players[seat]):
                lines = textwrap.indent("\n".join(map(str, worst)), "  ")
                say(f"\n{name}, the decisions with the largest regret, in order of play:\n{lines}")
        replay = shell_command("wotd", "replay", self._file)
        say(f"\nThe game is saved in {self._file}; show it with: {replay}")
