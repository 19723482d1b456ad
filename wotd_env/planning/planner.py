"""The turn planner: the exact best holds and moves of a turn, given a value of the positions it may end in.

Only the seat to act decides within a turn, so it maximizes its own value, whether two or five play. All powers are
planned: the tiger as one more re-roll, the others as slots (`slots`). Extra turns are planned too.

A plan depends only on the state: nothing is kept between decisions, and no random stream is read.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import Action
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.dice import HOLD_KEEP, LEGAL_HOLDS
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import Record, Records
from wotd_env.planning import turn
from wotd_env.planning.slots import (
    ENDED,
    LAST,
    STOPS,
    Ends,
    Slots,
    Value,
    by_stage,
    expect_level,
    fill_stops,
    rows_of,
    slots_of,
    stop_rolling,
    stride_of,
    value_actions,
    value_slots,
)

__all__ = ["Value", "plan"]


def plan(
    game: Game, state: NDArray[np.void], value: Value
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the value of every action and of every state for the seat to act.

    Args:
        game: the rules.
        state: STATE (N,), in any phase; not changed.
        value: the value of the afterstates.

    Returns:
        float32 (N, A): the values of the actions, -inf for illegal ones. All are illegal if a roll is due or the game
        is over.
        float32 (N,): the value of the best action, the mean over a roll that is due, or the reward of an ended game.

    Raises:
        ValueError: if `value` returns a wrong shape, or numbers that are not finite for games that go on.
    """
    action_values = np.full((len(state), game.num_actions), -np.inf, np.float32)
    values = np.zeros(len(state), np.float32)
    game.apply(functools.partial(_plan_part, game, value), state, action_values, values)
    return action_values, values


def _plan_part(
    game: Game, value: Value, states: Records, config: Configs, action_values: Any, values: Any
) -> None:
    """Plan for a part of a batch; states at the same stage share the SIMD lanes."""
    slots = slots_of(game.rules.players, game.rules.powers != "none")
    for rolls, tiger, games in by_stage(states, config):
        batch = states[games]
        if rolls == ENDED:
            values[games] = game.rewards(batch)[np.arange(len(games)), batch["player"]]
        elif rolls == LAST:
            of_actions = value_actions(game, value, batch).choice_values
            action_values[games] = of_actions.T
            values[games] = of_actions.max(0)
        else:
            ends = value_slots(game, value, batch, False)
            ends_after_tiger = value_slots(game, value, batch, True) if tiger else ends
            turns = _Turns(slots, ends, ends_after_tiger, rolls, tiger, rows_of(1, slots))
            _plan_rolls(batch, turns, games, action_values, values)


class _Turns(NamedTuple):
    """The turns of N states at the same stage."""

    slots: Slots
    ends: Ends
    ends_after_tiger: Ends
    rolls: int
    """rolls to come, that of the tiger included"""
    tiger: bool
    """whether the tiger may give the last roll"""
    rows: turn.Rows
    """to work in"""


@kernel
def _plan_rolls(states: Records, turns: _Turns, games: Any, action_values: Any, values: Any) -> None:
    """Write the values of states and of their holds.

    Args:
        states: STATE (N,).
        turns: their turns.
        games: int64 (N,), the rows of `action_values` and `values` to write.
        action_values: float32 (..., A).
        values: float32 (...).
    """
    rows, stride = turns.rows, stride_of(turns.slots)
    for first in range(0, states.shape[0], turn.LANES):
        if turns.tiger:
            fill_stops(states, first, turns.slots, turns.ends_after_tiger, rows)
            stop_rolling(rows, stride)
        fill_stops(states, first, turns.slots, turns.ends, rows)
        for level in range(turns.rolls):
            expect_level(rows, stride, level, turns.tiger)
        for lane in range(min(turn.LANES, states.shape[0] - first)):
            game = games[first + lane]
            values[game] = _read_values(states[first + lane], rows, lane, action_values[game])


@kernel
def _read_values(s: Record, rows: turn.Rows, lane: Any, action_values: Any) -> Any:
    """Return the value of a state and, in phase KEEP, write those of its holds."""
    shown = np.int64(engine.shown(s))
    if s.phase == Phase.CHANCE:
        return rows[shown, lane]
    best = rows[STOPS + shown, lane]
    action_values[Action.STOP_ROLLING] = best
    for hold in range(Action.STOP_ROLLING):
        if LEGAL_HOLDS[shown] >> np.uint64(hold) & engine.BIT:
            value = rows[HOLD_KEEP[shown, hold], lane]
            action_values[hold] = value
            best = max(best, value)
    return best
