"""A position as one line of text, like FEN in chess; docs/reference/notation.md describes the format."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from wotd_env.core.arguments import check_choice
from wotd_env.core.checks import check_one, check_states
from wotd_env.core.rules import (
    ABOUT,
    DEAD,
    DICE,
    ELEMENTS,
    EMPTY,
    MAX_PLAYERS,
    MAX_SPACES,
    NUMBERED,
    PATHS,
    Phase,
    Rules,
    read_value,
)  # fmt: skip
from wotd_env.core.state import STATE, States, as_state

SEATS = "ABCDE"  # the letters of the seats and of their pieces
LETTERS = "wfmeod"
"""The letters of the faces water, fire, metal, earth, wood and dragon. The first five also denote paths and colors."""
UNROLLED = "?"

_NUMBERS_BEGIN = "|"
_PHASES = [phase.name.lower() for phase in Phase]
_LONGEST = 1000  # limit in characters; valid positions have at most about 250
_FIELDS = ("board", "colors", "turn", "seat", "phase", "re-rolls", "dice")
_ON_BOARD = ("players", "spaces")  # the fields of the rules that the first two words, board and colors, show


def position(rules: Rules, state: States, stream: bool = False) -> str:
    """Return a position as one line of text. `state` is STATE (1,), in any phase.

    If `stream` is true, the line includes the random stream, which determines the future dice. Raise ValueError for an
    invalid record.
    """
    check_states(rules, state)
    check_one(state)
    record = as_state(state)[0]
    colors = letters(record["color"])
    playing, unused = colors[: rules.players], colors[rules.players :]
    words = [
        "/".join(_draw_path(rules, record, path) for path in range(PATHS)),
        playing + (f"({unused})" if unused else ""),
        str(int(record["turn"]) + 1),
        SEATS[record["player"]],
        _PHASES[record["phase"]],
        str(record["rolls_left"]),
        letters(record["dice"]),
    ]
    if used := "".join(letter for seat, letter in enumerate(SEATS) if record["used"] >> seat & 1):
        words.append(f"used={used}")
    words += [name for name in ("perfection", "expired") if record[name]]
    for field in fields(Rules):
        value = getattr(rules, field.name)
        usual = count_dead(record) if field.name == "dead_pieces" else field.default
        if value != usual and field.name not in _ON_BOARD:
            text = ",".join(value) if isinstance(value, tuple) else value
            words.append(field.name if value is True else f"{field.name}={text}")
    if stream:
        words.append(f"stream={record['rng']:016x}")
    return " ".join(words)


def parse_position(text: str) -> tuple[Rules, States]:
    """Parse a line of text written by `position`.

    Returns:
        The rules, and the game, STATE (1,). The field `rng` of the game is 0 if the line has no stream.

    Raises:
        ValueError: for a malformed line; the error contains the field, the expected text and the actual text.
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        got = f"{len(text):,} characters" if isinstance(text, str) else repr(text)
        raise ValueError(f"a position must be one line of at most {_LONGEST:,} characters, got {got}")
    words = text.split()
    if len(words) < len(_FIELDS):
        raise ValueError(f"a position must begin with {', '.join(_FIELDS)}, got {text!r}")
    state = np.zeros(1, STATE)
    record = state[0]
    board, colors, turn, seat, phase, rolls_left, dice = words[: len(_FIELDS)]
    spaces = _read_board(record, board)
    players = _read_colors(record, colors)
    record["players"] = players
    record["turn"] = _number("turn", turn, 1, 1 << 16) - 1
    record["player"] = SEATS.index(check_choice("seat", seat, [*SEATS[:players]]))
    record["phase"] = _PHASES.index(check_choice("phase", phase, _PHASES))
    record["rolls_left"] = _number("re-rolls", rolls_left, 0, 2)
    record["dice"] = read_dice("dice", dice, UNROLLED)
    given: dict[str, Any] = {"players": players, "spaces": spaces, "dead_pieces": count_dead(record)}
    _read_rest(record, words[len(_FIELDS) :], given)
    try:
        rules = Rules(**given)
        check_states(rules, state)
    except ValueError as error:
        raise ValueError(f"position: {str(error).removeprefix('game 0: ')}") from None
    return rules, state


def letters(faces: Any) -> str:
    """Return faces or colors as letters, e.g. (0, 5, -1) -> "wd?"; -1 is an unrolled die."""
    return "".join((LETTERS + UNROLLED)[face] for face in faces)


def read_dice(what: str, text: str, more: str = "") -> list[int]:
    """Return the five faces in a text, ascending, e.g. "wmdfw" -> [0, 0, 1, 2, 5].

    If `more` is "?", the text may contain unrolled dice, e.g. "wm?f?" -> [0, 1, 2, -1, -1].
    """
    if len(text) != DICE or not set(text) <= set(LETTERS + more):
        symbols = ", ".join(LETTERS + more)
        raise wrong(what, f"{DICE} letters out of {symbols}", text)
    faces = sorted((LETTERS + more).index(letter) for letter in text)
    return [face if face < len(LETTERS) else -1 for face in faces]


