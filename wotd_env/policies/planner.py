"""`planner`: plans every turn exactly, by the value of the positions that it may end in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.state import States
from wotd_env.planning.planner import Value, plan
from wotd_env.planning.values import hand_made

__all__ = ["Planner"]


class Planner:
    """Plays the best action of the exact plan of its turn.

    Args:
        value: the value of the afterstates, by default one made by hand.
    """

    def __init__(self, value: Value = hand_made) -> None:
        self.value = value

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`; of equally good ones the lowest."""
        actions: NDArray[np.int64] = plan(game, state, self.value)[0].argmax(1)
        return actions

    def equity(self, game: Game, state: States) -> NDArray[np.float32]:
        """Return what states are worth to the seats to act, float32 (N,); the arena measures luck by it."""
        return plan(game, state, self.value)[1]
