"""The state that all requests share: the tables, agents, cached reviews and rate limits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import HTTPConnection

from wotd_env.core.rules import Rules
from wotd_env.notation import parse_game, record_game
from wotd_env.policies import make_policy
from wotd_env.policy import Policy, ask
from wotd_env.web.agents import Agents
from wotd_env.web.calls import in_thread
from wotd_env.web.games import game_of
from wotd_env.web.limits import Limits, Rate, client_of
from wotd_env.web.refused import RETRY, Refused
from wotd_env.web.review import Helper, Reviews, advise, replay
from wotd_env.web.store import Store
from wotd_env.web.tables import Tables

_log = logging.getLogger("wotd_env.web")


class Server:
    """The state that all requests share."""

    def __init__(
        self, store: Store, policies: dict[str, Policy], limits: Limits, address: str | None = None
    ) -> None:
        self.limits, self._store, self._policies, self.address = limits, store, policies, address
        self.sockets: Counter[str] = Counter()
        self.help = Helper(limits.thinking)
        self.reviews = Reviews(limits.reviews, limits.reviewing)
        self.reviewed: dict[tuple[str, int, tuple[str, ...]], bytes] = {}  # table, game, names -> review
        self.requests = Rate(limits.requests, "requests", limits.requests * 10)
        self.new_tables = Rate(limits.new_tables, "new tables", 20)
        self.games = Rate(limits.games, "games")
        self._wrong_keys = Rate(limits.wrong_keys, "wrong keys", 5)
        self.agents: list[dict[str, Any]] = []
        self._tables: Tables | None = None

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Open the tables in a background task when the server starts; close them when the server stops."""
        opening = asyncio.create_task(self._open())
        try:
            yield
        finally:
            opening.cancel()
            if self._tables:
                await self._tables.close()

    async def _open(self) -> None:
        try:
            agents = await in_thread(lambda: Agents(self._policies, self.limits.thinking))
            listed = await in_thread(lambda: agents.listed(Rules()))
            await in_thread(_compile)
            tables = Tables(self._store, agents, self.limits)
            tables.resume()
        except Exception:
            _log.exception("the tables cannot be opened")
            return
        self._tables, self.agents = tables, listed
        _log.info("ready")

    @property
    def tables(self) -> Tables:
        """All tables."""
        if self._tables is None:
            raise Refused(503, "starting", wait=RETRY)
        return self._tables

    @contextlib.contextmanager
    def guesses(self, connection: HTTPConnection) -> Iterator[None]:
        """Limit how often each client can send a wrong key or a wrong invitation."""
        try:
            yield
        except Refused as refused:
            if refused.field in ("key", "invitation"):
                self._wrong_keys.count(address_of(connection))
            raise


def server_of(connection: HTTPConnection) -> Server:
    """Return the state that all requests share."""
    server: Server = connection.app.state.server
    return server


def address_of(connection: HTTPConnection) -> str:
    """Return the IPv4 address or IPv6 network of the client."""
    return client_of(connection.client.host if connection.client else "")


def _compile() -> None:
    """Call every compiled function once, so that no request waits for compilation."""
    game, actions = game_of(Rules(spaces=0)), list[int]()
    state = game.new(1, seed=0)
    policies = [make_policy("greedy"), make_policy("planner")]
    while not game.is_over(state)[0]:
        action = ask(policies[len(actions) % 2], game, state, np.random.default_rng(0))
        actions += action.tolist()
        game.step(state, action)
    replay(parse_game(str(record_game(game.rules, actions, seed=0))), graded=True)
    usual = game_of(Rules())  # for these rules, `advise` uses a learned value function
    advise(usual, usual.new(1, seed=0))
