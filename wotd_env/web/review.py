"""Values of positions and grades of decisions as JSON, for help during games and for reviews of finished games."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from wotd_env.analysis import BLUNDER, ERROR, classify, review
from wotd_env.core.game import Game
from wotd_env.core.position import SEATS
from wotd_env.core.rules import Phase, share_difference, win_share
from wotd_env.core.state import States
from wotd_env.notation import RecordedGame
from wotd_env.web import views
from wotd_env.web.calls import Asked, in_thread, quiet
from wotd_env.web.games import advisor_of, game_of, guarantees
from wotd_env.web.refused import RETRY, Refused
from wotd_env.web.requests import forbidden
from wotd_env.web.table import GameTable, Viewer
from wotd_env.web.views import Json

_HINTS = 2
_AT_ONCE = 2  # maximum number of running reviews; their threads slow down all other requests

_log = logging.getLogger("wotd_env.web")


class Reviews:
    """Runs reviews in threads, a few at a time. `most` limits the number of running and waiting reviews.

    If a review takes longer than `patience` seconds, the request of its client is refused. The late review continues,
    but the next waiting review may start.
    """

    def __init__(self, most: int, patience: float) -> None:
        self.patience = patience
        self._most = most
        self._unfinished: set[asyncio.Task[bytes]] = set()
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def __call__(self, work: Callable[[], Json]) -> bytes:
        """Run the review `work` and return its result as JSON; raise Refused if it is late or too many reviews wait."""
        if len(self._unfinished) >= self._most:
            raise Refused(503, "reviews", wait=RETRY)
        running = quiet(asyncio.create_task(self._run(work)))
        self._unfinished.add(running)
        running.add_done_callback(self._unfinished.discard)
        try:
            return await asyncio.wait_for(asyncio.shield(running), self.patience)
        except TimeoutError:
            raise Refused(503, "review_late", wait=int(self.patience)) from None

    async def _run(self, work: Callable[[], Json]) -> bytes:
        async with self._turn:
            thread = in_thread(lambda: msgspec.json.encode(work()))
            await asyncio.wait({thread}, timeout=self.patience)
            if not thread.done():
                _log.error("a review has not finished in %g s; the next one starts beside it", self.patience)
        content: bytes = await thread
        return content


class Advised(NamedTuple):
    """The value of a position for the seat to act."""

    equity: float
    actions: NDArray[np.float32]  # (A,): the equity of every action, -inf for illegal actions
    source: str  # kind of the source, see `Advisor.kind`
    exact: bool
    guarantee: float | None  # equity that the seat can secure against a coalition of all others, if known


def advise(game: Game, states: States) -> list[Advised]:
    """Return the values of positions, STATE (N,)."""
    advisor = advisor_of(game.rules)
    equities, actions, _ = advisor.analyze(states)
    each = zip(equities.tolist(), actions, guarantees(game, states), strict=True)
    return [Advised(equity, of, advisor.kind, advisor.exact, forced) for equity, of, forced in each]


def source(players: int, advised: Advised) -> Json:
    """Return JSON with the win probability that the seat to act can guarantee, and the source of the equities."""
    forced = None if advised.guarantee is None else round(win_share(advised.guarantee, players), 4)
    return {"source": advised.source, "exact": advised.exact, "guarantee": forced}


def chances(game: Game, state: States, equity: float, before: Sequence[float]) -> list[float]:
    """Return every seat's chance to win in a position, STATE (1,). A win shared by k seats counts 1/k.

    `equity` determines the chance of the seat to act. The other seats share the rest in proportion to `before`, the
    chances of all seats in an earlier position.
    """
    n = game.rules.players
    if game.is_over(state)[0]:
        return [win_share(float(reward), n) for reward in game.rewards(state)[0]]
    seat = int(state["player"][0])
    own = min(max(win_share(equity, n), 0.0), 1.0)
    rest = sum(before) - before[seat]
    return [own if k == seat else (1 - own) * (before[k] / rest if rest else 1 / (n - 1)) for k in range(n)]


class Helper:
    """Requests the values of positions from the advisor."""

    def __init__(self, patience: float) -> None:
        self._advise = Asked("the advisor", advise, patience)

    async def values(self, game: Game, state: States) -> Json:
        """Return JSON with the acting seat's chance to win after each legal action, and the source of these chances."""
        try:
            advised: Advised = await self._advise(game.rules, state)
        except TimeoutError:
            raise Refused(503, "no_value", wait=RETRY) from None
        equities = advised.actions[np.isfinite(advised.actions)].tolist()
        n = game.rules.players
        return {"chances": [round(win_share(equity, n), 4) for equity in equities], **source(n, advised)}

    async def __call__(self, table: GameTable, viewer: Viewer) -> Json:
        """Return JSON with every seat's chance to win and, if the viewer must act, the best actions."""
        if not table.help or not table.number:
            raise Refused(409, "no_help", "table")
        game, state, number, ply = table.game, table.state, table.number, table.ply
        if table.advice is None:
            table.advice = quiet(asyncio.create_task(self._advise(table.rules, state)))
        advice = table.advice
        try:
            advised = await asyncio.shield(advice)
        except Exception as error:
            if table.advice is advice:  # the next request calls the advisor again
                table.advice = None
                if not isinstance(error, TimeoutError):  # `Asked` has logged a timeout
                    _log.error("the advisor failed", exc_info=error)
            raise Refused(503, "no_value", wait=RETRY) from None
        stood = chances(game, state, advised.equity, table.stood)
        if (number, ply) == (table.number, table.ply):
            table.stood = stood
        over = table.loser is not None or game.is_over(state)[0]
        mine = not over and int(state["player"][0]) in viewer.seats
        n, hints = game.rules.players, list[Json]()
        for action in np.argsort(-advised.actions, kind="stable")[:_HINTS].tolist() if mine else []:
            loss = share_difference(float(advised.actions.max() - advised.actions[action]), n)
            if math.isfinite(loss):
                hints.append({"action": action, "loss": round(loss, 4)})
        return {
            "table": table.id,
            "game": number,
            "ply": ply,
            "chances": [round(each, 4) for each in stood],
            **source(n, advised),
            "hints": hints,
        }


