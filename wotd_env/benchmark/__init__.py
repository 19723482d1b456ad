"""Measure agents by their regret in fixed positions and by games against reference policies.

    positions = load(rules=Rules(spaces=3))  # STATE, masks and exact equities
    result = measure("greedy", Rules(spaces=3))
    print(result.regret["all"]["all"], result.against_perfect, result.win_shares)

docs/reference/benchmark.md describes the protocol and the columns of the tables.
"""

from wotd_env.benchmark.drawing import ROSTER, draw, roll_out
from wotd_env.benchmark.generalization import layouts
from wotd_env.benchmark.measuring import REFERENCES, Result, compare, measure
from wotd_env.benchmark.positions import SPLITS, STAGES, Positions, bundled, croissant, load, stages

__all__ = [
    "REFERENCES", "ROSTER", "SPLITS", "STAGES", "Positions", "Result", "bundled", "compare", "croissant",
    "draw", "layouts", "load", "measure", "roll_out", "stages",
]  # fmt: skip
