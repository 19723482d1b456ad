"""Running a tournament: what is not in the file yet is played, in any order, and every table stops when it should."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wotd_env.arena.play import Played
from wotd_env.arena.results import Results, share_error
from wotd_env.arena.store import Store
from wotd_env.arena.tournament import Table, Tournament
from wotd_env.arena.workers import Here, Pool, Processes
from wotd_env.policies import Policy, make_policy

__all__ = ["run"]


def run(
    tournament: Tournament,
    file: str | Path | None = None,
    *,
    workers: int = 0,
    time_limit: float = 60.0,
    policies: Mapping[str, Policy] | None = None,
    pool: Pool | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Results:
    """Play a tournament, or what a file lacks of it.

    The results depend on the tournament alone: not on the number of workers, nor on interruptions.

    Args:
        tournament: what to play.
        file: where played blocks are kept, see `wotd_env.arena.store`; None keeps them in memory.
        workers: processes that play (a script that asks for them needs the usual `if __name__ == "__main__":`). With
            0 this process does, and a policy that hangs cannot be stopped.
        time_limit: seconds that a policy may take for one call (up to 256 n decisions) in a worker; then it forfeits
            the games that it was asked about.
        policies: policies that are not made from their names, by name. A file knows them by name only.
        pool: plays the blocks instead of `workers`, such as `wotd_env.adapters.ray.Cluster`.
        progress: called with the games played so far, and the most that will be, after every block.

    Raises:
        ValueError: for an unknown policy, a wrong option, or a file that is no tournament file.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise ValueError(f"workers must be an integer of at least 0, got {workers!r}")
    if not time_limit > 0:
        raise ValueError(f"time_limit must be more than 0 seconds, got {time_limit!r}")
    given = dict(policies or {})
    if unknown := given.keys() - set(tournament.policies):
        raise ValueError(f"policies must be among those of the tournament, got {sorted(unknown)}")
    made = {name: given[name] if name in given else make_policy(name) for name in tournament.policies}
    if pool is None:
        pool = Processes(tournament, workers, time_limit, given) if workers else Here(tournament, made)

    tables = [_TableRun(tournament, table) for table in tournament.tables]
    with Store(tournament, file, given) as store, pool:
        running: dict[Future[Played], tuple[_TableRun, int]] = {}
        while True:
            while len(running) < 2 * pool.size and (table := _next(tables)):
                i = table.take()
                block = tournament.block(table.table, i)
                if (played := store.load(block)) is not None:
                    table.add(i, played)
                    progress(*_count(tables))
                else:
                    running[pool.submit(block)] = table, i
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                table, i = running.pop(future)
                played = future.result()
                store.save(tournament.block(table.table, i), played)
                table.add(i, played)
                progress(*_count(tables))
    return Results(
        tournament,
        {table.table: table.games() for table in tables},
        [forfeit for table in tables for played in table.counted for forfeit in played.forfeits],
    )


class _TableRun:
    """How far a table has come."""

    def __init__(self, tournament: Tournament, table: Table) -> None:
        self.table, self.blocks = table, tournament.num_blocks
        self.taken = 0  # blocks that have been played or are under way
        self.counted: list[Played] = []  # the first blocks: all that counts
        self.done = 0  # games
        self.total = tournament.duplicates * len(table)
        self._early: dict[int, Played] = {}  # blocks that came before an earlier one
        self._stopped = False
        self._until, self._luck = tournament.until, tournament.luck is not None

    @property
    def open(self) -> bool:
        """Whether there is a block to take."""
        return self.taken < self.blocks and not self._stopped

    def take(self) -> int:
        self.taken += 1
        return self.taken - 1

    def add(self, i: int, played: Played) -> None:
        """Add a block; the rule for stopping looks at blocks in order, so that who is faster does not matter."""
        self._early[i] = played
        self.done += len(played.games)
        while not self._stopped and len(self.counted) in self._early:
            self.counted.append(self._early.pop(len(self.counted)))
            if self._until is not None and share_error(self.table, self.games(), self._luck) <= self._until:
                self._stopped = True
                self.total = self.done

    def games(self) -> NDArray[np.void]:
        return np.concatenate([played.games for played in self.counted])


def _next(tables: list[_TableRun]) -> _TableRun | None:
    """Return the table that is furthest behind, None if all have been taken care of."""
    return min((table for table in tables if table.open), key=lambda table: table.taken, default=None)


def _count(tables: list[_TableRun]) -> tuple[int, int]:
    """Return games played, and those that will have been played at most."""
    return sum(table.done for table in tables), sum(max(table.done, table.total) for table in tables)
