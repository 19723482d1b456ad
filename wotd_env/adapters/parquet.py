"""Games of any policies as Parquet (pyarrow, extra `arena`): a row for each decision of every seat.

    record(["planner", "greedy"], "games.parquet", games=10_000)
    decisions = load("games.parquet", filters=[("policy", "=", "planner")])

docs/data.md has the columns. Games are played side by side in blocks. Each block is kept in the folder FILE.parts as
soon as it is played, under everything that it depends on; at the end the blocks become one file, a row group for each.
So the same call goes on after an interruption, a kill or a full disk, and equal calls write equal games.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import wotd_env
from wotd_env import files
from wotd_env.analysis.equity import analyze, regret_of
from wotd_env.arena.asking import Blamed
from wotd_env.arena.fingerprints import policy_digest
from wotd_env.core import batch
from wotd_env.core.actions import num_actions
from wotd_env.core.arguments import check_integer
from wotd_env.core.compilation import source_digest
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import ROW, STATE, States
from wotd_env.extras import needed_for
from wotd_env.notation import RecordedGame, record_game
from wotd_env.policies import make_policy
from wotd_env.policy import Policy, ask, check_plays, play_out
from wotd_env.solver import Table

with needed_for("a Parquet file of games", "arena"):
    import pyarrow as pa
    from filelock import FileLock, Timeout
    from pyarrow import parquet

__all__ = ["Decisions", "blocks", "game_of", "load", "record", "verify"]

BLOCK = 256
"""Games that are played side by side. It is fixed: what a randomised policy draws depends on its batch."""

MOST_GAMES = 100_000_000

_KEY = b"wotd_env"  # of the metadata
_FORMAT = 1


class Decisions(NamedTuple):
    """Decisions of recorded games, M of them, those of a game in order; A actions."""

    rules: Rules
    policies: tuple[str, ...]
    """those of the file"""
    game: NDArray[np.int64]
    """(M,): number of the game in the file"""
    number: NDArray[np.int64]
    """(M,): number of the decision in its game"""
    seed: NDArray[np.uint64]
    """(M,): of the game"""
    policy: NDArray[np.int64]
    """(M,): who decided, as an index into `policies`, of equals the first"""
    state: States
    """STATE (M,): `state["player"]` decides"""
    mask: NDArray[np.int8]
    """(M, A): the legal actions"""
    action: NDArray[np.int64]
    """(M,): what was decided"""
    reward: NDArray[np.float64]
    """(M,): of the seat that decided, at the end of the game"""
    equity: NDArray[np.float32]
    """(M, A): of every action, -inf if it is not legal; nan where it is not known"""
    regret: NDArray[np.float32]
    """(M,): what the action gave away; nan where it is not known"""


def schema(rules: Rules) -> pa.Schema:
    """Return the columns of a file, without its metadata."""
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


# -------------------------------------------------------------------------------------------------------- recording


def record(
    policies: Sequence[str | Policy],
    file: str | Path,
    games: int,
    rules: Rules | None = None,
    seed: int = 0,
    table: Table | None = None,
    trust: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Let policies play games and write every decision to a file; decisions with one legal action are not asked.

    Args:
        policies: one for each seat, or one for all. They move on by a seat from game to game.
        file: to be written; one that is there is replaced when all games have been played.
        games: how many.
        rules: of the games, by default the basic game of two.
        seed: game i has the seed `seed + i`, and policies draw from what follows from the seed.
        table: the solution of the board, for the equity of every legal action and the regret of every decision.
        trust: see `make_policy`.
        progress: called with the games that are done and all games, first and after every block.

    Returns:
        The number of decisions.

    Raises:
        ValueError: for a wrong argument, or policies that do not play these rules.
        IllegalActionError: if a policy is wrong about what is legal.
        BrokenPolicyError: if a policy fails otherwise; it is named.
        OSError: if the file cannot be written. What is done is kept in the folder FILE.parts.
    """
    rules = Rules() if rules is None else rules
    games = check_integer("games", games, 1, MOST_GAMES)
    seed = check_integer("seed", seed, 0, 2**64 - games)
    if len(policies) not in (1, rules.players):
        raise ValueError(
            f"policies must be one for each of the {rules.players} seats, or one for all, got {len(policies)}"
        )
    names = [_name(policy) for policy in policies]
    game = Game(rules)
    players = [
        Blamed(name, make_policy(policy, trust=trust)) for name, policy in zip(names, policies, strict=True)
    ]
    for player in players:
        check_plays(player, rules)
    if table is not None:
        analyze(game, game.new(1), table)  # so that a wrong table is known before games begin
    about = {
        "format": _FORMAT,
        "version": wotd_env.__version__,
        "rules": asdict(rules),
        "seed": seed,
        "policies": names,
    }
    reached = about | {
        "code": source_digest(Path(__file__)),
        # an object may hold anything, so its games are never taken for those of another call
        "digests": [policy_digest(each) if isinstance(each, str) else uuid.uuid4().hex for each in policies],
        "table": table.header["sha256"] if table else None,
    }
    target = Path(file).absolute()
    parts = target.with_name(f"{target.name}.parts")
    with _keeping(file, parts):
        decisions = 0
        written = []
        for first in range(0, games, BLOCK):
            progress(first, games)
            count = min(BLOCK, games - first)
            key = json.dumps(reached | {"first": first, "count": count}).encode()
            written.append(parts / f"{first:09}.parquet")
            rows = _rows_of(written[-1], key)
            if rows is None:
                played = _play(game, players, names, seed, first, count, table)
                rows = len(played)
                with _explained(file, parts):
                    _write(written[-1], played.schema.with_metadata({_KEY: key}), iter([played]))
            decisions += rows
        metadata = {_KEY: json.dumps(about | {"games": games}).encode()}
        with _explained(file, parts):
            _write(target, schema(rules).with_metadata(metadata), map(parquet.read_table, written))
            for part in parts.glob("*.parquet"):
                part.unlink()
        progress(games, games)
    return decisions


