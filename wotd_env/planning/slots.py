"""Plans of turns, for the modules `planner` and `playing`.

An *afterstate* is a state at the end of a turn: the game is over, or the first roll of the next turn is due. The
effect of an action depends on the roll only through the number of dice that show the action's element. A *slot* is an
action together with this number of dice, e.g. (move on path 1, 3 dice). A slot leads to one afterstate, or to at most
three if extra turns are possible. So the 252 rolls lead to few afterstates, about 33 in the basic two-player game. The
steps of a plan are:

    group_states   group states by the number of rolls left
    plan_turns     write the afterstates of all slots, and compute their values in one call
    expect_rolls   compute the values of all rolls and keeps, for the next roll and for all later re-rolls

The engine decides which actions are legal and what they do. If the code here assumes a rule, a comment names the
ruling.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import MOST_ACTIONS, Action
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.dice import COUNTS, KEEPS, NUM_KEEPS, NUM_ROLLS
from wotd_env.core.game import Game
from wotd_env.core.rules import DRAGON, PATHS, Phase, Power, Rules
from wotd_env.core.state import STATE, Record, Records, States, scratch
from wotd_env.planning import turn
from wotd_env.planning.turn import STOPS
from wotd_env.planning.values import CheckedValue

Value = Callable[[Game, NDArray[np.void]], NDArray[np.floating[Any]]]
"""A function of a game and M afterstates, STATE (M,), that returns the expected reward of every seat, float (M, n).

The planner ignores the values of ended games."""

CHUNK = 128  # largest number of states whose afterstates the value function evaluates in one call
MOST_ENDS = 3  # largest number of afterstates of an action: no extra turn, one by perfection (R8), one by rebirth (R12)
PASSING = (Action.PASS, Action.NO_MOVE_BY_FEAR)
"""Actions whose effect does not depend on the roll: they move no piece (R5, R12), and so earn no extra turn (R8)."""


class Slots(NamedTuple):
    """The K slots: first the slots of the actions in PASSING, then all other slots, grouped by `roll`."""

    action: NDArray[np.int64]  # (K,): the action of the slot
    roll: NDArray[np.int64]  # (K,): the *representative roll*, after which the slot can be legal
    offered: NDArray[np.int64]  # slots of roll 0, then of roll 1, ...; for each roll, power-free moves first
    start: NDArray[np.int64]  # (253,): the slots of roll r are offered[start[r]:start[r + 1]]
    other: NDArray[np.int64]  # (252,): the power-free moves of roll r are offered[start[r]:other[r]]


@functools.cache  # at most eight entries
def slots_of(players: int, powers: bool) -> Slots:
    """Return the slots of games with this number of players."""
    actions = _offers(players, powers)
    offers = [[(action, _dice_of(action, roll)) for action in actions[roll]] for roll in range(NUM_ROLLS)]
    index: dict[tuple[int, int], int] = {}
    rolls = [0] * len(PASSING)
    missing = {slot for offered in offers for slot in offered}
    # Few representative rolls save time, because `write_slots` computes the legal moves once for each of them.
    while missing:
        roll = max(range(NUM_ROLLS), key=lambda r: len(missing.intersection(offers[r])))
        found = sorted(missing.intersection(offers[roll]))
        index.update(zip(found, range(len(rolls), len(rolls) + len(found)), strict=True))
        rolls += [roll] * len(found)
        missing.difference_update(found)
    start = np.cumsum([0, *map(len, offers)])
    return Slots(
        np.array([*PASSING, *(action for action, _ in index)], np.int64),
        np.array(rolls, np.int64),
        np.array([index[slot] for offered in offers for slot in offered], np.int64),
        start,
        start[:-1] + [sum(_is_free(action) for action, _ in offered) for offered in offers],
    )


def _offers(players: int, powers: bool) -> list[list[int]]:
    """Return the actions of phase MOVE that can be legal after each roll, without PASSING, power-free moves first.

    Three positions suffice to find these actions: one in which all pieces can move, one in which no piece can move
    but all can jump, and one in which all pieces can be swapped.
    """
    probes = np.zeros(3, STATE)
    probes["phase"] = Phase.MOVE
    probes["color"] = np.arange(PATHS)
    probes["dead"][1] = 0b111110
    probes["pieces"][2, :players] = np.arange(1, players + 1)[:, None]
    game = Game(Rules(players, powers="any" if powers else "none"))
    offers = []
    for roll in range(NUM_ROLLS):
        probes["dice"] = KEEPS[roll]
        legal = np.flatnonzero(game.legal_actions(probes).any(0)).tolist()
        offers.append(sorted(set(legal).difference(PASSING), key=lambda a: (not _is_free(a), a)))
    return offers


def _dice_of(action: int, roll: int) -> int:
    """Return the number of dice that show the action's element, plus the dragons if they count (R3, R8, R12, R13).

    Return 0 if the effect of the action does not depend on the dice (R6, R7).
    """
    if action >= Action.EQUILIBRIUM:
        return 0
    dragons = COUNTS[roll, DRAGON] if Action.WOOD_ON <= action < Action.JUMP_ON else 0
    return int(COUNTS[roll, (action - Action.MOVE_ON) % PATHS] + dragons)


def _is_free(action: int) -> bool:
    """Return whether an action is a power-free move (R3, R7)."""
    return Action.MOVE_ON <= action < Action.WOOD_ON or action == Action.EQUILIBRIUM


ENDED, LAST = -1, 0  # values of `Group.rolls`; LAST: phase MOVE or EXTRA


class Group(NamedTuple):
    """States whose turns have the same number of rolls left and the same value of `tiger`."""

    games: NDArray[np.int64]  # indices of the states, at most CHUNK
    rolls: int  # rolls left, including the re-roll by the tiger
    tiger: bool  # whether the last of these rolls uses the tiger (R12)


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


class Ends(NamedTuple):
    """The possible ends of a turn in N states. There are K choices (slots or actions), M afterstates and n players.

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


