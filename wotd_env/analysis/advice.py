"""Equities for games with any rules, from the best available source."""

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
from wotd_env.solver import Table, TableError, cache_file, load
from wotd_env.solver.table import check_solvable, check_table, describe_missing


class Advisor:
    """Computes equities for the seat to act, with the best source that is available for the rules.

    The best source is the exact solution, if its table is in the cache folder (`wotd solve` creates the table).
    Otherwise the planner searches the current turn exactly, and a value function estimates the position after the
    turn. The value function is the bundled learned one for these rules or, if no learned one is bundled, the hand-made
    one. If the table turns out to be damaged, the advisor uses the next source. Several threads may share an advisor.

    Args:
        game: the rules.
        table: the only source to use; by default the advisor looks for the best source.

    Attributes:
        source: the source of the equities in words.
        exact: True if the source is the exact solution and `max_turns` is at least the default. It is False with a
            `table` of three players, because the equities are then guarantees: lower bounds of the expected reward.
        skipped: the reason why each better source is not used; the reasons may contain file paths of this machine.

    Raises:
        TypeError: if the table is not a Table.
        ValueError: if the table is for another game.
    """

    source: str
    exact: bool

    def __init__(self, game: Game, table: Table | None = None) -> None:
        self.game = game
        self.skipped: tuple[str, ...] = ()
        self._opening = threading.Lock()
        self._sources = iter((_solution, _learned, _made_by_hand) if table is None else ())
        if table is None:
            self._open_next()
        else:
            check_table(table).check_rules(game.rules)
            self.source, self.exact, self._value = _from_table(game, table)

    def analyze(self, state: States) -> Analysis:
        """Return the equities of states, STATE (N,), in any phase; see `wotd_env.analysis.analyze`.

        Raises:
            ValueError: if a state is invalid under the rules.
            TableError: if the given table is damaged.
        """
        while True:
            value = self._value
            try:
                actions, equity = plan(self.game, state, value)
                return Analysis(equity, actions, actions.argmax(1))
            except TableError as error:  # a table checks a block when the block is first read
                with self._opening:
                    if self._value is value:  # otherwise another thread has changed the source
                        self.skipped += (str(error),)
                        if not self._open_next():
                            raise

    def _open_next(self) -> bool:
        """Use the next available source; return False if there is none."""
        for source in self._sources:
            try:
                self.source, self.exact, self._value = source(self.game)
                return True
            except (ValueError, OSError, ImportError) as error:
                self.skipped += (str(error),)
        return False


Source = tuple[str, bool, Value]  # description of a source, whether it is exact, and its value function


def _solution(game: Game) -> Source:
    check_solvable(game.rules)
    file = cache_file(game.rules)
    if not file.exists():
        raise FileNotFoundError(describe_missing(game.rules, file))
    return _from_table(game, load(file))


def _from_table(game: Game, table: Table) -> Source:
    exact = game.rules.max_turns >= Rules.max_turns  # the solution has no turn limit
    unlimited = "" if exact else " of the game without a turn limit"
    if game.rules.players == 3:
        return f"the guarantee of each seat{unlimited}, {table.file.name}", False, table.for_seats
    return f"the exact solution{unlimited}, {table.file.name}", exact, table.for_seats


def _learned(game: Game) -> Source:
    policy, name = Td(), models.name_of("td", game.rules)
    policy.check_rules(game.rules)
    return f"the learned value {name}, every turn planned exactly", False, policy.value


def _made_by_hand(game: Game) -> Source:
    return "the hand-made value, every turn planned exactly", False, hand_made
