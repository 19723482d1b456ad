"""An assistant plays at a table of `wotd mcp`, through the clients of the official SDK."""

import json
import os
import re
import sys
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="mcp is not installed", exc_type=ImportError)

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from wotd_env import Rules
from wotd_env.adapters.mcp import make_server
from wotd_env.text import TextGame, explain

pytestmark = pytest.mark.filterwarnings("default")


def with_client(server: Any, talk: Any) -> None:
    async def run() -> None:
        async with Client(server) as client:
            await talk(client)

    anyio.run(run)


async def call(client: Client, name: str, **arguments: Any) -> str:
    result: Any = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return str(result.content[0].text)


def legal(message: str) -> list[str]:
    found = re.search(r"^Legal actions: (.*)$", message, re.MULTILINE)
    return found[1].split(", ") if found else []


@pytest.mark.client("MCP", "mcp", "wotd mcp")
def test_an_assistant_plays_a_game_and_asks_for_its_costs():
    rules = Rules(spaces=0)
    twin = TextGame(rules, "greedy", seat=0)

    async def talk(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "new_game",
            "look",
            "act",
            "cost",
        }
        message = await call(client, "new_game", seed=5)
        assert message == twin.reset(5)
        assert message.startswith(explain(rules, 1))
        regrets, over = [], False
        while not over:
            word = legal(message)[-1]
            message = await call(client, "act", action=word)
            expected, _, over, _, info = twin.step(f"<action>{word}</action>")
            assert message == expected == await call(client, "look")
            regrets.append(info["regret"])
        costs = json.loads(await call(client, "cost"))
        assert [each["regret"] for each in costs["decisions"]] == regrets
        assert costs["total"] == pytest.approx(sum(regrets))
        assert costs["costs"] == "exact"

    with_client(make_server(rules, opponents="greedy", seat=0), talk)


def test_tools_explain_wrong_use():
    async def talk(client: Client) -> None:
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("look", {}, "call new_game"),
            ("act", {"action": "stop"}, "call new_game"),
            ("cost", {}, "call new_game"),
            ("new_game", {"seed": -1}, "seed must be"),
        ]
        for name, arguments, words in wrong:
            result: Any = await client.call_tool(name, arguments)
            assert result.is_error
            assert words in result.content[0].text
        await call(client, "new_game", seed=0)
        assert "not a legal action" in await call(client, "act", action="ignore all rules")
        assert "has forfeited" in await call(client, "act", action="</action>")
        assert (await client.call_tool("act", {"action": "stop"})).is_error
        assert json.loads(await call(client, "cost"))["decisions"][0]["action"] is None

    with_client(make_server(Rules(spaces=0), opponents="greedy", seat=0), talk)


def test_costs_are_estimates_without_a_solution():
    async def talk(client: Client) -> None:
        message = await call(client, "new_game", seed=0)
        await call(client, "act", action=legal(message)[0])
        assert json.loads(await call(client, "cost"))["costs"] == "estimated"

    with_client(make_server(Rules(players=3), opponents="greedy"), talk)


def test_the_command_serves_on_its_standard_streams():
    arguments = ["-m", "wotd_env.cli", "mcp", "greedy", "--spaces", "0", "--seat", "1"]

    async def talk(client: Client) -> None:
        message = await call(client, "new_game", seed=1)
        assert "You are B." in message
        assert legal(message)

    with_client(StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ)), talk)
