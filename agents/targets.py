"""Self-play by whole turns, and what it teaches: the targets of TD(lambda) in `agents.td`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray

from wotd_env import Game, Phase
from wotd_env.core.state import States
from wotd_env.planning.learned import LearnedValue
from wotd_env.planning.playing import Turns, play_turns


class Samples(NamedTuple):
    """What a round of self-play teaches: M positions before a turn; n players, K features."""

    active: th.Tensor
    """int32 (M, K): their features"""
    chances: th.Tensor
    """float32 (M, n): the chances to win that the network should give, for the seat to act, the next, ..."""


Play = Callable[[Game, States, LearnedValue, NDArray[np.bool_]], Turns]
"""What plays one turn in every game, in place, as `play_turns` does."""


def self_play(
    game: Game,
    state: States,
    value: LearnedValue,
    at_random: NDArray[np.bool_],
    td_lambda: float,
    play: Play = play_turns,
) -> Samples:
    """Play turns in all games, in place, and say what they teach.

    Args:
        game: the rules.
        state: STATE (N,), games before the first roll of a turn; where one ends, the next begins.
        value: what plays, and makes the targets.
        at_random: bool (T, N), which of the T turns of each game end with a move at random.
        td_lambda: lambda.
        play: plays a turn in every game; may clear `at_random` where it does not end so.
    """
    n, turns = game.rules.players, len(at_random)
    active = np.empty((turns, len(state), value.features.active), np.int32)
    player = np.empty((turns, len(state)), np.int64)
    goes_on = np.empty((turns, len(state), 1), np.float32)
    after, target = np.empty((2, turns, len(state), n), np.float32)
    for t in range(turns):
        active[t] = value.features.write(game, state)
        player[t] = state["player"]
        played = play(game, state, value, at_random[t])
        over = state["phase"] == Phase.OVER
        game.reset(state, where=over, roll=False)
        goes_on[t, :, 0] = ~(over | at_random[t])
        target[t], after[t] = played
    for t in range(turns - 2, -1, -1):
        target[t] += td_lambda * goes_on[t] * (target[t + 1] - after[t])
    from_player = (player[:, :, None] + np.arange(n)) % n
    chances = (np.take_along_axis(target, from_player, 2) * (n - 1) + 1) / n
    return Samples(th.from_numpy(active).flatten(0, 1), th.from_numpy(chances).flatten(0, 1))
