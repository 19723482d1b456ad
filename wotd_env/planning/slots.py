"""The ends of a turn: what each roll offers, where it leads, and the value of every roll and keep.

An *afterstate* is a state at the end of a turn: nothing of the next turn is rolled yet, or the game is over. The effect
of an action depends on the roll only through the number of dice that show its element. So the 252 rolls lead to few
afterstates (about 33 in the basic game of two), one for each *slot*: an action and that number of dice. Extra turns add
up to two more afterstates to a slot.

    value_slots    write the afterstates of all slots and value them in one call
    fill_stops     give every roll the value of its best slot
    expect_level   give every keep its expected value, one re-roll after another

`planner.plan` reads the values of actions from this, `playing.play_turns` plays whole turns by it. The engine decides
what is legal and where it leads. Places that assume a rule carry the number of its ruling.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
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
from wotd_env.planning.values import CheckedValue

__all__ = [
    "CHUNK",
    "ENDED",
    "LAST",
    "STOPS",
    "Ends",
    "Slots",
    "Value",
    "best_slot",
    "by_stage",
    "expect_level",
    "fill_stops",
    "open_slots",
    "rows_of",
    "slots_of",
    "value_actions",
    "value_slots",
]

Value = Callable[[Game, NDArray[np.void]], NDArray[np.floating[Any]]]
"""Expected rewards of every seat, float (M, n), in afterstates, STATE (M,). Those of ended games are ignored."""

CHUNK = 128
"""States whose afterstates are valued in one call."""
MOST_ENDS = 3
"""Afterstates of one action: without an extra turn, with that of perfection (R8), with that of rebirth (R12)."""


# --------------------------------------------------------------------------------------------------------------- slots


class Slots(NamedTuple):
    """The K slots. Those of PASSING come first; slots with the same representative roll are neighbors."""

    action: NDArray[np.int64]
    """(K,)"""
    roll: NDArray[np.int64]
    """(K,): a roll that offers the slot"""
    free: NDArray[np.int64]
    """the slots of the power-free moves of every roll, roll by roll"""
    free_end: NDArray[np.int64]
    """(252,): the end of each roll's part of `free`"""
    other: NDArray[np.int64]
    """the slots of the moves with powers, and of the swaps, of every roll, roll by roll"""
    other_end: NDArray[np.int64]
    """(252,): the end of each roll's part of `other`"""


PASSING = (Action.PASS, Action.NO_MOVE_BY_FEAR)
"""The actions of the first slots: nothing moves (R5, R12), and the dice earn no extra turn (R8)."""


@functools.cache  # eight entries at most
def slots_of(players: int, powers: bool) -> Slots:
    """Return the slots of games with a number of players, with or without powers."""
    offers = [
        [(action, _dice_of(action, roll)) for action in actions]
        for roll, actions in enumerate(_offers(players, powers))
    ]
    index: dict[tuple[int, int], int] = {}
    rolls = [0] * len(PASSING)
    missing = {slot for offered in offers for slot in offered}
    # Legal moves are computed once for each representative roll, so rolls that offer many slots are chosen.
    while missing:
        roll = max(range(NUM_ROLLS), key=lambda r: len(missing.intersection(offers[r])))
        found = sorted(missing.intersection(offers[roll]))
        index.update(zip(found, range(len(rolls), len(rolls) + len(found)), strict=True))
        rolls += [roll] * len(found)
        missing.difference_update(found)
    free = [[index[slot] for slot in offered if _is_free(slot[0])] for offered in offers]
    other = [[index[slot] for slot in offered if not _is_free(slot[0])] for offered in offers]
    return Slots(
        np.array([*PASSING, *(action for action, _ in index)], np.int64),
        np.array(rolls, np.int64),
        np.array([slot for slots in free for slot in slots], np.int64),
        np.cumsum([len(slots) for slots in free]),
        np.array([slot for slots in other for slot in slots], np.int64),
        np.cumsum([len(slots) for slots in other]),
    )


