"""`first`: a weak baseline that plays the legal action with the lowest number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.state import States


class First:
    """A policy that re-rolls all dice as long as possible, then moves on the first possible path."""

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,), see `Policy.act`."""
        actions: NDArray[np.int64] = game.legal_actions(state).argmax(1)
        return actions
