"""The SQLite file that stores tables. Every decision is written before any client sees it.

Digests detect damage: the digest of a game covers its first position and all its decisions, and the digest of a table
covers its settings and the digest of its last game.

The file does not reveal future dice: positions are stored without the state of their random generators. If the process
is killed, no written decision is lost. If the machine fails, the last decisions can be lost.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wotd_env.core.state import STATE, States

_APPLICATION = 0x776F7473  # "wots" in ASCII
_FORMAT = 2
_SCHEMA = """
CREATE TABLE tables (id TEXT PRIMARY KEY, touched REAL NOT NULL, settings TEXT NOT NULL, digest BLOB) WITHOUT ROWID;
CREATE TABLE games (id TEXT, game INTEGER, state BLOB NOT NULL, roll_off TEXT NOT NULL, digest BLOB,
    PRIMARY KEY (id, game)) WITHOUT ROWID;
CREATE TABLE steps (id TEXT, game INTEGER, ply INTEGER, action INTEGER NOT NULL, state BLOB NOT NULL, note TEXT,
    PRIMARY KEY (id, game, ply)) WITHOUT ROWID;
"""
_GAME = "WHERE id = ? AND game = ?"


class Decided(NamedTuple):
    """A decision and the position after it."""

    action: int
    state: States  # (1,)
    note: str | None  # "late" or "failed" if `greedy` decided in place of an agent


class Played(NamedTuple):
    """A stored game: the first position and all decisions."""

    state: States  # (1,)
    roll_off: Any  # dice of the roll-off (R1), [round][seat][die]; None without a roll-off
    steps: list[Decided]

    @property
    def states(self) -> list[States]:
        """The positions of the game, each STATE (1,): before the first decision, and after every decision."""
        return [self.state, *(step.state for step in self.steps)]


class Store:
    """The database of tables. Only the user who runs the server can read a file that this class creates.

    All methods must be called in the same thread.

    Raises:
        ValueError: if another process has opened the file, or if the file is not a database of this server.
        OSError: if the file is not writable.
    """

    def __init__(self, file: str | Path) -> None:
        self.file = Path(file)
        os.close(os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600))
        self._db = sqlite3.connect(self.file, timeout=1, check_same_thread=False)
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()
            (application,) = self._db.execute("PRAGMA application_id").fetchone()
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if tables and application != _APPLICATION:
                raise sqlite3.DatabaseError("it belongs to another application")
            if tables and version != _FORMAT:
                raise sqlite3.DatabaseError(f"its format is {version}, not {_FORMAT}")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            if not tables:
                marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_FORMAT};"
                self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {marks} COMMIT;")
        except sqlite3.DatabaseError as error:
            self._db.close()
            what = f"not a database of this server: {error};"
            if "locked" in str(error):
                what = "open in another server; stop it, or"
            raise ValueError(f"{file} is {what} name another --file") from error

    def close(self) -> None:
        """Close the file, so that another process can open it."""
        self._db.close()

    def put_table(self, table: str, settings: dict[str, Any]) -> None:
        """Write the settings of a new or changed table."""
        with self._db:
            sql = "INSERT OR REPLACE INTO tables VALUES (?, 0, ?, NULL)"
            self._db.execute(sql, (table, json.dumps(settings)))
            self._touch(table)

    def put_game(self, table: str, game: int, state: States, roll_off: Any) -> None:
        """Write the first position of a new game."""
        row = table, game, _bytes(state), json.dumps(roll_off)
        with self._db:
            self._db.execute("INSERT INTO games VALUES (?, ?, ?, ?, ?)", (*row, _digest(*row)))
            self._touch(table)

    def put_step(self, table: str, game: int, ply: int, step: Decided) -> None:
        """Write a decision of a game."""
        row = table, game, ply, step.action, _bytes(step.state), step.note
        with self._db:
            self._db.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", row)
            (before,) = self._db.execute(f"SELECT digest FROM games {_GAME}", row[:2]).fetchone()
            self._db.execute(f"UPDATE games SET digest = ? {_GAME}", (_digest(before, *row), *row[:2]))
            self._touch(table)

    def _touch(self, table: str) -> None:
        """Write the time of the last change of a table, and then its digest."""
        self._db.execute("UPDATE tables SET touched = ? WHERE id = ?", (time.time(), table))
        self._db.execute("UPDATE tables SET digest = ? WHERE id = ?", (self._digest_of(table), table))

    def forget(self, table: str) -> None:
        """Delete a table with its games and decisions."""
        with self._db:
            for name in ("tables", "games", "steps"):
                self._db.execute(f"DELETE FROM {name} WHERE id = ?", (table,))

    def tables(self) -> dict[str, float]:
        """Return a dict from every table to the time of its last change, in seconds since 1970, oldest first."""
        return dict(self._db.execute("SELECT id, touched FROM tables ORDER BY touched").fetchall())

    def settings(self, table: str) -> Any:
        """Return the settings of a table, as written with `put_table`; raise ValueError if the table is damaged."""
        sql = "SELECT settings, digest FROM tables WHERE id = ?"
        found, digest = self._db.execute(sql, (table,)).fetchone()
        if digest != self._digest_of(table):
            raise ValueError("its digest does not match")
        return json.loads(found)

    def last_game(self, table: str) -> int:
        """Return the number of the last game of a table, or 0 if it has no game yet."""
        (last,) = self._db.execute("SELECT max(game) FROM games WHERE id = ?", (table,)).fetchone()
        return last or 0

    def game(self, table: str, game: int) -> Played | None:
        """Return a game, or None if it does not exist; raise ValueError if it is damaged."""
        sql = f"SELECT id, game, state, roll_off, digest FROM games {_GAME}"
        found = self._db.execute(sql, (table, game)).fetchone()
        if found is None:
            return None
        *first, digest = found
        rows = self._db.execute(f"SELECT * FROM steps {_GAME} ORDER BY ply", (table, game)).fetchall()
        if digest != functools.reduce(lambda before, row: _digest(before, *row), rows, _digest(*first)):
            raise ValueError(f"the digest of game {game} does not match")
        steps = [Decided(action, _state(state), note) for *_, action, state, note in rows]
        return Played(_state(first[2]), json.loads(first[3]), steps)

    def _digest_of(self, table: str) -> bytes:
        row = self._db.execute("SELECT id, touched, settings FROM tables WHERE id = ?", (table,)).fetchone()
        sql = "SELECT game, digest FROM games WHERE id = ? ORDER BY game DESC LIMIT 1"
        return _digest(row, self._db.execute(sql, (table,)).fetchone())


def _digest(*parts: Any) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


def _bytes(state: States) -> bytes:
    kept = state.copy()
    kept["rng"] = 0
    return kept.tobytes()


def _state(content: bytes) -> States:
    return np.frombuffer(content, STATE).copy()