def _offers(players: int, powers: bool) -> list[list[int]]:
    """Ask the engine, for every roll, which actions of phase MOVE (except PASSING) are legal in some position.

    Three positions suffice: every piece can move; everything that enters is blocked and can jump; all pieces can be
    swapped.
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
        offers.append(
            [a for a in np.flatnonzero(game.legal_actions(probes).any(0)).tolist() if a not in PASSING]
        )
    return offers


def _dice_of(action: int, roll: int) -> int:
    """Return the number of dice that an action's effect depends on (R3, R8, R12, R13), 0 if none (R6, R7)."""
    dice = COUNTS[roll].tolist()
    if Action.MOVE_ON <= action < Action.WOOD_ON:
        return int(dice[action - Action.MOVE_ON])
    if Action.WOOD_ON <= action < Action.JUMP_ON:
        return int(dice[action - Action.WOOD_ON] + dice[DRAGON])
    if Action.JUMP_ON <= action < Action.EQUILIBRIUM:
        return int(dice[action - Action.JUMP_ON])
    return 0


def _is_free(action: int) -> bool:
    """Return whether an action is a power-free move (R3, R7), which makes passing illegal (R5)."""
    return Action.MOVE_ON <= action < Action.WOOD_ON or action == Action.EQUILIBRIUM


# -------------------------------------------------------------------------------------------------------------- stages

ENDED, LAST = -1, 0
"""Rolls to come in games that are over, and in phases MOVE and EXTRA. The roll of the tiger counts as one to come."""


