"""The policies for compiled loops, such as the opponents in the vector environment."""

from __future__ import annotations

from typing import Any

from wotd_env.core.compilation import inlined
from wotd_env.core.config import Config
from wotd_env.core.state import Record
from wotd_env.policies import Script, greedy, random


# Compiled code has no table of functions, so each script has a branch here.
@inlined
def choose(script: Any, s: Record, rules: Config, after: Record, bits: Any) -> Any:
    """Return the action of the seat to act by a `Script` that is not OUTSIDE.

    The record `after` is working memory; `bits` are 64 random bits (uint64).
    """
    if script == Script.GREEDY:
        return greedy.choose(s, rules, after)
    return random.choose(s, rules, bits)