@contextmanager
def _keeping(file: str | Path, parts: Path) -> Iterator[None]:
    """Have the folder of the blocks for this call alone; it is removed if there is nothing in it to go on from."""
    with _explained(file, parts):
        parts.mkdir(exist_ok=True)
        lock = FileLock(parts / "lock", timeout=0)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
        if not any(parts.glob("*.parquet")):
            shutil.rmtree(parts, ignore_errors=True)


@contextmanager
def _explained(file: str | Path, parts: Path) -> Iterator[None]:
    """Say what is kept when something cannot be written."""
    try:
        yield
    except Timeout:
        raise OSError(f"{file} is being written by another process") from None
    except OSError as error:
        kept = (
            f". What is done is kept in {parts}, and the same call goes on" if any(parts.glob("0*")) else ""
        )
        raise OSError(f"{file} cannot be written: {error}{kept}") from error


def _name(policy: str | Policy) -> str:
    return policy if isinstance(policy, str) else f"{type(policy).__module__}:{type(policy).__qualname__}"


def _play(
    game: Game,
    players: Sequence[Policy],
    names: Sequence[str],
    seed: int,
    first: int,
    count: int,
    table: Table | None,
) -> pa.Table:
    """Play games side by side and return their decisions, those of a game in order."""
    numbers = np.arange(first, first + count)
    state = game.reset(count, seed=seed + first)
    seats = _seating(numbers, game.rules.players, len(players))
    rng = np.random.default_rng([seed, first])

    def choose(player: int, games: NDArray[np.int64]) -> NDArray[np.int64]:
        return ask(players[player], game, _take(state, games), rng)

    played, states, actions = [], [], []
    for chosen in play_out(game, state, seats, choose):
        live = np.flatnonzero(chosen >= 0)
        played.append(live)
        states.append(_take(state, live))
        actions.append(chosen[live])
    row_game = np.concatenate(played)
    order = np.argsort(row_game, kind="stable")
    row_game, action = row_game[order], np.concatenate(actions)[order]
    asked = _take(np.concatenate(states), order)
    seat = asked["player"].astype(np.int64)
    starts = np.searchsorted(row_game, row_game)  # the row in which the game of each row begins
    mask = game.legal_actions(asked, validate=False)
    equity, regret = _equities(game, asked, mask, action, table)
    kinds = schema(game.rules)
    width, unique = kinds.field("mask").type, sorted(set(names))
    columns = [
        numbers[row_game],
        np.arange(len(order)) - starts,
        np.uint64(seed) + numbers[row_game].astype(np.uint64),
        asked["turn"],
        seat,
        asked["phase"],
        pa.DictionaryArray.from_arrays(
            pa.array([unique.index(name) for name in names], pa.int8()).take(pa.array(seats[row_game, seat])),
            unique,
        ),
        pa.FixedSizeBinaryArray.from_buffers(
            kinds.field("state").type, len(asked), [None, pa.py_buffer(asked.tobytes())]
        ),
        pa.FixedSizeListArray.from_arrays(pa.array(mask.ravel()), type=width),
        action,
        _rewards(game, state)[row_game, seat],
        equity,
        regret,
    ]
    arrays = [
        each if isinstance(each, pa.Array) else pa.array(np.ascontiguousarray(each)).cast(kind)
        for each, kind in zip(columns, kinds.types, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=kinds)


def _seating(numbers: NDArray[np.int64], seats: int, policies: int) -> NDArray[np.int64]:
    """Return the policy in each seat of games by number, int64 (N, n)."""
    return (np.arange(seats) - numbers[:, None]) % policies


def _take(state: States, rows: NDArray[np.int64]) -> States:
    """Return some of the games; numpy is slow with records that have fields."""
    return state.view(ROW)[rows].view(STATE)


def _rewards(game: Game, state: States) -> NDArray[np.float64]:
    """Return every seat's reward in double precision, as the environments give it, (N, n)."""
    rewards = np.empty((len(state), game.rules.players))
    batch.rewards(state, game.config, rewards)
    return rewards


def _equities(
    game: Game, state: States, mask: NDArray[np.int8], action: NDArray[np.int64], table: Table | None
) -> tuple[pa.Array, pa.Array]:
    """Return the columns `equity` and `regret`."""
    kinds = schema(game.rules)
    if table is None:
        return pa.nulls(len(state), kinds.field("equity").type), pa.nulls(len(state), pa.float32())
    analysis = analyze(game, state, table)
    ends = np.concatenate([[0], mask.sum(1, dtype=np.int32).cumsum(dtype=np.int32)])
    equity = pa.ListArray.from_arrays(ends.astype(np.int32), analysis.actions[mask == 1])
    return equity, pa.array(regret_of(analysis, action))


def _write(file: Path, columns: pa.Schema, tables: Iterator[pa.Table]) -> None:
    """Write a file with a row group for each table; after an error an older file is unchanged."""
    with (
        files.replacing(file) as part,
        parquet.ParquetWriter(part, columns, compression="zstd", compression_level=1) as writer,
    ):
        for table in tables:
            writer.write_table(table.replace_schema_metadata(columns.metadata), len(table))


def _rows_of(part: Path, key: bytes) -> int | None:
    """Return how many rows a block has that an earlier call has kept; None if it is not there, or another one."""
    try:
        with parquet.ParquetFile(part) as file:
            rows: int = file.metadata.num_rows
            return rows if (file.schema_arrow.metadata or {}).get(_KEY) == key else None
    except (OSError, pa.ArrowException):  # cut short by something else than us
        return None


# ---------------------------------------------------------------------------------------------------------- reading


def load(file: str | Path, filters: Any = None) -> Decisions:
    """Read decisions into arrays.

    Args:
        file: that `record` has written.
        filters: of `pyarrow.parquet.read_table`, such as `[("policy", "=", "greedy"), ("turn", "<", 10)]`; all
            decisions by default.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no such file, or has other rows than ours could have.
    """
    with _opened(file) as opened:
        about = _about(file, opened)
    with _named(file):
        return _decisions(about, parquet.read_table(file, filters=filters))


def blocks(file: str | Path) -> Iterator[Decisions]:
    """Read a file that may be larger than memory: yield whole games, some hundreds at a time.

    Raises:
        FileNotFoundError, ValueError: as `load` does.
    """
    with _opened(file) as opened:
        about = _about(file, opened)
        for group in range(opened.num_row_groups):
            with _named(file):
                decisions = _decisions(about, opened.read_row_group(group))
            yield decisions


def verify(
    file: str | Path, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[int, int]:
    """Play all games of a file again, and compare every state bit by bit.

    Args:
        file: that `record` has written.
        progress: called with the decisions compared, and all.

    Returns:
        How many games and decisions there are.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming the first decision that has something in it that is not what the seed and the actions lead
            to; equities and regrets are not worked out again.
    """
    games = rows = 0
    with _opened(file) as opened:
        total = opened.metadata.num_rows
    for decisions in blocks(file):
        wrong = _first_wrong(decisions)
        if wrong is not None:
            row, what = wrong
            why = (
                f"not what seed {decisions.seed[row]} and the actions lead to"
                if what != "action"
                else "illegal"
            )
            raise ValueError(
                f"{file}: the {what} of decision {decisions.number[row]} in game {decisions.game[row]} is {why}"
            )
        games += len(np.unique(decisions.game))
        rows += len(decisions.game)
        progress(rows, total)
    return games, rows


def _first_wrong(decisions: Decisions) -> tuple[int, str] | None:
    """Return the first row that does not follow from the one before, and what of it is wrong."""
    game = Game(decisions.rules)
    number, rows = decisions.game, len(decisions.game)
    if not rows:
        return None
    starts = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    ends = np.append(starts[1:], rows) - 1
    expected = np.empty(rows, STATE)
    for start in starts:
        expected[start] = game.reset(1, seed=int(decisions.seed[start]))[0]
    legal = game.legal_actions(decisions.state).astype(np.bool_)
    allowed = (decisions.action >= 0) & (decisions.action < game.num_actions)
    allowed[allowed] = legal[allowed, decisions.action[allowed]]
    if not allowed.all():
        return int(allowed.argmin()), "action"
    after = decisions.state.copy()
    game.step(after, decisions.action)
    inside = np.ones(rows, np.bool_)
    inside[starts] = False
    expected.view(ROW)[inside] = after.view(ROW)[np.flatnonzero(inside) - 1]
    over = np.ones(rows, np.bool_)
    over[ends] = game.is_over(after[ends])
    seat, each = decisions.state["player"], np.searchsorted(ends, np.arange(rows))  # each row's game
    result = _rewards(game, after[ends])[each, seat]
    of_equals = np.array([decisions.policies.index(name) for name in decisions.policies])
    sits = _seating(number, decisions.rules.players, len(decisions.policies))[np.arange(rows), seat]
    for what, right in (
        ("state", expected.view(ROW) == decisions.state.view(ROW)),
        ("action, after which the game must be over,", over),
        ("mask", (legal == decisions.mask).all(1)),
        ("reward", result == decisions.reward),
        ("number", decisions.number == np.arange(rows) - starts[each]),
        ("policy", decisions.policy == of_equals[sits]),
    ):
        if not right.all():
            return int(right.argmin()), what
    return None


def game_of(file: str | Path, number: int) -> RecordedGame:
    """Return a game of a file by its number, with its forced decisions.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it has no such game, or another one than its seed and actions make.
    """
    decisions = load(file, filters=[("game", "=", check_integer("game", number, 0, 2**63 - 1))])
    if not len(decisions.game):
        raise ValueError(f"game must be one of {file}, got {number}")
    seats = _seating(np.array([number]), decisions.rules.players, len(decisions.policies))[0]
    names = [decisions.policies[policy] for policy in seats]
    return record_game(decisions.rules, decisions.action, seed=int(decisions.seed[0]), players=names)


@contextmanager
def _named(file: str | Path) -> Iterator[None]:
    """Name the file in what pyarrow raises; a damaged one is an OSError without a number."""
    try:
        yield
    except (pa.ArrowException, ValueError, TypeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{file} cannot be read as recorded games: {error}") from error


def _opened(file: str | Path) -> Any:
    with _named(file):
        return parquet.ParquetFile(file)


def _about(file: str | Path, opened: Any) -> tuple[Rules, tuple[str, ...]]:
    """Return the rules and policies of a file, or raise ValueError if it is none of ours."""
    try:
        about = json.loads(opened.schema_arrow.metadata[_KEY])
        if about["format"] != _FORMAT:
            raise ValueError(f"it has format {about['format']}, this version reads {_FORMAT}")
        rules, policies = Rules.from_dict(about["rules"]), tuple(map(str, about["policies"]))
        if len(policies) not in (1, rules.players):
            raise ValueError(f"it has {len(policies)} policies for {rules.players} seats")
        if not opened.schema_arrow.equals(schema(rules)):
            raise ValueError("it has other columns")
    except (TypeError, KeyError, ValueError, RecursionError) as error:
        raise ValueError(f"{file} must be a file that wotd record has written, got: {error!r}") from error
    return rules, policies


def _decisions(about: tuple[Rules, tuple[str, ...]], table: pa.Table) -> Decisions:
    """Return rows as arrays."""
    rules, policies = about
    size = num_actions(rules.players)
    table.validate(full=True)
    column = {name: _chunk(table.column(name)) for name in table.column_names}
    for name, values in column.items():
        if values.null_count and name not in ("equity", "regret"):
            raise ValueError(f"column {name} must have no gaps, got {values.null_count}")
    rows = len(table)
    names = column["policy"].dictionary.to_pylist()
    if not set(names) <= set(policies):
        raise ValueError(f"policies must be among {policies}, got {names}")
    state = np.frombuffer(_bytes(column["state"], STATE.itemsize), STATE).copy()
    mask = column["mask"].flatten().to_numpy().reshape(rows, size).copy()  # Arrow's memory is read-only
    if state.size and (state["player"].min() < 0 or state["player"].max() >= rules.players):
        raise ValueError("the seats to act must be those of the rules")
    for name, field in (("turn", "turn"), ("seat", "player"), ("phase", "phase")):
        wrong = np.flatnonzero(column[name].to_numpy() != state[field])
        if wrong.size:
            row = wrong[0].item()
            decision = f"decision {column['decision'][row]} in game {column['game'][row]}"
            raise ValueError(
                f"the {name} of {decision} must be that of its state, {state[field][row]}, got {column[name][row]}"
            )
    equity = np.full((rows, size), np.nan, np.float32)
    known = ~column["equity"].is_null().to_numpy(zero_copy_only=False)
    values = column["equity"].flatten().to_numpy(zero_copy_only=False)
    lengths = column["equity"].value_lengths().to_numpy(zero_copy_only=False)
    legal = mask == 1
    equity[known] = -np.inf
    if (lengths[known] != legal[known].sum(1)).any():
        raise ValueError("equities must be those of the legal actions, got another number of them")
    equity[known[:, None] & legal] = values
    code = np.array([policies.index(name) for name in names], np.int64)
    return Decisions(
        rules,
        policies,
        column["game"].to_numpy().copy(),
        column["decision"].to_numpy().astype(np.int64),
        column["seed"].to_numpy().copy(),
        code[column["policy"].indices.to_numpy()] if rows else np.zeros(0, np.int64),
        state,
        mask,
        column["action"].to_numpy().astype(np.int64),
        column["reward"].to_numpy().copy(),
        equity,
        column["regret"].to_numpy(zero_copy_only=False).astype(np.float32),
    )


def _chunk(column: Any) -> Any:
    """Return a column as one array."""
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays([*column.chunks, pa.array([], column.type)])
    )


def _bytes(array: Any, size: int) -> memoryview:
    """Return the bytes of an array of fixed size."""
    return memoryview(array.buffers()[1])[array.offset * size : (array.offset + len(array)) * size]
