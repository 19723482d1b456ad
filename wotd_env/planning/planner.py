"""The turn planner: the exact best holds and moves of a turn, given a value of the positions it may end in.

An *afterstate* is a state at the end of a turn: nothing of the next turn is rolled yet, or the game is over. What a
move leads to depends on the roll by one number at most, the dice that show its element. So all 252 rolls together
lead to few afterstates (about 33 in the basic game of two), one for every *slot*: an action and that number. To plan,

1. write the afterstates of a batch of states (`_afterstates`);
2. have them valued in one call, by any function: `value(game, afterstates)`, float (M, n), a value for each seat;
3. give every roll the value of its best slot (`_fill`), and go through the re-rolls (`wotd_env.planning.turn`).

In a turn only the seat to act decides, so every player maximises its own value, whether two or five play. All powers
are planned: the tiger as one more re-roll, after which no power is left, the others as slots; so are extra turns.
A plan is a function of the state alone: nothing is kept between decisions, and no stream is looked at.
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
from wotd_env.core.state import STATE, Record, Records, scratch
from wotd_env.planning import turn

__all__ = ["Value", "plan"]

Value = Callable[[Game, NDArray[np.void]], NDArray[np.floating[Any]]]
"""Values afterstates, STATE (M,), for every seat: float (M, n), expected rewards. Those of ended games are not used."""

TOGETHER = 128  # states whose afterstates are valued in one call
CHOICES = 3  # ends of a turn after one move: no extra turn, that of perfection, that of rebirth


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
        ValueError: if `value` returns an array of a wrong shape.
    """
    action_values = np.full((len(state), game.num_actions), -np.inf, np.float32)
    values = np.zeros(len(state), np.float32)
    game.apply(functools.partial(_plan_part, game, value), state, action_values, values)
    return action_values, values


