"""`oracle`: plays the two-player basic game perfectly, with a table of `wotd solve`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.policies.planner import Planner
from wotd_env.solver import Table, cache_file, load, solve
from wotd_env.solver.table import check_solvable, describe_missing

AT_ONCE = 1
"""Boards with at most this number of plain spaces are solved at first use, in seconds."""


class Oracle(Planner):
    """Plays perfectly, by exact plans with the values of a table.

    Args:
        file: the table; None for the table in the cache folder. Tables for 0 and 1 plain spaces are created there at
            first use; if another process is creating one, this process waits.

    Raises:
        FileNotFoundError, TableError: if `file` is not a table, see `wotd_env.solver.load`.
    """

    def __init__(self, file: str | Path | None = None) -> None:
        super().__init__(self._values)
        self._table: Table | None = None if file is None else load(file)
        self._cached: dict[int, Table] = {}

    def table(self, game: Game) -> Table:
        """Return the table for a game.

        Raises:
            ValueError: if the game is not the basic game of two players.
            FileNotFoundError: if there is no table for its board; the message contains the command that creates it.
            TableError: if the table is damaged or outdated; the message names the cure.
        """
        self.check_rules(game.rules)
        if self._table is not None:
            return self._table
        spaces = game.rules.spaces
        if spaces not in self._cached:
            self._cached[spaces] = solve(spaces, cache_file(spaces))
        return self._cached[spaces]

    def check_rules(self, rules: Rules) -> None:
        """Check that the rules are the basic game of two players, and that there is a table for the board."""
        check_solvable(rules)
        if self._table is not None:
            self._table.check_rules(rules)
        elif rules.spaces > AT_ONCE and not (file := cache_file(rules.spaces)).exists():
            raise FileNotFoundError(describe_missing(rules.spaces, file))

    def _values(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        return self.table(game).for_seats(game, afterstates)
