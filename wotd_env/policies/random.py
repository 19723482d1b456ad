"""`random`: any legal action, all equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env._compile import kernel
from wotd_env.actions import SWAP
from wotd_env.engine import BIT, OVER, legal, shown
from wotd_env.game import Game


class Random:
    """Plays any legal action, all equally likely."""

    def act(self, game: Game, state: NDArray[np.void], rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`; every game uses 64 bits of `rng`, however the games are batched."""
        bits = rng.integers(0, 1 << 64, len(state), dtype=np.uint64)
        out = np.empty(len(state), np.int64)
        game._spread(choose_all, game._readable(state), bits, out)
        return out


@kernel
def choose(s: Any, rules: Any, stream: Any) -> Any:
    """Return a legal action that `stream`, 64 random bits (uint64), selects."""
    if s.phase == OVER:
        return np.int64(0)
    actions, swaps = legal(s, rules, shown(s))
    left = count(actions) + count(swaps)
    left = np.int64(((stream >> np.uint64(32)) * np.uint64(left)) >> np.uint64(32))
    for a in range(SWAP):
        if actions >> np.uint64(a) & BIT:
            if left == 0:
                return np.int64(a)
            left -= 1
    k = 0
    while True:
        if swaps >> np.uint64(k) & BIT:
            if left == 0:
                return np.int64(SWAP + k)
            left -= 1
        k += 1


@kernel
def count(bits: Any) -> Any:
    """Return how many bits are set."""
    number = 0
    while bits:
        bits &= bits - BIT
        number += 1
    return number


@kernel
def choose_all(states: Any, rules: Any, bits: Any, out: Any) -> None:
    """Choose for every game."""
    for i in range(states.shape[0]):
        out[i] = choose(states[i], rules[0], bits[i])
