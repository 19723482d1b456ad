"""What comes in from outside: read, checked, and turned into plain values, or refused with one reason."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import States
from wotd_env.notation import parse_position
from wotd_env.web.limits import Refused

__all__ = ["KINDS", "NAME", "PACE", "NewSeat", "NewTable", "new_table", "read", "read_name", "whole", "word"]

KINDS = ("here", "invited", "open", "agent")
"""Who has a seat: a person at the screen of whoever sets the table up, one with an invitation, anyone, or an agent."""
NAME = 24
"""Characters of a name at most."""
PACE = (0.0, 5.0, 0.8)
"""Seconds between decisions that nobody at a screen takes: least, most, default."""

_LEAST_AMONG_AGENTS = 0.2  # seconds of pace: nobody holds them up, and others want to play too
_TURNS = 1000  # at most: the length of a game is memory and disk
_TEXT = 1000


@dataclass
class NewSeat:
    """A seat as it is asked for."""

    kind: str
    name: str = ""
    agent: str | None = None


@dataclass
class NewTable:
    """A table as it is asked for."""

    rules: Rules
    position: States | None
    """STATE (1,) to begin the first game in, if one is given"""
    seats: list[NewSeat]
    help: bool
    pace: float


def read(content: bytes | str, *names: str) -> dict[str, Any]:
    """Return the object that a message is, in JSON.

    Args:
        content: the message.
        *names: the fields that it may have.

    Raises:
        Refused: if it is none, or has others.
    """
    try:
        body = json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Refused(400, "the request must be a JSON object in UTF-8") from None
    if not isinstance(body, dict):
        raise Refused(400, "the request must be a JSON object")
    for name in body:
        if name not in names:
            raise Refused(400, f"unknown field {_show(name)}; the fields are {', '.join(names)}", name[:NAME])
    return body


def _no_number(name: str) -> Any:
    raise ValueError(name)


def _show(value: Any) -> str:
    shown = json.dumps(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def whole(body: dict[str, Any], name: str, least: int = 0, most: int = 1 << 31) -> int:
    """Return a field that is a whole number.

    Raises:
        Refused: if it is missing or none.
    """
    value = body.get(name)
    if type(value) is not int or not least <= value <= most:
        raise Refused(400, f"{name} must be a whole number from {least} to {most}, got {_show(value)}", name)
    return value


def word(body: dict[str, Any], name: str, most: int = 64) -> str:
    """Return a field that is a text of 1 to `most` characters.

    Raises:
        Refused: if it is missing or none.
    """
    value = body.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= most:
        raise Refused(400, f"{name} must be a text of 1 to {most} characters, got {_show(value)}", name)
    return value


def read_name(body: dict[str, Any], default: str = "") -> str:
    """Return the name of a person.

    Raises:
        Refused: if it is none.
    """
    value = body.get("name", "")
    if not isinstance(value, str) or len(value) > NAME or not value.isprintable():
        reason = f"name must be a text of at most {NAME} characters that can be shown, got {_show(value)}"
        raise Refused(400, reason, "name")
    return unicodedata.normalize("NFC", value.strip())[:NAME] or default


def new_table(body: dict[str, Any], agents: Collection[str]) -> NewTable:
    """Return the table that a request asks for.

    Raises:
        Refused: naming what is wrong.
    """
    position = None
    if body.get("position") is not None:
        if body.get("rules"):
            raise Refused(
                400, "rules must be left out where position is given, which brings its own", "rules"
            )
        rules, position = _position(word(body, "position", _TEXT))
    else:
        rules = _rules(body.get("rules", {}))
    given = body.get("seats")
    if not isinstance(given, list) or len(given) != rules.players:
        reason = f"seats must be a list with one entry for each of the {rules.players} players"
        raise Refused(400, f"{reason}, got {_show(given)}", "seats")
    seats = [_seat(number, each, agents) for number, each in enumerate(given)]
    kinds = {seat.kind for seat in seats}
    helped = body.get("help")
    if helped is None:
        helped = not kinds & {"invited", "open"}
    if not isinstance(helped, bool):
        raise Refused(400, f"help must be true or false, got {_show(helped)}", "help")
    return NewTable(rules, position, seats, helped, _pace(body.get("pace", PACE[2]), kinds))


def _rules(values: Any) -> Rules:
    if isinstance(values, dict):
        values = {name: value for name, value in values.items() if value is not None}
    try:
        rules = Rules.from_dict(values)
    except (ValueError, TypeError, OverflowError) as error:
        named = [field.name for field in fields(Rules) if str(error).startswith(field.name)]
        raise Refused(400, str(error), named[0] if named else "rules") from None
    return _checked_turns(rules, "max_turns")


def _checked_turns(rules: Rules, field: str) -> Rules:
    if rules.max_turns > _TURNS:
        raise Refused(400, f"max_turns must be at most {_TURNS} here, got {rules.max_turns}", field)
    return rules


def _position(text: str) -> tuple[Rules, States]:
    try:
        rules, state = parse_position(text)
    except ValueError as error:
        raise Refused(400, str(error), "position") from None
    if state["phase"][0] == Phase.OVER:
        raise Refused(400, "position must be one in which the game goes on, got one that is over", "position")
    state["rng"] = 0  # whoever wrote a stream into the line would know the dice to come
    if isinstance(rules.start, int):
        rules = replace(rules, start="dragons")
    return _checked_turns(rules, "position"), state


def _seat(number: int, given: Any, agents: Collection[str]) -> NewSeat:
    field = f"seats[{number}]"
    if not isinstance(given, dict) or not given.keys() <= {"kind", "name", "agent"}:
        raise Refused(
            400, f"{field} must be an object with kind, name or agent alone, got {_show(given)}", field
        )
    kind = given.get("kind")
    if kind not in KINDS:
        raise Refused(400, f"{field}: kind must be one of {', '.join(KINDS)}, got {_show(kind)}", field)
    if kind != "agent":
        if given.get("agent") is not None:
            raise Refused(400, f"{field}: agent must be left out unless kind is agent", field)
        return NewSeat(kind, read_name(given) if kind == "here" else "")
    agent = given.get("agent")
    if not isinstance(agent, str) or agent not in agents:
        raise Refused(400, f"{field}: agent must be one of {', '.join(agents)}, got {_show(agent)}", field)
    return NewSeat(kind, agent, agent)


def _pace(value: Any, kinds: set[str]) -> float:
    least, most, _ = PACE
    if kinds == {"agent"}:
        least = _LEAST_AMONG_AGENTS
    if type(value) not in (int, float) or not math.isfinite(value) or not least <= value <= most:
        raise Refused(400, f"pace must be a number from {least:g} to {most:g}, got {_show(value)}", "pace")
    return float(value)
