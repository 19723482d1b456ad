"""`wotd policies`: who can play, and how strong they are."""

from __future__ import annotations

import json
from importlib.resources import files

from rich.console import Console
from rich.table import Column, Table

from wotd_env.cli.common import explained


@explained()
def command() -> None:
    """List the policies that ship with the package, and how strong they are.

    Ratings are in Elo points, with 95 % intervals, for the basic game of two players; see docs/ladder.md for others.
    """
    from wotd_env.policies import POLICIES

    ladder = files("wotd_env.arena") / "ladder.json"
    ratings = json.loads(ladder.read_text())["ratings"] if ladder.is_file() else {}
    table = Table("policy", "plays", Column("rating", justify="right"), box=None)
    for name, known in POLICIES.items():
        rating = ratings.get(name)
        error = (rating["high"] - rating["low"]) / 2 if rating else 0
        table.add_row(name, known.words, f"{rating['value']:+.0f} ±{error:.0f}" if rating else "")
    table.add_row("RUN_FOLDER", "what a training has left in its folder", "")
    table.add_row("MODULE:OBJECT", "your own: an object with act(game, state, rng), or what makes one", "")
    Console().print(table)
