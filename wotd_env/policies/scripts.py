"""The policies that compiled loops can play, such as the vector environment for the seats that do not learn."""

from __future__ import annotations

from typing import Any

from wotd_env.core.compilation import inlined
from wotd_env.core.config import Config
from wotd_env.core.state import Record, Records
from wotd_env.policies import Script, greedy, random

__all__ = ["choose"]


# Compiled code cannot look a function up in a table, so each script has its branch here.
@inlined
def choose(script: Any, s: Record, rules: Config, scratch: Records, bits: Any) -> Any:
    """Return the action of the seat to act.

    Args:
        script: a `Script`, but not OUTSIDE.
        s: the game; it stays as it is.
        rules: its rules.
        scratch: STATE (2,), memory to work in.
        bits: 64 random bits (uint64).
    """
    if script == Script.GREEDY:
        return greedy.choose(s, rules, scratch)
    return random.choose(s, rules, bits)
