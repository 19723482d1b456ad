"""The columns of a file of games, and the arrays read from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.actions import num_actions
from wotd_env.core.rules import Rules
from wotd_env.core.state import STATE, States
from wotd_env.extras import needed_for

with needed_for("a Parquet file of games", "arena"):
    import pyarrow as pa

KEY = b"wotd_env"  # key of the metadata of a file: JSON
FORMAT = 1


class Decisions(NamedTuple):
    """M decisions of recorded games. The decisions of a game are in order. A is the number of actions."""

    rules: Rules
    policies: tuple[str, ...]  #: the policies of the file
    game: NDArray[np.int64]  #: (M,): number of the game in the file
    number: NDArray[np.int64]  #: (M,): number of the decision in its game
    seed: NDArray[np.uint64]  #: (M,): seed of the game
    policy: NDArray[np.int64]  #: (M,): the policy that decided, the first index of its name in `policies`
    state: States  #: STATE (M,): `state["player"]` decides
    mask: NDArray[np.int8]  #: (M, A): the legal actions
    action: NDArray[np.int64]  #: (M,): the chosen action
    reward: NDArray[np.float64]  #: (M,): reward of the seat that decided, at the end of the game
    equity: NDArray[np.float32]
    """(M, A): expected return of every action, -inf if it is illegal, nan if unknown"""
    regret: NDArray[np.float32]
    """(M,): equity of the best action minus that of the chosen one, nan if unknown"""


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


def seating(games: NDArray[np.int64], seats: int, policies: int) -> NDArray[np.int64]:
    """Return the index of the policy in each seat of games given by number, int64 (N, n).

    The policies move on by one seat from game to game.
    """
    return (np.arange(seats) - games[:, None]) % policies


def as_decisions(rules: Rules, policies: tuple[str, ...], table: pa.Table) -> Decisions:
    """Return the rows of a file as new arrays.

    Raises:
        ValueError: for rows that no recorded game can have.
    """
    table.validate(full=True)
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    for name, values in column.items():
        if values.null_count and name not in ("equity", "regret"):
            raise ValueError(f"column {name} must have a value in every row, {values.null_count} are missing")
    rows, actions = len(table), num_actions(rules.players)
    names = column["policy"].dictionary.to_pylist()
    if not set(names) <= set(policies):
        raise ValueError(f"policies must be among {policies}, got {names}")
    state = as_states(column["state"])
    if rows and (state["player"].min() < 0 or state["player"].max() >= rules.players):
        raise ValueError("the seats to act must be those of the rules")
    for name, field in (("turn", "turn"), ("seat", "player"), ("phase", "phase")):
        wrong = np.flatnonzero(column[name].to_numpy() != state[field])
        if wrong.size:
            row = wrong[0].item()
            decision = f"decision {column['decision'][row]} in game {column['game'][row]}"
            raise ValueError(
                f"the {name} of {decision} must be that of its state, {state[field][row]}, got {column[name][row]}"
            )
    mask = column["mask"].flatten().to_numpy().reshape(rows, actions).copy()  # Arrow's memory is read-only
    code = np.array([policies.index(name) for name in names], np.int64)
    return Decisions(
        rules,
        policies,
        game=column["game"].to_numpy().copy(),
        number=column["decision"].to_numpy().astype(np.int64),
        seed=column["seed"].to_numpy().copy(),
        policy=code[column["policy"].indices.to_numpy()] if rows else np.zeros(0, np.int64),
        state=state,
        mask=mask,
        action=column["action"].to_numpy().astype(np.int64),
        reward=column["reward"].to_numpy().copy(),
        equity=as_equity(column["equity"], mask == 1),
        regret=column["regret"].to_numpy(zero_copy_only=False).astype(np.float32),
    )


def as_states(column: Any) -> States:
    """Return the column `state` as STATE (M,)."""
    start, size = column.offset, STATE.itemsize
    content = memoryview(column.buffers()[1])[start * size : (start + len(column)) * size]
    return np.frombuffer(content, STATE).copy()


def as_equity(column: Any, legal: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the column `equity` as float32 (M, A): -inf for illegal actions, nan for unknown equities."""
    known = ~column.is_null().to_numpy(zero_copy_only=False)
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    if (lengths[known] != legal[known].sum(1)).any():
        raise ValueError("equities must be those of the legal actions, got another number of them")
    equity = np.where(known[:, None], np.float32(-np.inf), np.float32(np.nan)).repeat(legal.shape[1], 1)
    equity[known[:, None] & legal] = column.flatten().to_numpy(zero_copy_only=False)
    return equity
