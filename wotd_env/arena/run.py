"""The function `run`, which plays a tournament."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

import numpy as np

from wotd_env.arena.results import Results, share_error, span
from wotd_env.arena.store import Store
from wotd_env.arena.tournament import GameResults, Matchup, PlayedBlock, Tournament, make_equity
from wotd_env.arena.workers import Here, Pool, Processes, Worker, make_policies
from wotd_env.core.arguments import check_integer
from wotd_env.policies import check_policy, make_policy
from wotd_env.policies.identity import policy_digest
from wotd_env.policy import Policy, check_plays

_log = logging.getLogger("wotd_env")


def run(
    tournament: Tournament,
    file: str | Path | None = None,
    *,
    fresh: bool = False,
    workers: int = 0,
    time_limit: float = 60.0,
    policies: Mapping[str, Policy] | None = None,
    trust: bool = False,
    pool: Pool | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Results:
    """Play a tournament. Games that `file` already contains are reused.

    The results depend only on the tournament, not on the number of workers or on interruptions. A warning at the start
    shows the dates of reused games.

    Args:
        tournament: the tournament.
        file: the file in which finished games are saved, see `wotd_env.arena.store`; None keeps the games in memory.
        fresh: play all games again, and replace the games of this tournament in the file.
        workers: number of worker processes. A script that uses workers must call `run` under
            `if __name__ == "__main__":`. With 0 workers, this process plays the games and cannot stop a hanging policy.
        time_limit: seconds that a policy may take for one call in a worker. In a game of n players, a call asks for up
            to 256 * n decisions. A policy that takes longer forfeits the games of the call.
        policies: name -> policy object, for policies that are not made from their names.
        trust: allow policy files that can run code, see `make_policy`.
        pool: a pool that replaces the worker processes, such as `wotd_env.adapters.ray.Cluster`.
        progress: function f(done, total) that is called at the start and after every block. `done` is the number of
            finished games, including stored ones, and `total` is the largest possible number of games.

    Raises:
        ValueError: for an unknown or unsuitable policy, an invalid argument, or a file that is damaged or is not a
            tournament file.
        BrokenPolicyError: if a policy fails in all games of its first call.
        sqlite3.Error: if the file cannot be read or written. Games that are already saved are kept.
    """
    check_integer("workers", workers, 0)
    if not time_limit > 0:
        raise ValueError(f"time_limit must be more than 0 seconds, got {time_limit!r}")
    given = {name: check_policy(name, policy) for name, policy in (policies or {}).items()}
    if unknown := given.keys() - set(tournament.policies):
        raise ValueError(f"policies must be among those of the tournament, got {sorted(unknown)}")
    if given and pool is not None:
        raise ValueError("policies cannot be given together with a pool, which makes them from their names")
    made = make_policies(tournament, given, trust)
    for policy in made.values():
        check_plays(policy, tournament.rules)
    if tournament.luck:
        make_equity(tournament.luck, trust)  # raises before workers start and the file is made
    if pool is None and workers:
        pool = Processes([Worker(tournament, time_limit, given, trust) for _ in range(workers)])
    elif pool is None:
        pool = Here(tournament, made, trust)

    parts = [_Part(tournament, matchup) for matchup in tournament.matchups]
    known = {}
    if file is not None:
        known = {name: policy_digest(name, policy, name in given) for name, policy in made.items()}
        if (luck := tournament.luck) and luck not in known:
            known[luck] = policy_digest(luck, make_policy(luck, trust=trust))
    with Store(tournament, file, known, fresh) as store, pool:
        for part in parts:
            for i, played, date in store.stored(part.matchup):
                if i in part.missing:
                    part.missing.remove(i)
                    part.dates[i] = date
                    part.add(i, played)
        done, total = _count(parts)
        if done:
            dates = span(date for part in parts for date in part.dates.values())
            _log.warning(
                f"{file}: using {done:,} games of earlier runs ({dates}); fresh=True, or --fresh, plays them again"
            )
        progress(done, total)
        if _next(parts):
            store.begin()
        _play(tournament, parts, store, pool, progress)

    forfeits = [forfeit for part in parts for played in part.counted for forfeit in played.forfeits]
    earlier: Counter[str] = Counter()
    games: dict[Matchup, GameResults] = {}
    for part in parts:
        for i, played in enumerate(part.counted):
            if i in part.dates:
                earlier[part.dates[i]] += len(played.games)
        games[part.matchup] = part.games()
        part.counted.clear()  # frees memory: `games` contains a copy
    return Results(tournament, games, forfeits, dict(sorted(earlier.items())))


def _play(
    tournament: Tournament, parts: list[_Part], store: Store, pool: Pool, progress: Callable[[int, int], None]
) -> None:
    running: dict[Future[PlayedBlock], tuple[_Part, int]] = {}
    first: dict[str, Future[PlayedBlock]] = {}  # policy -> future of the policy's first block
    while True:
        while len(running) < 2 * pool.size and (behind := _next(parts)):
            i = behind.missing.popleft()
            untried = frozenset(behind.matchup).difference(first)
            future = pool.submit(tournament.block(behind.matchup, i), untried)
            running[future] = behind, i
            first |= dict.fromkeys(untried, future)
            if future.done():  # save this block before the next one starts
                break
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            part, i = running.pop(future)
            for name in part.matchup:
                first[name].result()  # a broken policy raises here, before its forfeited games are saved
            played = future.result()
            store.save(tournament.block(part.matchup, i), played)
            part.add(i, played)
            progress(*_count(parts))


class _Part:
    """A matchup of a tournament, with its finished and missing blocks."""

    def __init__(self, tournament: Tournament, matchup: Matchup) -> None:
        self.matchup = matchup
        self.missing = deque(range(tournament.num_blocks))  # blocks neither played nor in progress
        self.counted: list[PlayedBlock] = []  # finished blocks 0, 1, 2 and so on, without a gap
        self.dates: dict[int, str] = {}  # number of a block from an earlier run -> date of that run
        self.done = 0
        self.total = tournament.duplicates * len(matchup)
        self._tournament, self._stopped = tournament, False
        self._early: dict[int, PlayedBlock] = {}  # finished blocks that wait for a block with a lower number

    def add(self, i: int, played: PlayedBlock) -> None:
        """Add a finished block. The stopping rule reads blocks in order of their numbers, so it is deterministic."""
        self._early[i] = played
        self.done += len(played.games)
        until, luck = self._tournament.until, self._tournament.luck is not None
        while not self._stopped and len(self.counted) in self._early:
            self.counted.append(self._early.pop(len(self.counted)))
            if until is not None and share_error(self.matchup, self.games(), luck) <= until:
                self._stopped = True
                self.total = self.done
                self.missing.clear()

    def games(self) -> GameResults:
        return np.concatenate([played.games for played in self.counted])


def _next(parts: list[_Part]) -> _Part | None:
    return min((part for part in parts if part.missing), key=lambda part: part.missing[0], default=None)


def _count(parts: list[_Part]) -> tuple[int, int]:
    return sum(part.done for part in parts), sum(max(part.done, part.total) for part in parts)
