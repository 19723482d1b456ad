"""Results of people against agents: which games count, and the luck-adjusted scores.

All results are computed from the stored games.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from wotd_env.analysis import review
from wotd_env.core.rules import Phase, Rules, share_difference, win_share
from wotd_env.intervals import LEVEL
from wotd_env.web.agents import advisor_of, in_thread
from wotd_env.web.limits import Refused
from wotd_env.web.store import Store
from wotd_env.web.table import Table
from wotd_env.web.tables import table_at
from wotd_env.web.views import Json

_MOST = 20_000  # maximum number of graded games; games of the oldest tables are omitted

_log = logging.getLogger("wotd_env.web")


class Versus(NamedTuple):
    """A kind of game: one person plays against one agent, which has all other seats."""

    agent: str
    rules: Rules
    help: bool  # whether the person saw win chances and hints


class Outcome(NamedTuple):
    """A finished game of a person. `share` and `luck` are in units of one win."""

    versus: Versus
    person: str  # digest of the key in the person's browser
    seat: int
    resigned: bool
    share: float  # the person's share of the win: 0 if resigned, 1 / players at the turn limit
    luck: float  # change of the expected share that all rolls together cause; has expected value 0
    source: str  # name of the method that computed the equities behind `luck`
    exact: bool


def versus(table: Table, number: int) -> tuple[int, Versus] | None:
    """Return the person's seat in game `number` and the kind of this game, or None if the game does not count.

    docs/how-to/people.md describes the games that count.
    """
    if number == 1 and table.begins is not None:
        return None
    people, agents = [], set()
    for place, seat in enumerate(table.seats):
        if seat.agent is None or number <= (seat.finished or 0):
            people.append(place)
        elif seat.finished is None or number > seat.finished + 1:
            agents.add(seat.agent)
        else:
            return None  # an agent took over the seat during this game
    if len(people) != 1 or len(agents) != 1 or table.seats[people[0]].person is None:
        return None
    return people[0], Versus(agents.pop(), table.rules, table.help)


def outcome(table: Table) -> Outcome | None:
    """Return the outcome of the finished game at a table; None if the game does not count."""
    found, played = versus(table, table.number), table.played
    replaced = any(step.note for step in played.steps)  # an agent failed, and another one decided instead
    if found is None or replaced:
        return None
    (seat, kind), n = found, table.rules.players
    reviewed = review(table.recorded(), advisor_of(table.rules))
    own = reviewed.seats[seat]
    resigned = bool(table.state["phase"][0] != Phase.OVER)
    share = 0.0 if resigned else win_share(own.result, n)
    person = table.seats[seat].person or ""
    luck = share_difference(own.luck, n)
    return Outcome(kind, person, seat, resigned, share, luck, reviewed.source, reviewed.exact)


def finished(tables: Iterable[Table]) -> Iterator[tuple[Table, int]]:
    """Yield the table and the number of each finished game that counts (see `versus`)."""
    for table in tables:
        for number in range(1, table.number + (table.status == "over")):
            if versus(table, number):
                yield table, number


def summarize(outcomes: Iterable[Outcome], tables: Iterable[Table]) -> list[Json]:
    """Return the results of each kind of game as JSON, including the number of running games at `tables`."""
    playing = [versus(table, table.number) for table in tables if table.status == "playing" and table.ply]
    unfinished = Counter(running[1] for running in playing if running)
    kinds: dict[Versus, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        kinds[each.versus].append(each)
    rows = []
    for kind, found in kinds.items():
        people = {person: place for place, person in enumerate(dict.fromkeys(each.person for each in found))}
        groups = np.array([people[each.person] for each in found])
        adjusted = np.array([each.share - each.luck for each in found])
        margin = margin_of_people(np.bincount(groups, adjusted), np.bincount(groups))
        row = {
            "agent": kind.agent,
            "rules": asdict(kind.rules),
            "help": kind.help,
            "games": len(found),
            "people": len(people),
            "wins": round(sum(each.share for each in found), 4),
            "score": round(float(adjusted.mean()), 4),
            "margin": round(margin, 4) if math.isfinite(margin) else None,
            "unfinished": unfinished[kind],
            "source": "; ".join(dict.fromkeys(each.source for each in found)),
            "exact": all(each.exact for each in found),
        }
        rows.append(row)
    return sorted(rows, key=lambda row: (*map(str, row["rules"].values()), row["help"], -row["score"]))


def margin_of_people(sums: NDArray[np.number], counts: NDArray[np.number]) -> float:
    """Return half the width of the 95 % interval of the mean sums.sum() / counts.sum(); infinity for one person.

    `sums` and `counts`, (N,), contain the sum and the number of values of each person; every count is > 0. The
    jackknife leaves out one person at a time, because the values of the same person are dependent. Student's t
    distribution keeps the coverage at 95 % if there are few people, or if one person plays most games. In these cases,
    `intervals.margin_of_ratio` has a lower coverage.
    """
    people = len(sums)
    if people < 2:
        return math.inf
    without = (sums.sum() - sums) / (counts.sum() - counts)
    variance = (people - 1) / people * float(((without - sums.sum() / counts.sum()) ** 2).sum())
    return float(stdtrit(people - 1, (1 + LEVEL) / 2)) * math.sqrt(variance)


class People:
    """The results of people on a server. A background task reads and grades each finished game once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._graded: dict[tuple[str, int], Outcome | None] = {}
        self._work: asyncio.Task[None] | None = None

    def results(self, tables: Sequence[Table]) -> Json:
        """Return the results of the graded games as JSON; start to grade the finished games that are not graded yet."""
        games = {(table.id, number): table for table, number in list(finished(tables))[-_MOST:]}
        for gone in self._graded.keys() - games.keys():
            del self._graded[gone]
        new = {game: table for game, table in games.items() if game not in self._graded}
        if new and (self._work is None or self._work.done()):
            self._work = asyncio.create_task(self._grade(new))
        outcomes = [each for each in self._graded.values() if each]
        return {"results": summarize(outcomes, tables), "waiting": len(new)}

    async def _grade(self, games: dict[tuple[str, int], Table]) -> None:
        for (name, number), table in games.items():
            try:
                at = table_at(self._store, table, number)
                self._graded[name, number] = await in_thread(functools.partial(outcome, at))
            except Refused:  # the game is damaged or deleted
                self._graded[name, number] = None
            except Exception:
                _log.exception("game %d of table %s cannot be graded", number, name)
                self._graded[name, number] = None
