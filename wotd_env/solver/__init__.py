"""Solve games exactly, and look up the values: expected rewards with two players, guaranteed rewards with three."""

from __future__ import annotations

from wotd_env.solver.backward import solve, verify
from wotd_env.solver.evaluate import Evaluation, evaluate
from wotd_env.solver.storage import TableError
from wotd_env.solver.table import Progress, Table, as_rules, cache_file, compact, load

__all__ = [
    "Evaluation", "Progress", "Table", "TableError", "as_rules", "cache_file", "compact", "evaluate", "load",
    "solve", "verify",
]  # fmt: skip
