"""A person's decision at the terminal: the choices, the input, and the equity of each choice.

This module contains no rules of the game. The choices are the legal actions of the engine; `Game.describe_action` and
the notation supply their descriptions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from wotd_env.analysis import Advisor
from wotd_env.core.game import Game
from wotd_env.core.position import FACES
from wotd_env.core.rules import DICE, ELEMENTS, Phase
from wotd_env.core.state import States
from wotd_env.core.words import show_dice
from wotd_env.notation import action_text
from wotd_env.rendering.text import paint

HELP = """\
Choose a move by its number, by its short word, or in words:
  3              the third move of the list
  w3, pass       a short word from the second column of the list
  fire           part of a description, if it fits only one move
Choose the dice to keep:
  k 1 3          keep dice 1 and 3
  r 2            re-roll die 2
  u              undo the last change
  Enter          roll the dice that are not kept
  keep water fire, re-roll earth, wwf
                 choose and roll at once, by the names or letters of the dice
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
_WOOD = (0, 4, 4, 5)  # the word "wood" read as letters: water, wood, wood, dragon


class Choice(NamedTuple):
    """A legal action."""

    action: int
    notation: str
    words: str  # description, with the destinations of the pieces


class Decision:
    """A decision of a person in one game, STATE (1,).

    `choices` are the legal actions in ascending order. `kept` is the hold that the person has chosen so far.
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
        """Whether the person chooses the dice to keep."""
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
        if self.is_hold:
            return self._read_hold(text.strip(), line)
        return self._read_move(text.strip(), line)

    def _spelled(self, line: str) -> int | None:
        """Return the action whose short word or description equals `line`; None if no action matches."""
        fitting = (c.action for c in self.choices if line in (c.notation.lower(), _normalized(c.words)))
        return next(fitting, None)

    def _read_move(self, text: str, line: str) -> int:
        """Return the action with this short word, description or number, or the only one described with these words."""
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
            raise ValueError(f"{_quoted(text)} is ambiguous; it fits {fitting}")
        raise ValueError(f"unknown choice {_quoted(text)}; legal are {fitting}")

    def _faces(self, places: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(self.dice[place] for place in places))

    def _read_hold(self, text: str, line: str) -> int | None:
        """Return the final hold that a line chooses, or None if the line only changes the dice kept so far."""
        if line in ("", "roll"):
            if self.kept is None:
                raise ValueError(
                    "no dice are chosen yet: k 1 3 keeps dice 1 and 3, stop keeps all, help shows more"
                )
            return self._hold_of[self._faces(self.kept)]
        if line == "wood" and _WOOD in self._hold_of:
            raise ValueError(
                "wood is ambiguous; it is one die, or the letters w, o, o, d: type keep wood, or k and the numbers"
            )
        if line not in _NAMES and (found := self._spelled(line)) is not None:
            return found
        what = re.fullmatch(r"(k|keep|r|re-?roll)(?:\b|(?=[1-9])) ?(.*)", line)
        if what is None:
            return self._hold_of[() if line == "none" else self._named(text, line.split())]
        keep = what[1].startswith("k")
        words = [word for word in what[2].split() if word not in ("dice", "die", "and")]
        if "".join(words).isdecimal():
            self._change("".join(words), keep=keep)
            return None
        if words == ["all"]:
            return self._hold_of[self._faces(range(DICE) if keep else ())]
        faces = self._named(text, words)
        if not keep:
            faces = tuple(sorted((Counter(self.dice) - Counter(faces)).elements()))
        return self._hold_of[faces]

    def _change(self, numbers: str, *, keep: bool) -> None:
        """Add the dice with these numbers to the hold, or remove the dice from the hold if `keep` is False."""
        if not set(numbers) <= set("12345"):
            raise ValueError(f"the number of a die must be from 1 to 5, got {', '.join(numbers[:20])}")
        dice = frozenset(int(number) - 1 for number in numbers)
        none = frozenset[int]() if keep else frozenset(range(DICE))
        before = none if self.kept is None else self.kept
        self._holds.append(before | dice if keep else before - dice)

    def _named(self, text: str, words: list[str]) -> tuple[int, ...]:
        """Return the sorted faces given as names or letters; raise ValueError if the dice do not show them."""
        letters = [FACES[_NAMES.index(word)] if word in _NAMES else word for word in words]
        faces = [FACES.find(letter) for letter in "".join(letters)]
        if not faces or -1 in faces:
            raise ValueError(
                f"unknown choice {_quoted(text)}; keep dice by number (k 1 3), name (keep water fire) or letter (wf); "
                "stop keeps all, none re-rolls all, list shows every choice"
            )
        if missing := Counter(faces) - Counter(self.dice):
            there = ", ".join(_NAMES[face] for face in self.dice)
            raise ValueError(f"too few dice show {_NAMES[min(missing)]}; the dice are {there}")
        return tuple(sorted(faces))


def _normalized(text: str) -> str:
    """Return a line in lower case, without commas and extra spaces."""
    return " ".join(text.lower().replace(",", " ").split())


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def question(decision: Decision) -> str:
    """Return the question that the decision asks."""
    state = decision.state[0]
    if state["phase"] == Phase.EXTRA:
        return "an extra turn?"
    if not decision.is_hold:
        return f"your move by {show_dice(state['dice'])}"
    left = int(state["rolls_left"])
    if not left:
        return "once more by the eye of the tiger, or stop?"
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
    """Return the choices, one per line. Holds are not numbered, because a typed number means a die."""
    return "\n".join(
        f"{'' if decision.is_hold else number:>3}  {choice.notation:<16} {choice.words}"
        for number, choice in enumerate(decision.choices, 1)
    )


def hint(decision: Decision, advisor: Advisor) -> str:
    """Return the two best choices, the difference of their equities, and the source of the equities, as lines."""
    (equity, best), *others = _ranked(decision, advisor)[:2]
    lines = [f"best: {best.words} ({best.notation})"]
    for less, other in others:
        lines.append(f"next: {other.words} ({other.notation}), {equity - less:.3f} less")
    return "\n".join([*lines, f"by {advisor.source}"])


def equities(decision: Decision, advisor: Advisor, most: int | None = None) -> str:
    """Return a table of the choices, best first: equity, win probability, regret."""
    ranked, players = _ranked(decision, advisor), decision.game.rules.players
    lines = ["equity  to win regret  choice"]
    for equity, choice in ranked[:most]:
        chance = ((players - 1) * equity + 1) / players  # R10 solved for the win probability
        regret = ranked[0][0] - equity
        lines.append(f"{equity:+.3f}  {chance:6.1%}  {regret:.3f}  {choice.notation:<16} {choice.words}")
    if most is not None and len(ranked) > most:
        lines.append(f"and {len(ranked) - most} more: equity all")
    return "\n".join([*lines, f"by {advisor.source}"])


def _ranked(decision: Decision, advisor: Advisor) -> list[tuple[float, Choice]]:
    """Return the choices with their equities, best first."""
    equity = advisor.analyze(decision.state).actions[0].tolist()
    choices = sorted(decision.choices, key=lambda choice: -equity[choice.action])
    return [(equity[choice.action], choice) for choice in choices]
