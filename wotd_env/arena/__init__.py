"""The arena: tournaments between policies.

    from wotd_env.arena import Tournament, run
    results = run(Tournament(("greedy", "random"), games=10_000))

Each policy plays every seat with the same dice, and every estimate has a 95 % interval. The same seed gives the same
results with any number of processes.
"""

from wotd_env.arena.results import Results, Row
from wotd_env.arena.run import run
from wotd_env.arena.tournament import Forfeit, Tournament, replay, results_dtype
from wotd_env.policies.blamed import BrokenPolicyError
from wotd_env.reporting import Estimate

__all__ = [
    "BrokenPolicyError", "Estimate", "Forfeit", "Results", "Row", "Tournament", "replay", "results_dtype",
    "run",
]  # fmt: skip