def value_ends(
    game: Game, value: Value, states: States, write: Callable[..., int], choices: int, *arguments: Any
) -> Ends:
    """Write afterstates with the function `write`, compute their values, and find the best afterstate of each choice.

    Raises:
        ValueError: if `value` returns an array of a wrong shape, or non-finite numbers for running games.
    """
    most = len(states) * choices * MOST_ENDS
    written = Afterstates(np.empty(most, STATE), np.empty(most, np.int64), np.empty(most, np.int64))
    count = write(states, game.config, scratch(), written, *arguments)
    afterstates = written.states[:count]
    trusting = value.unchecked if isinstance(value, CheckedValue) else value
    given = np.asarray(trusting(game, afterstates), np.float32)
    if given.shape != (count, game.rules.players):
        raise ValueError(f"value must return an array {(count, game.rules.players)}, got {given.shape}")
    shape = choices, len(states)
    own = np.array(given, order="C")  # a copy, because rewards replace some of its values
    ends = Ends(afterstates, own, np.full(shape, -np.inf, np.float32), np.zeros(shape, np.int64))
    wrong = find_best(states, game.config, written, ends)
    if wrong >= 0:
        raise ValueError(
            f"value must return finite numbers for running games, got {given[wrong].tolist()} for afterstate {wrong}"
        )
    return ends


@kernel
def write_slots(
    states: Records, config: Configs, scratch: Records, out: Afterstates, slots: Slots, tiger_used: Any
) -> Any:
    """Write the afterstates of every legal slot."""
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
        for slot in range(slots.action.size):
            action, roll = slots.action[slot], np.uint64(slots.roll[slot])
            if slot < len(PASSING):
                engine.show(s, roll)
                is_open = action == Action.PASS or fear
            else:
                if slots.roll[slot] != slots.roll[slot - 1] or slot == len(PASSING):
                    engine.show(s, roll)
                    actions, swaps = engine.legal_moves(s, rules, roll)
                is_open = engine.contains(actions, swaps, action)
            if is_open:
                scratch[1] = s
                engine.move(moved, rules, roll, action)
                count = _append_ends(moved, rules, (i, slot), out, count)
    return count


@kernel
def write_actions(states: Records, config: Configs, scratch: Records, out: Afterstates) -> Any:
    """Write the afterstates of every legal action of phases MOVE and EXTRA. Return their number."""
    rules = config[0]
    after = scratch[0]
    count: Any = np.int64(0)
    for i in range(states.shape[0]):
        s = states[i]
        actions, swaps = engine.legal(s, rules, engine.shown(s))
        for action in range(Action.MOVE_ON, MOST_ACTIONS):
            if engine.contains(actions, swaps, action):
                scratch[0] = s
                engine.decide(after, rules, engine.shown(after), action)
                count = _append_ends(after, rules, (i, action), out, count)
    return count


