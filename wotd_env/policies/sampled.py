"""`sampled:TEMPERATURE`: samples actions by their equities, as an opponent of graded strength."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.state import States
from wotd_env.planning.planner import plan
from wotd_env.planning.values import hand_made


class Sampled:
    """Samples actions with probabilities proportional to exp(equity / temperature), using the equities of `planner`.

    Args:
        temperature: a positive number in units of equity, also as text. Low temperatures are close to `planner`, high
            ones to `random`.
    """

    def __init__(self, temperature: float | str) -> None:
        try:
            self.temperature = float(temperature)
        except ValueError:
            self.temperature = math.nan
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"the temperature of 'sampled' must be a positive number, got {temperature!r}")

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return a sampled action for each game, int64 (N,)."""
        equity = plan(game, state, hand_made)[0]
        noise = rng.gumbel(size=equity.shape)  # Gumbel-max trick: the argmax is a sample of the softmax
        actions: NDArray[np.int64] = (equity / self.temperature + noise).argmax(1)
        return actions
