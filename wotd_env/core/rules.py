"""The vocabulary of the game (elements, powers, phases) and the rules of its variants."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import check_bool, check_choice, check_integer

ELEMENTS = ("water", "fire", "metal", "earth", "wood")
"""Names of the elements; path e, color e and face e belong to element e."""

POWERS = ("fear", "rebirth", "eye of the tiger", "anxiety", "the dragon")
"""Names of the powers; power e belongs to color e (R12)."""

DRAGON = 5
PATHS = 5
DICE = 5
NUMBERED = 5
MAX_PLAYERS = 5
REROLLS = 2
MAX_SPACES = 10

POWER_MODES = ("none", "own", "any")

Numbers = TypeVar("Numbers", float, NDArray[np.floating[Any]])


class Power(IntEnum):
    """The powers; each power has the number of its color (R12)."""

    FEAR = 0  #: do not move although a move is possible (water)
    REBIRTH = 1  #: an extra turn (fire)
    TIGER = 2  #: one more re-roll (metal)
    ANXIETY = 3  #: jump over the pieces in the way (earth)
    DRAGON = 4  #: dragons count as one element (wood)


class Phase(IntEnum):
    """The kind of the next event or decision."""

    CHANCE = 0  #: roll the dice
    KEEP = 1  #: choose the dice to keep
    MOVE = 2  #: choose a move, a swap, or neither
    EXTRA = 3  #: choose whether to take an extra turn
    OVER = 4  #: no event, because the game has ended


@dataclass(frozen=True)
class Rules:
    """The rules of one game. An invalid field raises a `ValueError` that names the field.

    Attributes:
        players: number of seats, 2 to 5.
        spaces: plain spaces on each path before its five numbered ones, 0 to 10.
        powers: `"none"` (basic game), `"own"` (each seat has the power of its color) or `"any"` (each seat may choose
            a power). A seat may use a power once per game (R11).
        immunity: a piece on the path of its own color cannot be swapped (R14).
        dead_pieces: number of pieces of unused colors on random plain spaces, at most 5 * (5 - players) (R15).
        colors: colors of the seats: None for the order of `ELEMENTS`, `"random"` for a new draw in each game, or one
            element name for each seat.
        start: the starting player (R1): `"dragons"`, `"loser"`, or a seat.
        max_turns: turns after which a game ends without a winner, 1 to 65535 (R16).
    """

    players: int = 2
    spaces: int = 7
    powers: str = "none"
    immunity: bool = False
    dead_pieces: int = 0
    colors: str | tuple[str, ...] | None = None
    start: int | str = "dragons"
    max_turns: int = 1000

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "players", check_integer("players", self.players, 2, MAX_PLAYERS))
        set_field(self, "spaces", check_integer("spaces", self.spaces, 0, MAX_SPACES))
        check_choice("powers", self.powers, POWER_MODES)
        set_field(self, "immunity", check_bool("immunity", self.immunity))
        room = PATHS * self.spaces
        most = min(PATHS * (MAX_PLAYERS - self.players), room)
        why = f"for {self.players} players on {room} plain spaces"
        set_field(self, "dead_pieces", check_integer("dead_pieces", self.dead_pieces, 0, most, why))
        set_field(self, "colors", _colors(self.colors, self.players))
        if isinstance(self.start, str):
            if self.start not in ("dragons", "loser"):
                raise ValueError(f"start must be 'dragons', 'loser' or a seat number, got {self.start!r}")
        else:
            set_field(self, "start", check_integer("start", self.start, 0, self.players - 1, "as a seat"))
        set_field(self, "max_turns", check_integer("max_turns", self.max_turns, 1, 65535))

    @classmethod
    def from_dict(cls, values: Any) -> Rules:
        """Return the rules described by `values`, a dict made by `dataclasses.asdict` or loaded from JSON.

        Raises:
            ValueError: for an unknown field or an invalid value.
        """
        names = [field.name for field in fields(cls)]
        if not isinstance(values, dict) or not values.keys() <= set(names):
            raise ValueError(f"rules must be a dict with keys among {', '.join(names)}, got {values!r}")
        return cls(**values)


def win_share(reward: Numbers, players: int) -> Numbers:
    """Convert rewards to shares of the win (R10): 1 for the only winner, 1/n for the reward 0, and 0 for a loser."""
    return (1 + reward * (players - 1)) / players


def share_difference(difference: Numbers, players: int) -> Numbers:
    """Convert differences of rewards, such as regret and luck, to differences of shares of the win."""
    return difference * (players - 1) / players


def rules_for(made: type, given: Mapping[str, Any], rules: Rules | None = None) -> Rules:
    """Return `rules`, or `Rules(**given)` if `rules` is None.

    `given` and `rules` are arguments of the class `made`; errors contain the name of this class.

    Raises:
        TypeError: for an unknown field, for fields in addition to `rules`, or if `rules` is not a Rules. The error
            for an unknown field has Python's wording, which TorchRL relies on.
        ValueError: for an invalid value.
    """
    names = [field.name for field in fields(Rules)]
    for name in given:
        if name not in names:
            options = inspect.signature(made).parameters.values()
            names += [option.name for option in options if option.kind != option.VAR_KEYWORD]
            near = difflib.get_close_matches(name, names, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known arguments: {', '.join(names)}"
            raise TypeError(f"{made.__name__}.__init__() got an unexpected keyword argument {name!r}. {hint}")
    if rules is None:
        return Rules(**given)
    if given:
        raise TypeError(f"{made.__name__} takes rules or fields, not both: got rules and {', '.join(given)}")
    if not isinstance(rules, Rules):
        raise TypeError(f"rules must be a Rules, got {rules!r}")
    return rules


def options_of(rules: Rules) -> list[str]:
    """Return the command-line options for the fields that differ from the defaults, e.g. ["--players", "3"]."""
    words = []
    for field in fields(rules):
        if (value := getattr(rules, field.name)) != field.default:
            words.append(f"--{field.name.replace('_', '-')}")
            if value is not True:
                words.append(",".join(value) if isinstance(value, tuple) else str(value))
    return words


def _colors(colors: Any, players: int) -> str | tuple[str, ...] | None:
    if colors is None or (isinstance(colors, str) and colors == "random"):
        return colors
    names = list(colors) if isinstance(colors, Sequence) and not isinstance(colors, str) else []
    known = all(isinstance(name, str) and name in ELEMENTS for name in names)
    if not known or not len(names) == len(set(names)) == players:
        expected = f"None, 'random' or {players} different names among {', '.join(ELEMENTS)}"
        raise ValueError(f"colors must be {expected}, got {colors!r}")
    return tuple(names)
