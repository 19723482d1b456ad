"""`wotd mcp`: serve a table to an assistant through the Model Context Protocol."""

from __future__ import annotations

from typing import Any

import typer

from wotd_env.cli.common import explained, ready_policies
from wotd_env.cli.options import option, rules_options


@explained()
@rules_options()
def command(
    rules: dict[str, Any],
    opponents: list[str] | None = typer.Argument(
        None, help="One policy for all opponents, or one for each.", show_default="planner"
    ),
    seat: str = option("random", "The assistant's seat, from 0, or random."),
    retries: int = option(2, "Illegal actions that a decision permits; one more loses the game."),
    layout: str | None = option(None, "random draws new names for the paths in each game.", shown="none"),
) -> None:
    """Serve a table to an assistant through the Model Context Protocol, on the standard streams.

    The assistant starts this command; it can start games, act, and ask what its decisions have cost.
    """
    from wotd_env.adapters.mcp import make_server
    from wotd_env.core.rules import Rules

    names = opponents or ["planner"]
    board = Rules(**rules)
    made = ready_policies(names, False, board)
    policies = [made[name] for name in names]
    chosen = policies[0] if len(policies) == 1 else policies
    where = int(seat) if seat.isdecimal() else seat
    make_server(board, opponents=chosen, seat=where, retries=retries, layout=layout).run("stdio")
