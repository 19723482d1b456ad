"""The engines and advisors of a server, cached by rules, and the guarantees of games of three players."""

from __future__ import annotations

import functools
import logging

from wotd_env.analysis import Advisor
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.solver import TableError, cache_file, load

_log = logging.getLogger("wotd_env.web")


@functools.lru_cache(maxsize=256)
def game_of(rules: Rules) -> Game:
    """Return the engine for these rules. It does not skip forced decisions."""
    return Game(rules, skip_forced=False)


@functools.lru_cache(maxsize=64)
def advisor_of(rules: Rules) -> Advisor:
    """Return the advisor for these rules."""
    return Advisor(game_of(rules))


@functools.lru_cache(maxsize=8)
def guarantor_of(rules: Rules) -> Advisor | None:
    """Return an advisor whose equities are guarantees: a seat can secure them against a coalition of the other seats.

    Return None unless the game has three players and this machine has the solved table of `rules`.
    """
    try:
        return Advisor(game_of(rules), load(cache_file(rules))) if rules.players == 3 else None
    except (ValueError, OSError):
        return None


def guarantees(game: Game, states: States) -> list[float | None]:
    """Return the equity that the seat to act can guarantee in each position, STATE (N,); None if it is unknown."""
    guarantor = guarantor_of(game.rules)
    try:
        return guarantor.analyze(states).equity.tolist() if guarantor else [None] * len(states)
    except TableError as error:  # damage in the table is found only when the damaged part is read
        _log.error("%s", error)
        return [None] * len(states)