def by_stage(states: Records, config: NDArray[np.void]) -> Iterator[tuple[int, bool, NDArray[np.int64]]]:
    """Group states by their stage in the turn.

    Yields:
        The rolls to come, whether the tiger may give the last of them, and the indices of up to CHUNK such states.
    """
    rolls, tiger = np.empty(len(states), np.int64), np.empty(len(states), np.bool_)
    _write_stages(states, config, rolls, tiger)
    for held in (False, True):
        for count in np.unique(rolls[tiger == held]).tolist():
            same = np.flatnonzero((rolls == count) & (tiger == held))
            for games in np.array_split(same, -(-len(same) // CHUNK)):
                yield count, held, games


@kernel
def _write_stages(states: Records, config: Configs, rolls: Any, tiger: Any) -> None:
    """Write the rolls to come of every state, and whether the tiger may give the last one."""
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


# -------------------------------------------------------------------------------------------------------------- values


class Ends(NamedTuple):
    """The ends of the turns of N states: M afterstates, reached by K choices (slots or actions), for n players."""

    afterstates: States
    """STATE (M,)"""
    values: NDArray[np.float32]
    """(M, n): their values; the rewards of games that are over"""
    choice_values: NDArray[np.float32]
    """(K, N): the best value of a choice to the seat to act, -inf if it is not open to a state"""
    best: NDArray[np.int64]
    """(K, N): the afterstate that has this value"""


class _Origin(NamedTuple):
    """The state and the choice that each afterstate comes from, (M,) each."""

    state: NDArray[np.int64]
    choice: NDArray[np.int64]


def value_slots(game: Game, value: Value, states: States, tiger_used: bool) -> Ends:
    """Value the afterstates of all slots, after the tiger was used if `tiger_used`."""
    slots = slots_of(game.rules.players, game.rules.powers != "none")
    return _value_ends(game, value, states, _write_slots, slots.action.size, slots, tiger_used)


def value_actions(game: Game, value: Value, states: States) -> Ends:
    """Value the afterstates of all legal actions in phases MOVE and EXTRA; the choices are the A actions."""
    return _value_ends(game, value, states, _write_actions, game.num_actions)


def _value_ends(
    game: Game, value: Value, states: States, write: Callable[..., int], choices: int, *arguments: Any
) -> Ends:
    """Write afterstates by `write`, value them, and find the best one of each choice.

    Raises:
        ValueError: if `value` returns a wrong shape, or numbers that are not finite for games that go on.
    """
    most = len(states) * choices * MOST_ENDS
    afterstates = np.empty(most, STATE)
    origin = _Origin(np.empty(most, np.int64), np.empty(most, np.int64))
    count = write(states, game.config, *arguments, scratch(), afterstates, origin)
    afterstates = afterstates[:count]
    trusting = value.unchecked if isinstance(value, CheckedValue) else value
    given = np.asarray(trusting(game, afterstates), np.float32)
    if given.shape != (count, game.rules.players):
        raise ValueError(f"value must return an array {(count, game.rules.players)}, got {given.shape}")
    shape = choices, len(states)
    ends = Ends(
        afterstates,
        np.array(given, order="C"),  # a copy: rewards are written into it
        np.full(shape, -np.inf, np.float32),
        np.zeros(shape, np.int64),
    )
    wrong = _find_best(states, game.config, origin, ends)
    if wrong >= 0:
        raise ValueError(
            f"value must return finite numbers for games that go on, got {given[wrong].tolist()} for afterstate "
            f"{wrong}"
        )
    return ends


@kernel
def _write_slots(
    states: Records,
    config: Configs,
    slots: Slots,
    tiger_used: Any,
    scratch: Records,
    afterstates: Records,
    origin: _Origin,
) -> Any:
    """Write the afterstates of every slot that is open to a state, and their origin; return their number."""
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
                count = _append_ends(moved, rules, (i, slot), afterstates, origin, count)
    return count


@kernel
def _write_actions(
    states: Records, config: Configs, scratch: Records, afterstates: Records, origin: _Origin
) -> Any:
    """Write the afterstates of every legal action of phases MOVE and EXTRA, as `_write_slots` does for slots."""
    rules = config[0]
    after = scratch[0]
    count: Any = np.int64(0)
    for i in range(states.shape[0]):
        s = states[i]
        actions, swaps = engine.legal(s, rules, engine.shown(s))
        for action in range(Action.MOVE_ON, MOST_ACTIONS):
            if engine.contains(actions, swaps, action):
                scratch[0] = s
                engine.decide(after, rules, action)
                count = _append_ends(after, rules, (i, action), afterstates, origin, count)
    return count


@kernel
def _append_ends(
    s: Record, rules: Config, source: Any, afterstates: Records, origin: _Origin, count: Any
) -> Any:
    """Append the states in which the turn of `s` may end to `count` afterstates; return the new count.

    `source` is the index of the state that the turn began in, and of the choice.
    """
    if s.phase != Phase.EXTRA:
        afterstates[count] = s
        origin.state[count], origin.choice[count] = source
        return count + 1
    actions = engine.legal(s, rules, engine.shown(s))[0]
    for action in (Action.END_TURN, Action.PERFECTION_TURN, Action.REBIRTH_TURN):
        if engine.contains(actions, np.uint64(0), action):
            afterstates[count] = s
            engine.decide(afterstates[count], rules, action)
            origin.state[count], origin.choice[count] = source
            count += 1
    return count


@kernel
def _find_best(states: Records, config: Configs, origin: _Origin, ends: Ends) -> Any:
    """Fill `choice_values` and `best`, and replace the values of ended games by their rewards.

    Return -1 or the first afterstate with a value that is used and not finite.
    """
    for i in range(ends.afterstates.shape[0]):
        state, choice = origin.state[i], origin.choice[i]
        if ends.afterstates[i].phase == Phase.OVER:
            engine.rewards(ends.afterstates[i], config[0], ends.values[i])
        for seat in range(ends.values.shape[1]):
            if not np.isfinite(ends.values[i, seat]):
                return i
        value = ends.values[i, states[state].player]
        if value > ends.choice_values[choice, state]:
            ends.choice_values[choice, state], ends.best[choice, state] = value, i
    return -1


# ---------------------------------------------------------------------------------------------------------------- rows

# The rows of one seat: those of `turn`, the values of the rolls where the rolling stops, then the slots.
STOPS = NUM_KEEPS
_SLOTS = STOPS + NUM_ROLLS
_PASS, _FEAR = range(_SLOTS, _SLOTS + len(PASSING))


def rows_of(seats: int, slots: Slots) -> NDArray[np.float32]:
    """Return rows for a number of seats, (seats * stride, LANES), not filled. The seat to act comes first."""
    return turn.new_rows(seats * stride_of(slots))


@kernel
def stride_of(slots: Slots) -> Any:
    """Return the number of rows of one seat."""
    return _SLOTS + slots.action.size


@kernel
def fill_stops(states: Records, first: Any, slots: Slots, ends: Ends, rows: turn.Rows) -> None:
    """Fill the rows of the slots, and of the rolls where the rolling stops, for every seat that has rows.

    The lanes are the states from `first` on. Only the seat to act chooses; the others get what its choice gives them.
    """
    values = ends.choice_values
    lanes = min(turn.LANES, values.shape[1] - first)
    for slot in range(values.shape[0]):
        for lane in range(lanes):
            rows[_SLOTS + slot, lane] = values[slot, first + lane]
    free = other = 0
    for roll in range(NUM_ROLLS):
        row = STOPS + roll
        rows[row] = -np.inf
        while free < slots.free_end[roll]:
            turn.largest(rows, row, (row, _SLOTS + slots.free[free]))
            free += 1
        # Passing is legal only without a power-free move (R5); fear needs one (R12). `open_slots` repeats this.
        for lane in range(turn.LANES):
            if rows[row, lane] == -np.inf:
                rows[row, lane] = rows[_PASS, lane]
            else:
                rows[row, lane] = max(rows[row, lane], rows[_FEAR, lane])
        while other < slots.other_end[roll]:
            turn.largest(rows, row, (row, _SLOTS + slots.other[other]))
            other += 1
    stride = stride_of(slots)
    for seat in range(1, rows.shape[0] // stride):
        at = seat * stride
        for slot in range(values.shape[0]):
            for lane in range(lanes):
                of_seats = ends.values[ends.best[slot, first + lane]]
                rows[at + _SLOTS + slot, lane] = of_seats[
                    (states[first + lane].player + seat) % of_seats.size
                ]
        free = other = 0
        for roll in range(NUM_ROLLS):
            row = STOPS + roll
            _follow(rows, at + row, (at + row, at + _PASS, row, _PASS))
            _follow(rows, at + row, (at + row, at + _FEAR, row, _FEAR))
            while free < slots.free_end[roll]:
                slot = _SLOTS + slots.free[free]
                _follow(rows, at + row, (at + row, at + slot, row, slot))
                free += 1
            while other < slots.other_end[roll]:
                slot = _SLOTS + slots.other[other]
                _follow(rows, at + row, (at + row, at + slot, row, slot))
                other += 1


@kernel
def stop_rolling(rows: turn.Rows, stride: Any) -> None:
    """Give the row of every roll its value where the rolling stops."""
    for at in range(0, rows.shape[0], stride):
        for roll in range(NUM_ROLLS):
            turn.largest(rows, at + roll, (at + roll + STOPS,))


@kernel
def expect_level(rows: turn.Rows, stride: Any, level: Any, tiger: Any) -> None:
    """Give every keep its expected value with `level` more re-rolls after the roll to come.

    Call it with levels 0, 1, 2 ... after `fill_stops`. With the tiger, `fill_stops` and `stop_rolling` come first for
    the ends after its use, then `fill_stops` for the other ends: level 0 then is the roll of the tiger (R12).
    """
    if level or not tiger:
        stop_rolling(rows, stride)
    if level:
        turn.best(rows)
        for at in range(stride, rows.shape[0], stride):  # the other seats get the values of the best keeps
            for i in range(NUM_KEEPS):
                keep = turn.NOTHING - i
                for k in range(turn.FACES_SHOWN[keep]):
                    fewer = np.int64(turn.FEWER[keep, k])
                    _follow(rows, at + keep, (at + keep, at + fewer, keep, fewer))
    for at in range(0, rows.shape[0], stride):
        turn.expect(rows[at:])


def _emit_follow(builder: Any, rows: list[Any]) -> Any:
    value, other_value, chosen, other = rows
    return builder.select(builder.fcmp_ordered("==", chosen, other), other_value, value)


_follow = turn.row_operation(_emit_follow)
"""Kernel: write the second row of a tuple where the last two are equal, and the first one elsewhere."""


# ------------------------------------------------------------------------------------------------------------- choices


@kernel
def open_slots(slots: Slots, values: Any, state: Any, roll: Any, out: Any) -> Any:
    """Write the slots that are open to a state after its last roll; return their number.

    Args:
        slots: the K slots.
        values: `Ends.choice_values`.
        state: index of the state.
        roll: number of the roll.
        out: int64 (K,).
    """
    count = np.int64(0)
    for k in range(slots.free_end[roll - 1] if roll else 0, slots.free_end[roll]):
        if values[slots.free[k], state] > -np.inf:
            out[count] = slots.free[k]
            count += 1
    if not count:  # R5
        out[0], count = _PASS - _SLOTS, np.int64(1)
    elif values[_FEAR - _SLOTS, state] > -np.inf:  # R12
        out[count] = _FEAR - _SLOTS
        count += 1
    for k in range(slots.other_end[roll - 1] if roll else 0, slots.other_end[roll]):
        if values[slots.other[k], state] > -np.inf:
            out[count] = slots.other[k]
            count += 1
    return count


@kernel
def best_slot(slots: Slots, values: Any, state: Any, candidates: Any) -> Any:
    """Return the candidate with the highest value; of equal ones that of the lowest action."""
    best = candidates[0]
    for slot in candidates[1:]:
        lower = slots.action[slot] < slots.action[best]
        if values[slot, state] > values[best, state] or (
            values[slot, state] == values[best, state] and lower
        ):
            best = slot
    return best
