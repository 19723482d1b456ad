"""Reading and verification of files of recorded games.

The 32 bytes before the footer of a file are the SHA-256 of all other bytes. Other readers of Parquet skip them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.actions import num_actions
from wotd_env.core.arguments import check_integer
from wotd_env.core.game import Game, final_rewards
from wotd_env.core.rules import Rules
from wotd_env.core.state import ROW, STATE, States
from wotd_env.extras import needed_for
from wotd_env.notation import RecordedGame, record_game

with needed_for("a Parquet file of games", "arena"):
    import pyarrow as pa
    from pyarrow import parquet

_UNREADABLE = "cannot be read as recorded games: {}"
KEY = b"wotd_env"  # key of the metadata entry with the JSON description of the file
FORMAT = 2
UNSEALED = 1  # the format without a digest, which is still read


class Decisions(NamedTuple):
    """M decisions of recorded games. The decisions of a game are in the order of play. A is the number of actions."""

    rules: Rules
    policies: tuple[str, ...]
    game: NDArray[np.int64]  #: (M,): number of the game in the file
    number: NDArray[np.int64]  #: (M,): number of the decision in its game
    seed: NDArray[np.uint64]  #: (M,): seed of the game
    policy: NDArray[np.int64]  #: (M,): first index in `policies` of the policy that decided
    state: States  #: STATE (M,): the position before each decision
    mask: NDArray[np.int8]  #: (M, A): 1 for legal actions
    action: NDArray[np.int64]  #: (M,): the chosen action
    reward: NDArray[np.float64]  #: (M,): reward at the end of the game for the seat that decided
    equity: NDArray[np.float32]
    """(M, A): expected return of every action, -inf for illegal actions, nan if unknown"""
    regret: NDArray[np.float32]
    """(M,): equity of the best action minus equity of the chosen action, nan if unknown"""


def schema(rules: Rules) -> pa.Schema:
    """Return the Arrow schema of a file of games, without metadata."""
    columns = {
        "game": pa.int64(),
        "decision": pa.int32(),
        "seed": pa.uint64(),
        "turn": pa.int32(),
        "seat": pa.int8(),
        "phase": pa.int8(),
        "policy": pa.dictionary(pa.int8(), pa.string()),
        "state": pa.binary(STATE.itemsize),
        "mask": pa.list_(pa.int8(), num_actions(rules.players)),
        "action": pa.int16(),
        "reward": pa.float64(),
        "equity": pa.list_(pa.float32()),
        "regret": pa.float32(),
    }
    return pa.schema(
        [pa.field(name, kind, nullable=name in ("equity", "regret")) for name, kind in columns.items()]
    )


def seating(games: NDArray[np.int64], seats: int, policies: int) -> NDArray[np.int64]:
    """Return the index of the policy in each seat of N games, int64 (N, seats).

    `games` contains the numbers of the games, (N,). `policies` is the number of policies.
    """
    return (np.arange(seats) - games[:, None]) % policies


def state_columns(state: States, mask: NDArray[np.int8]) -> dict[str, pa.Array]:
    """Convert records, STATE (M,), and action masks, int8 (M, A), to the Arrow columns `state` and `mask`."""
    content = [None, pa.py_buffer(state.tobytes())]
    return {
        "state": pa.FixedSizeBinaryArray.from_buffers(pa.binary(STATE.itemsize), len(state), content),
        "mask": pa.FixedSizeListArray.from_arrays(pa.array(mask.ravel()), mask.shape[1]),
    }


def legal_values(values: NDArray[np.float32], mask: NDArray[np.int8]) -> pa.ListArray:
    """Return an Arrow column whose rows contain only the values of the legal actions."""
    ends = np.append(0, mask.sum(1)).cumsum().astype(np.int32)
    return pa.ListArray.from_arrays(ends, values[mask == 1])


@contextmanager
def errors_name(file: str | Path, message: str) -> Iterator[None]:
    """Replace a read error in the `with` block by a ValueError that names the file.

    pyarrow reports a damaged file as an OSError without errno.
    """
    try:
        yield
    except (pa.ArrowException, ValueError, TypeError, LookupError, OSError, RecursionError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{file} {message.format(error)}") from error


def seal(file: Path) -> None:
    """Insert the SHA-256 of a Parquet file before its footer."""
    with file.open("r+b") as stream:
        start = _footer(stream)
        digest = _digest(stream, start, start)
        stream.seek(start)
        footer = stream.read()
        stream.seek(start)
        stream.write(digest + footer)


def is_sealed(file: str | Path) -> bool:
    """Return whether a file contains its SHA-256."""
    with open(file, "rb") as stream:
        footer = _footer(stream)
        start = footer - hashlib.sha256().digest_size
        if start < 0:
            return False
        stream.seek(start)
        return stream.read(footer - start) == _digest(stream, start, footer)


def _footer(stream: BinaryIO) -> int:
    """Return the offset of the footer of a Parquet file, or a negative number if the file is damaged."""
    end = stream.seek(0, 2) - 8  # the file ends with the size of the footer and a magic word of 4 bytes
    if end < 0:
        return end
    stream.seek(end)
    return end - int.from_bytes(stream.read(4), "little")


def _digest(stream: BinaryIO, stop: int, start: int) -> bytes:
    """Return the SHA-256 of a file without the bytes from `stop` to `start`."""
    digest = hashlib.sha256()
    stream.seek(0)
    while stop > 0 and (content := stream.read(min(stop, 1 << 20))):
        digest.update(content)
        stop -= len(content)
    stream.seek(start)
    digest.update(stream.read())
    return digest.digest()


def as_decisions(rules: Rules, policies: tuple[str, ...], table: pa.Table) -> Decisions:
    """Convert rows of a file of games to new arrays. Raise ValueError if a row cannot come from a recorded game."""
    column = as_arrays(table)
    names = column["policy"].dictionary.to_pylist()
    if not set(names) <= set(policies):
        raise ValueError(f"policies must be among {policies}, got {names}")
    state, mask = column["state"], column["mask"]
    if len(state) and (state["player"].min() < 0 or state["player"].max() >= rules.players):
        raise ValueError("the seats to act must be those of the rules")
    for name, field in (("turn", "turn"), ("seat", "player"), ("phase", "phase")):
        wrong = np.flatnonzero(column[name].to_numpy() != state[field])
        if wrong.size:
            row = wrong[0].item()
            decision = f"decision {column['decision'][row]} in game {column['game'][row]}"
            raise ValueError(
                f"the {name} of {decision} must be that of its state, {state[field][row]}, got {column[name][row]}"
            )
    return Decisions(
        rules,
        policies,
        game=column["game"].to_numpy().copy(),
        number=column["decision"].to_numpy().astype(np.int64),
        seed=column["seed"].to_numpy().copy(),
        policy=as_indices(column["policy"], policies),
        state=state,
        mask=mask,
        action=column["action"].to_numpy().astype(np.int64),
        reward=column["reward"].to_numpy().copy(),
        equity=as_values(column["equity"], mask, -np.inf),
        regret=column["regret"].to_numpy(zero_copy_only=False).astype(np.float32),
    )


def as_arrays(table: pa.Table) -> dict[str, Any]:
    """Return the columns by name: `state` as STATE (M,), `mask` as int8 (M, A), other columns as Arrow arrays.

    Raise ValueError if the table is damaged, or a value is missing in a column that is not nullable.
    """
    table.validate(full=True)
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    for name, values in column.items():
        if values.null_count and not table.schema.field(name).nullable:
            raise ValueError(f"column {name} must have a value in every row, {values.null_count} are missing")
    state, mask = column["state"], column["mask"]
    states = np.frombuffer(state.buffers()[1], STATE, len(state), state.offset * STATE.itemsize)
    column["state"] = states.copy()  # Arrow's memory is read-only
    column["mask"] = mask.flatten().to_numpy().reshape(len(mask), mask.type.list_size).copy()
    return column


def as_values(column: Any, mask: NDArray[np.int8], illegal: float) -> NDArray[np.float32]:
    """Convert a column made by `legal_values` to an array, float32 (M, A). Illegal actions get the value `illegal`.

    A null in the column becomes a row of nan. Raise ValueError for a wrong number of values.
    """
    legal, known = mask == 1, ~column.is_null().to_numpy(zero_copy_only=False)
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    if (lengths[known] != legal[known].sum(1)).any():
        raise ValueError("equities must be those of the legal actions, got another number of them")
    values = np.where(known[:, None], np.float32(illegal), np.float32(np.nan)).repeat(mask.shape[1], 1)
    values[known[:, None] & legal] = column.flatten().to_numpy(zero_copy_only=False)
    return values


def as_indices(column: Any, names: Sequence[str]) -> NDArray[np.int64]:
    """Convert a column of names to indices in `names`, int64 (M,). Raise ValueError for unknown names."""
    codes = np.array([names.index(name) for name in column.dictionary.to_pylist()], np.int64)
    return codes[column.indices.to_numpy()] if len(column) else codes[:0]


def load(file: str | Path, filters: Any = None) -> Decisions:
    """Read the decisions in a file into arrays.

    Args:
        file: a file written by `record`.
        filters: row filters of `pyarrow.parquet.read_table`, such as `[("policy", "=", "greedy"), ("turn", "<", 10)]`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if `file` is not a file of recorded games, or a row cannot come from a recorded game.
    """
    with _opened(file) as (_, about), errors_name(file, _UNREADABLE):
        # Without partitioning, `seed=4` in a path is no column.
        table = parquet.read_table(file, filters=filters, partitioning=None)
        return as_decisions(about.rules, about.policies, table)


def blocks(file: str | Path) -> Iterator[Decisions]:
    """Yield the decisions of a file in blocks of a few hundred whole games. Raise the same errors as `load`.

    The file can be larger than memory.
    """
    with _opened(file) as (opened, about):
        yield from _blocks(file, opened, about)


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
    """Replay all games of a file, and compare every replayed state with the recorded state, bit by bit.

    Masks, rewards, policies, seeds and the number of games are also checked, but not equities and regrets.

    Args:
        file: a file written by `record`.
        progress: function of the number of checked decisions and the number of all decisions.

    Returns:
        The number of games and the number of decisions.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the games cannot be replayed, or a recorded value is wrong; the message names the decision.
    """
    games = rows = 0
    with _opened(file) as (opened, about):
        for decisions in _blocks(file, opened, about):
            found = decisions.game[np.flatnonzero(np.diff(decisions.game, prepend=-1))]
            if (wrong := found != np.arange(games, games + len(found))).any():
                at = int(wrong.argmax())
                order = f"game {games + at} is missing before game {found[at]}"
                raise ValueError(f"{file} must contain every game once, in ascending order: {order}")
            if fault := _first_wrong(decisions, about.seed):
                row, what, why = fault
                raise ValueError(
                    f"{file}: the {what} of decision {decisions.number[row]} in game {decisions.game[row]} is {why}"
                )
            games += len(found)
            rows += len(decisions.game)
            progress(rows, opened.metadata.num_rows)
    if games != about.games:
        raise ValueError(f"{file} must contain {about.games} games according to its metadata, got {games}")
    return games, rows


def _first_wrong(decisions: Decisions, first_seed: int) -> tuple[int, str, str] | None:
    """Return the index of a row with a wrong value, the name of the value, and the fault; None if all are right.

    `first_seed` is the seed of game 0.
    """
    game, rows = Game(decisions.rules), len(decisions.game)
    if not rows:
        return None
    starts = np.flatnonzero(np.diff(decisions.game, prepend=decisions.game[0] - 1))
    ends = np.append(starts[1:], rows) - 1
    legal = game.legal_actions(decisions.state).astype(np.bool_)
    allowed = (decisions.action >= 0) & (decisions.action < game.num_actions)
    allowed[allowed] = legal[allowed, decisions.action[allowed]]
    if not allowed.all():
        return int(allowed.argmin()), "action", "illegal"
    after = decisions.state.copy()
    game.step(after, decisions.action)
    expected = np.empty(rows, STATE)
    expected.view(ROW)[1:] = after.view(ROW)[:-1]
    for start in starts:
        expected[start] = game.reset(1, seed=int(decisions.seed[start]))[0]
    expected["players"] *= decisions.state["players"] > 0  # 0 in recordings that are older than this field
    over = np.ones(rows, np.bool_)
    over[ends] = game.is_over(after[ends])
    seat, each = decisions.state["player"], np.searchsorted(ends, np.arange(rows))  # `each[i]`: row i's game
    policy = seating(decisions.game, decisions.rules.players, len(decisions.policies))[np.arange(rows), seat]
    first_of_name = np.array([decisions.policies.index(name) for name in decisions.policies])
    seeds = np.uint64(first_seed) + decisions.game.astype(np.uint64)
    for what, right in (
        ("state", expected.view(ROW) == decisions.state.view(ROW)),
        ("action, after which the game must be over,", over),
        ("mask", (legal == decisions.mask).all(1)),
        ("reward", final_rewards(game, after[ends])[each, seat] == decisions.reward),
        ("number", decisions.number == np.arange(rows) - starts[each]),
        ("policy", decisions.policy == first_of_name[policy]),
        ("seed", decisions.seed == seeds),
    ):
        if not right.all():
            row = int(right.argmin())
            replayed = f"not the result of seed {decisions.seed[row]} and the actions"
            return row, what, f"not {seeds[row]}" if what == "seed" else replayed
    return None


class _About(NamedTuple):
    """The metadata of a file."""

    rules: Rules
    policies: tuple[str, ...]
    seed: int
    games: int


@contextmanager
def _opened(file: str | Path) -> Iterator[tuple[parquet.ParquetFile, _About]]:
    """Open a file and check its metadata and its digest."""
    with errors_name(file, _UNREADABLE):
        opened = parquet.ParquetFile(file)
    with opened:
        with errors_name(file, "must be a file written by wotd record, got: {!r}"):
            about = json.loads(opened.schema_arrow.metadata[KEY])
            if about["format"] not in (UNSEALED, FORMAT):
                raise ValueError(f"it has format {about['format']}, this version reads {FORMAT}")
            rules, policies = Rules.from_dict(about["rules"]), tuple(map(str, about["policies"]))
            if len(policies) not in (1, rules.players):
                raise ValueError(f"it has {len(policies)} policies for {rules.players} seats")
            if not opened.schema_arrow.equals(schema(rules)):
                raise ValueError("it has other columns")
            games = check_integer("games", about["games"], 0, 2**63 - 1)
            seed = check_integer("seed", about["seed"], 0, 2**64 - 1 - games)
        if about["format"] == FORMAT and not is_sealed(file):
            raise ValueError(
                f"{file} does not match its digest, so it is damaged: restore a copy, or record it again"
            )
        yield opened, _About(rules, policies, seed, games)


def _blocks(file: str | Path, opened: parquet.ParquetFile, about: _About) -> Iterator[Decisions]:
    for group in range(opened.num_row_groups):
        with errors_name(file, _UNREADABLE):
            decisions = as_decisions(about.rules, about.policies, opened.read_row_group(group))
        yield decisions
