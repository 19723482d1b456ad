"""The vocabulary of the game (elements, powers, phases) and the rules of its variants."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

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

EMPTY, DEAD = ".#"  # spaces of a layout of dead pieces, see `wotd_env.core.layouts`
# No piece could pass these dead pieces, because dice move it by at most five spaces (R15).
BLOCKADE = DICE * DEAD

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


class About(NamedTuple):
    """The metadata of a field of `Rules`. All that reads, checks, stores or documents the field uses them."""

    words: str  # meaning, a phrase
    choices: tuple[Any, ...] = ()  # the valid values that are not integers
    least: int | None = None  # the smallest valid integer, None if integers are invalid
    most: int | None = None  # the largest valid integer, None if another field determines it
    ruling: str = ""
    affects_values: bool = True  # whether it changes values of positions, so that solved tables contain it


def about(words: str, *choices: Any, **others: Any) -> dict[str, About]:
    """Return the metadata of a field."""
    return {"about": About(words, choices, **others)}


@dataclass(frozen=True)
class Rules:
    """The rules of one game. An invalid field raises a `ValueError` that names the field."""

    players: int = field(default=2, metadata=about("seats", least=2, most=MAX_PLAYERS))
    spaces: int = field(default=7, metadata=about("plain spaces on each path", least=0, most=MAX_SPACES))
    powers: str = field(
        default="none",
        metadata=about(
            "powers that a seat can use once a game: none, own (that of its color) or any (one of its choice)",
            *POWER_MODES,
            ruling="R11",
        ),
    )
    immunity: bool = field(
        default=False,
        metadata=about("pieces on the path of their own color cannot be swapped", False, True, ruling="R14"),
    )
    dead_pieces: int | str = field(
        default=0,
        metadata=about(
            "pieces of unused colors, 5 of each at most, that block plain spaces: a layout such as '#./../../../..', "
            "or their number for random spaces in each game",
            least=0,
            most=PATHS * (MAX_PLAYERS - 2),
            ruling="R15",
        ),
    )
    colors: str | tuple[str, ...] | None = field(
        default=None,
        metadata=about(
            "colors of the seats: by default in the order of the elements; random in each game; or an element for "
            "each seat, such as water,fire",
            None,
            "random",
        ),
    )
    start: int | str = field(
        default="dragons",
        metadata=about(
            "starting player: dragons (the seat that rolls the most dragons), loser (of the previous game), or a seat",
            "dragons",
            "loser",
            least=0,
            ruling="R1",
            affects_values=False,
        ),
    )
    max_turns: int = field(
        default=1000,
        metadata=about(
            "turns until a game ends without a winner",
            least=1,
            most=65535,
            ruling="R16",
            affects_values=False,
        ),
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, self._checked(each.name, getattr(self, each.name)))

    def _checked(self, name: str, value: Any) -> Any:
        """Return a valid value of a field, given the valid fields before it; otherwise raise ValueError."""
        choices, least, most = ABOUT[name].choices, ABOUT[name].least, ABOUT[name].most
        why = ""
        if name == "dead_pieces":
            return _dead_pieces(value, self.players, self.spaces)
        elif name == "colors":
            return _colors(value, self.players)
        elif name == "start":
            most, why = self.players - 1, "as a seat"
            if isinstance(value, str) and value not in choices:
                raise ValueError(f"start must be 'dragons', 'loser' or a seat number, got {value!r}")
        if choices == (False, True):
            return check_bool(name, value)
        if least is None or (isinstance(value, str) and value in choices):
            return check_choice(name, value, choices)
        return check_integer(name, value, least, np.inf if most is None else most, why)

    @classmethod
    def from_dict(cls, values: Any) -> Rules:
        """Return the rules described by `values`, a dict made by `dataclasses.asdict` or loaded from JSON.

        Raises:
            ValueError: for an unknown field or an invalid value.
        """
        if not isinstance(values, dict) or not values.keys() <= ABOUT.keys():
            raise ValueError(f"rules must be a dict with keys among {', '.join(ABOUT)}, got {values!r}")
        return cls(**values)


ABOUT: dict[str, About] = {each.name: each.metadata["about"] for each in fields(Rules)}
"""The metadata of the fields of `Rules`, by name."""


def in_words(name: str) -> str:
    """Return the meaning of a field and its range, a phrase."""
    known = ABOUT[name]
    return known.words if known.most is None else f"{known.words}, {known.least} to {known.most}"


Rules.__doc__ = f"{Rules.__doc__}\n\nAttributes:" + "".join(
    f"\n    {name}: {in_words(name)}." for name in ABOUT
)


def valid_values() -> dict[str, dict[str, Any]]:
    """Return the default and the valid values of each field, as data for other programs.

    The keys are `default`, `values` (the choices) and `least` and `most` (the range of integers).
    """
    valid: dict[str, dict[str, Any]] = {}
    for each in fields(Rules):
        known = ABOUT[each.name]
        options = {"values": known.choices or None, "least": known.least, "most": known.most}
        valid[each.name] = {name: value for name, value in options.items() if value is not None}
        valid[each.name]["default"] = each.default
    return valid


def number_of(name: str, value: Any) -> int:
    """Return a choice or an integer of a field as a number for compiled code.

    Choices are 0, 1, ... or, if integers are also valid, -1, -2, ....
    """
    if isinstance(value, int):
        return int(value)
    index = ABOUT[name].choices.index(value)
    return index if ABOUT[name].least is None else ~index


def read_value(name: str, text: str) -> Any:
    """Parse the value of a field whose type is not bool. `Rules` checks the value."""
    if text.isascii() and text.isdecimal():
        return int(text)
    return tuple(text.split(",")) if name == "colors" and text != "random" else text


def essence(rules: Rules) -> Rules:
    """Return the rules with default values in the fields that do not change values of positions."""
    return replace(
        rules, **{name: getattr(Rules, name) for name, known in ABOUT.items() if not known.affects_values}
    )


def win_share(reward: Numbers, players: int) -> Numbers:
    """Convert rewards to shares of the win (R10): 1 for the only winner, 1/n for the reward 0, and 0 for a loser."""
    return (1 + reward * (players - 1)) / players


def reward_of(share: Any, players: int, whole: Any = 1) -> Any:
    """Convert a share of the win to a reward, the inverse of `win_share`. The share is `share / whole`."""
    return (players * share / whole - 1) / (players - 1)


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
    for name in given:
        if name not in ABOUT:
            options = inspect.signature(made).parameters.values()
            names = [*ABOUT, *(option.name for option in options if option.kind != option.VAR_KEYWORD)]
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
    for each in fields(rules):
        if (value := getattr(rules, each.name)) != each.default:
            words.append(f"--{each.name.replace('_', '-')}")
            if value is not True:
                words.append(",".join(value) if isinstance(value, tuple) else str(value))
    return words


def _dead_pieces(dead: Any, players: int, spaces: int) -> int | str:
    room = PATHS * spaces
    most = min(PATHS * (MAX_PLAYERS - players), room)
    why = f"for {players} players on {room} plain spaces"
    if not isinstance(dead, str):
        return check_integer("dead_pieces", dead, 0, most, why)
    paths, wrong = dead.split("/"), ""
    if len(paths) != PATHS or set(dead) - {DEAD, EMPTY, "/"}:
        wrong = f"a number or {PATHS} paths of {EMPTY} and {DEAD} with / between them, as in '#./../../../..'"
    elif {*map(len, paths)} != {spaces}:
        wrong = f"on plain spaces, {spaces} on each path (R15)"
    elif BLOCKADE in dead:
        wrong = f"fewer than {DICE} in a row, because no piece could pass them (R15)"
    elif dead.count(DEAD) > most:
        wrong = f"at most {most} {why} (R15)"
    if wrong:
        raise ValueError(f"dead_pieces must be {wrong}, got {dead!r}")
    return dead if DEAD in dead else 0


def _colors(colors: Any, players: int) -> str | tuple[str, ...] | None:
    if colors is None or (isinstance(colors, str) and colors == "random"):
        return colors
    names = list(colors) if isinstance(colors, Sequence) and not isinstance(colors, str) else []
    known = all(isinstance(name, str) and name in ELEMENTS for name in names)
    if not known or not len(names) == len(set(names)) == players:
        expected = f"None, 'random' or {players} different names among {', '.join(ELEMENTS)}"
        raise ValueError(f"colors must be {expected}, got {colors!r}")
    return tuple(names)
