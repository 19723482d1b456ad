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
)

__all__ = ["Turns", "play_turns"]


SAMPLES = 16


class Turns(NamedTuple):
    """What turns were worth; N games, n players."""

    before: NDArray[np.float32]
    """(N, n): to every seat before the first roll, if the turn is played by the plan; zero-sum if the value is.

    It is exact for the seat whose turn it was, and so for both of two. For the others it is a mean over SAMPLES turns
    that were played for nothing else."""
    after: NDArray[np.float32]
    """(N, n): to every seat after the turn; the rewards if the game has ended"""


def play_turns(game: Game, state: States, value: Value, at_random: NDArray[np.bool_] | None = None) -> Turns:
    """Play one turn in every game, in place, as `Planner(value)` does; the dice come from the games' own streams.

    Args:
        game: the rules.
        state: STATE (N,), games before the first roll of a turn. They are left before that of the next turn, or ended.
        value: the value of the afterstates.
        at_random: bool (N,), where the turn ends with a move, swap or pass that is drawn from all that the last roll
            allows; by default nowhere.

    Raises:
        ValueError: if a game is not before the first roll of a turn, or `value` returns an array of a wrong shape.
    """
    if (state["phase"] != Phase.CHANCE).any() or (state["dice"] >= 0).any():
        raise ValueError("state must be games before the first roll of a turn")
    shape = len(state), game.rules.players
    turns = Turns(np.empty(shape, np.float32), np.empty(shape, np.float32))
    drawn = np.zeros(len(state), np.bool_) if at_random is None else at_random
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
    rows = turn.new_rows(SLOTS + slots.action.size)
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
    valued = np.array(value(game, afterstates), np.float32)
    if valued.shape != (count, game.rules.players):
        raise ValueError(f"value must return an array {(count, game.rules.players)}, got {valued.shape}")
    ends = _Ends(afterstates, valued, np.full(shape, -np.inf, np.float32), np.zeros(shape, np.int64))
    _find_best(batch, game.config, reached, ends)
    return ends


@kernel
def _find_best(states: Records, config: Configs, reached: _Reached, ends: _Ends) -> None:
    """Fill `worth` and `best`, and value ended games by their rewards."""
    for i in range(ends.afterstates.shape[0]):
        state, slot = reached.state[i], reached.choice[i]
        if ends.afterstates[i].phase == Phase.OVER:
            engine.rewards(ends.afterstates[i], config[0], ends.valued[i])
        value = ends.valued[i, states[state].player]
        if value > ends.worth[slot, state]:
            ends.worth[slot, state], ends.best[slot, state] = value, i


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
        rows: to work in.
        expected: float32 (rolls, 462, LANES), to work in: what keeps are worth, by the number of rolls that follow
            the one to come.
        turns: filled.
    """
    candidates = np.empty(slots.action.size, np.int64)
    for first in range(0, states.shape[0], turn.LANES):
        if tiger:
            _fill_rolls(ends_after_tiger.worth, first, slots, rows)
            for roll in range(NUM_ROLLS):
                turn.largest(rows, roll, (STOPS + roll,))
        _fill_rolls(ends.worth, first, slots, rows)
        for level in range(expected.shape[0]):
            if level or not tiger:
                for roll in range(NUM_ROLLS):
                    turn.largest(rows, roll, (STOPS + roll,))
            if level:
                turn.best(rows)
            turn.expect(rows)
            expected[level] = rows[:NUM_KEEPS]
        for lane in range(min(turn.LANES, states.shape[0] - first)):
            i = first + lane
            s = states[i]
            stream = s.rng
            s.rng = engine.mix(stream)
            _estimate(s, slots, tiger, ends, ends_after_tiger, i, lane, rows, expected, candidates, turns)
            s.rng = stream
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
def _estimate(
    s: Record,
    slots: _Slots,
    tiger: Any,
    ends: _Ends,
    ends_after_tiger: _Ends,
    i: Any,
    lane: Any,
    rows: turn.Rows,
    expected: Any,
    candidates: Any,
    turns: Turns,
) -> None:
    """Write what the turn is worth to every seat before the first roll."""
    n = turns.before.shape[1]
    own = rows[turn.NOTHING, lane]
    mean = turns.before[i]
    mean[:] = 0
    if n > 2:
        for _ in range(SAMPLES):
            used, slot, _ = _play_lane(
                s, slots, tiger, ends, ends_after_tiger, i, lane, False, rows, expected, candidates
            )
            taken = ends_after_tiger if used else ends
            for seat in range(n):
                mean[seat] += taken.valued[taken.best[slot, i], seat] / SAMPLES
    surprise = (mean[s.player] - own) / (n - 1)
    for seat in range(n):
        mean[seat] += surprise
    mean[s.player] = own


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
