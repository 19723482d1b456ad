"""The rules for compiled code, as a record of dtype CONFIG."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.rules import DRAGON, ELEMENTS, MAX_PLAYERS, NUMBERED, POWER_MODES, REROLLS, Phase, Rules
from wotd_env.core.state import STATE

DRAGONS, LOSER = -1, -2  # values of `start` that stand for "dragons" and "loser" (R1)

CONFIG = np.dtype(
    [
        ("players", "i8"),
        ("spaces", "i8"),
        ("powers", "i8"),  # index into POWER_MODES
        ("immunity", "i8"),
        ("dead_pieces", "i8"),
        ("colors", "i1", (MAX_PLAYERS,)),  # first the colors of the seats, then the unused colors
        ("random_colors", "i8"),
        ("start", "i8"),  # a seat, DRAGONS or LOSER
        ("max_turns", "i8"),
        ("skip_forced", "i8"),
        ("limits", "u1", (STATE.itemsize,)),
        ("encoding", "i8"),  # index into wotd_env.core.observation.ENCODINGS
    ],
    align=True,  # some compilation targets require aligned fields
)

_FIELDS: Any = CONFIG.fields
COLORS_AT, LIMITS_AT = _FIELDS["colors"][1], _FIELDS["limits"][1]


class Config(Protocol):
    """The rules in compiled code: the fields of CONFIG as attributes."""

    players: Any
    spaces: Any
    powers: Any
    immunity: Any
    dead_pieces: Any
    colors: Any
    random_colors: Any
    start: Any
    max_turns: Any
    skip_forced: Any
    limits: Any
    encoding: Any


Configs = Any  # the rules as kernels receive them: CONFIG (1,)


def config(rules: Rules, skip_forced: bool, encoding: int = 0) -> NDArray[np.void]:
    """Return the rules for compiled code, CONFIG (1,)."""
    named = rules.colors if isinstance(rules.colors, tuple) else ()
    colors = [ELEMENTS.index(name) for name in named]
    colors += [color for color in range(MAX_PLAYERS) if color not in colors]
    start = rules.start if isinstance(rules.start, int) else DRAGONS if rules.start == "dragons" else LOSER
    record = np.zeros(1, CONFIG)
    for name in ("players", "spaces", "immunity", "dead_pieces", "max_turns"):
        record[name] = getattr(rules, name)
    record["powers"] = POWER_MODES.index(rules.powers)
    record["colors"] = colors
    record["random_colors"] = rules.colors == "random"
    record["start"] = start
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
