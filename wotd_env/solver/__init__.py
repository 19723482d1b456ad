"""The exact solution of the two-player basic game: solve it once, look it up ever after."""

from __future__ import annotations

from wotd_env.solver.backward import Progress, solve, verify
from wotd_env.solver.evaluate import Evaluation, evaluate
from wotd_env.solver.table import Table, TableError, cache_file, compact, load

__all__ = [
    "Evaluation",
    "Progress",
    "Table",
    "TableError",
    "cache_file",
    "compact",
    "evaluate",
    "load",
    "solve",
    "verify",
]
