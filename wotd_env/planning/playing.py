"""Play whole turns: plan each turn once, before its first roll, and play it by that plan to its end.

The policy `Planner` makes a new plan for every decision. Self-play needs only one plan a turn, because that plan
contains the values of all later decisions.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import Action
from wotd_env.core.arguments import kind_of
from wotd_env.core.checks import plain
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.dice import HOLD_KEEP, LEGAL_HOLDS, NUM_KEEPS
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import Record, Records, States
from wotd_env.planning import turn
from wotd_env.planning.slots import (
    STOPS,
    Ends,
    Slots,
    Value,
    best_slot,
    by_stage,
    expect_level,
    fill_stops,
    open_slots,
    rows_of,
    slots_of,
    stop_rolling,
    stride_of,
    value_slots,
)

__all__ = ["Turns", "play_turns"]


class Turns(NamedTuple):
    """The values of N turns to n seats."""

    before: NDArray[np.float32]
    """(N, n): the values before the first roll, the mean over all rolls if the turn is played by the plan"""
    after: NDArray[np.float32]
    """(N, n): the values after the turn; the rewards if the game has ended"""


def play_turns(game: Game, state: States, value: Value, at_random: NDArray[np.bool_] | None = None) -> Turns:
    """Play one turn in every game, in place, as `Planner(value)` does; the dice come from the games' own streams.

    Args:
        game: the rules.
        state: STATE (N,), games before the first roll of a turn; afterwards before that of the next turn, or over.
        value: the value of the afterstates, zero-sum.
        at_random: bool (N,), games in which the last action of the turn is drawn from the legal ones; by default none.

    Raises:
        ValueError: if `state` is not a batch of games before the first roll of a turn, `at_random` has a wrong dtype or
            shape, or `value` returns a wrong shape or numbers that are not finite for games that go on.
    """
    given = plain(state)
    if (given["phase"] != Phase.CHANCE).any() or (given["dice"] >= 0).any():
        raise ValueError("state must be games before the first roll of a turn")
    shape = len(state), game.rules.players
    turns = Turns(np.empty(shape, np.float32), np.empty(shape, np.float32))
    drawn = np.zeros(len(state), np.bool_) if at_random is None else np.asarray(at_random)
    if drawn.dtype != np.bool_ or drawn.shape != state.shape:
        raise ValueError(f"at_random must be bool {state.shape}, got {kind_of(drawn)}")
    game.apply(functools.partial(_play_part, game, value), state, drawn, turns)
    return turns


def _play_part(
    game: Game, value: Value, states: Records, config: Configs, at_random: Any, turns: Turns
) -> None:
    """Play a turn in a part of a batch; states at the same stage share the SIMD lanes."""
    slots = slots_of(game.rules.players, game.rules.powers != "none")
    seats = (
        game.rules.players if game.rules.players > 2 else 1
    )  # with two players one value suffices (zero-sum)
    for rolls, tiger, games in by_stage(states, config):
        batch = states[games]
        ends = value_slots(game, value, batch, False)
        plan = _Plan(
            slots,
            ends,
            value_slots(game, value, batch, True) if tiger else ends,
            tiger,
            rows_of(seats, slots),
            np.empty((rolls, NUM_KEEPS, turn.LANES), np.float32),
            np.empty(slots.action.size, np.int64),
        )
        played = Turns(turns.before[games], turns.after[games])
        _play(batch, plan, at_random[games], played)
        states[games], turns.before[games], turns.after[games] = batch, played.before, played.after


class _Plan(NamedTuple):
    """The plan of the turns of N states at the same stage."""

    slots: Slots
    ends: Ends
    ends_after_tiger: Ends
    tiger: bool
    """whether the tiger may give the last roll"""
    rows: turn.Rows
    """to work in, for each seat from the one to act on; only for that one if there are two"""
    expected: NDArray[np.float32]
    """(rolls, 462, LANES): the values of the keeps, by the number of re-rolls that follow the roll to come"""
    candidates: NDArray[np.int64]
    """(K,), to work in"""


@kernel
def _play(states: Records, plan: _Plan, at_random: Any, turns: Turns) -> None:
    """Plan turns and play them: change the states and fill `turns`. `at_random` is bool (N,)."""
    rows, expected, stride = plan.rows, plan.expected, stride_of(plan.slots)
    n = turns.before.shape[1]
    seats = rows.shape[0] // stride
    for first in range(0, states.shape[0], turn.LANES):
        if plan.tiger:
            fill_stops(states, first, plan.slots, plan.ends_after_tiger, rows)
            stop_rolling(rows, stride)
        fill_stops(states, first, plan.slots, plan.ends, rows)
        for level in range(expected.shape[0]):
            expect_level(rows, stride, level, plan.tiger)
            expected[level] = rows[:NUM_KEEPS]
        for lane in range(min(turn.LANES, states.shape[0] - first)):
            i = first + lane
            s = states[i]
            for seat in range(n):
                before = (
                    rows[seat * stride + turn.NOTHING, lane] if seat < seats else -rows[turn.NOTHING, lane]
                )
                turns.before[i, (s.player + seat) % n] = before
            used, roll = _roll_and_hold(s, plan, lane)
            ends = plan.ends_after_tiger if used else plan.ends
            count = open_slots(plan.slots, ends.choice_values, i, roll, plan.candidates)
            if at_random[i]:
                slot = plan.candidates[engine.below(s, count)]
            else:
                slot = best_slot(plan.slots, ends.choice_values, i, plan.candidates[:count])
            end = ends.best[slot, i]
            stream = s.rng
            states[i] = ends.afterstates[end]
            s.rng = stream
            if s.phase == Phase.OVER:
                engine.show(s, np.uint64(roll))
            turns.after[i] = ends.values[end]


@kernel
def _roll_and_hold(s: Record, plan: _Plan, lane: Any) -> tuple[Any, Any]:
    """Roll and hold by the plan; return whether the tiger was used, and the last roll."""
    used = False
    roll: Any = np.int64(engine.throw(s, engine.NOTHING_KEPT))
    for level in range(plan.expected.shape[0] - 2, -1, -1):
        keep = _hold(roll, plan.rows, plan.expected[level], lane)
        if keep == roll:
            break
        used = plan.tiger and level == 0
        roll = np.int64(engine.throw(s, np.uint64(keep)))
    return used, roll


@kernel
def _hold(roll: Any, rows: turn.Rows, expected: Any, lane: Any) -> Any:
    """Return the best keep of a roll, of equal ones that of the lowest action; the roll itself means stop rolling."""
    best, largest = np.int64(roll), np.float32(-np.inf)
    for hold in range(Action.STOP_ROLLING):
        if LEGAL_HOLDS[roll] >> np.uint64(hold) & engine.BIT:
            keep = np.int64(HOLD_KEEP[roll, hold])
            if expected[keep, lane] > largest:
                best, largest = keep, expected[keep, lane]
    return np.int64(roll) if rows[STOPS + roll, lane] > largest else best
