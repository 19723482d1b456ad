"""The compiled part of the vector environment: one learner in each game, policies in the other seats.

A game is *waiting* while an opponent of the learner must act. A step of the environment calls `advance` until no
game is waiting. Opponents outside of compiled code act between two calls of `advance`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.batch import view
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.rules import MAX_PLAYERS, Phase
from wotd_env.core.state import Records
from wotd_env.envs.opponents import play_scripts
from wotd_env.envs.results import NOT_LOST, write_result
from wotd_env.envs.starts import Draws, restart


class Settings(NamedTuple):
    """Settings that all games of a vector environment share."""

    scripts: NDArray[np.int64]  # `Opponents.scripts`
    draws: Draws
    step_limit: int  # maximum number of the learner's actions in a game; 0: no limit
    same_step: bool  # True if the step that ends a game also starts the next game


class StepArrays(NamedTuple):
    """Arrays of a step. With `same_step`, ended games have their last observation and mask in the `final_` arrays."""

    acting: bool  # whether `advance` takes the learners' actions: only in its first call for a step
    actions: NDArray[np.int64]  # (N,)
    illegal: NDArray[np.bool_]  # (N,)
    observation: NDArray[np.int8]  # (N, D)
    mask: NDArray[np.int8]  # (N, A)
    reward: NDArray[np.float64]  # (N,)
    terminated: NDArray[np.bool_]  # (N,)
    truncated: NDArray[np.bool_]  # (N,)
    final_observation: NDArray[np.int8]  # (N, D), or (N, 0) without `same_step`
    final_mask: NDArray[np.int8]  # (N, A), or (N, 0) without `same_step`
    result: NDArray[np.int8]  # (N, 3 n): zeros, or the result of an ended game


@kernel
def find_illegal(states: Records, learners: Any, mask: Any, actions: Any, illegal: Any) -> Any:
    """Store in `illegal[i]` whether row i of `mask` forbids `actions[i]`. Return whether any action is forbidden.

    In a game that is over or has ended for its learner, the action is ignored and therefore not forbidden.
    """
    found = False
    for i in range(states.shape[0]):
        action = actions[i]
        legal = 0 <= action < mask.shape[1] and mask[i, action] != 0
        illegal[i] = not (legal or learners[i].ended or states[i].phase == Phase.OVER)
        found |= illegal[i]
    return found


@kernel
def advance(
    states: Records, config: Configs, learners: Any, step: StepArrays, settings: Settings, scratch: Records
) -> Any:
    """Take the learners' actions if `step.acting` is true. Then play every waiting game.

    Return whether any game has started or ended for its learner.
    """
    rules = config[0]
    changed = False
    rewards = np.empty(MAX_PLAYERS)
    for i in range(states.shape[0]):
        s, learner = states[i], learners[i]
        if step.acting:
            if learner.ended:
                restart(s, rules, learner, rules.start, settings.draws)
                changed = True
            else:
                learner.steps += 1
                learner.waiting = True
                learner.lost = step.illegal[i]
                if not learner.lost and s.phase != Phase.OVER:
                    engine.step(s, rules, step.actions[i])
        if not learner.waiting:
            continue
        while learner.waiting and play_scripts(
            s, rules, learner.seat, settings.scripts[learner.opponent], scratch[0]
        ):
            learner.waiting = False
            if learner.steps == 0:
                break  # the game ended before the learner's first decision; the next step returns its result
            if learner.lost:
                step.reward[i] = engine.reward_of(0, rules.players)
                step.terminated[i] = True
            elif s.phase == Phase.OVER:
                engine.rewards(s, rules, rewards)
                step.reward[i] = rewards[learner.seat]
                step.terminated[i] = True
            if learner.steps == settings.step_limit:
                step.truncated[i] = True
            if step.terminated[i]:
                loser = np.int64(learner.seat) if learner.lost else NOT_LOST
                write_result(s, rules, loser, step.result[i])
            learner.ended = step.terminated[i] or step.truncated[i]
            changed |= learner.ended
            if learner.ended and settings.same_step:
                seat = np.int64(learner.seat)
                view(s, rules, seat, learner.lost, step.final_observation[i], step.final_mask[i])
                restart(s, rules, learner, rules.start, settings.draws)
        if not learner.waiting:
            view(s, rules, np.int64(learner.seat), learner.lost, step.observation[i], step.mask[i])
    return changed
