"""The turn planner: exact values of all actions of a turn, given a value function for the positions after the turn.

Only the seat to act decides within a turn. So with any number of players, the plan maximizes the value for this seat.
The plan includes all powers and the decision about an extra turn. It depends only on the state and the value function.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import Action
from wotd_env.core.checks import contiguous
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.dice import HOLD_KEEP, LEGAL_HOLDS
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import Record, Records, States
from wotd_env.planning import plans, turn
from wotd_env.planning.plans import TurnPlan, Value
from wotd_env.planning.turn import TIE

__all__ = ["TIE", "Value", "best_actions", "plan"]


def plan(game: Game, state: States, value: Value) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the value of every action and the value of every state, both for the seat to act.

    Args:
        game: the rules.
        state: STATE (N,), in any phase. It is not changed.
        value: the value function for the afterstates.

    Returns:
        float32 (N, A): the values of the actions, -inf for illegal actions. All actions are illegal if a roll is due or
        the game is over.
        float32 (N,): the values of the states. The value of a state is the value of its best action. If a roll is due,
        the value is the mean over the outcomes of this roll. If the game is over, it is the reward of the seat to act.

    Raises:
        ValueError: if `value` returns an array of a wrong shape, or non-finite numbers for running games.
    """
    action_values = np.full((len(contiguous(state)), game.num_actions), -np.inf, np.float32)
    values = np.zeros(len(state), np.float32)
    game.apply(functools.partial(_plan_part, game, value), state, action_values, values)
    return action_values, values


def best_actions(action_values: NDArray[np.float32], values: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the best action of each state, int64 (N,). In a tie, the lowest action number wins (see `TIE`).

    The arguments are the results of `plan`. The result is 0 for states without a legal action.
    """
    best: NDArray[np.int64] = (action_values >= (values - TIE)[:, None]).argmax(1)
    return best


def _plan_part(
    game: Game, value: Value, states: Records, config: Configs, action_values: Any, values: Any
) -> None:
    for group in plans.group_states(states, config):
        games, batch = group.games, states[group.games]
        if group.rolls == plans.ENDED:
            values[games] = game.rewards(batch)[np.arange(len(games)), batch["player"]]
        elif group.rolls == plans.LAST:
            outcomes = plans.value_choices(game, value, batch, plans.write_actions, game.num_actions)
            action_values[games] = outcomes.choice_values.T
            values[games] = outcomes.choice_values.max(0)
        else:
            turn_plan = plans.plan_turns(game, value, batch, group, seats=1, keeps=False)
            write_plan(turn_plan, batch, games, action_values, values)


@kernel
def write_plan(plan: TurnPlan, states: Records, games: Any, action_values: Any, values: Any) -> None:
    """Write the values of the states to `values[games]`, and the values of their holds to `action_values[games]`."""
    for first in range(0, states.shape[0], turn.LANES):
        plans.expect_rolls(plan, states, first)
        for lane in range(min(turn.LANES, states.shape[0] - first)):
            game = games[first + lane]
            values[game] = _read_values(states[first + lane], plan.rows, lane, action_values[game])


@kernel
def _read_values(s: Record, rows: turn.Rows, lane: Any, action_values: Any) -> Any:
    """Return the value of a state. In phase KEEP, also write the values of its holds to `action_values`."""
    shown = np.int64(engine.dice_index(s))
    if s.phase == Phase.CHANCE:
        return rows[shown, lane]
    best = rows[turn.STOPS + shown, lane]
    action_values[Action.STOP_ROLLING] = best
    for hold in range(Action.STOP_ROLLING):
        if LEGAL_HOLDS[shown] >> np.uint64(hold) & engine.BIT:
            value = rows[HOLD_KEEP[shown, hold], lane]
            action_values[hold] = value
            best = max(best, value)
    return best
