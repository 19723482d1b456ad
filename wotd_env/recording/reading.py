"""Read and verify files of recorded games."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wotd_env.core.arguments import check_integer
from wotd_env.core.game import Game, final_rewards
from wotd_env.core.rules import Rules
from wotd_env.core.state import ROW, STATE
from wotd_env.extras import needed_for
from wotd_env.notation import RecordedGame, record_game
from wotd_env.recording.columns import FORMAT, KEY, Decisions, as_decisions, errors_name, schema, seating

with needed_for("a Parquet file of games", "arena"):
    from pyarrow import parquet

_UNREADABLE = "cannot be read as recorded games: {}"


def load(file: str | Path, filters: Any = None) -> Decisions:
    """Read decisions into arrays.

    Args:
        file: a file written by `record`.
        filters: row filters of `pyarrow.parquet.read_table`, such as `[("policy", "=", "greedy"), ("turn", "<", 10)]`.
            By default, all decisions are read.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not a file of recorded games, or a row cannot come from a recorded game.
    """
    with errors_name(file, _UNREADABLE), parquet.ParquetFile(file) as opened:
        about = _about(file, opened)
        return as_decisions(*about, parquet.read_table(file, filters=filters))


def blocks(file: str | Path) -> Iterator[Decisions]:
    """Yield the decisions of a file in blocks of a few hundred whole games. Raise the same errors as `load`.

    The file can be larger than memory.
    """
    with errors_name(file, _UNREADABLE):
        opened = parquet.ParquetFile(file)
    with opened:
        about = _about(file, opened)
        for group in range(opened.num_row_groups):
            with errors_name(file, _UNREADABLE):
                decisions = as_decisions(*about, opened.read_row_group(group))
            yield decisions


def game_of(file: str | Path, number: int) -> RecordedGame:
    """Return game `number` of a file, including its forced decisions. Raise the same errors as `load`."""
    decisions = load(file, filters=[("game", "=", check_integer("game", number, 0, 2**63 - 1))])
    if not len(decisions.game):
        raise ValueError(f"game must be one of {file}, got {number}")
    seats = seating(np.array([number]), decisions.rules.players, len(decisions.policies))[0]
    names = [decisions.policies[policy] for policy in seats]
    return record_game(decisions.rules, decisions.action, seed=int(decisions.seed[0]), players=names)


def verify(
    file: str | Path, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[int, int]:
    """Replay all games of a file and compare every state bit by bit. Equities and regrets are not checked.

    Args:
        file: a file written by `record`.
        progress: called with the number of compared decisions and the number of all decisions.

    Returns:
        The number of games and the number of decisions.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a decision does not follow from the seed and the actions; the message names the first.
    """
    games = rows = 0
    with errors_name(file, _UNREADABLE), parquet.ParquetFile(file) as opened:
        total = opened.metadata.num_rows
    for decisions in blocks(file):
        wrong = _first_wrong(decisions)
        if wrong is not None:
            row, what = wrong
            replayed = f"not the result of seed {decisions.seed[row]} and the actions"
            why = "illegal" if what == "action" else replayed
            raise ValueError(
                f"{file}: the {what} of decision {decisions.number[row]} in game {decisions.game[row]} is {why}"
            )
        games += len(np.unique(decisions.game))
        rows += len(decisions.game)
        progress(rows, total)
    return games, rows


def _first_wrong(decisions: Decisions) -> tuple[int, str] | None:
    """Return the first row with a wrong value, and the name of the value; None if all values are right."""
    game, rows = Game(decisions.rules), len(decisions.game)
    if not rows:
        return None
    starts = np.flatnonzero(np.diff(decisions.game, prepend=decisions.game[0] - 1))
    ends = np.append(starts[1:], rows) - 1
    legal = game.legal_actions(decisions.state).astype(np.bool_)
    allowed = (decisions.action >= 0) & (decisions.action < game.num_actions)
    allowed[allowed] = legal[allowed, decisions.action[allowed]]
    if not allowed.all():
        return int(allowed.argmin()), "action"
    after = decisions.state.copy()
    game.step(after, decisions.action)
    expected = np.empty(rows, STATE)
    expected.view(ROW)[1:] = after.view(ROW)[:-1]
    for start in starts:
        expected[start] = game.reset(1, seed=int(decisions.seed[start]))[0]
    over = np.ones(rows, np.bool_)
    over[ends] = game.is_over(after[ends])
    seat, each = decisions.state["player"], np.searchsorted(ends, np.arange(rows))  # each: game of each row
    policy = seating(decisions.game, decisions.rules.players, len(decisions.policies))[np.arange(rows), seat]
    first_of_name = np.array([decisions.policies.index(name) for name in decisions.policies])
    for what, right in (
        ("state", expected.view(ROW) == decisions.state.view(ROW)),
        ("action, after which the game must be over,", over),
        ("mask", (legal == decisions.mask).all(1)),
        ("reward", final_rewards(game, after[ends])[each, seat] == decisions.reward),
        ("number", decisions.number == np.arange(rows) - starts[each]),
        ("policy", decisions.policy == first_of_name[policy]),
    ):
        if not right.all():
            return int(right.argmin()), what
    return None


def _about(file: str | Path, opened: Any) -> tuple[Rules, tuple[str, ...]]:
    """Return the rules and policies in the metadata of a file written by `record`."""
    with errors_name(file, "must be a file written by wotd record, got: {!r}"):
        about = json.loads(opened.schema_arrow.metadata[KEY])
        if about["format"] != FORMAT:
            raise ValueError(f"it has format {about['format']}, this version reads {FORMAT}")
        rules, policies = Rules.from_dict(about["rules"]), tuple(map(str, about["policies"]))
        if len(policies) not in (1, rules.players):
            raise ValueError(f"it has {len(policies)} policies for {rules.players} seats")
        if not opened.schema_arrow.equals(schema(rules)):
            raise ValueError("it has other columns")
    return rules, policies
