"""Manage all tables of a server. Every change of a table is written to disk before it takes effect.

All methods of `Tables` run in the event loop. So a method without `await` finishes before another method starts.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import hashlib
import hmac
import logging
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from wotd_env.core.checks import IllegalActionError
from wotd_env.core.rules import Rules
from wotd_env.core.starting import roll_off_of
from wotd_env.core.state import States
from wotd_env.notation import RecordedGame, parse_action
from wotd_env.web.agents import Agents
from wotd_env.web.limits import Limits
from wotd_env.web.refused import Refused
from wotd_env.web.requests import Join, NewTable, check_pace, invalid
from wotd_env.web.store import Decided, Played, Store
from wotd_env.web.table import GameTable, Seat, Viewer

_DAY = 86400
_LISTED = 50  # maximum length of the list of open tables
_LISTED_PER_ADDRESS = 5
_AGAIN = 5  # seconds before a failed write to disk is repeated
_DAMAGE = AttributeError, KeyError, TypeError, ValueError, sqlite3.DatabaseError

_log = logging.getLogger("wotd_env.web")


class Tables:
    """All tables of a server."""

    def __init__(self, store: Store, agents: Agents, limits: Limits) -> None:
        self.agents, self._store, self._limits = agents, store, limits
        self.by_name: dict[str, GameTable] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def resume(self) -> None:
        """Load all tables and continue their games; delete the tables that nobody has used for a long time."""
        for table in stored_tables(self._store):
            if table.touched < time.time() - self._limits.days * _DAY:
                self._store.forget(table.id)
                continue
            self.by_name[table.id] = table
            self._go_on(table)

    async def close(self) -> None:
        """Stop all timers and tasks."""
        for table in self.by_name.values():
            table.stop_timer()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def find(self, name: str) -> GameTable:
        """Return the table with this name; raise Refused if it does not exist."""
        if name not in self.by_name:
            raise Refused(404, "no_table")
        return self.by_name[name]

    def viewer(self, table: GameTable, key: str) -> Viewer:
        """Return the owner of a key; raise Refused if the key is not valid at the table."""
        viewer = self._viewer(table, _digest_of(key))
        rights = viewer.seats or viewer.lent or viewer.host
        if not rights and not secrets.compare_digest(viewer.key, table.watch):
            raise Refused(403, "key", "key")
        return viewer

    @staticmethod
    def _viewer(table: GameTable, digest: str) -> Viewer:
        same = functools.partial(secrets.compare_digest, digest)
        own = [number for number, seat in enumerate(table.seats) if same(seat.key or "")]
        seats = [number for number in own if table.seats[number].agent is None]
        return Viewer(digest, same(table.host), seats, [number for number in own if number not in seats])

    def open(self) -> list[dict[str, Any]]:
        """Return the tables with open seats as JSON, the last changed first; only a few tables of each client."""
        by: Counter[str] = Counter()
        found = []
        for table in sorted(self.by_name.values(), key=lambda table: -table.touched):
            if table.open:
                by[table.by] += 1
                if by[table.by] <= _LISTED_PER_ADDRESS or not table.by:
                    found.append(table.entry())
        return found[:_LISTED]

    def create(
        self, wanted: NewTable, rules: Rules, position: States | None, by: str
    ) -> tuple[GameTable, str]:
        """Set up a table for the client with the address `by`; return it and the key of its host.

        The first game starts from `position`, STATE (1,); None stands for the usual start. If a table was set up with
        the wanted key, return this table.
        """
        key = wanted.key or _new_key()
        host = _digest_of(key)
        for table in self.by_name.values():
            if secrets.compare_digest(table.host, host):
                return table, key
        oldest = self._find_room(by)
        for number, wish in enumerate(wanted.seats):
            if wish.agent:
                self.agents.check(wish.agent, rules, f"seats[{number}]")
        if oldest:
            self._remove(oldest)
        seats = [Seat(wish.kind, wish.name, wish.agent) for wish in wanted.seats]
        for number, seat in enumerate(seats):
            if seat.kind == "here":
                seat.key = host
            elif seat.kind == "invited":
                seat.invitation = _digest_of(derived_key(key, f"seat {number}"))
        private = not any(seat.kind in ("invited", "open") for seat in seats)
        helped = private if wanted.help is None else wanted.help
        while (name := secrets.token_hex(5)) in self.by_name:
            pass
        watch = _digest_of(derived_key(key, "watch"))
        table = GameTable(name, rules, position, seats, helped, wanted.pace, host, watch, wanted.clock, by=by)
        table.show(None, 0)
        with _written():
            self._store.put_table(table.id, table.settings())
        self.by_name[table.id] = table
        self._go_on(table)
        return table, key

    def join(self, table: GameTable, wanted: Join) -> tuple[int, str]:
        """Give a person the seat of an invitation, or an open seat; return the number of the seat and its key.

        If a seat already has the wanted key, return this seat.
        """
        key = wanted.key or _new_key()
        for number, taken in enumerate(table.seats):
            if taken.key and secrets.compare_digest(taken.key, _digest_of(key)):
                return number, key
        if wanted.invitation is not None:
            number = self.invited(table, wanted.invitation)
        else:
            free = table.open
            if not free or (wanted.seat is not None and wanted.seat not in free):
                raise Refused(409, "taken", "seat")
            number = free[0] if wanted.seat is None else wanted.seat
        self._put_seat(table, number, Seat(table.seats[number].kind, wanted.name, key=_digest_of(key)))
        return number, key

    def invited(self, table: GameTable, invitation: str) -> int:
        """Return the number of the seat to which an invitation belongs."""
        digest = _digest_of(invitation)
        for number, seat in enumerate(table.seats):
            if seat.invitation and secrets.compare_digest(seat.invitation, digest):
                return number
        raise Refused(403, "invitation", "invitation")

    def hand_over(self, table: GameTable, viewer: Viewer, seat: int, agent: str | None) -> Viewer:
        """Give a seat to an agent, or back to the viewer if `agent` is None; return the viewer with the new rights."""
        if seat >= table.rules.players:
            raise invalid("seat", f"seat must be from 0 to {table.rules.players - 1}, got {seat}")
        if seat not in (table.gives(viewer) if agent else viewer.lent):
            raise Refused(403, "seat", "seat")
        if agent:
            self.agents.check(agent, table.rules, "agent")
        self._put_seat(table, seat, replace(table.seats[seat], agent=agent))
        return self._viewer(table, viewer.key)

    def act(
        self, table: GameTable, viewer: Viewer, ply: int, action: int | str, game: int | None = None
    ) -> None:
        """Take decision `ply` of the present game. `action` is a number, or a word of the notation.

        Raise Refused if `game` is given and is not the number of the present game.
        """
        _check_ply(table, ply, game)
        if table.player not in viewer.seats:
            raise Refused(403, "turn", name=table.names[table.player])
        if isinstance(action, str):
            try:
                action = parse_action(table.game, table.state, action)
            except ValueError as error:
                raise invalid("action", error) from None
        self._take(table, action, None)

    def next_game(self, table: GameTable, viewer: Viewer, game: int) -> None:
        """Start the next game. Raise Refused unless the present game is over and its number is `game`."""
        if not viewer.seats and not viewer.host:
            raise Refused(403, "spectator")
        if table.status != "over" or game != table.number:
            raise Refused(409, "not_over", "game", game=game)
        self._begin(table)

    def resign(self, table: GameTable, viewer: Viewer, game: int, seat: int) -> None:
        """Resign a game of two players on behalf of a seat; the other seat wins."""
        if seat not in viewer.seats:
            raise Refused(403, "seat", "seat")
        if table.rules.players > 2:
            raise Refused(409, "resign", "seat")
        if table.status != "playing" or game != table.number:
            raise Refused(409, "not_playing", "game", game=game)
        self._change(table, resigned=(game, seat))

    def set_pace(self, table: GameTable, viewer: Viewer, pace: float | None) -> None:
        """Set `GameTable.pace`; None pauses the table."""
        _check_host(viewer, "set the pace")
        check_pace(pace, all(seat.agent for seat in table.seats))
        self._change(table, pace=pace)

    def step(
        self, table: GameTable, viewer: Viewer, ply: int, game: int | None = None, rush: bool = False
    ) -> None:
        """Take decision `ply` of `game` at once. It must be a forced decision or an agent's decision.

        With `rush`, also take the following decisions at once, until a person must act.
        """
        _check_host(viewer, "step through the game")
        _check_ply(table, ply, game)
        if not table.unattended:
            raise Refused(409, "turn", name=table.names[table.player])
        table.rush = rush and not all(seat.agent for seat in table.seats)
        self._later(table, 0)

    def delete(self, table: GameTable, viewer: Viewer) -> None:
        """Delete a table and all its games."""
        _check_host(viewer, "delete the table")
        self._remove(table)

    def played(self, table: GameTable, number: int) -> RecordedGame:
        """Return game `number` of a table."""
        if number == table.number and number:
            return table.recorded()
        return table_at(self._store, table, number).recorded()

    @staticmethod
    def random() -> int:
        """Return 64 random bits from the operating system. Dice have no other source of randomness."""
        return secrets.randbits(64)

    def _take(self, table: GameTable, action: int, note: str | None) -> None:
        """Take a decision, then roll the dice with new random bits."""
        after = table.state.copy()
        after["rng"] = self.random()
        try:
            table.game.step(after, [action])
        except IllegalActionError:
            raise invalid("action", f"action {action} is not legal here; see choices") from None
        after["rng"] = 0
        step = Decided(action, after, note)
        with _written():
            self._store.put_step(table.id, table.number, table.ply, step)
        table.played.steps.append(step)
        table.since = time.monotonic()
        self._happened(table)

    def _begin(self, table: GameTable) -> None:
        game, seed = table.game, self.random()
        roll_off = None
        if table.number == 0 and table.begins is not None:
            state = table.begins.copy()
        elif table.number and table.rules.start == "loser":
            state = table.state.copy()
            # If `reset` got a seed, it would ignore the last game. The seed in the record decides between tied losers.
            state["rng"] = seed
            game.reset(state, roll=False, starting_player=table.loser)
        else:
            state = game.reset(1, seed=seed, roll=False)
            rounds = roll_off_of(game, seed).tolist()  # -1: the seat does not roll in this round
            roll_off = [[dice if min(dice) >= 0 else None for dice in seats] for seats in rounds] or None
        state["rng"] = self.random()  # new bits, because the roll-off, which players see, follows from `seed`
        game.roll(state)
        state["rng"] = 0
        with _written():
            self._store.put_game(table.id, table.number + 1, state, roll_off)
        table.show(Played(state, roll_off, []), table.number + 1)
        self._happened(table)

    def _put_seat(self, table: GameTable, number: int, seat: Seat) -> None:
        table.since = time.monotonic()
        self._change(table, seats=[*table.seats[:number], seat, *table.seats[number + 1 :]])

    def _change(self, table: GameTable, **settings: Any) -> None:
        changed = copy.copy(table)
        vars(changed).update(settings)
        with _written():
            self._store.put_table(table.id, changed.settings())
        vars(table).update(settings)
        self._happened(table)

    def _remove(self, table: GameTable) -> None:
        with _written():
            self._store.forget(table.id)
        table.stop_timer()
        del self.by_name[table.id]
        table.changed()

    def _happened(self, table: GameTable) -> None:
        table.touched = time.time()
        table.advice = None
        table.changed()
        self._go_on(table)

    def _go_on(self, table: GameTable) -> None:
        """Start the first game if all seats are taken; schedule the next decision if it is forced or an agent's."""
        table.stop_timer()
        if table.status == "waiting" and not table.waiting_for:
            try:
                self._begin(table)
            except Refused:  # the game could not be written to disk: try again later
                table.timer = asyncio.get_running_loop().call_later(_AGAIN, self._go_on, table)
        table.rush = table.rush and table.unattended
        if table.rush or (table.unattended and table.pace is not None):
            self._later(table, 0 if table.rush else table.pace or 0)
        elif table.left:  # tell the viewers when the time is over
            table.timer = asyncio.get_running_loop().call_later(table.left + 0.1, table.changed)

    def _later(self, table: GameTable, seconds: float) -> None:
        """Take the next decision after some seconds, unless the table changes before then."""
        table.stop_timer()
        number, ply = table.number, table.ply

        def begin() -> None:
            task = asyncio.create_task(self._decide(table, number, ply))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        table.timer = asyncio.get_running_loop().call_later(seconds, begin)

    async def _decide(self, table: GameTable, number: int, ply: int) -> None:
        """Take decision `ply` of game `number`."""

        def due() -> bool:
            same = (table.number, table.ply) == (number, ply)
            return same and table.status == "playing" and table.id in self.by_name

        if not due():
            return
        legal = table.legal
        agent = table.seats[table.player].agent
        if len(legal) == 1:
            action, note = legal[0], None
        elif agent:
            action, note = await self.agents.choose(agent, table.rules, table.state)
        else:
            return
        # The seat may have been given or taken back during the choice.
        if not due() or table.seats[table.player].agent != agent:
            return
        try:
            self._take(table, action, note)
        except Refused as refused:
            _log.error("table %s: %s", table.id, refused.reason)
            self._later(table, _AGAIN)

    def _find_room(self, by: str) -> GameTable | None:
        """Return the idle table to remove before a new table is set up, or None to remove no table.

        Raise Refused if there is no room, or if the client `by` has too many tables.
        """
        most = self._limits.tables_per_address
        if sum(table.by == by for table in self.by_name.values()) >= most:
            raise Refused(429, "own_tables", wait=3600, most=most)
        full = len(self.by_name) >= self._limits.tables
        idle = [table for table in self.by_name.values() if not table.listeners]
        oldest = min(idle, key=lambda table: table.touched, default=None)
        if oldest and oldest.touched < time.time() - (1 if full else self._limits.days) * _DAY:
            return oldest
        if full:
            raise Refused(503, "tables", wait=3600, most=self._limits.tables)
        return None


