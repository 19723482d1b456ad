"""Help during a game: chances to win and hints, computed once for each position."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from wotd_env.web.agents import Asked
from wotd_env.web.limits import Refused
from wotd_env.web.review import advise, chances, hints
from wotd_env.web.table import Table, Viewer

_AGAIN = 5  # seconds until a late answer can be requested again

_log = logging.getLogger("wotd_env.web")


class Helper:
    """The advisor of all tables. It has `patience` seconds for a position."""

    def __init__(self, patience: float) -> None:
        self._advise = Asked("the advisor", advise, patience)

    async def __call__(self, table: Table, viewer: Viewer) -> dict[str, Any]:
        """Return the chances to win and, for the player to act, the best choices, as JSON."""
        if not table.help or not table.number:
            raise Refused(409, "there is no help at this table, or its game has not begun", "table")
        game, state, number, ply = table.game, table.state, table.number, table.ply
        if table.advice is None:
            table.advice = asyncio.create_task(self._advise(table.rules, state))
            table.advice.add_done_callback(_log_failure)
        advice = table.advice
        try:
            advised = await asyncio.shield(advice)
        except Exception:
            if table.advice is advice:  # the next request repeats the call
                table.advice = None
            raise Refused(503, "the position could not be valued in time", wait=_AGAIN) from None
        stood = chances(game, state, advised.equity, table.stood)
        if (number, ply) == (table.number, table.ply):
            table.stood = stood
        over = table.loser is not None or game.is_over(state)[0]
        mine = not over and int(state["player"][0]) in viewer.seats
        return {
            "table": table.id,
            "game": number,
            "ply": ply,
            "chances": [round(chance, 4) for chance in stood],
            "source": advised.source,
            "exact": advised.exact,
            "hints": hints(game, state, advised, table.names) if mine else [],
        }


def _log_failure(advice: asyncio.Task[Any]) -> None:
    """Log an unexpected error of the advisor. `Asked` logs late answers."""
    if not advice.cancelled() and (error := advice.exception()) and not isinstance(error, TimeoutError):
        _log.error("the advisor failed", exc_info=error)
