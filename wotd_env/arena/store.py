"""Tournament files: played blocks in SQLite, written one transaction each, so that a kill loses only what is under way.

A file is a collection of blocks, not one tournament: each is kept under everything that its games depend on (rules,
seed, policies with a digest of their source or file, version of the engine), so that several tournaments may share a
file, at the same time too, and a tournament that is changed finds what still holds.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sqlite3
import zlib
from collections.abc import Container
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import wotd_env
from wotd_env._compile import _stamp
from wotd_env.arena import play
from wotd_env.arena.play import Forfeit, Played, results_dtype
from wotd_env.arena.tournament import Block, Tournament
from wotd_env.policies import POLICIES

__all__ = ["Store"]

_APPLICATION = 0x776F7464  # "wotd": tells our files from other SQLite files
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS setting (
    id INTEGER PRIMARY KEY,
    description TEXT NOT NULL UNIQUE   -- JSON: rules, seed, luck, version, engine
);
CREATE TABLE IF NOT EXISTS block (
    setting INTEGER NOT NULL REFERENCES setting (id),
    policies TEXT NOT NULL,            -- JSON: [name, digest] of each place at the table
    first INTEGER NOT NULL,            -- duplicate
    size INTEGER NOT NULL,            -- of duplicates
    games BLOB NOT NULL,               -- zlib: size * n records, see results_dtype
    forfeits TEXT NOT NULL,            -- JSON
    written TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (setting, policies, first, size)
);
"""


class Store:
    """The blocks of a tournament in a file.

    Args:
        tournament: whose blocks.
        file: the file, made if it is not there; None keeps them in memory.
        given: policies that are not made from their names: of them only the name is known.

    Raises:
        ValueError: if the file is there and is no tournament file; it has not been changed.
    """

    def __init__(
        self, tournament: Tournament, file: str | Path | None = None, given: Container[str] = ()
    ) -> None:
        self._players = tournament.rules.players
        self._digests = {
            name: "given" if name in given else fingerprint(name) for name in tournament.policies
        }
        if file is not None and not Path(file).parent.is_dir():
            raise FileNotFoundError(f"no folder {Path(file).parent} for the tournament file {file}")
        self._connection = sqlite3.connect(
            ":memory:" if file is None else file, timeout=60, isolation_level=None
        )
        try:
            self._prepare(file)
            description = json.dumps(
                {
                    "rules": asdict(tournament.rules),
                    "seed": int(tournament.seed),
                    "luck": [tournament.luck, fingerprint(tournament.luck)] if tournament.luck else None,
                    "version": wotd_env.__version__,
                    "engine": _stamp(Path(play.__file__)),
                }
            )
            self._connection.execute("INSERT OR IGNORE INTO setting (description) VALUES (?)", (description,))
            row = self._connection.execute(
                "SELECT id FROM setting WHERE description = ?", (description,)
            ).fetchone()
            self._setting = int(row[0])
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, file: str | Path | None) -> None:
        try:
            # tables first: another process may be making them and their marks, in one transaction
            (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            (application,) = self._connection.execute("PRAGMA application_id").fetchone()
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{file} is no tournament file: {error}") from error
        if tables and application != _APPLICATION:
            raise ValueError(f"{file} is no tournament file: it is a database of something else")
        if tables and version != _VERSION:
            raise ValueError(
                f"{file} has format {version}, this version of wotd-env reads {_VERSION}; use another file"
            )
        if not tables:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {_APPLICATION};"
                f"PRAGMA user_version = {_VERSION}; COMMIT;"
            )
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()

    def load(self, block: Block) -> Played | None:
        """Return what came of a block, None if it has not been played."""
        row = self._connection.execute(
            "SELECT games, forfeits FROM block WHERE setting = ? AND policies = ? AND first = ? AND size = ?",
            self._key(block),
        ).fetchone()
        if row is None:
            return None
        games = np.frombuffer(zlib.decompress(row[0]), results_dtype(self._players))
        forfeits: list[dict[str, Any]] = json.loads(row[1])
        return Played(
            games,
            [
                Forfeit(**{**entry, "seats": tuple(entry["seats"]), "moves": tuple(entry["moves"])})
                for entry in forfeits
            ],
        )

    def save(self, block: Block, played: Played) -> None:
        """Keep what came of a block; if another process has just done so, nothing changes."""
        forfeits = json.dumps([forfeit._asdict() for forfeit in played.forfeits])
        self._connection.execute(
            "INSERT OR IGNORE INTO block (setting, policies, first, size, games, forfeits) VALUES (?, ?, ?, ?, ?, ?)",
            (*self._key(block), zlib.compress(played.games.tobytes(), 1), forfeits),
        )

    def _key(self, block: Block) -> tuple[int, str, int, int]:
        policies = json.dumps([[name, self._digests[name]] for name in block.table])
        return self._setting, policies, block.first, block.size


def fingerprint(policy: str) -> str:
    """Return a digest of what a policy's name stands for: its source, and the file that it is read from."""
    kind, _, argument = policy.partition(":")
    ours = kind in POLICIES
    module = importlib.util.find_spec(f"wotd_env.policies.{kind}" if ours else kind)
    digest = hashlib.sha256()
    if module and module.origin and module.has_location:
        source = Path(module.origin)
        digest.update(_stamp(source).encode() if ours else source.read_bytes())
    if ours and argument and Path(argument).is_file():
        with open(argument, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
