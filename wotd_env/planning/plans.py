"""Plans of turns, for the modules `planner` and `playing`.

An *afterstate* is a state at the end of a turn: the game is over, or the first roll of the next turn is due. An end
(see `ends`) leads to one afterstate, or to at most three if extra turns are possible. The steps of a plan are:

    group_states   group states by the number of rolls left
    plan_turns     write the afterstates of all ends, and compute their values in one call
    expect_rolls   compute the values of all rolls and keeps, for the next roll and for all later re-rolls

The engine decides which actions are legal and what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import MOST_ACTIONS, Action
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.dice import NUM_KEEPS, NUM_ROLLS
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase, Power
from wotd_env.core.state import STATE, Record, Records, States, scratch
from wotd_env.planning import turn
from wotd_env.planning.ends import OTHERS, Ends, ends_of, value_rolls
from wotd_env.planning.turn import STOPS
from wotd_env.planning.values import CheckedValue

Value = Callable[[Game, NDArray[np.void]], NDArray[np.floating[Any]]]
"""A function of a game and M afterstates, STATE (M,), that returns the expected reward of every seat, float (M, n).

The planner ignores the values of ended games."""

CHUNK = 128  # largest number of states whose afterstates the value function evaluates in one call
MOST_AFTERSTATES = 3  # of an action: without an extra turn, with that of perfection, with that of rebirth

ENDED, LAST = -1, 0  # values of `Group.rolls`; LAST: phase MOVE or EXTRA


class Group(NamedTuple):
    """States whose turns have the same number of rolls left and the same value of `tiger`."""

    games: NDArray[np.int64]  # indices of the states, at most CHUNK
    rolls: int  # rolls left, including the re-roll by the tiger
    tiger: bool  # whether the last of these rolls uses the tiger


def group_states(states: Records, config: Configs) -> Iterator[Group]:
    """Yield the groups of a batch."""
    rolls, tiger = np.empty(len(states), np.int64), np.empty(len(states), np.bool_)
    write_groups(states, config, rolls, tiger)
    for held in (False, True):
        for count in np.unique(rolls[tiger == held]).tolist():
            same = np.flatnonzero((rolls == count) & (tiger == held))
            for games in np.array_split(same, -(-len(same) // CHUNK)):
                yield Group(games, count, held)


@kernel
def write_groups(states: Records, config: Configs, rolls: Any, tiger: Any) -> None:
    """Write the fields `rolls` and `tiger` of the group of each state, int64 (N,) and bool (N,)."""
    for i in range(states.shape[0]):
        s = states[i]
        tiger[i] = False
        if s.phase == Phase.OVER:
            rolls[i] = ENDED
        elif s.phase == Phase.MOVE or s.phase == Phase.EXTRA:
            rolls[i] = LAST
        else:
            tiger[i] = engine.powers_of(s, config[0], s.player) >> Power.TIGER & 1
            rolls[i] = s.rolls_left + (s.phase == Phase.CHANCE) + tiger[i]


class Outcomes(NamedTuple):
    """The afterstates of N states. There are K choices (ends or actions), M afterstates and n players.

    For each choice in each state, `choice_values` is the largest value of its afterstates for the seat to act, and
    `best` is the index of the first afterstate with this value (see `turn.TIE`).
    """

    afterstates: States  # STATE (M,)
    values: NDArray[np.float32]  # (M, n); rewards if the game is over
    choice_values: NDArray[np.float32]  # (K, N): -inf for illegal choices
    best: NDArray[np.int64]  # (K, N)


class Afterstates(NamedTuple):
    """M afterstates. In the state with index `state[i]`, the choice with index `choice[i]` leads to afterstate i."""

    states: States
    state: NDArray[np.int64]
    choice: NDArray[np.int64]


def value_choices(
    game: Game, value: Value, states: States, write: Callable[..., int], choices: int, *arguments: Any
) -> Outcomes:
    """Write afterstates with the function `write`, compute their values, and find the best afterstate of each choice.

    Raises:
        ValueError: if `value` returns an array of a wrong shape, or non-finite numbers for running games.
    """
    most = len(states) * choices * MOST_AFTERSTATES
    written = Afterstates(np.empty(most, STATE), np.empty(most, np.int64), np.empty(most, np.int64))
    count = write(states, game.config, scratch(), written, *arguments)
    afterstates = written.states[:count]
    trusting = value.unchecked if isinstance(value, CheckedValue) else value
    given = np.asarray(trusting(game, afterstates), np.float32)
    if given.shape != (count, game.rules.players):
        raise ValueError(f"value must return an array {(count, game.rules.players)}, got {given.shape}")
    shape = choices, len(states)
    own = np.array(given, order="C")  # a copy, because rewards replace some of its values
    outcomes = Outcomes(afterstates, own, np.full(shape, -np.inf, np.float32), np.zeros(shape, np.int64))
    wrong = find_best(states, game.config, written, outcomes)
    if wrong >= 0:
        raise ValueError(
            f"value must return finite numbers for running games, got {given[wrong].tolist()} for afterstate {wrong}"
        )
    return outcomes


@kernel
def write_ends(
    states: Records, config: Configs, scratch: Records, out: Afterstates, ends: Ends, tiger_used: Any
) -> Any:
    """Write the afterstates of every legal end. Return their number."""
    rules = config[0]
    s, moved = scratch[0], scratch[1]
    count: Any = np.int64(0)
    for i in range(states.shape[0]):
        scratch[0] = states[i]
        s.phase = Phase.MOVE
        s.rolls_left = 0
        if tiger_used:
            engine.use_power(s)
        fear = engine.powers_of(s, rules, s.player) >> Power.FEAR & 1
        actions, swaps = np.uint64(0), np.uint64(0)
        last = -1
        for end in ends.by_roll:
            action, roll = ends.action[end], np.uint64(ends.roll[end])
            if ends.roll[end] != last:
                engine.set_dice(s, roll)
                actions, swaps = engine.legal_moves(s, rules, roll)
                last = ends.roll[end]
            # Whether passes and fear are legal depends on the roll, see `ends.value_rolls`.
            is_open = action == Action.PASS or (action == Action.NO_MOVE_BY_FEAR and fear)
            if is_open or engine.contains(actions, swaps, action):
                scratch[1] = s
                engine.move(moved, rules, roll, action)
                count = _append_afterstates(moved, rules, (i, end), out, count)
    return count


@kernel
def write_actions(states: Records, config: Configs, scratch: Records, out: Afterstates) -> Any:
    """Write the afterstates of every legal action of phases MOVE and EXTRA. Return their number."""
    rules = config[0]
    after = scratch[0]
    count: Any = np.int64(0)
    for i in range(states.shape[0]):
        s = states[i]
        actions, swaps = engine.legal(s, rules, engine.dice_index(s))
        for action in range(Action.MOVE_ON, MOST_ACTIONS):
            if engine.contains(actions, swaps, action):
                scratch[0] = s
                engine.decide(after, rules, engine.dice_index(after), action)
                count = _append_afterstates(after, rules, (i, action), out, count)
    return count


@kernel
def _append_afterstates(s: Record, rules: Config, source: Any, out: Afterstates, count: Any) -> Any:
    """Append `s` to `out` or, in phase EXTRA, append the afterstate of each legal action.

    `source` is a pair: the index of the state and the index of the choice that lead to `s`.
    """
    if s.phase != Phase.EXTRA:
        out.states[count] = s
        out.state[count], out.choice[count] = source
        return count + 1
    actions = engine.legal(s, rules, engine.dice_index(s))[0]
    for action in range(Action.END_TURN, Action.FIRST_SWAP):
        if engine.contains(actions, np.uint64(0), action):
            out.states[count] = s
            engine.decide(out.states[count], rules, engine.dice_index(out.states[count]), action)
            out.state[count], out.choice[count] = source
            count += 1
    return count


@kernel
def find_best(states: Records, config: Configs, written: Afterstates, outcomes: Outcomes) -> Any:
    """Fill `outcomes.choice_values` and `outcomes.best`, and replace the values of ended games with the rewards.

    Return the index of the first afterstate with a non-finite value, or -1.
    """
    first = 0
    for i in range(outcomes.afterstates.shape[0]):
        state, choice = written.state[i], written.choice[i]
        if outcomes.afterstates[i].phase == Phase.OVER:
            engine.rewards(outcomes.afterstates[i], config[0], outcomes.values[i])
        for seat in range(outcomes.values.shape[1]):
            if not np.isfinite(outcomes.values[i, seat]):
                return i
        player = states[state].player
        value, most = outcomes.values[i, player], outcomes.choice_values[choice, state]
        if value > most:
            if most == -np.inf:
                first = i  # the afterstates of a choice are consecutive
            while outcomes.values[first, player] < value - turn.TIE:
                first += 1
            outcomes.choice_values[choice, state], outcomes.best[choice, state] = value, first
    return -1


# `TurnPlan.rows` has these rows for each seat, in this order: the rows of all keeps, the values of stopping with each
# roll, and the values of the ends.
_ENDS = STOPS + NUM_ROLLS


class TurnPlan(NamedTuple):
    """Plans for the rest of the turn in the N states of a group."""

    ends: Ends
    outcomes: Outcomes
    after_tiger: Outcomes  # of turns that use the tiger; if `tiger` is False, the same as `outcomes`
    rolls: int
    tiger: bool
    rows: turn.Rows  # for LANES states: rows of the seat to act, then of the other planned seats
    expected: NDArray[np.float32]  # (rolls - 1, 462, LANES) or empty


def plan_turns(game: Game, value: Value, states: States, group: Group, seats: int, keeps: bool) -> TurnPlan:
    """Compute the values of all ends of a group's turns. Return a plan for `expect_rolls`.

    The group must have at least one roll left. The plan has rows for `seats` seats. `keeps` says whether
    `expect_rolls` fills `TurnPlan.expected`.
    """
    ends = ends_of(game.rules.players, game.rules.powers != "none")

    def outcomes(tiger_used: bool) -> Outcomes:
        return value_choices(game, value, states, write_ends, ends.action.size, ends, tiger_used)

    untouched = outcomes(False)
    after_tiger = outcomes(True) if group.tiger else untouched
    rows = turn.new_rows(seats * stride_of(ends))
    expected = np.empty((group.rolls - 1 if keeps else 0, NUM_KEEPS, turn.LANES), np.float32)
    return TurnPlan(ends, untouched, after_tiger, group.rolls, group.tiger, rows, expected)


@kernel
def stride_of(ends: Ends) -> Any:
    """Return the number of rows in `TurnPlan.rows` for one seat."""
    return _ENDS + ends.action.size


@kernel
def expect_rolls(plan: TurnPlan, states: Records, first: Any) -> None:
    """Compute the values of all rolls and keeps for LANES states, starting with state `first`.

    The value of a keep is the mean value over the rolls of the other dice. `plan.rows` gets these values for the next
    roll. `plan.expected[k]` gets these values for the roll after which k re-rolls are left.
    """
    rows, stride = plan.rows, stride_of(plan.ends)
    if plan.tiger:
        _fill_stops(plan.ends, plan.after_tiger, rows, states, first)
        _stop_rolling(rows, stride)
    _fill_stops(plan.ends, plan.outcomes, rows, states, first)
    for level in range(plan.rolls):
        if level or not plan.tiger:  # with the tiger, the values after its re-roll are already set
            _stop_rolling(rows, stride)
        if level:
            turn.best(rows)
            # The other seats get the values of the keep that the seat to act chooses.
            for at in range(stride, rows.shape[0], stride):
                for i in range(NUM_KEEPS):
                    keep = turn.NOTHING - i
                    for k in range(turn.FACES_SHOWN[keep]):
                        fewer = np.int64(turn.FEWER[keep, k])
                        _follow(rows, at + keep, (at + keep, at + fewer, keep, fewer))
        for at in range(0, rows.shape[0], stride):
            turn.expect(rows[at:])
        if level < len(plan.expected):
            plan.expected[level] = rows[:NUM_KEEPS]


@kernel
def _fill_stops(ends: Ends, outcomes: Outcomes, rows: turn.Rows, states: Records, first: Any) -> None:
    """Write to `rows` the value of every end, and the value of stopping with each roll.

    The rows are for LANES states, starting with state `first`. The other seats get the values of the end that the seat
    to act chooses.
    """
    values, stride = outcomes.choice_values, stride_of(ends)
    lanes = min(turn.LANES, values.shape[1] - first)
    for end in range(values.shape[0]):
        for lane in range(lanes):
            rows[_ENDS + end, lane] = values[end, first + lane]
    value_rolls(ends.offers, ends.passing, rows, STOPS, _ENDS)
    for seat in range(1, rows.shape[0] // stride):
        at = seat * stride
        for end in range(values.shape[0]):
            for lane in range(lanes):
                of_seats = outcomes.values[outcomes.best[end, first + lane]]
                follower = (states[first + lane].player + seat) % of_seats.size
                rows[at + _ENDS + end, lane] = of_seats[follower]
        for roll in range(NUM_ROLLS):
            row = STOPS + roll
            for stay in range(_ENDS + ends.passing, _ENDS + ends.passing + 2):
                _follow(rows, at + row, (at + row, at + stay, row, stay))
            frees, others = ends.offers[roll, 0], ends.offers[roll, 1]
            for k in range(OTHERS + others - 1, OTHERS - 1, -1):
                end = _ENDS + ends.offers[roll, k]
                _follow(rows, at + row, (at + row, at + end, row, end))
            for k in range(1 + frees, 1, -1):
                end = _ENDS + ends.offers[roll, k]
                _follow(rows, at + row, (at + row, at + end, row, end))


@kernel
def _stop_rolling(rows: turn.Rows, stride: Any) -> None:
    """Set the row of every roll to the value of stopping with this roll."""
    for at in range(0, rows.shape[0], stride):
        for roll in range(NUM_ROLLS):
            turn.largest(rows, at + roll, (at + roll + STOPS,))


def _emit_follow(builder: Any, rows: list[Any]) -> Any:
    value, other_value, best, other = rows
    tie = ir.Constant(best.type, [float(turn.TIE)] * turn.LANES)
    # Passes and fear can be illegal, so their values can exceed the best one.
    enough = builder.fcmp_ordered(">=", other, builder.fsub(best, tie))
    legal = builder.fcmp_ordered("<=", other, builder.fadd(best, tie))
    return builder.select(builder.and_(enough, legal), other_value, value)


_follow = turn.row_operation(_emit_follow)
"""Kernel `_follow(rows, out, (a, b, c, d))`: set rows[out] to rows[b] where rows[c] and rows[d] differ by at most TIE,
and to rows[a] elsewhere."""
