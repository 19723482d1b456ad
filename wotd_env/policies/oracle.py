"""`oracle`: plays games of two players perfectly, with a table that `wotd solve` creates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.policies.planner import Planner
from wotd_env.solver import Table, cache_file, load, solve
from wotd_env.solver.table import check_solvable, describe_missing, size_of

AT_ONCE = 5_500_000  # a table with at most this many values is created at first use, within seconds


class Oracle(Planner):
    """A policy that plays perfectly: it plans each turn exactly with the values of a table.

    Args:
        file: file of the table. By default, the file comes from the cache folder and depends on the rules of the game.
            If the default file is missing, the policy creates the table at first use, but only if the table has at most
            AT_ONCE values. While another process creates the table, this process waits.

    Raises:
        FileNotFoundError, TableError: if `file` does not exist or is not a valid table, see `wotd_env.solver.load`.
    """

    def __init__(self, file: str | Path | None = None) -> None:
        super().__init__(self._values)
        self._table = None if file is None else load(file)
        self._cached: dict[Path, Table] = {}

    def table(self, game: Game) -> Table:
        """Return the table for the rules of a game.

        Raises:
            ValueError: if the rules cannot be solved.
            FileNotFoundError: if there is no table for the rules.
            TableError: if the table is damaged or outdated.
        """
        self.check_rules(game.rules)
        if self._table is not None:
            return self._table
        file = cache_file(game.rules)
        if file not in self._cached:
            self._cached[file] = solve(game.rules, file)
        return self._cached[file]

    def check_rules(self, rules: Rules) -> None:
        """Check that the rules can be solved, and that their table exists or is small enough to be created."""
        check_solvable(rules)
        if self._table is not None:
            self._table.check_rules(rules)
        elif not (file := cache_file(rules)).exists() and size_of(rules) > AT_ONCE:
            raise FileNotFoundError(describe_missing(rules, file))

    def _values(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        return self.table(game).for_seats(game, afterstates)
