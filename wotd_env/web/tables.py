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
from typing import Any, NamedTuple

from wotd_env.core.game import IllegalActionError
from wotd_env.core.position import SEATS
from wotd_env.core.rules import Rules
from wotd_env.notation import RecordedGame, parse_action
from wotd_env.web.agents import Agents, Asked
from wotd_env.web.limits import Limits, Refused
from wotd_env.web.requests import NewTable
from wotd_env.web.review import advise, chances, hints, roll_off_of
from wotd_env.web.store import Played, Step, Store
from wotd_env.web.table import Seat, Table, Viewer

__all__ = ["Keys", "Tables"]

_DAY = 86400  # seconds
_LISTED = 5  # open tables of a client, so that nobody fills the list
_AGAIN = 5  # seconds until what could not be written is tried again
_DAMAGE = AttributeError, KeyError, TypeError, ValueError, sqlite3.DatabaseError
"""What reading something damaged raises."""

_log = logging.getLogger("wotd_env.web")


class Keys(NamedTuple):
    """What a new table is got into by; nobody can say them again."""

    host: str
    watch: str
    invitations: dict[int, str]
    """by seat"""


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
        for name, touched in store.tables().items():
            if touched < time.time() - limits.days * _DAY:
                store.forget(name)

    def resume(self) -> None:
        """Go on with all games; a table that is damaged on disk is left there, and out here."""
        for name, touched in self._store.tables().items():
            try:
                table = Table.from_settings(name, self._store.settings(name))
                number = max(self._store.games(name), default=0)
                table.show(self._store.game(name, number), number)
            except _DAMAGE as error:
                _log.error("table %s is damaged, and left out: %s: %s", name, type(error).__name__, error)
                continue
            table.touched = touched
            self._tables[name] = table
            self._go_on(table)

    async def close(self) -> None:
        """Stop whatever goes on; what was decided is on disk."""
        for table in self._tables.values():
            if table.timer:
                table.timer.cancel()
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
        """Return the tables that anybody may join, newest first; of those of one client the newest few."""
        by: Counter[str] = Counter()
        found = []
        for table in sorted(self._tables.values(), key=lambda table: -table.touched):
            if table.open:
                by[table.by] += 1
                if by[table.by] <= _LISTED or not table.by:  # of an earlier process: nobody knows whose
                    found.append(table.entry())
        return found[:most]

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
        self._go_on(table)
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

    def hand_over(self, table: Table, viewer: Viewer, seat: int, agent: str) -> Viewer:
        """Let an agent play a seat from now on; return the viewer without that seat.

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
        return viewer._replace(seats=[other for other in viewer.seats if other != seat])

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
        if table.advice is None:
            table.advice = asyncio.create_task(self._advise(table.rules, state))
            # Whoever asked may be gone when it fails, and then nobody looks at the error.
            table.advice.add_done_callback(lambda task: task.cancelled() or task.exception())
        advice = table.advice
        try:
            advised = await asyncio.shield(advice)
        except TimeoutError:
            if table.advice is advice:  # the next one who asks is given a new try
                table.advice = None
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
            Refused: if there is none of this number, or it is damaged.
        """
        if number == table.number and number:
            return table.recorded()
        try:
            played = self._store.game(table.id, number)
            if played is None:
                raise Refused(404, f"this table has no game {number}", "game")
            other = Table(table.id, table.rules, None, table.seats, False, 0, "", "")
            other.show(played, number)
            recorded = other.recorded()
            str(recorded)  # every position must follow from the one before
        except _DAMAGE as error:
            _log.error(
                "game %d of table %s is damaged: %s: %s", number, table.id, type(error).__name__, error
            )
            raise Refused(410, f"game {number} of this table is damaged on disk", "game") from None
        return recorded

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
            state["rng"] = seed  # of ties; a seed given to `reset` would leave out who has lost
            game.reset(state, roll=False)
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

    def _put_seat(self, table: Table, number: int, seat: Seat) -> None:
        """Give a seat to somebody."""
        before, table.seats[number] = table.seats[number], seat
        try:
            with _written():
                self._store.put_table(table.id, table.settings())
        except Refused:
            table.seats[number] = before
            raise
        self._happened(table)

    def _happened(self, table: Table) -> None:
        """Tell everybody, and see who is next."""
        table.touched = time.time()
        table.advice = None
        table.changed()
        self._go_on(table)

    def _go_on(self, table: Table) -> None:
        """Begin the first game once all seats are taken, or take the next decision if no person has to."""
        if table.timer:
            table.timer.cancel()
            table.timer = None
        if table.status == "waiting" and not table.waiting_for:
            try:
                self._begin(table)
            except Refused:  # whoever took the last seat has it all the same
                table.timer = asyncio.get_running_loop().call_later(_AGAIN, self._go_on, table)
        elif table.status == "playing" and (
            len(table.legal) == 1 or table.seats[int(table.state["player"][0])].agent
        ):
            self._later(table, table.pace)

    def _later(self, table: Table, seconds: float) -> None:
        """Take the next decision after a while, unless something else happens before."""

        def begin() -> None:
            task = asyncio.create_task(self._decide(table))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        table.timer = asyncio.get_running_loop().call_later(seconds, begin)

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
        """Let the oldest table go if nobody has been at it for long; where there is no room, for a day."""
        full = len(self._tables) >= self._limits.tables
        alone = [table for table in self._tables.values() if not table.listeners]
        oldest = min(alone, key=lambda table: table.touched, default=None)
        if oldest and oldest.touched < time.time() - (1 if full else self._limits.days) * _DAY:
            if oldest.timer:
                oldest.timer.cancel()
            with _written():
                self._store.forget(oldest.id)
            del self._tables[oldest.id]
        elif full:
            raise Refused(503, f"this server has {self._limits.tables} tables, which is the most", wait=3600)


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
