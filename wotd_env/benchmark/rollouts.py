"""Rollouts: estimate the equity of every action with simulated games if the game is not solved.

Every seat plans each of its turns exactly with a learned value, as the policy `td` does. The estimate averages the
luck-adjusted results of the games. A luck-adjusted result has only about 2 % of the variance of the plain result. For
the seat that takes the action, the luck-adjusted result is

    plan(action) + sum over the later turns of (plan before the turn - value of the position before the turn).

All terms are known when the game is over. A plan is the exact expectation of the value after the planned turn.
Therefore the luck-adjusted result has the same expected value as the plain result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import kernel
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import ROW, States, take
from wotd_env.core.stream import STEP, mix
from wotd_env.planning.learned import LearnedValue
from wotd_env.planning.planner import plan
from wotd_env.planning.playing import play_turns
from wotd_env.policies.planner import Planner

ERROR = 0.002  #: largest allowed standard error of the equity of a good action
SHARE = 0.1  #: largest allowed standard error for any other action, as a share of the action's regret
ROUND = 128  # games per action between two checks of the standard errors


def roll_out(
    state: States,
    keys: NDArray[np.uint64],
    value: LearnedValue,
    *,
    error: float = ERROR,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Estimate the equity of every action.

    Args:
        state: STATE (M,), games at decisions; not changed.
        keys: uint64 (M,), a seed of the dice for each position.
        value: the learned value with which all seats plan; it also determines the rules.
        error: the target. Games of an action are simulated until the standard error of its equity is at most `error`
            or `SHARE` times its regret, whichever is larger.
        progress: called with the number of finished positions and the number of all positions.

    Returns:
        float32 (M, A): equities, -inf for illegal actions.
        float32 (M, A): standard errors of the equities, 0 for illegal actions.

    Raises:
        ValueError: for an invalid record, or a game that is over or waits for a roll.
    """
    game = Game(value.rules, skip_forced=False)  # with skip_forced, `roll` can enter the next turn
    game.check(state)
    equity = plan(game, state, value)[0]
    if not (decides := np.isfinite(equity).any(1)).all():
        raise ValueError(f"state must be games at decisions, but game {decides.argmin()} has none")
    errors = np.zeros_like(equity)
    for i in range(len(state)):
        actions = np.flatnonzero(np.isfinite(equity[i]))
        planned, sums, squares, games = equity[i, actions], *np.zeros((3, len(actions)))
        rounds, playing = 0, np.arange(len(actions))
        while playing.size:
            key = numbers(keys[i : i + 1], rounds)
            results = _later_turns(game, take(state, np.array([i])), actions[playing], key, value)
            rounds += 1
            sums[playing] += results.sum(1)
            squares[playing] += (results**2).sum(1)
            games[playing] += ROUND
            means = sums / games
            noise = np.sqrt((squares / games - means**2).clip(0) / (games - 1))
            estimates = planned + means
            playing = np.flatnonzero(noise > np.maximum(error, SHARE * (estimates.max() - estimates)))
        equity[i, actions], errors[i, actions] = estimates, noise
        progress(i + 1, len(state))
    return equity, errors


def _later_turns(
    game: Game, state: States, actions: NDArray[np.int64], key: NDArray[np.uint64], value: LearnedValue
) -> NDArray[np.float64]:
    """Play ROUND games after each action. Return the sum over the later turns of each game, (actions, ROUND).

    Games after the same action are independent. Games after different actions share their later turns if the current
    turn ends in the same position. Sharing saves time and reduces the noise of differences between actions.
    """
    seat = state["player"][0]
    ends = take(state, np.zeros(len(actions) * ROUND, np.int64))
    ends["rng"] = np.tile(numbers(key + STEP * np.arange(ROUND, dtype=np.uint64), 0), len(actions))
    game.decide(ends, np.repeat(actions, ROUND))
    _finish_turn(game, ends, state["turn"][0], Planner(value))
    ends["rng"] = 0
    digest = np.broadcast_to(key, len(ends))
    for word in ends.view(np.uint64).reshape(len(ends), -1).T:
        digest = numbers(digest ^ word, 1)
    by_action = digest.reshape(len(actions), ROUND)
    streams = np.array([numbers(each + STEP * _occurrences(each), 0) for each in by_action])
    games, first, which = np.unique(streams, return_index=True, return_inverse=True)
    later = take(ends, first)
    later["rng"] = games
    return _sum_of_turns(game, later, seat, value)[which].reshape(len(actions), ROUND)


def _finish_turn(game: Game, state: States, turn: Any, planner: Planner) -> None:
    """Play games in place until turn number `turn` ends."""
    unused = np.random.default_rng(0)

    def unfinished(games: States) -> NDArray[np.int64]:
        return np.flatnonzero((games["turn"] == turn) & (games["phase"] != Phase.OVER))

    while (rows := unfinished(state)).size:
        rolled = take(state, rows)
        game.roll(rolled)
        asked = unfinished(rolled)
        decided = take(rolled, asked)
        game.decide(decided, planner.act(game, decided, unused))
        rolled.view(ROW)[asked] = decided.view(ROW)
        state.view(ROW)[rows] = rolled.view(ROW)


def _occurrences(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return for each value how many equal values precede it."""
    order = np.argsort(values, kind="stable")
    new = np.diff(values[order], prepend=~values[order[:1]]) != 0
    place = np.arange(len(values))
    before = np.empty(len(values), np.uint64)
    before[order] = place - np.maximum.accumulate(np.where(new, place, 0))
    return before


def _sum_of_turns(game: Game, state: States, seat: Any, value: LearnedValue) -> NDArray[np.float64]:
    """Play games to the end. Return for each game the sum over its turns of plan minus value for `seat`."""
    total = np.zeros(len(state))
    games = np.flatnonzero(state["phase"] != Phase.OVER)
    state = take(state, games)
    before = value(game, state)
    while len(state):
        turns = play_turns(game, state, value)
        total[games] += turns.before[:, seat] - before[:, seat]
        live = np.flatnonzero(state["phase"] != Phase.OVER)
        games, before, state = games[live], turns.after[live], take(state, live)
    return total


@kernel
def numbers(keys: Any, n: Any) -> Any:
    """Return the n-th number of each random stream; `keys`, uint64 (N,), identify the streams."""
    return mix(keys + STEP * np.uint64(n))
