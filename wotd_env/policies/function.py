"""A policy that calls a function of an observation and an action mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import check_choice
from wotd_env.core.game import Game
from wotd_env.core.observation import ENCODINGS
from wotd_env.core.state import States
from wotd_env.policy import seen_in


class FunctionPolicy:
    """A policy that plays the actions that a function returns.

    Args:
        choose: a function `choose(observation, mask)`. It takes the observation, int8 (D,), and the action mask, int8
            (A,), of one game and returns an action. If `batched` is true, the function takes the observations, int8
            (N, D), and the masks, int8 (N, A), of N games and returns integers (N,).
        batched: whether one call of the function takes all games.
        encoding: encoding of the observations that the function takes.
    """

    def __init__(
        self,
        choose: Callable[[NDArray[np.int8], NDArray[np.int8]], Any],
        batched: bool = False,
        encoding: str = "one_hot",
    ) -> None:
        self._choose, self._batched = choose, batched
        self._encoding: str = check_choice("encoding", encoding, ENCODINGS)

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,), see `Policy.act`."""
        if not len(state):
            return np.zeros(0, np.int64)
        observation, mask = seen_in(self._encoding, game).observe(state), game.legal_actions(state)
        if self._batched:
            answer = self._choose(observation, mask)
        else:
            answer = [self._choose(*seen) for seen in zip(observation, mask, strict=True)]
        actions: NDArray[np.int64] = np.asarray(answer)  # the caller of `act` checks the actions
        return actions.reshape(-1) if actions.size == len(state) else actions