def wrong(what: str, expected: str, got: str) -> ValueError:
    """Return the error for an invalid part of a text."""
    return ValueError(f"{what} must be {expected}, got {got if len(got) <= 60 else got[:57] + '...'!r}")


def _draw_path(rules: Rules, record: np.void, path: int) -> str:
    marks = [DEAD if record["dead"][path] >> at & 1 else EMPTY for at in range(rules.spaces + NUMBERED + 1)]
    for seat in range(rules.players):
        marks[record["pieces"][seat, path]] = SEATS[seat]  # space 0 is off the board and is not drawn
    return "".join(marks[1 : rules.spaces + 1]) + _NUMBERS_BEGIN + "".join(marks[rules.spaces + 1 :])


def _read_board(record: np.void, text: str) -> int:
    """Write the pieces in `text` to the record, and return the number of plain spaces on a path."""
    paths = text.split("/")
    if len(paths) != PATHS:
        raise wrong("board", f"{PATHS} paths, {', '.join(ELEMENTS)}, with / between them", text)
    spaces = paths[0].find(_NUMBERS_BEGIN)
    for path, drawn in enumerate(paths):
        plain, bar, numbered = drawn.partition(_NUMBERS_BEGIN)
        name = f"board: path {path + 1} ({ELEMENTS[path]})"
        if not bar or len(plain) > MAX_SPACES or len(numbered) != NUMBERED:
            raise wrong(name, f"0 to {MAX_SPACES} plain spaces, then | and {NUMBERED} numbered ones", drawn)
        if len(plain) != spaces:
            raise wrong(name, f"as long as the first path, with {spaces} plain spaces", drawn)
        for space, mark in enumerate(plain + numbered, start=1):
            if mark == DEAD and space <= spaces:
                record["dead"][path] |= 1 << space
            elif mark in SEATS and not record["pieces"][SEATS.index(mark), path]:
                record["pieces"][SEATS.index(mark), path] = space
            elif mark != EMPTY:
                expected = f"made of . and the letters {SEATS}, each once at most, and # on plain spaces"
                raise wrong(name, expected, drawn)
    return spaces


def _read_colors(record: np.void, text: str) -> int:
    """Write the colors of the seats to the record, and return the number of players."""
    playing, _, rest = text.partition("(")
    players = len(playing)
    unused = rest.removesuffix(")")
    expected = f"the colors {LETTERS[:PATHS]} in any order, unused ones in brackets, as in wf(meo)"
    if sorted(playing + unused) != sorted(LETTERS[:PATHS]) or text != playing + f"({unused})" * bool(unused):
        raise wrong("colors", expected, text)
    if players < 2:
        raise wrong("colors", f"the colors of 2 to {MAX_PLAYERS} seats before the bracket", text)
    record["color"] = [LETTERS.index(letter) for letter in playing + unused]
    return players


def _read_rest(record: np.void, words: list[str], given: dict[str, Any]) -> None:
    """Write the values of the words after the dice to the record or, for fields of the rules, to `given`."""
    seen = set()
    for word in words:
        name, _, value = word.partition("=")
        if name in seen:
            raise ValueError(f"position: {name} must be given once, got it twice")
        seen.add(name)
        if word in ("perfection", "expired"):
            record[word] = 1
        elif word == "truncated":  # the former name of `expired`
            record["expired"] = 1
        elif word in ABOUT and ABOUT[word].choices == (False, True):
            given[word] = True
        elif name == "used":
            if not value or list(value) != sorted(set(value)) or not set(value) <= set(SEATS):
                raise wrong("used", "the seats that have used their power, as in used=AC", word)
            record["used"] = sum(1 << SEATS.index(seat) for seat in value)
        elif name == "stream":
            if len(value) != 16 or not set(value) <= set("0123456789abcdef"):
                raise wrong("stream", "16 hexadecimal digits", word)
            record["rng"] = int(value, 16)
        elif name in ABOUT and name not in _ON_BOARD and value:
            given[name] = read_value(name, value)
        else:
            expected = "used=SEATS, perfection, expired, a rule such as powers=own, or stream=DIGITS"
            raise wrong("position: words after the dice", expected, word)


def count_dead(record: np.void) -> int:
    """Return the number of dead pieces on the board."""
    return sum(int(dead).bit_count() for dead in record["dead"])


def _number(what: str, text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(high)) and low <= int(text) <= high):
        raise wrong(what, f"a number from {low} to {high}", text)
    return int(text)
