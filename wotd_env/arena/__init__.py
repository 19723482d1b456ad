"""The arena: tournaments between policies whose results can be trusted.

    from wotd_env.arena import Tournament, run
    results = run(Tournament(("greedy", "random"), games=10_000))

Every game is played from every seat with the same dice, every number comes with its interval, and the same seed gives
the same results on any number of processes. `wotd arena` is the same on the command line.
"""

from wotd_env.arena.blocks import BrokenPolicyError, Forfeit, replay, results_dtype
from wotd_env.arena.results import Estimate, Results, Row
from wotd_env.arena.run import run
from wotd_env.arena.tournament import Tournament

__all__ = [
    "BrokenPolicyError",
    "Estimate",
    "Forfeit",
    "Results",
    "Row",
    "Tournament",
    "replay",
    "results_dtype",
    "run",
]
