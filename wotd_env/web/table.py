"""A table: its seats, its present game, and its JSON views for clients."""

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
from wotd_env.web.games import game_of
from wotd_env.web.store import Played
from wotd_env.web.views import Json

_STORED = ("help", "pace", "resigned", "host", "watch", "clock")


@dataclass
class Seat:
    """A seat and its player. Keys and invitations are stored only as digests.

    While an agent plays for a person, `name` and `key` stay those of the person.
    """

    kind: str
    name: str
    agent: str | None = None
    key: str | None = None
    invitation: str | None = None

    @property
    def taken(self) -> bool:
        """Whether the seat has a player."""
        return self.agent is not None or self.key is not None


class Viewer(NamedTuple):
    """The owner of a key, and the rights that the key gives."""

    key: str  # digest of the key
    host: bool
    seats: list[int]  # seats that the viewer may act for
    lent: list[int]  # seats of the viewer for which an agent plays


@dataclass(eq=False)
class GameTable:
    """A table, and its present game."""

    id: str
    rules: Rules
    begins: States | None  # first position of the first game, STATE (1,), or None for the usual start
    seats: list[Seat]
    help: bool  # whether all viewers see the chances to win, and whether the player to act gets hints
    pace: float | None  # wait in seconds before an agent's or forced decision; None: paused
    host: str  # digest of the host's key
    watch: str  # digest of the spectators' key
    clock: float | None = None  # seconds for a person's decision; after them, an agent may take the seat
    resigned: tuple[int, int] | None = None  # number and loser of the last game that was resigned
    number: int = 0  # number of the present game, from 1; 0 before the first game
    played: Played = field(init=False)
    by: str = ""  # address of the client that set up the table; empty after a restart
    since: float = 0.0  # time of the last event that a person had to wait for, on the monotonic clock
    rush: bool = False  # whether there is no wait before the next decisions of agents and forced decisions
    touched: float = field(default_factory=time.time)  # time of the last change, in seconds since 1970
    listeners: set[asyncio.Event] = field(default_factory=set)
    connected: Counter[str] = field(default_factory=Counter)  # digest of a key -> number of open sockets
    _log: list[Json] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None  # takes the next decision
    advice: asyncio.Task[Any] | None = None  # computes the `review.Advised` of the present position
    stood: list[float] = field(default_factory=list)  # the seats' latest known chances to win

    @property
    def game(self) -> Game:
        """The engine for the rules of the table."""
        return game_of(self.rules)

    @property
    def state(self) -> States:
        """The present position, STATE (1,)."""
        steps = self.played.steps
        return steps[-1].state if steps else self.played.state

    @property
    def player(self) -> int:
        """The seat to act."""
        return int(self.state["player"][0])

    @property
    def legal(self) -> list[int]:
        """The legal actions in the present position."""
        return list(map(int, np.flatnonzero(self.game.legal_actions(self.state)[0])))

    @property
    def ply(self) -> int:
        """Number of decisions in the present game so far."""
        return len(self.played.steps)

    @property
    def status(self) -> str:
        """The stage of the table: "waiting" for players, "playing" or "over"."""
        if self.number == 0:
            return "waiting"
        over = self.loser is not None or self.state["phase"][0] == Phase.OVER
        return "over" if over else "playing"

    @property
    def loser(self) -> int | None:
        """The seat that has resigned in the present game, or None."""
        game, seat = self.resigned or (0, 0)
        return seat if game and game == self.number else None

    @property
    def unattended(self) -> bool:
        """Whether the next decision is forced, or is an agent's. The server takes such decisions."""
        playing = self.status == "playing"
        return playing and (len(self.legal) == 1 or self.seats[self.player].agent is not None)

    @property
    def names(self) -> list[str]:
        """The names of the players, by seat."""
        return [
            seat.agent or seat.name or f"Player {SEATS[number]}" for number, seat in enumerate(self.seats)
        ]

    def log(self, since: int = 0) -> list[Json]:
        """Return the decisions of the present game as JSON, without the first `since` decisions."""
        states = self.played.states
        for ply, step in enumerate(self.played.steps[len(self._log) :], len(self._log)):
            shown = views.step(self.game, states[ply], step.action, step.state, step.note)
            self._log.append({"ply": ply, **shown})
        return self._log[since:]

    def recorded(self) -> RecordedGame:
        """Return the present game so far as a recorded game."""
        actions = np.array([step.action for step in self.played.steps], np.int64)
        return RecordedGame(self.rules, np.concatenate(self.played.states), actions, tuple(self.names))

    def settings(self) -> Json:
        """Return the fields of the table that are stored on disk, as JSON."""
        return {
            "rules": asdict(self.rules),
            "position": None if self.begins is None else position(self.rules, self.begins),
            "seats": [asdict(seat) for seat in self.seats],
            **{name: getattr(self, name) for name in _STORED},
        }

    @classmethod
    def from_settings(cls, table: str, settings: Json) -> GameTable:
        """Return the table that has these settings (the inverse of `settings`)."""
        rules = Rules.from_dict(settings["rules"])
        begins = None if settings["position"] is None else parse_position(settings["position"])[1]
        seats = [Seat(**seat) for seat in settings["seats"]]
        return cls(
            table, rules, begins, seats, **{name: settings[name] for name in _STORED if name in settings}
        )

    def show(self, played: Played | None, number: int) -> None:
        """Set the present game to `played`, and its number to `number`. Before the first game, pass None and 0.

        Raise ValueError if the game contains an illegal position or action.
        """
        if played is None:
            empty = Rules(players=self.rules.players, spaces=self.rules.spaces, start=0)
            first = game_of(empty).new(1, roll=False) if self.begins is None else self.begins.copy()
            played = Played(first, None, [])
        else:
            states = np.concatenate(played.states)
            self.game.check(states)
            self.game.check(states[:-1], [step.action for step in played.steps])
        self.number, self.played = number, played
        self._log, self.advice, self.since = [], None, time.monotonic()
        self.stood = [1 / self.rules.players] * self.rules.players

    @property
    def left(self) -> float | None:
        """Seconds left for the person to act, or None if it is no person's turn or the table has no clock."""
        if self.clock is None or self.status != "playing" or self.unattended:
            return None
        return max(0.0, round(self.since + self.clock - time.monotonic(), 1))

    def gives(self, viewer: Viewer) -> list[int]:
        """Return the seats that a viewer may give to an agent.

        These are the viewer's own seats and, for the host, the empty seats and those of persons who left or have no
        time left. If the host leaves a game, every player may give these seats.
        """
        alone = self.status == "playing" and not self.connected[self.host]
        leads = viewer.host or (alone and viewer.seats)
        late = self.player if self.left == 0 else None
        idle = [n for n, seat in enumerate(self.seats) if not (seat.agent or self.here(seat)) or n == late]
        return sorted({*viewer.seats, *(idle if leads else [])})

    def stop_timer(self) -> None:
        """Cancel the scheduled decision, if any."""
        if self.timer:
            self.timer.cancel()

    def changed(self) -> None:
        """Notify all sockets of the table that it has changed."""
        for listener in self.listeners:
            listener.set()

    def view(self, viewer: Viewer, log_from: int = 0) -> Json:
        """Return the table as JSON for a viewer. The log in the JSON omits the first `log_from` decisions."""
        game, playing = self.game, self.status == "playing"
        # A viewer gets no choices for a forced decision, because the server takes it.
        mine = playing and self.player in viewer.seats and len(self.legal) > 1
        last = next((step for step in reversed(self.log()) if step["moves"]), None)
        return {
            "table": self.id,
            "game": self.number,
            "ply": self.ply,
            "status": self.status,
            "host": viewer.host,
            "mine": viewer.seats,
            "lent": viewer.lent,
            "gives": self.gives(viewer),
            "left": self.left,
            "waiting_for": self.waiting_for,
            "rules": asdict(self.rules),
            "help": self.help,
            "pace": self.pace,
            **views.show(game, self.state),
            "seats": [
                {
                    **shown,
                    "agent": seat.agent,
                    "connected": seat.agent is not None or self.here(seat),
                    "mine": shown["seat"] in viewer.seats,
                }
                for shown, seat in zip(self._shown_seats(), self.seats, strict=True)
            ],
            "moved": last["moves"] if last else [],
            "spectators": self.connected[self.watch],
            "roll_off": self.played.roll_off,
            "choices": views.choices(game, self.state) if mine else [],
            "reach": views.reach(game, self.state) if mine else None,
            "log_from": min(log_from, self.ply),
            "log": self.log(log_from),
            "result": views.result(game, self.state, self.loser),
        }

    @property
    def waiting_for(self) -> list[int]:
        """The seats without a player."""
        return [number for number, seat in enumerate(self.seats) if not seat.taken]

    def entry(self) -> Json:
        """Return the entry for the table in the list of open tables, as JSON."""
        settings = {"rules": asdict(self.rules), "help": self.help}
        return {"table": self.id, **settings, "seats": self._shown_seats(), "open": self.open}

    def _shown_seats(self) -> list[Json]:
        """Return the public facts about all seats, as JSON."""
        return [
            {
                "seat": number,
                "kind": "agent" if seat.agent else seat.kind,
                "name": self.names[number],
                "taken": seat.taken,
            }
            for number, seat in enumerate(self.seats)
        ]

    @property
    def open(self) -> list[int]:
        """The empty seats that anybody may take without an invitation."""
        return [number for number in self.waiting_for if self.seats[number].kind == "open"]

    def here(self, seat: Seat) -> bool:
        """Return whether the person in a seat has an open socket."""
        return seat.key is not None and self.connected[seat.key] > 0