@kernel
def _append_ends(s: Record, rules: Config, source: Any, out: Afterstates, count: Any) -> Any:
    """Append `s` to `out` or, in phase EXTRA, append the afterstate of each legal action.

    `source` is a pair: the index of the state and the index of the choice that lead to `s`.
    """
    if s.phase != Phase.EXTRA:
        out.states[count] = s
        out.state[count], out.choice[count] = source
        return count + 1
    actions = engine.legal(s, rules, engine.shown(s))[0]
    for action in range(Action.END_TURN, Action.FIRST_SWAP):
        if engine.contains(actions, np.uint64(0), action):
            out.states[count] = s
            engine.decide(out.states[count], rules, engine.shown(out.states[count]), action)
            out.state[count], out.choice[count] = source
            count += 1
    return count


@kernel
def find_best(states: Records, config: Configs, written: Afterstates, ends: Ends) -> Any:
    """Fill `ends.choice_values` and `ends.best`, and replace the values of ended games with the rewards.

    Return the index of the first afterstate with a non-finite value, or -1.
    """
    first = 0
    for i in range(ends.afterstates.shape[0]):
        state, choice = written.state[i], written.choice[i]
        if ends.afterstates[i].phase == Phase.OVER:
            engine.rewards(ends.afterstates[i], config[0], ends.values[i])
        for seat in range(ends.values.shape[1]):
            if not np.isfinite(ends.values[i, seat]):
                return i
        player = states[state].player
        value, most = ends.values[i, player], ends.choice_values[choice, state]
        if value > most:
            if most == -np.inf:
                first = i  # the afterstates of a choice are consecutive
            while ends.values[first, player] < value - turn.TIE:
                first += 1
            ends.choice_values[choice, state], ends.best[choice, state] = value, first
    return -1


# `TurnPlan.rows` has these rows for each seat, in this order: the rows of all keeps, the values of stopping with each
# roll, and the values of the slots.
_SLOTS = STOPS + NUM_ROLLS
_PASS, _FEAR = range(_SLOTS, _SLOTS + len(PASSING))


class TurnPlan(NamedTuple):
    """Plans for the rest of the turn in the N states of a group."""

    slots: Slots
    ends: Ends
    ends_after_tiger: Ends  # the ends of turns that use the tiger; if `tiger` is False, the same as `ends`
    rolls: int
    tiger: bool
    rows: turn.Rows  # for LANES states: rows of the seat to act, then of the other planned seats
    expected: NDArray[np.float32]  # (rolls - 1, 462, LANES) or empty


def plan_turns(game: Game, value: Value, states: States, group: Group, seats: int, keeps: bool) -> TurnPlan:
    """Compute the values of all ends of a group's turns. Return a plan for `expect_rolls`.

    The group must have at least one roll left. The plan has rows for `seats` seats. `keeps` says whether
    `expect_rolls` fills `TurnPlan.expected`.
    """
    slots = slots_of(game.rules.players, game.rules.powers != "none")

    def ends(tiger_used: bool) -> Ends:
        return value_ends(game, value, states, write_slots, slots.action.size, slots, tiger_used)

    untouched = ends(False)
    after_tiger = ends(True) if group.tiger else untouched
    rows = turn.new_rows(seats * stride_of(slots))
    expected = np.empty((group.rolls - 1 if keeps else 0, NUM_KEEPS, turn.LANES), np.float32)
    return TurnPlan(slots, untouched, after_tiger, group.rolls, group.tiger, rows, expected)


@kernel
def stride_of(slots: Slots) -> Any:
    """Return the number of rows in `TurnPlan.rows` for one seat."""
    return _SLOTS + slots.action.size


