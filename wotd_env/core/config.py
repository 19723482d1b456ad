"""The rules for compiled code, as a record of dtype CONFIG."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.layouts import dead_of
from wotd_env.core.rules import (
    ABOUT,
    DRAGON,
    ELEMENTS,
    MAX_PLAYERS,
    NUMBERED,
    PATHS,
    REROLLS,
    Phase,
    Rules,
    number_of,
)  # fmt: skip
from wotd_env.core.state import STATE

DRAGONS, LOSER = (number_of("start", value) for value in ("dragons", "loser"))  # values of `start` (R1)


class Config(Protocol):
    """The rules in compiled code: the fields of CONFIG as attributes."""

    players: int
    spaces: int
    powers: int  # index into POWER_MODES
    immunity: int
    dead_pieces: int  # their number on random spaces
    colors: NDArray[np.int8]  # first the colors of the seats, then the unused colors
    random_colors: int
    start: int  # a seat, DRAGONS or LOSER
    max_turns: int
    skip_forced: int
    limits: NDArray[np.uint8]
    encoding: int  # index into wotd_env.core.observation.ENCODINGS
    dead: NDArray[np.uint16]  # the dead pieces of a layout, as in STATE


_ARRAYS = {
    "colors": ("i1", (MAX_PLAYERS,)),
    "limits": ("u1", (STATE.itemsize,)),
    "dead": ("u2", (PATHS,)),
}
CONFIG = np.dtype(
    [(name, *_ARRAYS.get(name, ("i8", ()))) for name in Config.__annotations__],
    align=True,  # some compilation targets require aligned fields
)

_FIELDS: Any = CONFIG.fields
COLORS_AT, LIMITS_AT = _FIELDS["colors"][1], _FIELDS["limits"][1]

Configs = Any
"""The rules as kernels receive them, CONFIG (1,). Its element has attributes in compiled code, but not in Python."""


def config(rules: Rules, skip_forced: bool, encoding: int = 0) -> NDArray[np.void]:
    """Return the rules for compiled code, CONFIG (1,)."""
    named = rules.colors if isinstance(rules.colors, tuple) else ()
    colors = [ELEMENTS.index(name) for name in named]
    colors += [color for color in range(MAX_PLAYERS) if color not in colors]
    record = np.zeros(1, CONFIG)
    for name in ABOUT:
        value = getattr(rules, name)
        if name == "dead_pieces" and isinstance(value, str):
            record["dead"] = dead_of(value)
        else:
            record[name] = colors if name == "colors" else number_of(name, value)
    record["random_colors"] = rules.colors == "random"
    record["skip_forced"] = skip_forced
    record["limits"] = _limits(rules)
    record["encoding"] = encoding
    return record


def _limits(rules: Rules) -> NDArray[np.uint8]:
    """Return the highest valid value of each byte of a record, uint8 (64,).

    The limits are for records at a decision, without dead pieces.
    """
    limits = np.zeros(1, STATE)
    limits["rng"] = ~np.uint64(0)
    limits["turn"] = ~np.uint16(0)
    limits["player"] = rules.players - 1
    limits["phase"] = Phase.EXTRA
    limits["rolls_left"] = REROLLS
    limits["dice"] = DRAGON
    limits["pieces"][0, : rules.players] = rules.spaces + NUMBERED
    limits["color"] = MAX_PLAYERS - 1
    limits["used"] = (1 << rules.players) - 1
    limits["perfection"] = 1
    limits["players"] = rules.players
    return limits.view(np.uint8)
