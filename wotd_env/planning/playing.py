"""Whole turns at once: planned once, before the first roll, and played by that plan to their ends.

`Planner` makes a new plan for every decision. Self-play, which plays millions of turns, needs one for each turn: it
holds what all later decisions of the turn are worth.
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
from wotd_env.core.dice import HOLD_KEEP, LEGAL_HOLDS, NUM_KEEPS, NUM_ROLLS
from wotd_env.core.engine import Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import STATE, Record, Records, States, scratch
from wotd_env.planning import turn
from wotd_env.planning.planner import (
    FEAR,
    MOST_ENDS,
    PASS,
    SLOTS,
    STOPS,
    TOGETHER,
    Value,
    _fill_rolls,
    _Reached,
    _Slots,
    _slots,
    _stages,
    _write_slots,
    check_found,
    is_finite,
    value_of,
)

__all__ = ["Turns", "play_turns"]


class Turns(NamedTuple):
    """What turns were worth; N games, n players."""

    before: NDArray[np.float32]
    """(N, n): to every seat before the first roll, the mean over all rolls if the turn is played by the plan"""
    after: NDArray[np.float32]
    """(N, n): to every seat after the turn; the rewards if the game has ended"""


def play_turns(game: Game, state: States, value: Value, at_random: NDArray[np.bool_] | None = None) -> Turns:
    """Play one turn in every game, in place, as `Planner(value)` does; the dice come from the games' own streams.

    Args:
        game: the rules.
        state: STATE (N,), games before the first roll of a turn. They are left before that of the next turn, or ended.
        value: the value of the afterstates, zero-sum.
        at_random: bool (N,), where the turn ends with a move, swap or pass that is drawn from all that the last roll
            allows; by default nowhere.

    Raises:
        ValueError: if `state` is no batch, a game is not before the first roll of a turn, `at_random` is of a wrong
            kind, or `value` returns an array of a wrong shape or no finite numbers for games that go on.
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
    """Play a turn in a part of a batch; states with as many rolls to come go side by side."""
    stages = np.empty(len(states), np.int64)
    _stages(states, config, stages)
    for stage in np.unique(stages):
        rolls, tiger = divmod(int(stage), 2)
        same = np.flatnonzero(stages == stage)
        for games in np.array_split(same, -(-len(same) // TOGETHER)):
            batch = states[games]
            played = Turns(turns.before[games], turns.after[games])
            _play_batch(game, value, batch, rolls, tiger, at_random[games], played)
            states[games], turns.before[games], turns.after[games] = batch, played.before, played.after


def _play_batch(
    game: Game, value: Value, batch: Records, rolls: int, tiger: int, at_random: Any, turns: Turns
) -> None:
    """Play a turn in games with a number of rolls to come, of which the tiger may give the last."""
    slots = _slots(game.rules.players, game.rules.powers != "none")
    ends = _value_ends(game, value, batch, slots, False)
    ends_after_tiger = _value_ends(game, value, batch, slots, True) if tiger else ends
    seats = game.rules.players if game.rules.players > 2 else 1  # one speaks for both of two
    rows = turn.new_rows(seats * (SLOTS + slots.action.size))
    expected = np.empty((rolls, NUM_KEEPS, turn.LANES), np.float32)
    _play(batch, slots, tiger, ends, ends_after_tiger, at_random, rows, expected, turns)


class _Ends(NamedTuple):
    """How turns may end; K slots, M afterstates."""

    afterstates: States
    """STATE (M,)"""
    valued: NDArray[np.float32]
    """(M, n): their values"""
    worth: NDArray[np.float32]
    """(K, N): what slots are worth to the seats to act, -inf for those that are not open to a game"""
    best: NDArray[np.int64]
    """(K, N): the afterstates that make them so"""


def _value_ends(game: Game, value: Value, batch: Records, slots: _Slots, tiger_used: bool) -> _Ends:
    """Find out how turns may end, and what that is worth."""
    shape = slots.action.size, len(batch)
    most = slots.action.size * len(batch) * MOST_ENDS
    afterstates = np.empty(most, STATE)
    reached = _Reached(np.empty(most, np.int64), np.empty(most, np.int64))
    count = _write_slots(batch, game.config, slots, tiger_used, scratch(), afterstates, reached)
    afterstates = afterstates[:count]
    valued = value_of(game, value, afterstates).copy()  # the rewards of ended games are written into it
    ends = _Ends(afterstates, valued, np.full(shape, -np.inf, np.float32), np.zeros(shape, np.int64))
    check_found(_find_best(batch, game.config, reached, ends), valued)
    return ends


@kernel
def _find_best(states: Records, config: Configs, reached: _Reached, ends: _Ends) -> Any:
    """Fill `worth` and `best`, and value ended games by their rewards; return what `_collect` does."""
    for i in range(ends.afterstates.shape[0]):
        state, slot = reached.state[i], reached.choice[i]
        if ends.afterstates[i].phase == Phase.OVER:
            engine.rewards(ends.afterstates[i], config[0], ends.valued[i])
        elif not is_finite(ends.valued[i]):
            return i
        value = ends.valued[i, states[state].player]
        if value > ends.worth[slot, state]:
            ends.worth[slot, state], ends.best[slot, state] = value, i
    return -1


@kernel
def _play(
    states: Records,
    slots: _Slots,
    tiger: Any,
    ends: _Ends,
    ends_after_tiger: _Ends,
    at_random: Any,
    rows: turn.Rows,
    expected: Any,
    turns: Turns,
) -> None:
    """Plan turns and play them.

    Args:
        states: STATE (N,), changed.
        slots: the K slots.
        tiger: whether it is held.
        ends: how the turns may end.
        ends_after_tiger: the same after the tiger was used.
        at_random: bool (N,).
        rows: to work in, for each seat from the one to act on; its own alone where the other is its opposite.
        expected: float32 (rolls, 462, LANES), to work in: what keeps are worth, by the number of rolls that follow
            the one to come.
        turns: filled.
    """
    candidates = np.empty(slots.action.size, np.int64)
    n = turns.before.shape[1]
    stride = SLOTS + slots.action.size
    seats = rows.shape[0] // stride
    for first in range(0, states.shape[0], turn.LANES):
        if tiger:
            _fill_last(states, first, slots, ends_after_tiger, seats, stride, rows)
            _stop(seats, stride, rows)
        _fill_last(states, first, slots, ends, seats, stride, rows)
        for level in range(expected.shape[0]):
            if level or not tiger:
                _stop(seats, stride, rows)
            if level:
                _hold_best(seats, stride, rows)
            for seat in range(seats):
                turn.expect(rows[seat * stride :])
            expected[level] = rows[:NUM_KEEPS]
        for lane in range(min(turn.LANES, states.shape[0] - first)):
            i = first + lane
            s = states[i]
            for seat in range(n):
                before = (
                    rows[seat * stride + turn.NOTHING, lane] if seat < seats else -rows[turn.NOTHING, lane]
                )
                turns.before[i, (s.player + seat) % n] = before
            used, slot, roll = _play_lane(
                s, slots, tiger, ends, ends_after_tiger, i, lane, at_random[i], rows, expected, candidates
            )
            taken = ends_after_tiger if used else ends
            end = taken.best[slot, i]
            stream = s.rng
            states[i] = taken.afterstates[end]
            s.rng = stream
            if s.phase == Phase.OVER:
                engine.show(s, roll)
            turns.after[i] = taken.valued[end]


@kernel
def _fill_last(
    states: Records, first: Any, slots: _Slots, ends: _Ends, seats: Any, stride: Any, rows: turn.Rows
) -> None:
    """Fill the rows of the slots and of the rolls where the rolling stops, as `_fill_rolls` does, for so many seats."""
    _fill_rolls(ends.worth, first, slots, rows)
    for seat in range(1, seats):
        at = seat * stride
        for slot in range(slots.action.size):
            for lane in range(min(turn.LANES, states.shape[0] - first)):
                i = first + lane
                valued = ends.valued[ends.best[slot, i]]
                rows[at + SLOTS + slot, lane] = valued[(states[i].player + seat) % valued.size]
        free = other = 0
        for roll in range(NUM_ROLLS):
            row = STOPS + roll
            _follow(rows, at + row, (at + row, at + PASS, row, PASS))
            _follow(rows, at + row, (at + row, at + FEAR, row, FEAR))
            while free < slots.free_end[roll]:
                slot = SLOTS + slots.free[free]
                _follow(rows, at + row, (at + row, at + slot, row, slot))
                free += 1
            while other < slots.other_end[roll]:
                slot = SLOTS + slots.other[other]
                _follow(rows, at + row, (at + row, at + slot, row, slot))
                other += 1


@kernel
def _stop(seats: Any, stride: Any, rows: turn.Rows) -> None:
    """Give every roll the values that it has where the rolling stops."""
    for seat in range(seats):
        for roll in range(NUM_ROLLS):
            row = seat * stride + roll
            turn.largest(rows, row, (row + STOPS,))


@kernel
def _hold_best(seats: Any, stride: Any, rows: turn.Rows) -> None:
    """Do what `turn.best` does, and give the other seats the values of the keeps that are the best."""
    turn.best(rows)
    for seat in range(1, seats):
        at = seat * stride
        for i in range(NUM_KEEPS):
            keep = turn.NOTHING - i
            for k in range(turn.FACES_SHOWN[keep]):
                fewer = np.int64(turn.FEWER[keep, k])
                _follow(rows, at + keep, (at + keep, at + fewer, keep, fewer))


def _emit_follow(builder: Any, rows: list[Any]) -> Any:
    value, other_value, worth, other_worth = rows
    return builder.select(builder.fcmp_ordered("==", worth, other_worth), other_value, value)


_follow = turn.row_operation(_emit_follow)
"""Kernel: write the second row of a tuple where the last two are equal, and the first one elsewhere."""


@kernel
def _play_lane(
    s: Record,
    slots: _Slots,
    tiger: Any,
    ends: _Ends,
    ends_after_tiger: _Ends,
    i: Any,
    lane: Any,
    at_random: Any,
    rows: turn.Rows,
    expected: Any,
    candidates: Any,
) -> Any:
    """Roll and hold by the plan; return whether the tiger was used, the slot that is chosen then, and the last roll."""
    used = False
    roll: Any = np.int64(engine.throw(s, engine.NOTHING_KEPT))
    for level in range(expected.shape[0] - 2, -1, -1):
        keep = _hold(roll, rows, expected[level], lane)
        if keep == roll:
            break
        used = tiger and level == 0
        roll = np.int64(engine.throw(s, np.uint64(keep)))
    worth = (ends_after_tiger if used else ends).worth
    count = _write_open(slots, worth, i, roll, candidates)
    slot = candidates[engine.below(s, count)] if at_random else _best(slots, worth, i, candidates[:count])
    return used, slot, np.uint64(roll)


@kernel
def _hold(roll: Any, rows: turn.Rows, expected: Any, lane: Any) -> Any:
    """Return the best keep of a roll, of equals that of the lowest action; the roll itself is to stop rolling."""
    best, largest = np.int64(roll), np.float32(-np.inf)
    for hold in range(Action.STOP_ROLLING):
        if LEGAL_HOLDS[roll] >> np.uint64(hold) & engine.BIT:
            keep = np.int64(HOLD_KEEP[roll, hold])
            if expected[keep, lane] > largest:
                best, largest = keep, expected[keep, lane]
    return np.int64(roll) if rows[STOPS + roll, lane] > largest else best


@kernel
def _write_open(slots: _Slots, worth: Any, i: Any, roll: Any, out: Any) -> Any:
    """Write the slots that are open to game i after its last roll, as `_fill_rolls` has them; return their number."""
    count = np.int64(0)
    for k in range(slots.free_end[roll - 1] if roll else 0, slots.free_end[roll]):
        if worth[slots.free[k], i] > -np.inf:
            out[count] = slots.free[k]
            count += 1
    if not count:
        out[0], count = PASS - SLOTS, np.int64(1)
    elif worth[FEAR - SLOTS, i] > -np.inf:
        out[count] = FEAR - SLOTS
        count += 1
    for k in range(slots.other_end[roll - 1] if roll else 0, slots.other_end[roll]):
        if worth[slots.other[k], i] > -np.inf:
            out[count] = slots.other[k]
            count += 1
    return count


@kernel
def _best(slots: _Slots, worth: Any, i: Any, candidates: Any) -> Any:
    """Return the best of some slots for game i, of equals that of the lowest action."""
    best = candidates[0]
    for slot in candidates[1:]:
        lower = slots.action[slot] < slots.action[best]
        if worth[slot, i] > worth[best, i] or (worth[slot, i] == worth[best, i] and lower):
            best = slot
    return best
