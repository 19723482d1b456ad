"""The benchmark: frozen positions with the equity of every action, and grades of agents.

    positions = load(rules=Rules(spaces=3))  # STATE, masks and exact equities
    result = measure("greedy", Rules(spaces=3))
    print(result.regret["all"]["all"], result.against_perfect, result.win_shares)

The command `wotd benchmark` also measures agents. docs/results/benchmark.md describes the protocol and the columns.
"""

from wotd_env.benchmark.croissant import croissant
from wotd_env.benchmark.drawing import ROSTER, draw
from wotd_env.benchmark.measuring import REFERENCES, measure
from wotd_env.benchmark.positions import SPLITS, STAGES, Positions, bundled, load, stages
from wotd_env.benchmark.results import Result, compare
from wotd_env.benchmark.rollouts import roll_out

__all__ = [
    "REFERENCES", "ROSTER", "SPLITS", "STAGES", "Positions", "Result", "bundled", "compare", "croissant",
    "draw", "load", "measure", "roll_out", "stages",
]  # fmt: skip