@kernel
def expect_rolls(plan: TurnPlan, states: Records, first: Any) -> None:
    """Compute the values of all rolls and keeps for LANES states, starting with state `first`.

    The value of a keep is the mean value over the rolls of the other dice. `plan.rows` gets these values for the next
    roll. `plan.expected[k]` gets these values for the roll after which k re-rolls are left.
    """
    rows, stride = plan.rows, stride_of(plan.slots)
    if plan.tiger:
        _fill_stops(plan.slots, plan.ends_after_tiger, rows, states, first)
        _stop_rolling(rows, stride)
    _fill_stops(plan.slots, plan.ends, rows, states, first)
    for level in range(plan.rolls):
        if level or not plan.tiger:  # with the tiger, the values after its re-roll (R12) are already set
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
def _fill_stops(slots: Slots, ends: Ends, rows: turn.Rows, states: Records, first: Any) -> None:
    """Write to `rows` the value of every slot, and the value of stopping with each roll.

    The rows are for LANES states, starting with state `first`. The other seats get the values of the slot that the seat
    to act chooses.
    """
    values, stride = ends.choice_values, stride_of(slots)
    lanes = min(turn.LANES, values.shape[1] - first)
    for slot in range(values.shape[0]):
        for lane in range(lanes):
            rows[_SLOTS + slot, lane] = values[slot, first + lane]
    for roll in range(NUM_ROLLS):
        row = STOPS + roll
        rows[row] = -np.inf
        for k in range(slots.start[roll], slots.other[roll]):
            turn.largest(rows, row, (row, _SLOTS + slots.offered[k]))
        # If a move without a power is possible, passing is illegal (R5); otherwise fear is illegal (R12).
        # `open_slots` repeats both rules.
        for lane in range(turn.LANES):
            best = rows[row, lane]
            rows[row, lane] = rows[_PASS, lane] if best == -np.inf else max(best, rows[_FEAR, lane])
        for k in range(slots.other[roll], slots.start[roll + 1]):
            turn.largest(rows, row, (row, _SLOTS + slots.offered[k]))
    for seat in range(1, rows.shape[0] // stride):
        at = seat * stride
        for slot in range(values.shape[0]):
            for lane in range(lanes):
                of_seats = ends.values[ends.best[slot, first + lane]]
                follower = (states[first + lane].player + seat) % of_seats.size
                rows[at + _SLOTS + slot, lane] = of_seats[follower]
        for roll in range(NUM_ROLLS):
            row = STOPS + roll
            _follow(rows, at + row, (at + row, at + _PASS, row, _PASS))
            _follow(rows, at + row, (at + row, at + _FEAR, row, _FEAR))
            for k in range(slots.start[roll + 1] - 1, slots.start[roll] - 1, -1):
                slot = _SLOTS + slots.offered[k]
                _follow(rows, at + row, (at + row, at + slot, row, slot))


@kernel
def _stop_rolling(rows: turn.Rows, stride: Any) -> None:
    """Set the row of every roll to the value of stopping with this roll."""
    for at in range(0, rows.shape[0], stride):
        for roll in range(NUM_ROLLS):
            turn.largest(rows, at + roll, (at + roll + STOPS,))


def _emit_follow(builder: Any, rows: list[Any]) -> Any:
    value, other_value, best, other = rows
    tie = ir.Constant(best.type, [float(turn.TIE)] * turn.LANES)
    # PASS and fear can be illegal, so their values can exceed the best one.
    enough = builder.fcmp_ordered(">=", other, builder.fsub(best, tie))
    legal = builder.fcmp_ordered("<=", other, builder.fadd(best, tie))
    return builder.select(builder.and_(enough, legal), other_value, value)


_follow = turn.row_operation(_emit_follow)
"""Kernel `_follow(rows, out, (a, b, c, d))`: set rows[out] to rows[b] where rows[c] and rows[d] differ by at most TIE,
and to rows[a] elsewhere."""


@kernel
def open_slots(slots: Slots, ends: Ends, state: Any, roll: Any, out: Any) -> Any:
    """Fill `out`, int64 (K,), with the slots that are legal in a state after the last roll. Return their number."""
    values = ends.choice_values
    count = np.int64(0)
    for k in range(slots.start[roll], slots.other[roll]):
        if values[slots.offered[k], state] > -np.inf:
            out[count] = slots.offered[k]
            count += 1
    if not count:  # R5
        out[0], count = _PASS - _SLOTS, np.int64(1)
    elif values[_FEAR - _SLOTS, state] > -np.inf:  # R12
        out[count] = _FEAR - _SLOTS
        count += 1
    for k in range(slots.other[roll], slots.start[roll + 1]):
        if values[slots.offered[k], state] > -np.inf:
            out[count] = slots.offered[k]
            count += 1
    return count


@kernel
def best_slot(slots: Slots, ends: Ends, state: Any, candidates: Any) -> Any:
    """Return the best candidate slot. In a tie, the lowest action number wins."""
    values = ends.choice_values
    most = values[candidates[0], state]
    for slot in candidates:
        most = max(most, values[slot, state])
    best, lowest = candidates[0], MOST_ACTIONS
    for slot in candidates:
        if values[slot, state] >= most - turn.TIE and slots.action[slot] < lowest:
            best, lowest = slot, slots.action[slot]
    return best