def stored_tables(store: Store) -> Iterator[GameTable]:
    """Yield every table of a store, with its last game as the present game. Damaged tables are logged and skipped."""
    for name, touched in store.tables().items():
        try:
            table = GameTable.from_settings(name, store.settings(name))
            number = store.last_game(name)
            table.show(store.game(name, number), number)
        except _DAMAGE as error:
            _log.error("table %s is damaged and skipped: %s: %s", name, type(error).__name__, error)
            continue
        table.touched = touched
        yield table


def table_at(store: Store, table: GameTable, number: int) -> GameTable:
    """Return a copy of a table that shows the stored game `number`; raise Refused if the game is missing or damaged."""
    try:
        played = store.game(table.id, number)
        if played is None:
            raise Refused(404, "no_game", "game", game=number)
        other = copy.copy(table)
        other.show(played, number)
        str(other.recorded())  # raises ValueError if a position is damaged
    except _DAMAGE as error:
        what = type(error).__name__
        _log.error("game %d of table %s is damaged: %s: %s", number, table.id, what, error)
        raise Refused(410, "damaged", "game", game=number) from None
    return other


def derived_key(key: str, use: str) -> str:
    """Return the key of spectators ("watch") or the invitation to a seat ("seat 1") for the host's key of a table.

    They follow from the host's key, so that a repeated request gets the same keys.
    """
    return hmac.new(key.encode("utf-8", "replace"), use.encode(), "sha256").hexdigest()


def _new_key() -> str:
    return secrets.token_urlsafe(32)


def _digest_of(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _check_host(viewer: Viewer, what: str) -> None:
    if not viewer.host:
        raise Refused(403, "host_only", what=what)


def _check_ply(table: GameTable, ply: int, game: int | None) -> None:
    if game not in (None, table.number):
        raise Refused(409, "game", "game", game=table.number, got=game)
    if table.status != "playing":
        raise Refused(409, "over" if table.status == "over" else "not_begun", "ply")
    if ply != table.ply:
        raise Refused(409, "ply", "ply", ply=table.ply, got=ply)


@contextmanager
def _written() -> Iterator[None]:
    """Raise Refused if the code in the `with` block cannot write to disk."""
    try:
        yield
    except sqlite3.Error as error:
        _log.error("the file of tables cannot be written: %s", error)
        raise Refused(503, "disk", wait=_AGAIN) from None
