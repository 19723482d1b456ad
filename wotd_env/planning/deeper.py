"""A value that looks one turn further: what the next turn is worth, planned exactly by another value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.checks import plain
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import States
from wotd_env.planning.planner import Value
from wotd_env.planning.playing import play_turns

__all__ = ["Deeper"]


class Deeper:
    """A value for `plan` and `Planner`, which then plan two turns.

    The player whose turn comes next maximises its own value, as all do in a plan. One afterstate costs a plan.

    Args:
        value: the value of the positions after the next turn, zero-sum.
    """

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Return the value of every state for each seat, float32 (M, n), 0 for ended games.

        Raises:
            ValueError: if they are no batch, a game is neither ended nor before the first roll of a turn, or by the
                value.
        """
        given = plain(afterstates)
        values = np.zeros((len(given), game.rules.players), np.float32)
        goes_on = given["phase"] != Phase.OVER
        values[goes_on] = play_turns(game, given[goes_on], self.value).before
        return values