def _plan_part(
    game: Game, value: Value, states: Records, config: Configs, action_values: Any, values: Any
) -> None:
    """Plan for a part of a batch; states that need the same passes go side by side."""
    slots = _slots(game.rules.players, game.rules.powers != "none")
    stages = np.empty(len(states), np.int64)
    _stages(states, config, stages)
    for stage in np.unique(stages):
        same = np.flatnonzero(stages == stage)
        for lanes in np.array_split(same, -(-len(same) // TOGETHER)):
            batch = states[lanes]
            if stage == ENDED:
                values[lanes] = game.rewards(batch)[np.arange(len(lanes)), batch["player"]]
            elif stage == LAST:
                choices = _valued(game, value, batch, _choices, game.num_actions)
                action_values[lanes] = choices.T
                values[lanes] = choices.max(0)
            else:
                _plan_rolls(game, value, batch, slots, *divmod(int(stage), 2), lanes, action_values, values)


def _plan_rolls(
    game: Game,
    value: Value,
    batch: Any,
    slots: _Slots,
    levels: int,
    tiger: int,
    lanes: Any,
    action_values: Any,
    values: Any,
) -> None:
    """Plan for states with `levels` rolls to come, of which the tiger may give the last."""
    moves = functools.partial(_valued, game, value, batch, _afterstates, slots.action.size)
    stop = moves(slots, False)
    after_tiger = moves(slots, True) if tiger else stop
    table = turn.scratch(SLOTS + slots.action.size)
    _roll(batch, slots, levels, tiger, stop, after_tiger, table, lanes, action_values, values)


def _valued(
    game: Game, value: Value, batch: Any, write: Any, rows: int, *arguments: Any
) -> NDArray[np.float32]:
    """Return the values of what `write` reaches for the seats to act: float32 (rows, lanes), -inf where nothing is."""
    most = len(batch) * rows * CHOICES
    leaves, lane, row = np.empty(most, STATE), np.empty(most, np.int64), np.empty(most, np.int64)
    count = write(batch, game.config, *arguments, scratch(), leaves, lane, row)
    leaves = leaves[:count]
    valued = np.asarray(value(game, leaves))
    if valued.shape != (count, game.rules.players):
        raise ValueError(f"value must return an array {(count, game.rules.players)}, got {valued.shape}")
    best = np.full((rows, len(batch)), -np.inf, np.float32)
    _collect(batch, game.config, leaves, lane, row, valued, best)
    return best


# --------------------------------------------------------------------------------------------------------------- slots


class _Slots(NamedTuple):
    """The K slots, ordered by the roll that stands for them; the first ones are those of PASSING."""

    action: NDArray[np.int64]  # (K,)
    roll: NDArray[np.int64]  # (K,) a roll that offers the slot
    free: NDArray[np.int64]  # the slots of the power-free moves of every roll, roll by roll
    free_end: NDArray[np.int64]  # (252,) where those of a roll end
    other: NDArray[np.int64]  # likewise the slots of the moves with powers, and of the swaps
    other_end: NDArray[np.int64]


PASSING = (Action.PASS, Action.NO_MOVE_BY_FEAR)
"""The actions of the first slots: to stay put, which no roll changes (R5, R8, R12)."""


@functools.cache
def _slots(players: int, powers: bool) -> _Slots:
    """Number what the rolls offer."""
    offers = [
        [(action, _number(action, roll)) for action in a] for roll, a in enumerate(_offers(players, powers))
    ]
    index: dict[tuple[int, int], int] = {}
    rolls = [0] * len(PASSING)
    missing = {slot for offered in offers for slot in offered}
    while missing:  # few rolls that offer many slots each: what is legal is asked once for each
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
    """Ask the engine, for every roll, which actions of phase MOVE (but PASSING) are legal in some position."""
    probes = np.zeros(3, STATE)
    probes["phase"] = Phase.MOVE
    probes["color"] = np.arange(PATHS)
    probes["dead"][1] = 0b111110  # here all that enters is blocked, and can jump
    probes["pieces"][2, :players] = np.arange(1, players + 1)[:, None]  # here all pieces can be swapped
    game = Game(Rules(players, powers="any" if powers else "none"))
    offers = []
    for roll in range(NUM_ROLLS):
        probes["dice"] = KEEPS[roll]
        offers.append(
            [a for a in np.flatnonzero(game.legal_actions(probes).any(0)).tolist() if a not in PASSING]
        )
    return offers


def _number(action: int, roll: int) -> int:
    """Return the number of dice on which the effect of an action depends."""
    dice = COUNTS[roll].tolist()
    if Action.MOVE_ON <= action < Action.WOOD_ON:
        return int(dice[action - Action.MOVE_ON])
    if Action.WOOD_ON <= action < Action.JUMP_ON:
        return int(dice[action - Action.WOOD_ON] + dice[DRAGON])
    if Action.JUMP_ON <= action < Action.EQUILIBRIUM:
        return int(dice[action - Action.JUMP_ON])
    return 0


def _is_free(action: int) -> bool:
    """Return whether an action is a power-free move (R5)."""
    return Action.MOVE_ON <= action < Action.WOOD_ON or action == Action.EQUILIBRIUM


# -------------------------------------------------------------------------------------------------------------- kernels

STOPS = (
    NUM_KEEPS  # rows of the table: after those of `turn` what rolls are worth where the rolling stops, ...
)
SLOTS = STOPS + NUM_ROLLS  # ... then the slots
PASSED, FEARED = range(len(PASSING))

ENDED, LAST = -1, 0  # stages without rolls to come: games that are over; phases MOVE and EXTRA


@kernel
def _stages(states: Records, config: Configs, stages: Any) -> None:
    """Write for every state ENDED, LAST, or 2 * rolls to come (the tiger's too) + whether the tiger is held."""
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
def _afterstates(
    states: Records,
    config: Configs,
    slots: Any,
    tiger_used: Any,
    scratch: Records,
    leaves: Records,
    lane: Any,
    row: Any,
) -> Any:
    """Write the afterstates of every slot open to a state, with their lanes and slots; return their number."""
    rules = config[0]
    s, moved = scratch[0], scratch[1]
    count = np.int64(0)
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
                count = _finish(moved, rules, i, slot, leaves, lane, row, count)
    return count


@kernel
def _choices(states: Records, config: Configs, scratch: Records, leaves: Records, lane: Any, row: Any) -> Any:
    """Write the afterstates of every legal action of phases MOVE and EXTRA, as `_afterstates` does."""
    rules = config[0]
    after = scratch[0]
    count = np.int64(0)
    for i in range(states.shape[0]):
        s = states[i]
        actions, swaps = engine.legal(s, rules, engine.shown(s))
        for action in range(Action.MOVE_ON, MOST_ACTIONS):
            if engine.contains(actions, swaps, action):
                scratch[0] = s
                engine.decide(after, rules, action)
                count = _finish(after, rules, i, action, leaves, lane, row, count)
    return count


@kernel
def _finish(
    s: Record, rules: Config, i: Any, k: Any, leaves: Records, lane: Any, row: Any, count: Any
) -> Any:
    """Append to the leaves of lane i and row k the states in which the turn of `s` may end; return their number."""
    if s.phase != Phase.EXTRA:
        leaves[count] = s
        lane[count], row[count] = i, k
        return count + 1
    actions = engine.legal(s, rules, engine.shown(s))[0]
    for choice in (Action.END_TURN, Action.PERFECTION_TURN, Action.REBIRTH_TURN):
        if engine.contains(actions, np.uint64(0), choice):
            leaves[count] = s
            engine.decide(leaves[count], rules, choice)
            lane[count], row[count] = i, k
            count += 1
    return count


@kernel
def _collect(
    states: Records, config: Configs, leaves: Records, lane: Any, row: Any, valued: Any, best: Any
) -> None:
    """Raise `best` (rows, lanes) to the values (leaves, n) of the leaves for the seats to act."""
    reward = np.empty(config[0].players, np.float32)
    for j in range(leaves.shape[0]):
        seat = states[lane[j]].player
        if leaves[j].phase == Phase.OVER:
            engine.rewards(leaves[j], config[0], reward)
            value = reward[seat]
        else:
            value = np.float32(valued[j, seat])
        best[row[j], lane[j]] = max(best[row[j], lane[j]], value)


@kernel
def _roll(
    states: Records,
    slots: Any,
    levels: Any,
    tiger: Any,
    stop: Any,
    after_tiger: Any,
    table: Any,
    lanes: Any,
    action_values: Any,
    values: Any,
) -> None:
    """Go through the re-rolls, given what the slots (K, lanes) are worth, also after the tiger was used."""
    for first in range(0, states.shape[0], turn.LANES):
        if tiger:
            _lay(after_tiger, first, slots, table)
            for roll in range(NUM_ROLLS):
                turn.largest(table, roll, (STOPS + roll,))
        _lay(stop, first, slots, table)
        for level in range(levels):
            if level or not tiger:
                for roll in range(NUM_ROLLS):
                    turn.largest(table, roll, (STOPS + roll,))
            if level:
                turn.best(table)
            turn.expect(table)
        for lane in range(min(turn.LANES, states.shape[0] - first)):
            _read(states[first + lane], table, lane, lanes[first + lane], action_values, values)


@kernel
def _lay(best: Any, first: Any, slots: Any, table: Any) -> None:
    """Lay into the table what the slots and, from row STOPS, the rolls are worth where the rolling stops."""
    for slot in range(best.shape[0]):
        for lane in range(min(turn.LANES, best.shape[1] - first)):
            table[SLOTS + slot, lane] = best[slot, first + lane]
    free = other = 0
    for roll in range(NUM_ROLLS):
        row = STOPS + roll
        table[row] = -np.inf
        while free < slots.free_end[roll]:
            turn.largest(table, row, (row, SLOTS + slots.free[free]))
            free += 1
        for lane in range(turn.LANES):  # R5: pass where no power-free move is possible; fear needs one
            if table[row, lane] == -np.inf:
                table[row, lane] = table[SLOTS + PASSED, lane]
            else:
                table[row, lane] = max(table[row, lane], table[SLOTS + FEARED, lane])
        while other < slots.other_end[roll]:
            turn.largest(table, row, (row, SLOTS + slots.other[other]))
            other += 1


@kernel
def _read(s: Record, table: Any, lane: Any, i: Any, action_values: Any, values: Any) -> None:
    """Write the values of the holds in phase KEEP, and that of the state."""
    shown = np.int64(engine.shown(s))
    if s.phase == Phase.CHANCE:
        values[i] = table[shown, lane]
        return
    best = table[STOPS + shown, lane]
    action_values[i, Action.STOP_ROLLING] = best
    for hold in range(Action.STOP_ROLLING):
        if LEGAL_HOLDS[shown] >> np.uint64(hold) & engine.BIT:
            value = table[HOLD_KEEP[shown, hold], lane]
            action_values[i, hold] = value
            best = max(best, value)
    values[i] = best