def replay(recorded: RecordedGame, graded: bool, loser: int | None = None) -> Json:
    """Return a recorded game step by step, as JSON. If `graded` is true, also grade its decisions.

    `loser` is the seat that has resigned, if any.
    """
    recorded.check()
    game = game_of(recorded.rules)
    names = [
        name if name.strip("? ") and not forbidden(name) else f"Player {letter}"
        for name, letter in zip(recorded.players, SEATS, strict=False)
    ]
    steps = []
    for ply, action in enumerate(recorded.actions.tolist()):
        state, after = recorded.states[ply : ply + 1], recorded.states[ply + 1 : ply + 2]
        shown_step = views.step(game, state, action, after)
        steps.append({"ply": ply, **shown_step, "state": views.show(game, state)})
    last = recorded.states[-1:]
    shown = {
        "rules": asdict(recorded.rules),
        "players": names,
        "text": str(recorded),
        "graded": graded,
        "steps": steps,
        "last": views.show(game, last),
        "result": views.result(game, last, loser),
    }
    return shown | _grades(game, recorded, names, steps) if graded else shown


def _grades(game: Game, recorded: RecordedGame, names: Sequence[str], steps: list[Json]) -> Json:
    """Add to each step its grade, its luck and the chances to win; return a summary of the game."""
    advisor = advisor_of(recorded.rules)
    reviewed = review(recorded, advisor)
    notes = {note.number: note for note in reviewed.notes}
    stood = [1 / len(names)] * len(names)
    for ply, step in enumerate(steps):
        state, note = recorded.states[ply : ply + 1], notes.get(ply)
        luck = float(reviewed.luck[ply])
        step["luck"] = round(luck, 4) if luck else None
        if note is None:
            step |= {"best": None, "regret": None, "margin": None, "class": ""}
        else:
            stood = chances(game, state, note.equity, stood)
            step |= {
                "best": views.action_parts(game, state, note.best),
                "regret": round(note.regret, 4),
                "margin": round(note.margin, 4),
                "class": classify(note.regret),
            }
        step["chances"] = [round(each, 4) for each in stood]
    last = recorded.states[-1:]
    over = last["phase"][0] == Phase.OVER
    stood = chances(game, last, 0.0 if over else float(advisor.analyze(last).equity[0]), stood)
    seats = [
        {
            **seat._asdict(),
            "seat": number,
            "name": names[number],
            "regret": round(seat.regret, 4),
            "luck": round(seat.luck, 4),
            "result": seat.result if over else None,
            "luck_adjusted": round(seat.result - seat.luck, 4) if over else None,
        }
        for number, seat in enumerate(reviewed.seats)
    ]
    return {
        "source": advisor.kind,
        "exact": reviewed.exact,
        "thresholds": [ERROR, BLUNDER],
        "last_chances": [round(each, 4) for each in stood],
        "seats": seats,
    }
