"""The columns of a file of games, and the arrays read from them. Files of positions share some of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.actions import num_actions
from wotd_env.core.rules import Rules
from wotd_env.core.state import STATE, States
from wotd_env.extras import needed_for

with needed_for("a Parquet file of games", "arena"):
    import pyarrow as pa

KEY = b"wotd_env"  # metadata entry of a file, whose value is JSON
FORMAT = 1


class Decisions(NamedTuple):
    """M decisions of recorded games. The decisions of a game are in the order of play. A is the number of actions."""

    rules: Rules
    policies: tuple[str, ...]  #: names of the policies in the file
    game: NDArray[np.int64]  #: (M,): number of the game in the file
    number: NDArray[np.int64]  #: (M,): number of the decision in its game
    seed: NDArray[np.uint64]  #: (M,): seed of the game
    policy: NDArray[np.int64]  #: (M,): first index in `policies` of the name of the deciding policy
    state: States  #: STATE (M,): `state["player"]` decides
    mask: NDArray[np.int8]  #: (M, A): 1 for legal actions
    action: NDArray[np.int64]  #: (M,): the chosen action
    reward: NDArray[np.float64]  #: (M,): reward at the end of the game for the seat that decided
    equity: NDArray[np.float32]
    """(M, A): expected return of every action, -inf if it is illegal, nan if unknown"""
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
    """Return the index of the policy in each seat of each game, int64 (N, seats). `games` are numbers of games, (N,).

    From one game to the next, every policy moves on by one seat.
    """
    return (np.arange(seats) - games[:, None]) % policies


def state_columns(state: States, mask: NDArray[np.int8]) -> dict[str, pa.Array]:
    """Return the columns `state` and `mask` for states, STATE (M,), and their action masks, int8 (M, A)."""
    content = [None, pa.py_buffer(state.tobytes())]
    return {
        "state": pa.FixedSizeBinaryArray.from_buffers(pa.binary(STATE.itemsize), len(state), content),
        "mask": pa.FixedSizeListArray.from_arrays(pa.array(mask.ravel()), mask.shape[1]),
    }


def legal_values(values: NDArray[np.float32], mask: NDArray[np.int8]) -> pa.ListArray:
    """Return a column whose rows contain the values of the legal actions only. `values` is float32 (M, A)."""
    ends = np.append(0, mask.sum(1)).cumsum().astype(np.int32)
    return pa.ListArray.from_arrays(ends, values[mask == 1])


@contextmanager
def errors_name(file: str | Path, message: str) -> Iterator[None]:
    """Turn read errors into a ValueError that names the file. The error replaces `{}` or `{!r}` in `message`.

    pyarrow reports a damaged file as an OSError without errno. An OSError with errno comes from the operating system
    and is raised unchanged.
    """
    try:
        yield
    except (pa.ArrowException, ValueError, TypeError, LookupError, OSError, RecursionError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{file} {message.format(error)}") from error


def as_decisions(rules: Rules, policies: tuple[str, ...], table: pa.Table) -> Decisions:
    """Return the rows of a file of games as new arrays.

    Raises:
        ValueError: if a row cannot come from a recorded game.
    """
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

    Raises:
        ValueError: if the table is damaged, or a value is missing in a column that is not nullable.
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
    """Return a column of `legal_values` as float32 (M, A): `illegal` for illegal actions, nan for rows without values.

    Raises:
        ValueError: if a row does not have one value for each legal action of `mask`, int8 (M, A).
    """
    legal, known = mask == 1, ~column.is_null().to_numpy(zero_copy_only=False)
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    if (lengths[known] != legal[known].sum(1)).any():
        raise ValueError("equities must be those of the legal actions, got another number of them")
    values = np.where(known[:, None], np.float32(illegal), np.float32(np.nan)).repeat(mask.shape[1], 1)
    values[known[:, None] & legal] = column.flatten().to_numpy(zero_copy_only=False)
    return values


def as_indices(column: Any, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the first index in `names` of each name in a column, int64 (M,). Raise ValueError for unknown names."""
    codes = np.array([names.index(name) for name in column.dictionary.to_pylist()], np.int64)
    return codes[column.indices.to_numpy()] if len(column) else codes[:0]
