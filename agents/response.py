"""Best responses: `python train.py td --against POLICY` learns to beat a fixed policy.

The learner plays one seat of every game, and the policy plays all other seats. The learner's turns are planned as in
self-play (`agents.td`). The policy's turns are sampled, and the luck of their rolls is removed (`sample_turns`).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wotd_env import Game
from wotd_env.core.state import States
from wotd_env.planning.planner import Value
from wotd_env.planning.playing import Turns, play_turns, sample_turns
from wotd_env.policy import Policy


def against(
    policy: Policy, seat: NDArray[np.int64], rng: np.random.Generator
) -> Callable[[Game, States, Value, NDArray[np.bool_]], Turns]:
    """Return a function with the interface of `play_turns`.

    The function plans the learner's turns and samples the policy's turns. `seat`, (N,), contains the learner's seat in
    each game.
    """

    def play(game: Game, state: States, value: Value, at_random: NDArray[np.bool_]) -> Turns:
        own = state["player"] == seat
        at_random &= own
        shape = len(state), game.rules.players
        turns = Turns(np.empty(shape, np.float32), np.empty(shape, np.float32))
        for games in (np.flatnonzero(own), np.flatnonzero(~own)):
            part = state[games]
            if own[games].all():
                played = play_turns(game, part, value, at_random[games])
            else:
                played = sample_turns(game, part, value, policy, rng)
            state[games], turns.before[games], turns.after[games] = part, played.before, played.after
        return turns

    return play
