"""Equities in games of any rules, by the best source at hand."""

from __future__ import annotations

import threading

from wotd_env import models
from wotd_env.analysis.equity import Analysis
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.planning.planner import Value, plan
from wotd_env.planning.values import hand_made
from wotd_env.policies.td import Td
from wotd_env.solver import TableError, cache_file, load
from wotd_env.solver.table import check_rules, describe_missing

__all__ = ["Advisor"]


class Advisor:
    """Knows what decisions are worth to the seat to act, by the best source that is at hand for the rules.

    1. the exact solution, if its table is in the cache folder (`wotd solve` makes one; none is made here),
    2. the learnt value that comes with the package for these rules, every turn planned exactly,
    3. the hand-made value, every turn planned exactly.

    A table that turns out to be damaged while it is read gives way to the next source. Several threads may ask.

    Args:
        game: the rules.

    Attributes:
        game: the rules.
        source: what the equities come from, in words.
        exact: whether that is the exact solution, of games without a limit of turns that may matter.
        skipped: why each of the better sources is not used; these words name files of this machine.
    """

    source: str
    exact: bool

    def __init__(self, game: Game) -> None:
        self.game = game
        self.skipped: tuple[str, ...] = ()
        self._opening = threading.Lock()
        self._sources = iter((_solution, _learnt, _made_by_hand))
        self._open_next()

    def analyze(self, state: States) -> Analysis:
        """Return the equities of states, STATE (N,), in any phase; see `wotd_env.analysis.analyze`.

        Raises:
            ValueError: for a record that is no game of these rules.
        """
        while True:
            value = self._value
            try:
                actions, equity = plan(self.game, state, value)
            except TableError as error:  # blocks of a table are checked when they are first read
                with self._opening:
                    if self._value is value:  # no other thread has found the damage too
                        self.skipped += (str(error),)
                        self._open_next()
            else:
                return Analysis(equity, actions, actions.argmax(1))

    def _open_next(self) -> None:
        for source in self._sources:
            try:
                self.source, self._value = source(self.game)
            except (ValueError, OSError, ImportError) as error:
                self.skipped += (str(error),)
            else:
                self.exact = source is _solution and not _limited(self.game)
                return


def _solution(game: Game) -> tuple[str, Value]:
    check_rules(game.rules)
    file = cache_file(game.rules.spaces)
    if not file.exists():
        raise FileNotFoundError(describe_missing(game.rules.spaces, file))
    table = load(file)
    unlimited = " of the game without a limit of turns" if _limited(game) else ""
    return f"the exact solution{unlimited}, {file.name}", table.for_seats


def _limited(game: Game) -> bool:
    """Return whether games may be truncated so soon that the solution, which knows no limit, is not exact."""
    return game.rules.max_turns < Rules.max_turns


def _learnt(game: Game) -> tuple[str, Value]:
    policy = Td()
    policy.check_rules(game.rules)
    return f"the learnt value {models.name_of('td', game.rules)}, every turn planned exactly", policy.value


def _made_by_hand(game: Game) -> tuple[str, Value]:
    return "the hand-made value, every turn planned exactly", hand_made
