"""Export to Parquet of the games that people played against agents. Each decision that was not forced is a row."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa

import wotd_env
from wotd_env.core.rules import Rules
from wotd_env.recording.reading import KEY, schema
from wotd_env.recording.writing import BLOCK, decision_columns, write_groups
from wotd_env.web.agents import advisor_of
from wotd_env.web.limits import Refused
from wotd_env.web.people import Outcome, finished, outcome, summarize
from wotd_env.web.store import Store
from wotd_env.web.table import Table
from wotd_env.web.tables import stored_tables, table_at

FORMAT = 1
PERSON = "person"
"""Value of the column `policy` for decisions of people."""

_TYPES = {
    **{field.name: field.type for field in schema(Rules()) if field.name != "seed"},
    "mask": pa.list_(pa.int8()),  # the length of the list depends on the number of players
    "policy": pa.string(),
    "person": pa.int64(),
    "agent": pa.string(),
    "rules": pa.string(),
    "help": pa.bool_(),
    "resigned": pa.bool_(),
    "share": pa.float64(),
    "luck": pa.float64(),
    "source": pa.string(),
}
COLUMNS = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _TYPES.items()])


def export(store: Store, file: Path) -> tuple[int, int, int]:
    """Write all games that count (see `people.versus`) to a Parquet file.

    The metadata of the file contains the results that the server's page `/#/results` shows, see docs/how-to/people.md.

    Returns:
        The numbers of games, people and decisions.

    Raises:
        OSError: if the file cannot be written. A file from an earlier export then stays unchanged.
    """
    tables = list(stored_tables(store))
    games, decisions = list[tuple[Table, int, Outcome]](), 0
    for table, number in finished(tables):
        with contextlib.suppress(Refused):  # `table_at` has logged that the game is damaged
            if found := outcome(table_at(store, table, number)):
                games.append((table, number, found))

    def groups() -> Iterator[pa.Table]:
        nonlocal decisions
        for first in range(0, len(games), BLOCK):
            block = games[first : first + BLOCK]
            rows = pa.concat_tables(
                _rows(table_at(store, table, number), found) for table, number, found in block
            )
            decisions += len(rows)
            yield rows

    outcomes = [found for *_, found in games]
    results = summarize(outcomes, tables)
    about = {"format": FORMAT, "version": wotd_env.__version__, "games": len(games), "results": results}
    write_groups(file, COLUMNS.with_metadata({KEY: json.dumps(about).encode()}), groups())
    return len(games), len({each.person for each in outcomes}), decisions


def _rows(table: Table, found: Outcome) -> pa.Table:
    recorded, game, kind = table.recorded(), table.game, found.versus
    asked = np.flatnonzero(game.legal_actions(recorded.states[:-1]).sum(1) > 1)
    state = recorded.states[asked]
    reward = game.rewards(recorded.states[-1:])[0]
    if found.resigned:  # only games of two players can be resigned
        reward = np.where(np.arange(len(reward)) == found.seat, -1.0, 1.0)
    own = state["player"] == found.seat
    columns = decision_columns(game, state, recorded.actions[asked], advisor_of(table.rules).analyze(state))
    of_game = {
        "game": _number_of(f"{table.id}/{table.number}"),
        "person": _number_of(found.person),
        "agent": kind.agent,
        "rules": json.dumps(asdict(kind.rules)),
        "help": kind.help,
        "resigned": found.resigned,
        "share": found.share,
        "luck": found.luck,
        "source": found.source,
    }
    columns |= {
        "decision": np.arange(len(asked)),
        "policy": np.where(own, PERSON, kind.agent),
        "mask": columns["mask"].cast(_TYPES["mask"]),
        "reward": reward[state["player"]],
        **{name: [value] * len(asked) for name, value in of_game.items()},
    }
    return pa.Table.from_pydict(columns, schema=COLUMNS)


def _number_of(text: str) -> int:
    """Return a 63-bit hash of a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1
