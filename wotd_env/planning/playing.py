"""Whole turns, each played with one plan that is made before the first roll.

This plan contains the values of all decisions in the turn. So self-play and the value function `Deeper` need no new
plan at every decision.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.arguments import kind_of
from wotd_env.core.checks import contiguous
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import Record, Records, States
from wotd_env.core.stream import below
from wotd_env.planning import plans, turn
from wotd_env.planning.ends import best_end, open_ends
from wotd_env.planning.planner import plan
from wotd_env.planning.plans import TurnPlan, Value
from wotd_env.planning.turn import NOTHING
from wotd_env.policy import Policy, ask


class Turns(NamedTuple):
    """The values of N games for n seats, before and after a turn."""

    before: NDArray[np.float32]  # (N, n): the values before the first roll
    after: NDArray[np.float32]  # (N, n): the values after the turn; the rewards if the game is over


def play_turns(game: Game, state: States, value: Value, at_random: NDArray[np.bool_] | None = None) -> Turns:
    """Play one turn in every game, as `Planner(value)` does, and return the values before and after the turn.

    Update `state` in place.

    Args:
        game: the rules.
        state: STATE (N,), games before the first roll of a turn.
        value: the zero-sum value function for the afterstates.
        at_random: bool (N,): True to end the turn with a random legal action; by default, no action is random.

    Raises:
        ValueError: if a game is not before the first roll of a turn, if `at_random` is invalid, or if `value` returns
            an invalid array.
    """
    given = contiguous(state)
    if (given["phase"] != Phase.CHANCE).any() or (given["dice"] >= 0).any():
        raise ValueError("state must be games before the first roll of a turn")
    shape = len(state), game.rules.players
    turns = Turns(np.empty(shape, np.float32), np.empty(shape, np.float32))
    drawn = np.zeros(len(state), np.bool_) if at_random is None else np.asarray(at_random)
    if drawn.dtype != np.bool_ or drawn.shape != state.shape:
        raise ValueError(f"at_random must be bool {state.shape}, got {kind_of(drawn)}")
    game.apply(functools.partial(_play_part, game, value), state, drawn, turns)
    return turns


def sample_turns(game: Game, state: States, value: Value, policy: Policy, rng: np.random.Generator) -> Turns:
    """Play one turn of a policy in every game. Update `state`, STATE (N,), in place.

    Each game must be before the first roll of a turn. `value` must be a zero-sum value function. The values before the
    turn are those after it minus the luck of its rolls. For the seat to act, they are

        plan(s) - sum of the regrets of the policy's decisions in this turn,

    where plan(s) is the expected value of a planned turn from s. The regret of a decision is the planned value of the
    best action minus that of the policy's action. The mean of the luck is zero for any policy and any value function,
    so the values have no bias.

    Raises:
        IllegalActionError: if the policy chooses an illegal action.
    """
    single = Game(game.rules, skip_forced=False, num_threads=game.num_threads)
    number, player = state["turn"].copy(), state["player"].astype(np.int64)
    going = np.arange(len(state))
    expected = plan(single, state, value)[1]
    while going.size:
        part = state[going]
        single.roll(part, validate=False)
        legal = single.legal_actions(part)
        actions = legal.argmax(1)
        if (asked := np.flatnonzero(legal.sum(1) > 1)).size:
            actions[asked] = ask(policy, game, part[asked], rng)
            single.check(part, actions)
            worth, best = plan(single, part[asked], value)
            expected[going[asked]] += worth[np.arange(asked.size), actions[asked]] - best
        single.decide(part, actions, validate=False)
        state[going] = part
        going = going[(part["turn"] == number[going]) & (part["phase"] != Phase.OVER)]
    over = (state["phase"] == Phase.OVER)[:, None]
    after = np.where(over, game.rewards(state), value(game, state)).astype(np.float32)
    games = np.arange(len(state))
    luck = (after[games, player] - expected)[:, None]
    before = (after + luck / (game.rules.players - 1)).astype(np.float32)
    before[games, player] = expected
    return Turns(before, after)


def _play_part(
    game: Game, value: Value, states: Records, config: Configs, at_random: Any, turns: Turns
) -> None:
    # With two players, the values of one seat suffice, because the values of both seats sum to 0.
    seats = game.rules.players if game.rules.players > 2 else 1
    for group in plans.group_states(states, config):
        games, batch = group.games, states[group.games]
        turn_plan = plans.plan_turns(game, value, batch, group, seats, keeps=True)
        played = Turns(turns.before[games], turns.after[games])
        _play(turn_plan, batch, at_random[games], played)
        states[games], turns.before[games], turns.after[games] = batch, played.before, played.after


@kernel
def _play(plan: TurnPlan, states: Records, at_random: Any, turns: Turns) -> None:
    """Plan and play one turn in every game."""
    rows, stride = plan.rows, plans.stride_of(plan.ends)
    candidates = np.empty(plan.ends.action.size, np.int64)
    n = turns.before.shape[1]
    seats = rows.shape[0] // stride
    for first in range(0, states.shape[0], turn.LANES):
        plans.expect_rolls(plan, states, first)
        for lane in range(min(turn.LANES, states.shape[0] - first)):
            i = first + lane
            s = states[i]
            for seat in range(n):
                before = rows[seat * stride + NOTHING, lane] if seat < seats else -rows[NOTHING, lane]
                turns.before[i, (s.player + seat) % n] = before
            used, roll = _roll_and_hold(s, plan, lane)
            outcomes = plan.after_tiger if used else plan.outcomes
            values = outcomes.choice_values[:, i]
            count = open_ends(plan.ends, values, roll, candidates)
            end = candidates[below(s, count)] if at_random[i] else best_end(values, candidates[:count])
            afterstate = outcomes.best[end, i]
            stream = s.rng
            states[i] = outcomes.afterstates[afterstate]
            s.rng = stream
            if s.phase == Phase.OVER:
                engine.set_dice(s, np.uint64(roll))
            turns.after[i] = outcomes.values[afterstate]


@kernel
def _roll_and_hold(s: Record, plan: TurnPlan, lane: Any) -> tuple[Any, Any]:
    """Roll and hold as planned. Return whether the power tiger was used, and the last roll."""
    used = False
    roll: Any = np.int64(engine.throw(s, engine.NOTHING_KEPT))
    for level in range(plan.rolls - 2, -1, -1):
        keep = turn.best_keep(plan.rows, plan.expected[level], roll, lane)
        if keep == roll:
            break
        used = plan.tiger and level == 0
        roll = np.int64(engine.throw(s, np.uint64(keep)))
    return used, roll
