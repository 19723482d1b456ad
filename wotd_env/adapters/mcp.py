"""A table for assistants that speak the Model Context Protocol: `wotd mcp`."""

from __future__ import annotations

from typing import Any

from gymnasium.error import ResetNeeded

from wotd_env.core.rules import Rules
from wotd_env.extras import needed_for
from wotd_env.policies import make_policy
from wotd_env.policy import check_plays
from wotd_env.text import TextGame, explain

with needed_for("wotd mcp", "mcp"):
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError


def make_server(rules: Rules, **options: Any) -> MCPServer[Any]:
    """Return a server with one table, at which an assistant plays against policies.

    If no table of the exact solution exists, the costs of decisions are estimates of the policy `td`.

    Args:
        rules: the rules.
        **options: the other arguments of `TextGame`, without `source`.

    Raises:
        ValueError: for an invalid argument, or if neither a solution nor `td` exists for these rules.
    """
    judged = "exact"
    try:
        game = TextGame(rules, source="table", **options)
    except (FileNotFoundError, ValueError):
        check_plays(make_policy("td"), rules)
        game, judged = TextGame(rules, source="td", **options), "estimated"
    costs: list[dict[str, Any]] = []
    server: MCPServer[Any] = MCPServer("way-of-the-dragon", instructions=explain(rules, game.table.retries))

    # Coroutines without `await`: the server runs them one at a time.
    @server.tool()
    async def new_game(seed: int | None = None) -> str:
        """Start a game. The same seed gives the same dice. Returns the rules and the position."""
        try:
            message = game.reset(seed)
        except ValueError as error:
            raise ToolError(str(error)) from None
        costs.clear()
        return message

    @server.tool()
    async def look() -> str:
        """Return the position, and the rolls and decisions since your last action."""
        playing()
        return game.table.message(game.seat)

    @server.tool()
    async def act(action: str) -> str:
        """Take an action, such as wwf or stop. Returns the next position at which you decide."""
        if not playing():
            raise ToolError(f"The game is over: call new_game.\n\n{game.table.message(game.seat)}")
        message, _, _, _, info = game.step(f"<action>{action}</action>")
        if "regret" in info:
            costs.append(info)
        return message

    @server.tool()
    async def cost() -> dict[str, Any]:
        """Return the cost of your decisions in this game: the equity that each one lost, 0 for the best action.

        Equity is the expected result from -1 (loss) to 1 (win).
        """
        playing()
        names = ("action", "equity", "regret")
        decisions = [{name: each[name] for name in names} for each in costs]
        return {"decisions": decisions, "total": sum(each["regret"] for each in costs), "costs": judged}

    def playing() -> bool:
        try:
            return not game.table.over
        except ResetNeeded:
            raise ToolError("No game has started: call new_game.") from None

    return server
