"""The turn planner: the exact best holds and moves of a turn, given a value of the positions it may end in.

An *afterstate* is a state at the end of a turn: nothing of the next turn is rolled yet, or the game is over. Where an
action leads depends on the roll by one number at most, that of the dice that show its element. So all 252 rolls lead to
few afterstates together (about 33 in the basic game of two), one for every *slot*: an action and that number. A plan is
made in three steps:

1. write the afterstates of a batch of states (`_write_slots`);
2. have them valued in one call, by any function: `value(game, afterstates)`, float (M, n), a value for each seat;
3. give every roll the value of its best slot (`_fill_rolls`), and go through the re-rolls (`wotd_env.planning.turn`).

In a turn only the seat to act decides, so every player maximises its own value, whether two or five play. All powers
are planned: the tiger as one more re-roll, after which no power is left, and the others as slots. Extra turns are
planned too. A plan depends on the state alone: nothing is kept between decisions, and no stream is read.

Where the slots take something about the rules for granted, the number of the ruling stands; the engine does the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import MOST_ACTIONS, Action
from wotd_env.core.compilation import kernel
from wotd_env.core.dice import COUNTS, HOLD_KEEP, KEEPS, LEGAL_HOLDS, NUM_KEEPS, NUM_ROLLS
from wotd_env.core.engine import Config, Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import DRAGON, PATHS, Phase, Power, Rules
from wotd_env.core.state import STATE, Record, Records, States, scratch
from wotd_env.planning import turn

__all__ = ["Value", "plan"]

Value = Callable[[Game, NDArray[np.void]], NDArray[np.floating[Any]]]
"""Values afterstates, STATE (M,), for every seat: float (M, n), expected rewards. Those of ended games are not used."""

TOGETHER = 128
"""States whose afterstates are valued in one call."""
MOST_ENDS = 3
"""Ends of a turn after one action: without an extra turn, with that of perfection (R8), with that of rebirth (R12)."""


def plan(
    game: Game, state: NDArray[np.void], value: Value
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the value of every action and of every state for the seat to act.

    Args:
        game: the rules.
        state: STATE (N,), in any phase; not changed.
        value: the value of the afterstates.

    Returns:
        float32 (N, A), -inf for illegal actions (which all are where a roll is due or the game is over); and
        float32 (N,): that of the best action, the mean over a roll that is due, or the reward of an ended game.

    Raises:
        ValueError: if `value` returns an array of a wrong shape, or no finite numbers for games that go on.
    """
    action_values = np.full((len(state), game.num_actions), -np.inf, np.float32)
    values = np.zeros(len(state), np.float32)
    game.apply(functools.partial(_plan_part, game, value), state, action_values, values)
    return action_values, values


