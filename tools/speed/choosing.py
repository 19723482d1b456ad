"""Random legal actions for the games of a `CudaGame`, chosen on the GPU."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from wotd_env.core.stream import mix
from wotd_env.cuda import SIMULATED, CudaGame, DeviceArray, cuda


@cuda.jit  # type: ignore[untyped-decorator]
def choose(masks: Any, actions: Any, step: int) -> None:
    """Write a random legal action of each game, int64 (N,)."""
    i = cuda.grid(1)
    if i < actions.shape[0]:
        legal = 0
        for action in range(masks.shape[1]):
            legal += masks[i, action]
        left = np.int64(mix(np.uint64(step * actions.shape[0] + i)) % np.uint64(legal))
        for action in range(masks.shape[1]):
            if masks[i, action]:
                if left == 0:
                    actions[i] = action
                left -= 1


def chooser(game: CudaGame) -> Callable[[], DeviceArray]:
    """Return a function that chooses new actions, int64 (N,). Each call overwrites the last actions."""
    zeros, steps = np.zeros(game.num_games, np.int64), itertools.count()
    actions = zeros if SIMULATED else cuda.to_device(zeros)
    threads = min(game.num_games, 128)

    def chosen() -> DeviceArray:
        choose[-(-game.num_games // threads), threads](game.mask, actions, next(steps))
        return actions

    return chosen
