"""A value function that plans one turn, and values the ends of this turn with another value function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.checks import contiguous
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import States
from wotd_env.planning.planner import Value
from wotd_env.planning.playing import play_turns


class Deeper:
    """A value function that plans the next turn for every afterstate, so `plan` and `Planner` look two turns ahead.

    Args:
        value: the zero-sum value function for the positions after the next turn.
    """

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Return the value of every state for each seat, float32 (M, n). Values of ended games are 0.

        Raises:
            ValueError: if a running game is not before the first roll of a turn, or if `value` returns an invalid
                array.
        """
        given = contiguous(afterstates)
        values = np.zeros((len(given), game.rules.players), np.float32)
        running = given["phase"] != Phase.OVER
        values[running] = play_turns(game, given[running], self.value).before
        return values
