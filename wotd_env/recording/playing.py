"""Play the games to record, and return their decisions as the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wotd_env.analysis.equity import Analysis, analyze, regret_of
from wotd_env.core.game import Game, final_rewards
from wotd_env.core.state import States, take
from wotd_env.policy import Policy, play_policies
from wotd_env.recording.columns import legal_values, schema, seating, state_columns
from wotd_env.solver import Table


class Recording(NamedTuple):
    """The settings of the games to record."""

    game: Game
    players: Sequence[Policy]  # one policy for each seat, or one policy for all seats
    names: Sequence[str]  # names of the players
    seed: int  # seed of the first game
    table: Table | None  # solved game, which gives the equities; None for no equities


def play_block(recording: Recording, first: int, count: int) -> pa.Table:
    """Play the games `first` to `first + count - 1` in one batch; return their decisions, sorted by game.

    All policies draw their random numbers from one generator, which is created for this block.
    """
    game, seed = recording.game, recording.seed
    numbers = np.arange(first, first + count)
    state = game.reset(count, seed=seed + first)
    seats = seating(numbers, game.rules.players, len(recording.players))
    rng = np.random.default_rng([seed, first])
    played, states, actions = [], [], []
    for chosen in play_policies(game, state, seats, recording.players, rng):
        live = np.flatnonzero(chosen >= 0)
        played.append(live)
        states.append(take(state, live))
        actions.append(chosen[live])
    row_game = np.concatenate(played)
    order = np.argsort(row_game, kind="stable")
    row_game, action = row_game[order], np.concatenate(actions)[order]
    asked = take(np.concatenate(states), order)
    seat = asked["player"].astype(np.int64)
    starts = np.searchsorted(row_game, row_game)  # for each row, the first row of its game
    analysis = None if recording.table is None else analyze(game, asked, recording.table)
    unique = sorted(set(recording.names))
    codes = np.array([unique.index(name) for name in recording.names], np.int8)
    columns = {
        "game": numbers[row_game],
        "decision": np.arange(len(order)) - starts,
        "seed": np.uint64(seed) + numbers[row_game].astype(np.uint64),
        "policy": pa.DictionaryArray.from_arrays(pa.array(codes[seats[row_game, seat]]), unique),
        "reward": final_rewards(game, state)[row_game, seat],
        **decision_columns(game, asked, action, analysis),
    }
    return pa.Table.from_pydict(columns, schema=schema(game.rules))


def decision_columns(
    game: Game, state: States, action: NDArray[np.int64], analysis: Analysis | None
) -> dict[str, Any]:
    """Return the columns that depend only on the states, STATE (M,), the chosen actions, (M,), and the analysis.

    If `analysis` is None, `equity` and `regret` are null.
    """
    mask = game.legal_actions(state, validate=False)
    if analysis is None:
        equity, regret = pa.nulls(len(state), pa.list_(pa.float32())), pa.nulls(len(state), pa.float32())
    else:
        equity, regret = legal_values(analysis.actions, mask), pa.array(regret_of(analysis, action))
    return {
        "turn": state["turn"],
        "seat": state["player"],
        "phase": state["phase"],
        **state_columns(state, mask),
        "action": action,
        "equity": equity,
        "regret": regret,
    }
