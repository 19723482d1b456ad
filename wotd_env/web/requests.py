"""Schemas for the messages from clients, and functions that read them.

msgspec checks the types and sizes of the JSON values. wotd_env checks the rules, positions and games. An invalid
message raises `Refused`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import fields, replace
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import States
from wotd_env.notation import RecordedGame, parse_game, parse_position
from wotd_env.web.refused import Refused

KINDS = ("here", "invited", "open", "agent")
"""Kinds of seats: for a person at the host's screen, for a person with an invitation, for anyone, for an agent."""
NAME_LENGTH = 24
"""Maximum number of characters in a person's name."""
PACE = {"least": 0.0, "most": 5.0, "default": 0.8}
"""Seconds that the server waits before a decision of an agent or a forced decision."""

_LEAST_AMONG_AGENTS = 0.2  # shortest wait, in seconds, at a table where all seats are agents
MAX_TURNS = 1000  # largest `max_turns`, to limit memory and disk space

_JOINERS = "\u200c\u200d"  # unprintable, but parts of words in Hindi and of emoji

_Whole = Annotated[int, Meta(ge=0, le=1 << 31)]
_Word = Annotated[str, Meta(min_length=1, max_length=64)]
_Key = Annotated[str, Meta(min_length=32, max_length=64)]
_Name = Annotated[str, Meta(max_length=NAME_LENGTH)]
_Pace = Annotated[float, Meta(ge=PACE["least"], le=PACE["most"])]


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """Base of all messages."""


class Hello(Message, tag="hello"):
    """The first message on a socket, with the key of the client."""

    key: _Word


class Act(Message, tag="act"):
    """A decision. `ply` is its index in the game, and `action` is a number or a word of the notation.

    `game` is the number of the game; None stands for the present one.
    """

    ply: _Whole
    action: _Whole | _Word
    game: _Whole | None = None


class Next(Message, tag="next"):
    """A request for the next game. `game` is the number of the finished game."""

    game: _Whole


class SetPace(Message):
    """A request to change the pace of a table; None pauses the table."""

    pace: _Pace | None


class Step(Message):
    """A request to take decision number `ply` without a wait. The decision must be forced, or an agent's.

    With `rush`, the following decisions are also taken without a wait, until a person must act.
    """

    ply: _Whole
    game: _Whole | None = None
    rush: bool = False


class Resign(Message):
    """A request to resign a game on behalf of a seat."""

    game: _Whole
    seat: _Whole


def forbidden(name: str) -> list[str]:
    """Return the names and numbers of the characters that a name must not contain."""
    found = dict.fromkeys(each for each in name if not each.isprintable() and each not in _JOINERS)
    return [f"{unicodedata.name(each, 'control character')} (U+{ord(each):04X})" for each in found]


class _UnprintableError(ValueError):
    """Raised for a name with unprintable characters."""


class Named(Message):
    """Base of messages with a person's name."""

    name: _Name = ""

    def __post_init__(self) -> None:
        if found := forbidden(self.name):
            raise _UnprintableError(", ".join(found))
        if not self.name.strip(f" {_JOINERS}"):
            self.name = ""
        self.name = unicodedata.normalize("NFC", self.name.strip())[:NAME_LENGTH]


class Join(Named):
    """A request to take a seat: the seat of an invitation, or an open seat.

    `key` becomes the key of the seat, by default a new one. A repeated request with the same key takes no second seat.
    """

    key: _Key | None = None
    invitation: _Word | None = None
    seat: _Whole | None = None


class Invitation(Message):
    """A request for facts about a table. With an `invitation`, the response also contains the invited seat."""

    invitation: _Word | None = None


class HandOver(Message):
    """A request to let an agent play for a seat or, if `agent` is None, to return the seat to its person."""

    seat: _Whole
    agent: _Word | None


class Recorded(Message):
    """A recorded game or a position as text; `review` asks for grades of the game's decisions."""

    text: Annotated[str, Meta(min_length=1)]
    review: bool = False


class RulesOrPosition(Message):
    """Base of messages with either rules or a position. The text of a position includes its rules."""

    rules: dict[str, Any] | None = None
    position: Annotated[str, Meta(min_length=1, max_length=1000)] | None = None


class StudiedPosition(RulesOrPosition):
    """A request for the legal actions in a position.

    The response includes the decisions of up to two `agents` and, if `values` is true, the chance to win after each
    legal action.
    """

    values: bool = False
    agents: Annotated[list[_Word], Meta(max_length=2)] = []


class NewSeat(Named):
    """A request for one seat of a new table."""

    kind: str = "here"
    agent: _Word | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {_show(self.kind)}")
        if (self.kind == "agent") != (self.agent is not None):
            raise ValueError(f"agent must be given if kind is agent, and only then, got {_show(self.agent)}")
        if self.kind != "here":
            self.name = ""