def _plan_part(
    game: Game, value: Value, states: Records, config: Configs, action_values: Any, values: Any
) -> None:
    """Plan for a part of a batch; states with as many rolls to come go side by side."""
    slots = _slots(game.rules.players, game.rules.powers != "none")
    stages = np.empty(len(states), np.int64)
    _stages(states, config, stages)
    for stage in np.unique(stages):
        same = np.flatnonzero(stages == stage)
        for games in np.array_split(same, -(-len(same) // TOGETHER)):
            batch = states[games]
            if stage == ENDED:
                values[games] = game.rewards(batch)[np.arange(len(games)), batch["player"]]
            elif stage == LAST:
                worth = _valued(game, value, batch, _write_actions, game.num_actions)
                action_values[games] = worth.T
                values[games] = worth.max(0)
            else:
                _plan_rolls(game, value, batch, slots, *divmod(int(stage), 2), games, action_values, values)


def _plan_rolls(
    game: Game,
    value: Value,
    batch: Records,
    slots: _Slots,
    rolls: int,
    tiger: int,
    games: NDArray[np.int64],
    action_values: Any,
    values: Any,
) -> None:
    """Plan for states with a number of rolls to come, of which the tiger may give the last."""
    of_slots = functools.partial(_valued, game, value, batch, _write_slots, slots.action.size)
    worth = of_slots(slots, False)
    worth_after_tiger = of_slots(slots, True) if tiger else worth
    rows = turn.new_rows(SLOTS + slots.action.size)
    _go_through_rolls(
        batch, slots, rolls, tiger, worth, worth_after_tiger, rows, games, action_values, values
    )


def _valued(
    game: Game, value: Value, batch: Records, write: Callable[..., int], choices: int, *arguments: Any
) -> NDArray[np.float32]:
    """Return what choices are worth to the seats to act: float32 (choices, N), -inf for those not open to a state.

    `write` is `_write_slots` or `_write_actions`, and the choices are slots or actions.
    """
    most = len(batch) * choices * MOST_ENDS
    afterstates = np.empty(most, STATE)
    reached = _Reached(np.empty(most, np.int64), np.empty(most, np.int64))
    count = write(batch, game.config, *arguments, scratch(), afterstates, reached)
    afterstates = afterstates[:count]
    valued = value_of(game, value, afterstates)
    worth = np.full((choices, len(batch)), -np.inf, np.float32)
    check_found(_collect(batch, game.config, afterstates, reached, valued, worth), valued)
    return worth


def value_of(game: Game, value: Value, afterstates: States) -> NDArray[np.float32]:
    """Return the values, float32 (M, n), of afterstates that the planner has made.

    A value that checks records from outside need not check these: it may have an attribute `unchecked`, a value that
    trusts them.

    Raises:
        ValueError: if `value` returns an array of a wrong shape.
    """
    valued = np.asarray(getattr(value, "unchecked", value)(game, afterstates), np.float32, order="C")
    shape = len(afterstates), game.rules.players
    if valued.shape != shape:
        raise ValueError(f"value must return an array {shape}, got {valued.shape}")
    return valued


def check_found(wrong: int, valued: NDArray[np.float32]) -> None:
    """Make sure that a kernel has found no afterstate, -1, of a game that goes on whose values are not finite.

    No comparison holds for such a value: a choice would be open, but no afterstate would be the one that it leads to.

    Raises:
        ValueError: if it has found one.
    """
    if wrong >= 0:
        raise ValueError(
            f"value must return finite numbers for games that go on, got {valued[wrong].tolist()} for afterstate "
            f"{wrong}"
        )


class _Reached(NamedTuple):
    """How the afterstates are reached."""

    state: NDArray[np.int64]
    """(M,): from which state of the batch"""
    choice: NDArray[np.int64]
    """(M,): by which slot or action"""


# --------------------------------------------------------------------------------------------------------------- slots


class _Slots(NamedTuple):
    """The K slots, ordered by the roll that stands for them; the first ones are those of PASSING."""

    action: NDArray[np.int64]
    """(K,)"""
    roll: NDArray[np.int64]
    """(K,): a roll that offers the slot"""
    free: NDArray[np.int64]
    """the slots of the power-free moves of every roll, roll by roll"""
    free_end: NDArray[np.int64]
    """(252,): where those of a roll end"""
    other: NDArray[np.int64]
    """the slots of the moves with powers, and of the swaps, of every roll, roll by roll"""
    other_end: NDArray[np.int64]
    """(252,): where those of a roll end"""


PASSING = (Action.PASS, Action.NO_MOVE_BY_FEAR)
"""The actions of the first slots: nothing moves (R5, R12), and no extra turn is earned whatever the dice show (R8)."""


@functools.cache
def _slots(players: int, powers: bool) -> _Slots:
    """Number what the rolls offer."""
    offers = [
        [(action, _dice_of(action, roll)) for action in actions]
        for roll, actions in enumerate(_offers(players, powers))
    ]
    index: dict[tuple[int, int], int] = {}
    rolls = [0] * len(PASSING)
    missing = {slot for offered in offers for slot in offered}
    # Rolls that offer many slots stand for them, so that there are few: what is legal is asked once for each.
    while missing:
        roll = max(range(NUM_ROLLS), key=lambda r: len(missing.intersection(offers[r])))
        found = sorted(missing.intersection(offers[roll]))
        index.update(zip(found, range(len(rolls), len(rolls) + len(found)), strict=True))
        rolls += [roll] * len(found)
        missing.difference_update(found)
    free = [[index[slot] for slot in offered if _is_free(slot[0])] for offered in offers]
    other = [[index[slot] for slot in offered if not _is_free(slot[0])] for offered in offers]
    return _Slots(
        np.array([*PASSING, *(action for action, _ in index)], np.int64),
        np.array(rolls, np.int64),
        np.array([slot for slots in free for slot in slots], np.int64),
        np.cumsum([len(slots) for slots in free]),
        np.array([slot for slots in other for slot in slots], np.int64),
        np.cumsum([len(slots) for slots in other]),
    )


def _offers(players: int, powers: bool) -> list[list[int]]:
    """Ask the engine, for every roll, which actions of phase MOVE (but PASSING) are legal in some position.

    The positions are three: one in which every piece can move, one in which all that enters is blocked and can jump,
    and one in which all pieces can be swapped.
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
    """Return the number of dice on which the effect of an action depends (R3, R8, R12, R13), 0 if on none (R6, R7)."""
    dice = COUNTS[roll].tolist()
    if Action.MOVE_ON <= action < Action.WOOD_ON:
        return int(dice[action - Action.MOVE_ON])
    if Action.WOOD_ON <= action < Action.JUMP_ON:
        return int(dice[action - Action.WOOD_ON] + dice[DRAGON])
    if Action.JUMP_ON <= action < Action.EQUILIBRIUM:
        return int(dice[action - Action.JUMP_ON])
    return 0


def _is_free(action: int) -> bool:
    """Return whether an action is a power-free move, which obliges (R5): a move (R3) or an equilibrium (R7)."""
    return Action.MOVE_ON <= action < Action.WOOD_ON or action == Action.EQUILIBRIUM


# -------------------------------------------------------------------------------------------------------------- kernels

# The rows of a plan: after those of `turn` comes what the rolls are worth where the rolling stops, then the slots.
STOPS = NUM_KEEPS
SLOTS = STOPS + NUM_ROLLS
PASS, FEAR = range(SLOTS, SLOTS + len(PASSING))

# The stages without rolls to come: games that are over; phases MOVE and EXTRA.
ENDED, LAST = -1, 0


@kernel
def _stages(states: Records, config: Configs, stages: Any) -> None:
    """Write the stage of every state: ENDED, LAST, or twice the rolls to come, and one more if the tiger is held.

    The roll that the tiger gives is among the rolls to come.
    """
    for i in range(states.shape[0]):
        s = states[i]
        tiger = engine.powers_of(s, config[0], s.player) >> Power.TIGER & 1
        if s.phase == Phase.OVER:
            stages[i] = ENDED
        elif s.phase == Phase.MOVE or s.phase == Phase.EXTRA:
            stages[i] = LAST
        else:
            stages[i] = 2 * (s.rolls_left + tiger + (s.phase == Phase.CHANCE)) + tiger


@kernel
def _write_slots(
    states: Records,
    config: Configs,
    slots: _Slots,
    tiger_used: Any,
    scratch: Records,
    afterstates: Records,
    reached: _Reached,
) -> Any:
    """Write the afterstates of every slot that is open to a state, and how they are reached; return their number."""
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
                count = _write_ends(moved, rules, i, slot, afterstates, reached, count)
    return count


@kernel
def _write_actions(
    states: Records, config: Configs, scratch: Records, afterstates: Records, reached: _Reached
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
                count = _write_ends(after, rules, i, action, afterstates, reached, count)
    return count


@kernel
def _write_ends(
    s: Record, rules: Config, state: Any, choice: Any, afterstates: Records, reached: _Reached, count: Any
) -> Any:
    """Append the states in which the turn of `s` may end to `count` afterstates; return how many there are then."""
    if s.phase != Phase.EXTRA:
        afterstates[count] = s
        reached.state[count], reached.choice[count] = state, choice
        return count + 1
    actions = engine.legal(s, rules, engine.shown(s))[0]
    for action in (Action.END_TURN, Action.PERFECTION_TURN, Action.REBIRTH_TURN):
        if engine.contains(actions, np.uint64(0), action):
            afterstates[count] = s
            engine.decide(afterstates[count], rules, action)
            reached.state[count], reached.choice[count] = state, choice
            count += 1
    return count


@kernel
def _collect(
    states: Records, config: Configs, afterstates: Records, reached: _Reached, valued: Any, worth: Any
) -> Any:
    """Raise what choices are worth, (choices, N), to the values (M, n) of their afterstates for the seats to act.

    Return -1 or, if there is one, the first afterstate whose values are used and not finite.
    """
    reward = np.empty(config[0].players, np.float32)
    for i in range(afterstates.shape[0]):
        state, choice = reached.state[i], reached.choice[i]
        seat = states[state].player
        if afterstates[i].phase == Phase.OVER:
            engine.rewards(afterstates[i], config[0], reward)
            value = reward[seat]
        else:
            if not is_finite(valued[i]):
                return i
            value = valued[i, seat]
        worth[choice, state] = max(worth[choice, state], value)
    return -1


@kernel
def is_finite(values: Any) -> Any:
    """Return whether all values are finite."""
    for value in values:  # noqa: SIM110  # compiled code knows no generators
        if not np.isfinite(value):
            return False
    return True


@kernel
def _go_through_rolls(
    states: Records,
    slots: _Slots,
    rolls: Any,
    tiger: Any,
    worth: Any,
    worth_after_tiger: Any,
    rows: turn.Rows,
    games: Any,
    action_values: Any,
    values: Any,
) -> None:
    """Write the values of states and of their holds, from what the slots are worth, (K, N).

    Args:
        states: STATE (N,).
        slots: the K slots.
        rolls: how many are to come, that of the tiger among them.
        tiger: whether it is held.
        worth: float32 (K, N), of the slots.
        worth_after_tiger: the same after the tiger was used.
        rows: to work in.
        games: int64 (N,), the rows of `action_values` and `values` to be written.
        action_values: float32 (..., A).
        values: float32 (...).
    """
    for first in range(0, states.shape[0], turn.LANES):
        if tiger:
            _fill_rolls(worth_after_tiger, first, slots, rows)
            for roll in range(NUM_ROLLS):
                turn.largest(rows, roll, (STOPS + roll,))
        _fill_rolls(worth, first, slots, rows)
        for level in range(rolls):
            if level or not tiger:
                for roll in range(NUM_ROLLS):
                    turn.largest(rows, roll, (STOPS + roll,))
            if level:
                turn.best(rows)
            turn.expect(rows)
        for lane in range(min(turn.LANES, states.shape[0] - first)):
            _read_values(states[first + lane], rows, lane, games[first + lane], action_values, values)


@kernel
def _fill_rolls(worth: Any, first: Any, slots: _Slots, rows: turn.Rows) -> None:
    """Fill the rows of the slots, and those from STOPS on: what the rolls are worth where the rolling stops."""
    for slot in range(worth.shape[0]):
        for lane in range(min(turn.LANES, worth.shape[1] - first)):
            rows[SLOTS + slot, lane] = worth[slot, first + lane]
    free = other = 0
    for roll in range(NUM_ROLLS):
        row = STOPS + roll
        rows[row] = -np.inf
        while free < slots.free_end[roll]:
            turn.largest(rows, row, (row, SLOTS + slots.free[free]))
            free += 1
        # Who has no power-free move may pass (R5), and fear needs one (R12).
        for lane in range(turn.LANES):
            if rows[row, lane] == -np.inf:
                rows[row, lane] = rows[PASS, lane]
            else:
                rows[row, lane] = max(rows[row, lane], rows[FEAR, lane])
        while other < slots.other_end[roll]:
            turn.largest(rows, row, (row, SLOTS + slots.other[other]))
            other += 1


@kernel
def _read_values(s: Record, rows: turn.Rows, lane: Any, game: Any, action_values: Any, values: Any) -> None:
    """Write the value of a state and, in phase KEEP, those of its holds."""
    shown = np.int64(engine.shown(s))
    if s.phase == Phase.CHANCE:
        values[game] = rows[shown, lane]
        return
    best = rows[STOPS + shown, lane]
    action_values[game, Action.STOP_ROLLING] = best
    for hold in range(Action.STOP_ROLLING):
        if LEGAL_HOLDS[shown] >> np.uint64(hold) & engine.BIT:
            value = rows[HOLD_KEEP[shown, hold], lane]
            action_values[game, hold] = value
            best = max(best, value)
    values[game] = best
