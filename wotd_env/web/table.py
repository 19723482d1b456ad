"""A table: who has its seats, and the game that is played at it; what each viewer may see of it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from wotd_env.core.game import Game
from wotd_env.core.position import SEATS, parse_position, position
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import States
from wotd_env.notation import RecordedGame
from wotd_env.web import views
from wotd_env.web.agents import game_of
from wotd_env.web.review import Advised, even
from wotd_env.web.store import Played, Step

__all__ = ["Seat", "Table", "Viewer"]


@dataclass
class Seat:
    """A seat and who has it; keys and invitations are kept as digests."""

    kind: str
    name: str
    agent: str | None = None
    key: str | None = None
    invitation: str | None = None

    @property
    def taken(self) -> bool:
        """Whether somebody plays it."""
        return self.agent is not None or self.key is not None


class Viewer(NamedTuple):
    """Somebody with a key."""

    key: str
    """its digest"""
    host: bool
    """whether it has set up the table"""
    seats: list[int]
    """that it plays"""


@dataclass(eq=False)
class Table:
    """A table, and its present game in memory.

    Attributes:
        id: what it is called.
        rules: of its games.
        begins: the position, STATE (1,), that its first game begins in, if it was given one.
        seats: in turn order.
        help: whether everybody sees what positions and choices are worth.
        pace: seconds before a decision that nobody at a screen takes.
        host: the digest of the key of whoever set it up.
        watch: that of those who watch.
        number: of the game, from 1 on; 0 before the first.
        states: STATE (1,) each: the first position and that after every decision.
        steps: the decisions.
        roll_off: the rolls for the start, rounds of five faces or None for each seat; None if there were none.
        by: the client that set it up, as long as this process lives.
        touched: when something last happened, seconds since 1970.
        listeners: are set whenever something changes.
        connected: open sockets by digest of their keys.
        stood: every seat's chance to win as it was last valued.
        timer: of the next decision that nobody at a screen takes.
        advice: on the present position, in the making or made.
    """

    id: str
    rules: Rules
    begins: States | None
    seats: list[Seat]
    help: bool
    pace: float
    host: str
    watch: str
    number: int = 0
    states: list[States] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    roll_off: Any = None
    by: str = ""
    touched: float = field(default_factory=time.time)
    listeners: set[asyncio.Event] = field(default_factory=set)
    connected: Counter[str] = field(default_factory=Counter)
    _told: list[dict[str, Any]] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None
    advice: asyncio.Task[Advised] | None = None
    stood: list[float] = field(default_factory=list)

    @property
    def game(self) -> Game:
        """The rules at work."""
        return game_of(self.rules)

    @property
    def state(self) -> States:
        """The present position, STATE (1,)."""
        return self.states[-1]

    @property
    def legal(self) -> list[int]:
        """The legal actions."""
        found: list[int] = np.flatnonzero(self.game.legal_actions(self.state)[0]).tolist()
        return found

    @property
    def ply(self) -> int:
        """Decisions taken in this game."""
        return len(self.steps)

    @property
    def status(self) -> str:
        """Whether the table is "waiting" for players, "playing", or its game "over"."""
        if self.number == 0:
            return "waiting"
        return "over" if self.state["phase"][0] == Phase.OVER else "playing"

    @property
    def names(self) -> list[str]:
        """What the seats are called."""
        return [seat.name or f"Player {SEATS[number]}" for number, seat in enumerate(self.seats)]

    def told(self, since: int = 0) -> list[dict[str, Any]]:
        """Return the decisions of this game from a number on, as JSON."""
        for ply in range(len(self._told), self.ply):
            before, step = self.states[ply], self.steps[ply]
            forced = bool(self.game.legal_actions(before)[0].sum() == 1)
            told = views.step(self.game, before, step.action, step.state, self.names, forced, step.note)
            self._told.append({"ply": ply, **told})
        return self._told[since:]

    def recorded(self) -> RecordedGame:
        """Return this game as it went so far."""
        actions = np.array([step.action for step in self.steps], np.int64)
        return RecordedGame(self.rules, np.concatenate(self.states), actions, tuple(self.names))

    def settings(self) -> dict[str, Any]:
        """Return what is kept of the table on disk beside its games."""
        return {
            "rules": asdict(self.rules),
            "position": None if self.begins is None else position(self.rules, self.begins),
            "seats": [asdict(seat) for seat in self.seats],
            "help": self.help,
            "pace": self.pace,
            "host": self.host,
            "watch": self.watch,
        }

    @classmethod
    def from_settings(cls, table: str, settings: dict[str, Any]) -> Table:
        """Return a table as it was when `settings` were written."""
        rules = Rules.from_dict(settings["rules"])
        begins = None if settings["position"] is None else parse_position(settings["position"])[1]
        seats = [Seat(**seat) for seat in settings["seats"]]
        kept = {name: settings[name] for name in ("help", "pace", "host", "watch")}
        return cls(table, rules, begins, seats, **kept)

    def show(self, played: Played | None, number: int) -> None:
        """Put a game that was kept on the table; None for the empty board before the first.

        Raises:
            ValueError: if it is no game by the table's rules.
        """
        self.number = number
        if played is None:
            self.states = [_before_the_first(self)]
            self.steps, self.roll_off = [], None
        else:
            self.states = [played.state, *(step.state for step in played.steps)]
            states = np.concatenate(self.states)
            self.game.check(states)
            self.game.check(states[:-1], [step.action for step in played.steps])
            self.steps, self.roll_off = played.steps, played.roll_off
        self._told, self.advice, self.stood = [], None, even(self.game)

    def changed(self) -> None:
        """Tell all listeners."""
        for listener in self.listeners:
            listener.set()

    def view(self, viewer: Viewer, log_from: int = 0) -> dict[str, Any]:
        """Return all that somebody may know of the table, as JSON."""
        game, names = self.game, self.names
        playing = self.status == "playing"
        # A decision without a choice is taken by itself.
        mine = playing and int(self.state["player"][0]) in viewer.seats and len(self.legal) > 1
        last = next((step for step in reversed(self.told()) if step["moves"]), None)
        shown = views.show(game, self.state, names)
        if self.status == "waiting":
            free = [f"seat {SEATS[seat]}" for seat in self.waiting_for]
            shown["words"] = f"Waiting for {views.listed(free)}." if free else "The game is about to begin."
        return {
            "table": self.id,
            "game": self.number,
            "ply": self.ply,
            "status": self.status,
            "host": viewer.host,
            "mine": viewer.seats,
            "waiting_for": self.waiting_for,
            **self.outline(),
            "pace": self.pace,
            **shown,
            "seats": [self._seat(number, shown, viewer) for number in range(self.rules.players)],
            "moved": last["moves"] if last else [],
            "kept": views.kept(self.state, self.states[-2], self.steps[-1].action)
            if self.steps
            else [False] * 5,
            "roll_off": self.roll_off,
            "choices": views.choices(game, self.state, names) if mine else [],
            "log_from": min(log_from, self.ply),
            "log": self.told(log_from),
            "result": views.result(game, self.state, names),
        }

    @property
    def waiting_for(self) -> list[int]:
        """The seats that nobody has."""
        return [number for number, seat in enumerate(self.seats) if not seat.taken]

    def outline(self) -> dict[str, Any]:
        """Return what is settled about the table."""
        return {
            "rules": asdict(self.rules),
            "rules_words": views.rules_in_words(self.rules),
            "help": self.help,
        }

    def entry(self) -> dict[str, Any]:
        """Return what those may know of the table who could come to it."""
        seats = [
            {
                "seat": number,
                "kind": seat.kind,
                "name": self.names[number] if seat.taken else "",
                "taken": seat.taken,
            }
            for number, seat in enumerate(self.seats)
        ]
        minutes = int((time.time() - self.touched) / 60)
        return {"table": self.id, **self.outline(), "seats": seats, "open": self.open, "minutes": minutes}

    @property
    def open(self) -> list[int]:
        """The seats that anybody may take."""
        return [number for number in self.waiting_for if self.seats[number].kind == "open"]

    def _seat(self, number: int, shown: dict[str, Any], viewer: Viewer) -> dict[str, Any]:
        seat, color = self.seats[number], shown["color"][number]
        power = {"none": None, "own": color, "any": views.ANY_POWER}[self.rules.powers]
        to_act = self.status == "playing" and shown["player"] == number
        return {
            "seat": number,
            "letter": SEATS[number],
            "kind": seat.kind,
            "agent": seat.agent,
            "name": self.names[number],
            "taken": seat.taken,
            "connected": seat.agent is not None or self.here(seat),
            "mine": number in viewer.seats,
            "thinking": to_act and seat.agent is not None,
            "color": color,
            "animal": views.ANIMALS[color],
            "power": power,
            "used": shown["used"][number],
            "score": shown["scores"][number],
        }

    def here(self, seat: Seat) -> bool:
        """Return whether the person in a seat has a socket open."""
        return seat.key is not None and self.connected[seat.key] > 0


def _before_the_first(table: Table) -> States:
    if table.begins is not None:
        return table.begins.copy()
    plain = Rules(players=table.rules.players, spaces=table.rules.spaces, start=0)
    return game_of(plain).new(1, roll=False)