class NewTable(RulesOrPosition, kw_only=True):
    """A request to set up a table.

    `key` becomes the key of the host, by default a new one. A repeated request with the same key sets up no second
    table.
    """

    key: _Key | None = None
    seats: list[NewSeat]
    help: bool | None = None
    pace: _Pace = PACE["default"]
    clock: Annotated[float, Meta(ge=1, le=86400)] | None = None


Schema = TypeVar("Schema")
_IN_WORDS = {
    "int": "an integer", "float": "a number", "str": "text", "bool": "true or false", "array": "a list",
    "object": "an object", " | ": " or ",
}  # fmt: skip


def read(content: bytes | str, schema: type[Schema]) -> Schema:
    """Read a message from its JSON text."""
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Refused(400, "syntax") from None
    try:
        return msgspec.convert(value, schema)
    except msgspec.ValidationError as error:
        raise _refused(value, error) from None


def invalid(field: str | None, reason: object) -> Refused:
    """Return the refusal of an invalid field, for a reason in English."""
    return Refused(400, "invalid", field, reason=reason)


def _refused(value: Any, error: msgspec.ValidationError) -> Refused:
    """Translate an error of msgspec, such as "Expected `int`, got `str` - at `$.ply`", into `Refused`."""
    reason, _, path = str(error).partition(" - at `$")
    field = path.strip(".`")
    if unset := re.search(r"(missing|unknown) .*`(.*)`", reason):
        field = f"{field}.{unset[2][:NAME_LENGTH]}".strip(".")
        return invalid(field, f"{field} {'is missing' if unset[1] == 'missing' else 'is unknown here'}")
    if isinstance(error.__cause__, _UnprintableError):
        return Refused(400, "name", f"{field}.name".strip("."), name=reason)
    if not reason.startswith(("Expected", "Invalid")):  # an error from a __post_init__
        return invalid(field or reason.partition(" ")[0], f"{field}: {reason}" if field else reason)
    wanted = reason.partition(", got")[0].removeprefix("Expected ")
    for kind, words in _IN_WORDS.items():
        wanted = wanted.replace(kind, words)
    for name, index in re.findall(r"([a-z_]+)|\[(\d+)\]", field):
        value = value[name] if name else value[int(index)]
    must = "must have another value" if reason.startswith("Invalid") else f"must be {wanted}".replace("`", "")
    return invalid(field or None, f"{field or 'the request'} {must}, got {_show(value)}")


def _show(value: Any) -> str:
    shown = json.dumps(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def check_pace(pace: float | None, only_agents: bool) -> None:
    """Raise Refused if all seats are agents (`only_agents`) and the pace is below `_LEAST_AMONG_AGENTS`."""
    if pace is not None and pace < _LEAST_AMONG_AGENTS and only_agents:
        reason = f"pace must be at least {_LEAST_AMONG_AGENTS} at a table of agents, got {pace:g}"
        raise invalid("pace", reason)


def rules_and_position(body: RulesOrPosition) -> tuple[Rules, States | None]:
    """Return the rules and the position of a request. The position, STATE (1,), is None if only rules are given."""
    if body.position is None:
        given = {name: value for name, value in (body.rules or {}).items() if value is not None}
        try:
            return _with_few_turns(Rules.from_dict(given), "max_turns"), None
        except (ValueError, TypeError, OverflowError) as error:
            field = next((each.name for each in fields(Rules) if str(error).startswith(each.name)), "rules")
            raise invalid(field, error) from None
    if body.rules:
        raise invalid("rules", "rules must be left out if position is given, which includes them")
    try:
        rules, state = parse_position(body.position)
    except ValueError as error:
        raise invalid("position", error) from None
    if state["phase"][0] == Phase.OVER:
        raise Refused(400, "position_over", "position")
    state["rng"] = 0  # otherwise the author of the position would know future dice
    if isinstance(rules.start, int):
        rules = replace(rules, start="dragons")
    return _with_few_turns(rules, "position"), state


def _with_few_turns(rules: Rules, field: str) -> Rules:
    if rules.max_turns > MAX_TURNS:
        raise invalid(field, f"max_turns must be at most {MAX_TURNS} here, got {rules.max_turns}")
    return rules


def parse_recorded(text: str) -> RecordedGame:
    """Parse the text of a recorded game or of a position. A position becomes a game without decisions."""
    try:
        if text.lstrip().startswith("["):
            recorded = parse_game(text)
        else:
            rules, state = parse_position(text)
            recorded = RecordedGame(rules, state, np.zeros(0, np.int64), ("?",) * rules.players)
    except ValueError as error:
        raise invalid("text", error) from None
    _with_few_turns(recorded.rules, "text")
    return recorded
