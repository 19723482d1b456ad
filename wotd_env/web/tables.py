"""Tables at which people and agents play; whatever changes at one changes here, on disk first.

All of it happens in the event loop, one thing after the other: what a method has begun is done before anything else is.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from wotd_env.core.game import Game, IllegalActionError
from wotd_env.core.notation import RecordedGame, parse_action
from wotd_env.core.position import SEATS, parse_position, position
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import States
from wotd_env.web import views
from wotd_env.web.agents import Agents, Asked, game_of
from wotd_env.web.limits import Limits, Refused
from wotd_env.web.requests import NewTable
from wotd_env.web.review import Advised, advise, chances, even, hints, roll_off_of
from wotd_env.web.store import Played, Step, Store

__all__ = ["Keys", "Seat", "Table", "Tables", "Viewer"]

_DAY = 86400  # seconds
_AGAIN = 5  # seconds until what could not be written is tried again

_log = logging.getLogger("wotd_env.web")


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


class Keys(NamedTuple):
    """What a new table is got into by; nobody can say them again."""

    host: str
    watch: str
    invitations: dict[int, str]
    """by seat"""


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
    _timer: asyncio.TimerHandle | None = None
    _advice: asyncio.Task[Advised] | None = None
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
        """Put a game that was kept on the table; None for the empty board before the first."""
        self.number = number
        if played is None:
            self.states = [_before_the_first(self)]
            self.steps, self.roll_off = [], None
        else:
            self.states = [played.state, *(step.state for step in played.steps)]
            self.steps, self.roll_off = played.steps, played.roll_off
        self._told, self._advice, self.stood = [], None, even(self.game)

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
        if not playing and self.status == "waiting":
            shown["words"] = f"Waiting for {views.listed([f'seat {SEATS[s]}' for s in self.waiting_for])}."
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


class Tables:
    """All tables of a server.

    Args:
        store: where they are kept.
        agents: what plays for nobody.
        limits: of the server.
    """

    def __init__(self, store: Store, agents: Agents, limits: Limits) -> None:
        self._store, self._agents, self._limits = store, agents, limits
        self._tables: dict[str, Table] = {}
        self._advise = Asked(advise, limits.thinking)
        self._tasks: set[asyncio.Task[None]] = set()
        for name, touched, settings in list(store.tables()):
            if touched < time.time() - limits.days * _DAY:
                store.forget(name)
                continue
            table = Table.from_settings(name, settings)
            table.touched = touched
            self._tables[name] = table

    def resume(self) -> None:
        """Go on with all games; the rules are at work from here on."""
        for table in self._tables.values():
            number = max(self._store.games(table.id), default=0)
            table.show(self._store.game(table.id, number), number)
            self._begin_if_full(table)
            self._go_on(table)

    async def close(self) -> None:
        """Stop whatever goes on; what was decided is on disk."""
        for table in self._tables.values():
            if table._timer:
                table._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --------------------------------------------------------------------------------------------- who may see what

    def find(self, name: str) -> Table:
        """Return a table.

        Raises:
            Refused: if there is none of this name.
        """
        if name not in self._tables:
            raise Refused(404, "there is no such table, or it is gone")
        return self._tables[name]

    def viewer(self, table: Table, key: str) -> Viewer:
        """Return whose key it is.

        Raises:
            Refused: if it is none of this table.
        """
        digest = _digest(key)
        seats = [number for number, seat in enumerate(table.seats) if seat.key and _same(seat.key, digest)]
        host = _same(table.host, digest)
        if not (seats or host or _same(table.watch, digest)):
            raise Refused(403, "this key opens nothing at this table", "key")
        return Viewer(digest, host, seats)

    def open(self, most: int = 50) -> list[dict[str, Any]]:
        """Return the tables that anybody may join, newest first."""
        found = [table for table in self._tables.values() if table.open]
        return [table.entry() for table in sorted(found, key=lambda table: -table.touched)[:most]]

    # --------------------------------------------------------------------------------------------- what can be done

    def create(self, wanted: NewTable, by: str) -> tuple[Table, Keys]:
        """Set up a table.

        Args:
            wanted: how it shall be.
            by: the client that asks for it.

        Raises:
            Refused: if there are too many tables, or an agent does not play these rules.
        """
        for number, seat in enumerate(wanted.seats):
            if seat.agent:
                self._check_agent(seat.agent, wanted.rules, f"seats[{number}]")
        if sum(table.by == by for table in self._tables.values()) >= self._limits.tables_per_address:
            raise Refused(
                429, f"you have set up {self._limits.tables_per_address} tables; that is the most", wait=3600
            )
        self._make_room()
        keys = Keys(
            _new_key(),
            _new_key(),
            {number: _new_key() for number, seat in enumerate(wanted.seats) if seat.kind == "invited"},
        )
        host = _digest(keys.host)
        seats = [
            Seat(
                seat.kind,
                seat.name,
                seat.agent,
                host if seat.kind == "here" else None,
                _digest(keys.invitations[number]) if number in keys.invitations else None,
            )
            for number, seat in enumerate(wanted.seats)
        ]
        table = Table(
            _new_name(self._tables),
            wanted.rules,
            wanted.position,
            seats,
            wanted.help,
            wanted.pace,
            host,
            _digest(keys.watch),
            by=by,
        )
        table.show(None, 0)
        with _written():
            self._store.put_table(table.id, table.settings())
        self._tables[table.id] = table
        self._begin_if_full(table)
        return table, keys

    def join(self, table: Table, name: str, invitation: str | None, seat: int | None) -> tuple[int, str]:
        """Take a seat, by invitation or an open one; return which, and its key.

        Raises:
            Refused: if the invitation is none or used, or the seat is not free.
        """
        if invitation is not None:
            number = self.invited(table, invitation)
        else:
            free = table.open
            if not free or (seat is not None and seat not in free):
                raise Refused(409, "this seat is taken, or not open to everybody", "seat")
            number = free[0] if seat is None else seat
        key = _new_key()
        before = table.seats[number]
        self._put_seat(
            table, number, Seat(before.kind, name or f"Player {SEATS[number]}", None, _digest(key))
        )
        return number, key

    def invited(self, table: Table, invitation: str) -> int:
        """Return the seat that an invitation is for.

        Raises:
            Refused: if it is none, or used.
        """
        digest = _digest(invitation)
        for number, seat in enumerate(table.seats):
            if seat.invitation and _same(seat.invitation, digest):
                return number
        raise Refused(403, "this invitation is not valid, or has been used already", "invitation")

    def hand_over(self, table: Table, viewer: Viewer, seat: int, agent: str) -> None:
        """Let an agent play a seat from now on.

        Raises:
            Refused: unless it is the viewer's, or nobody is there and the viewer is the host; for no such agent.
        """
        if seat >= table.rules.players:
            raise Refused(400, f"seat must be from 0 to {table.rules.players - 1}, got {seat}", "seat")
        there = table.seats[seat]
        absent = there.agent is None and not table.here(there)
        if seat not in viewer.seats and not (viewer.host and absent):
            raise Refused(
                403,
                "this seat is not yours to give away; a host can give away those of people who left",
                "seat",
            )
        self._check_agent(agent, table.rules, "agent")
        self._put_seat(table, seat, Seat("agent", agent, agent))

    def act(self, table: Table, viewer: Viewer, ply: int, action: int | str) -> None:
        """Take a decision.

        Args:
            table: where.
            viewer: who decides.
            ply: the number of the decision, which a page that has seen less cannot know.
            action: its number, or its word in the notation.

        Raises:
            Refused: if it is not the viewer's to take, or no legal one.
        """
        if table.status != "playing":
            why = "the game is over" if table.status == "over" else "the game has not begun"
            raise Refused(409, f"nothing is to be decided: {why}", "ply")
        if ply != table.ply:
            raise Refused(409, f"decision {ply} is not the one to be taken, which is {table.ply}", "ply")
        if int(table.state["player"][0]) not in viewer.seats:
            raise Refused(403, f"it is the turn of {table.names[table.state['player'][0]]}")
        if isinstance(action, str):
            try:
                action = parse_action(table.game, table.state, action)
            except ValueError as error:
                raise Refused(400, str(error), "action") from None
        self._take(table, action, None)

    def next_game(self, table: Table, viewer: Viewer, game: int) -> None:
        """Begin the next game.

        Args:
            table: where.
            viewer: who wants it.
            game: the number of the one that is over.

        Raises:
            Refused: if it is not over, or the viewer plays no seat and is not the host.
        """
        if not viewer.seats and not viewer.host:
            raise Refused(403, "those who watch cannot begin a game")
        if table.status != "over" or game != table.number:
            raise Refused(409, f"game {game} is not one that has just ended", "game")
        self._begin(table)

    async def help(self, table: Table, viewer: Viewer) -> dict[str, Any]:
        """Return what the present position is worth and, for whoever is to act, the best choices, as JSON.

        Raises:
            Refused: if there is no help at this table, no game to help with, or it takes too long.
        """
        if not table.help or not table.number:
            raise Refused(409, "there is no help at this table, or its game has not begun", "table")
        game, state, number, ply = table.game, table.state, table.number, table.ply
        if table._advice is None:
            table._advice = asyncio.create_task(self._advise(table.rules, state))
        try:
            advised = await asyncio.shield(table._advice)
        except TimeoutError:
            raise Refused(503, "the position could not be valued in time", wait=_AGAIN) from None
        stood = chances(game, state, advised.equity, table.stood)
        if (number, ply) == (table.number, table.ply):
            table.stood = stood
        mine = not game.is_over(state)[0] and int(state["player"][0]) in viewer.seats
        return {
            "table": table.id,
            "game": number,
            "ply": ply,
            "chances": [round(chance, 4) for chance in stood],
            "source": advised.source,
            "exact": advised.exact,
            "hints": hints(game, state, advised, table.names) if mine else [],
        }

    def played(self, table: Table, number: int) -> RecordedGame:
        """Return a game of a table as it went.

        Raises:
            Refused: if there is none of this number.
        """
        if number == table.number and number:
            return table.recorded()
        played = self._store.game(table.id, number)
        if played is None:
            raise Refused(404, f"this table has no game {number}", "game")
        other = Table(table.id, table.rules, None, table.seats, False, 0, "", "")
        other.show(played, number)
        return other.recorded()

    # --------------------------------------------------------------------------------------------- how it is done

    @staticmethod
    def random() -> int:
        """Return 64 bits of the system's own randomness: all that dice come from."""
        return secrets.randbits(64)

    def _take(self, table: Table, action: int, note: str | None) -> None:
        """Take a decision, and roll what is to be rolled: with dice that nothing so far says anything about."""
        after = table.state.copy()
        after["rng"] = self.random()
        try:
            table.game.step(after, [action])
        except IllegalActionError:
            raise Refused(400, f"action {action} is not legal here; see choices", "action") from None
        after["rng"] = 0
        step = Step(action, after, note)
        with _written():
            self._store.put_step(table.id, table.number, table.ply, step)
        table.steps.append(step)
        table.states.append(after)
        self._happened(table)

    def _begin(self, table: Table) -> None:
        """Begin the table's next game."""
        game, seed = table.game, self.random()
        roll_off = None
        if table.number == 0 and table.begins is not None:
            state = table.begins.copy()
        elif table.number and table.rules.start == "loser":
            state = table.state.copy()
            game.reset(state, seed=seed, roll=False)
        else:
            state = game.reset(1, seed=seed, roll=False)
            roll_off = roll_off_of(game, seed)
        state["rng"] = self.random()  # the roll-off was seen, and came from the seed
        game.roll(state)
        state["rng"] = 0
        with _written():
            self._store.put_game(table.id, table.number + 1, state, roll_off)
        table.show(Played(state, roll_off, []), table.number + 1)
        self._happened(table)

    def _begin_if_full(self, table: Table) -> None:
        if table.number == 0 and not table.waiting_for:
            self._begin(table)

    def _put_seat(self, table: Table, number: int, seat: Seat) -> None:
        """Give a seat to somebody."""
        before, table.seats[number] = table.seats[number], seat
        try:
            with _written():
                self._store.put_table(table.id, table.settings())
        except Refused:
            table.seats[number] = before
            raise
        self._begin_if_full(table)
        self._happened(table)

    def _happened(self, table: Table) -> None:
        """Tell everybody, and see who is next."""
        table.touched = time.time()
        table._advice = None
        table.changed()
        self._go_on(table)

    def _go_on(self, table: Table) -> None:
        """Take the next decision if no person has to."""
        if table._timer:
            table._timer.cancel()
            table._timer = None
        if table.status != "playing":
            return
        if len(table.legal) == 1 or table.seats[int(table.state["player"][0])].agent:
            self._later(table, table.pace)

    def _later(self, table: Table, seconds: float) -> None:
        """Take the next decision after a while, unless something else happens before."""

        def begin() -> None:
            task = asyncio.create_task(self._decide(table))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        table._timer = asyncio.get_running_loop().call_later(seconds, begin)

    async def _decide(self, table: Table) -> None:
        """Take a decision that leaves no choice, or that of an agent."""
        which, legal = (table.number, table.ply), table.legal
        agent = table.seats[int(table.state["player"][0])].agent
        if len(legal) == 1:
            action, note = int(legal[0]), None
        elif agent:
            action, note = await self._agents.choose(agent, table.rules, table.state)
        else:
            return
        if (table.number, table.ply) != which:
            return
        try:
            self._take(table, action, note)
        except Refused as refused:
            _log.error("table %s: %s", table.id, refused.reason)
            self._later(table, _AGAIN)

    def _check_agent(self, agent: str, rules: Rules, field: str) -> None:
        if agent not in self._agents.words:
            raise Refused(400, f"agent must be one of {', '.join(self._agents.words)}, got {agent!r}", field)
        try:
            self._agents.check(agent, rules)
        except (ValueError, ImportError, OSError) as error:
            raise Refused(400, f"{agent} does not play these rules: {error}", field) from None

    def _make_room(self) -> None:
        """Make sure that there is room for a table; where there is none, the oldest left alone for a day goes."""
        if len(self._tables) < self._limits.tables:
            return
        alone = [table for table in self._tables.values() if not table.listeners]
        oldest = min(alone, key=lambda table: table.touched, default=None)
        if oldest is None or oldest.touched > time.time() - _DAY:
            raise Refused(503, f"this server has {self._limits.tables} tables, which is the most", wait=3600)
        if oldest._timer:
            oldest._timer.cancel()
        with _written():
            self._store.forget(oldest.id)
        del self._tables[oldest.id]


def _new_key() -> str:
    return secrets.token_urlsafe(32)


def _new_name(taken: dict[str, Table]) -> str:
    name = secrets.token_hex(5)
    return _new_name(taken) if name in taken else name


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one, other)


@contextmanager
def _written() -> Iterator[None]:
    """Say so where something cannot be written; nothing has changed then."""
    try:
        yield
    except sqlite3.Error as error:
        _log.error("the file of tables cannot be written: %s", error)
        raise Refused(
            503, "the server cannot write this down at present; nothing has changed", wait=_AGAIN
        ) from None
