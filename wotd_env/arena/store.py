"""Tournament files: SQLite files of played blocks (see `wotd_env.arena.tournament`).

Each block is written in one transaction, so only unfinished blocks are lost if the process is killed.

The key of a block contains everything that its games depend on: the rules, the seed, the policies with their digests
(see `wotd_env.policies.identity`) and the version of the engine. Several tournaments may share a file, even at the
same time. A changed tournament reuses the blocks whose keys are unchanged. A block with a wrong checksum is played
again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import wotd_env
from wotd_env import sources
from wotd_env.arena.tournament import (
    BLOCK,
    Block,
    Forfeit,
    Matchup,
    PlayedBlock,
    Tournament,
    game_seed,
    replay,
    results_dtype,
    seatings,
)

_APPLICATION = 0x776F7464  # "wotd" in ASCII, marks tournament files
_VERSION = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS setting (
    id INTEGER PRIMARY KEY,
    description TEXT NOT NULL UNIQUE   -- JSON: rules, seed, luck, version, engine
);
CREATE TABLE IF NOT EXISTS block (
    setting INTEGER NOT NULL REFERENCES setting (id),
    policies TEXT NOT NULL,            -- JSON: [name, digest] of each place in the matchup
    first INTEGER NOT NULL,            -- duplicate
    size INTEGER NOT NULL,             -- of duplicates
    games BLOB NOT NULL,               -- zlib: size * n records, see results_dtype
    forfeits TEXT NOT NULL,            -- JSON
    written TEXT NOT NULL,             -- UTC, ISO 8601
    checksum BLOB NOT NULL,            -- of all other columns
    PRIMARY KEY (setting, policies, first, size)
)
"""

_log = logging.getLogger("wotd_env")


