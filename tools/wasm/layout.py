"""The description of wotd.wasm, for wotd.js: a custom section of the module, in JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from wotd_env.core.actions import Action, num_actions
from wotd_env.core.config import CONFIG
from wotd_env.core.observation import ENCODINGS, parts
from wotd_env.core.rules import ELEMENTS, MAX_PLAYERS, MAX_SPACES, Phase, Rules, number_of, valid_values
from wotd_env.core.state import STATE
from wotd_env.planning.planner import TIE

PLAYERS = range(2, MAX_PLAYERS + 1)


def describe() -> dict[str, Any]:
    """Return the fields of the records, the numbers of actions and phases, and the valid values of options."""
    return {
        "state": fields_of(STATE),
        "config": fields_of(CONFIG),
        "actions": {action.name: action.value for action in Action},
        "phases": [phase.name.lower() for phase in Phase],
        "tie": float(TIE),
        "num_actions": {players: num_actions(players) for players in PLAYERS},
        "observations": observations(),
        "options": options(),
        "dead_pieces": {
            players: [most_dead_pieces(players, spaces) for spaces in range(MAX_SPACES + 1)]
            for players in PLAYERS
        },
        "elements": ELEMENTS,
    }


def options() -> dict[str, Any]:
    """Return the defaults, and the ranges or values (as JSON texts, with their numbers in CONFIG) of options."""
    valid = valid_values()
    for name, about in valid.items():
        if "values" in about:
            about["values"] = {json.dumps(value): number_of(name, value) for value in about["values"]}
    del valid["dead_pieces"]["most"]  # it depends on other options
    return valid | {
        "skip_forced": {"default": True, "values": numbers(False, True)},
        "encoding": {"default": ENCODINGS[0], "values": numbers(*ENCODINGS)},
    }


def numbers(*values: Any) -> dict[str, int]:
    """Number values, given as JSON texts."""
    return {json.dumps(value): i for i, value in enumerate(values)}


def fields_of(record: np.dtype[Any]) -> dict[str, Any]:
    """Return the size of a record, and offset, type and shape of each field."""
    assert record.fields is not None
    fields = {
        name: {"at": about[1], "kind": about[0].base.str, "shape": about[0].shape}
        for name, about in record.fields.items()
    }
    return {"size": record.itemsize, "fields": fields}


def observations() -> dict[str, Any]:
    """Return the lengths of observations, by encoding, players, spaces, whether there are powers, and immunity."""

    def length(encoding: str, *rules: Any) -> int:
        return sum(len(part.highest) for part in parts(Rules(*rules), encoding).values())

    return {
        encoding: {
            players: [
                [
                    [length(encoding, players, spaces, powers, immunity) for immunity in (False, True)]
                    for powers in ("none", "any")
                ]
                for spaces in range(MAX_SPACES + 1)
            ]
            for players in PLAYERS
        }
        for encoding in ENCODINGS
    }


def most_dead_pieces(players: int, spaces: int) -> int:
    """Return the largest number of dead pieces that `Rules` accepts."""
    dead_pieces = 0
    try:
        while True:
            Rules(players, spaces, dead_pieces=dead_pieces)
            dead_pieces += 1
    except ValueError:
        return dead_pieces - 1


def section(name: str, content: bytes) -> bytes:
    """Return a custom section of a WebAssembly module."""
    text = name.encode()
    body = leb(len(text)) + text + content
    return b"\0" + leb(len(body)) + body


def leb(number: int) -> bytes:
    """Return a number in the format of WebAssembly: seven bits in each byte, the lowest ones first."""
    more, low = divmod(number, 128)
    return bytes([low | 128]) + leb(more) if more else bytes([low])


def layout_section() -> bytes:
    """Return the description as a custom section."""
    return section("wotd", json.dumps(describe(), separators=(",", ":")).encode())
