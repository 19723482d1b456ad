"""Recorded games of any policies, as Parquet files with one row per decision. The extra `arena` is required.

    record(["planner", "greedy"], "games.parquet", games=10_000)
    decisions = load("games.parquet", filters=[("policy", "=", "planner")])

docs/how-to/record.md describes the columns.
"""

from wotd_env.recording.reading import Decisions, blocks, game_of, load, verify
from wotd_env.recording.writing import record

__all__ = ["Decisions", "blocks", "game_of", "load", "record", "verify"]
