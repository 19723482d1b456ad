"""`wotd policies`: the bundled policies and their strength."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from wotd_env.cli.common import explained
from wotd_env.cli.options import rules_options
from wotd_env.core.rules import Rules
from wotd_env.reporting import Estimate, signed


@explained()
@rules_options()
def command(rules: dict[str, Any]) -> None:
    """List the bundled policies, their strength, and the strongest policy for the given rules.

    Ratings are Elo points with 95 % intervals, for the basic game of two players.
    """
    from wotd_env.policies import POLICIES, STRENGTHS, strongest

    ratings = json.loads((files("wotd_env.arena") / "ladder.json").read_text())["ratings"]
    table = Table("policy", "plays", Column("rating, Elo", justify="right"), box=None)
    for name, known in POLICIES.items():
        rating = signed(Estimate(**ratings[name]), 0) if name in ratings else ""
        table.add_row(name, known.words, rating)
    for name, strength in STRENGTHS.items():
        table.add_row(name, f"{strength.words} ({strength.policy})", "")
    table.add_row("RUN_FOLDER", "the result of a training run", "")
    table.add_row(
        "MODULE:OBJECT", "your own: an object with act(game, state, rng), or a function that returns one", ""
    )
    console = Console()
    console.print(table)
    console.print(f"\nThe strongest policy for these rules is {strongest(Rules(**rules))}.")
    if rules["players"] == 2:
        console.print("Perfect play (oracle) needs a table of the solved game, see wotd solve.")
    console.print(
        "Ratings are for the basic game of two players. docs/results/experiments.md compares mcts and deep with rated "
        "policies."
    )
