"""The SQLite file that stores tables. Every decision is written before any client sees it.

The file does not reveal future dice: positions are stored without the state of their random generators. If the process
is killed, no written decision is lost. If the machine fails, the last decisions can be lost.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wotd_env.core.state import STATE, States

_APPLICATION = 0x776F7473  # "wots" in ASCII
_FORMAT = 1
_SCHEMA = """
CREATE TABLE tables (id TEXT PRIMARY KEY, touched REAL NOT NULL, settings TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE games (id TEXT, game INTEGER, state BLOB NOT NULL, roll_off TEXT NOT NULL, PRIMARY KEY (id, game))
    WITHOUT ROWID;
CREATE TABLE steps (id TEXT, game INTEGER, ply INTEGER, action INTEGER NOT NULL, state BLOB NOT NULL, note TEXT,
    PRIMARY KEY (id, game, ply)) WITHOUT ROWID;
"""


class Step(NamedTuple):
    """A decision and the position after it."""

    action: int
    state: States  # (1,)
    note: str | None  # a remark, e.g. "td failed; greedy chose"


class Played(NamedTuple):
    """A stored game: the first position and all decisions."""

    state: States  # (1,)
    roll_off: Any  # dice of the roll-off (R1), [round][seat][die]; None without a roll-off
    steps: list[Step]

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
        row = table, time.time(), json.dumps(settings)
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO tables VALUES (?, ?, ?)", row)

    def put_game(self, table: str, game: int, state: States, roll_off: Any) -> None:
        """Write the first position of a new game."""
        self._add("games", (table, game, _bytes(state), json.dumps(roll_off)))

    def put_step(self, table: str, game: int, ply: int, step: Step) -> None:
        """Write a decision of a game."""
        self._add("steps", (table, game, ply, step.action, _bytes(step.state), step.note))

    def _add(self, where: str, row: tuple[Any, ...]) -> None:
        with self._db:
            self._db.execute(f"INSERT INTO {where} VALUES ({', '.join('?' * len(row))})", row)
            self._db.execute("UPDATE tables SET touched = ? WHERE id = ?", (time.time(), row[0]))

    def forget(self, table: str) -> None:
        """Delete a table with its games and decisions."""
        with self._db:
            for name in ("tables", "games", "steps"):
                self._db.execute(f"DELETE FROM {name} WHERE id = ?", (table,))

    def tables(self) -> dict[str, float]:
        """Return a dict from every table to the time of its last change, in seconds since 1970, oldest first."""
        return dict(self._db.execute("SELECT id, touched FROM tables ORDER BY touched").fetchall())

    def settings(self, table: str) -> Any:
        """Return the settings of a table, as written with `put_table`."""
        (found,) = self._db.execute("SELECT settings FROM tables WHERE id = ?", (table,)).fetchone()
        return json.loads(found)

    def last_game(self, table: str) -> int:
        """Return the number of the last game of a table, or 0 if it has no game yet."""
        (last,) = self._db.execute("SELECT max(game) FROM games WHERE id = ?", (table,)).fetchone()
        return last or 0

    def game(self, table: str, game: int) -> Played | None:
        """Return a game, or None if it does not exist; raise ValueError if a decision is missing or damaged."""
        which = "WHERE id = ? AND game = ?"
        found = self._db.execute(f"SELECT state, roll_off FROM games {which}", (table, game)).fetchone()
        if found is None:
            return None
        sql = f"SELECT ply, action, state, note FROM steps {which} ORDER BY ply"
        rows = self._db.execute(sql, (table, game)).fetchall()
        steps = []
        for number, (ply, action, state, note) in enumerate(rows):
            if ply != number:
                raise ValueError(f"decision {number} of game {game} is missing")
            steps.append(Step(action, _state(state), note))
        return Played(_state(found[0]), json.loads(found[1]), steps)


def _bytes(state: States) -> bytes:
    kept = state.copy()
    kept["rng"] = 0
    return kept.tobytes()


def _state(content: bytes) -> States:
    state: States = np.frombuffer(content, STATE).copy()
    if len(state) != 1:
        raise ValueError(f"a position takes {STATE.itemsize} bytes, not {len(content)}")
    return state
