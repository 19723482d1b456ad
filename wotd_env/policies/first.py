"""`first`: the legal action with the lowest number, a weak baseline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.state import States


class First:
    """Plays the legal action with the lowest number: it re-rolls all dice, then moves on the first path it can."""

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`."""
        actions: NDArray[np.int64] = game.legal_actions(state).argmax(1)
        return actions