class Store(AbstractContextManager["Store"]):
    """The stored blocks of a tournament. A file that is damaged or is not a tournament file raises ValueError.

    A missing file is created. If `file` is None, the blocks are kept in memory. `digests` (policy -> digest) are
    needed only if `file` is given. If `fresh` is true, blocks in the file are ignored, and the first saved block
    replaces all stored blocks of the tournament.
    """

    def __init__(
        self,
        tournament: Tournament,
        file: str | Path | None = None,
        digests: Mapping[str, str] | None = None,
        fresh: bool = False,
    ) -> None:
        self._tournament, self._file, self._fresh = tournament, file, fresh
        self._replace = fresh
        self._digests = digests or {}
        description = {
            "rules": asdict(tournament.rules),
            "seed": tournament.seed,
            "luck": [tournament.luck, self._digests.get(tournament.luck)] if tournament.luck else None,
            "version": wotd_env.__version__,
            "engine": sources.digest(sources.reached("wotd_env.arena.tournament")),
        }
        self._description = json.dumps(description)
        if file is not None and not Path(file).parent.is_dir():
            raise FileNotFoundError(f"no folder {Path(file).parent} for the tournament file {file}")
        with self._explained("read"):
            self._connection = sqlite3.connect(file or ":memory:", timeout=60, isolation_level=None)
        # Replace undecodable bytes instead of raising an error: the checksum detects damaged text.
        self._connection.text_factory = lambda text: text.decode(errors="replace")
        try:
            with self._explained("read"):
                # Another process may create the tables during these queries. The tables are counted first, so that
                # such a file is treated as empty and is not rejected as another database.
                (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                (application,) = self._connection.execute("PRAGMA application_id").fetchone()
                (version,) = self._connection.execute("PRAGMA user_version").fetchone()
                if tables and application != _APPLICATION:
                    raise ValueError(f"{self._file} is not a tournament file: it is another database")
                if tables and version != _VERSION:
                    raise ValueError(
                        f"{self._file} has format {version}, this version reads {_VERSION}; use another file"
                    )
                self._empty = not tables
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Turn SQLite's errors into errors that name the file and a remedy."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's messages can quote undecodable text
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # the primary error code
            if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
                raise sqlite3.OperationalError(
                    f"the tournament file {self._file} cannot be {done}: {error}. Written blocks are kept"
                ) from error
            if code == sqlite3.SQLITE_NOTADB:
                raise ValueError(f"{self._file} is not a tournament file: {error}") from error
            raise ValueError(
                f"the tournament file {self._file} is damaged ({error}). Delete it, or use another file: "
                "the same seed plays the same games again"
            ) from error

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def stored(self, matchup: Matchup) -> Iterator[tuple[int, PlayedBlock, str]]:
        """Yield the number, the results and the date of each stored block of a matchup."""
        if self._empty or self._fresh:
            return
        policies = self._policies(matchup)
        with self._explained("read"):
            rows = self._connection.execute(
                "SELECT first, size, games, forfeits, written, checksum FROM block JOIN setting ON id = setting "
                "WHERE description = ? AND policies = ? AND typeof(first) = 'integer' ORDER BY first",
                (self._description, policies),
            ).fetchall()
        for first, size, games, forfeits, written, checksum in rows:
            block = self._tournament.block(matchup, first // BLOCK)
            if (first, size) != block[1:]:
                continue  # a short last block of a smaller tournament, or a block beyond the end of this tournament
            try:
                if checksum != self._checksum(policies, block, games, forfeits, written):
                    raise ValueError("the checksum is wrong")
                played = _unpack(self._tournament, block, games, forfeits)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError, zlib.error) as error:
                games = f"games {first * len(matchup)} to {(first + size) * len(matchup) - 1}"
                names = " against ".join(matchup)
                _log.warning(f"{self._file} is damaged: {games} of {names} are played again ({error})")
                continue
            yield first // BLOCK, played, written[:10]

    def begin(self) -> None:
        """Write the schema and the tournament's settings to the file. Call this method before `save`."""
        with self._explained("written"), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            # SQLite writes this value even if it is unchanged, so an unwritable file is detected here.
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute("INSERT OR IGNORE INTO setting (description) VALUES (?)", (self._description,))

    def save(self, block: Block, played: PlayedBlock) -> None:
        """Save the results of a block. If this fails, the file is unchanged."""
        policies = self._policies(block.matchup)
        games = zlib.compress(played.games.tobytes(), 1)
        forfeits = json.dumps([forfeit._asdict() for forfeit in played.forfeits])
        written = datetime.now(UTC).isoformat(timespec="seconds")
        checksum = self._checksum(policies, block, games, forfeits, written)
        with self._explained("written"), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            (setting,) = connection.execute(
                "SELECT id FROM setting WHERE description = ?", (self._description,)
            ).fetchone()
            if self._replace:
                connection.executemany(
                    "DELETE FROM block WHERE setting = ? AND policies = ?",
                    [(setting, self._policies(matchup)) for matchup in self._tournament.matchups],
                )
            connection.execute(
                "INSERT OR REPLACE INTO block VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (setting, policies, block.first, block.size, games, forfeits, written, checksum),
            )
        self._replace = False

    def _policies(self, matchup: Matchup) -> str:
        return json.dumps([[name, self._digests.get(name)] for name in matchup])

    def _checksum(self, policies: str, block: Block, games: bytes, forfeits: str, written: str) -> bytes:
        text = json.dumps([self._description, policies, block.first, block.size, forfeits, written])
        return hashlib.sha256(text.encode() + games).digest()


def _unpack(tournament: Tournament, block: Block, games: bytes, forfeits: str) -> PlayedBlock:
    """Decode the games and forfeits of a stored block. Raise an error if they cannot come from the block."""
    n = len(block.matchup)
    dtype = results_dtype(n)
    size = block.size * n * dtype.itemsize
    records = np.frombuffer(zlib.decompressobj().decompress(games, size + 1), dtype)
    if records.nbytes != size:
        raise ValueError("the number of games is wrong")
    duplicates = block.first + np.arange(block.size)
    entries = [
        Forfeit(**{**entry, "seats": tuple(entry["seats"]), "moves": tuple(entry["moves"])})
        for entry in json.loads(forfeits)
    ]
    if not (
        (records["duplicate"] == duplicates.repeat(n)).all()
        and (records["place"] == seatings(duplicates, n).reshape(-1, n)).all()
        and ((records["rank"] >= 1) & (records["rank"] <= n)).all()
        and (records["share"] >= 0).all()
        and (np.abs(records["share"].sum(1) - 1) < 1e-5).all()
        and np.isfinite(records["luck"]).all()
        and ((records["forfeit"] >= -1) & (records["forfeit"] < n)).all()
        and len(entries) == np.count_nonzero(records["forfeit"] >= 0)
        and all(_is_possible(tournament, block, forfeit) for forfeit in entries)
    ):
        raise ValueError("its games are impossible")
    # Only the first forfeit is replayed, because `wotd arena` shows its position. Replaying all of them is slow.
    for forfeit in entries[:1]:
        replay(tournament.rules, forfeit.game_seed, forfeit.moves)
    return PlayedBlock(records, entries)


def _is_possible(tournament: Tournament, block: Block, forfeit: Forfeit) -> bool:
    """Return whether a forfeit fits its block."""
    texts = (forfeit.policy, forfeit.reason, forfeit.traceback)
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(move, int) for move in forfeit.moves)
        and sorted(forfeit.seats) == sorted(block.matchup)
        and forfeit.seat in range(len(forfeit.seats))
        and forfeit.policy == forfeit.seats[forfeit.seat]
        and forfeit.duplicate in range(block.first, block.first + block.size)
        and forfeit.game_seed == game_seed(tournament.seed, block.matchup, forfeit.duplicate)
    )
