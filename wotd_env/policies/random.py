"""`random`: a uniformly random legal action."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.actions import Action, Bits
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.engine import dice_index, legal
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import Record, Records, States

_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
ONES = _BITS.sum(1, dtype=np.uint64)  # uint64 (256,): the number of set bits of each byte
# uint64 (256, 8): for each byte, the positions of its set bits, then of its zero bits, e.g. 5 -> 0, 2, 1, 3, 4, 5, 6, 7
PLACES = np.argsort(1 - _BITS, 1, kind="stable").astype(np.uint64)


class Random:
    """A policy that plays a uniformly random legal action."""

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,). Each game uses 64 bits of `rng`, whatever the batch size."""
        bits = rng.integers(0, 1 << 64, len(state), dtype=np.uint64)
        out = np.empty(len(state), np.int64)
        game.apply(choose_all, state, bits, out)
        return out


@kernel
def choose(s: Record, rules: Config, bits: Any) -> Any:
    """Return a random legal action, or 0 if no seat has a decision. `bits` is a random uint64."""
    if s.phase == Phase.OVER:
        return np.int64(0)
    actions, swaps = legal(s, rules, dice_index(s))
    first, second = count(actions), count(swaps)
    if first + second == 0:
        return np.int64(0)
    n = ((bits >> np.uint64(32)) * (first + second)) >> np.uint64(32)
    if n < first:
        return np.int64(place(actions, n))
    return np.int64(np.uint64(Action.FIRST_SWAP) + place(swaps, n - first))


@kernel
def count(bits: Bits) -> Any:
    """Return the number of set bits."""
    total = np.uint64(0)
    while bits:
        total += ONES[bits & np.uint64(255)]
        bits >>= np.uint64(8)
    return total


@kernel
def place(bits: Bits, n: Any) -> Any:
    """Return the position of the n-th lowest set bit, where n starts at 0, e.g. (0b10100, 1) -> 4."""
    at = np.uint64(0)
    while n >= ONES[bits & np.uint64(255)]:
        n -= ONES[bits & np.uint64(255)]
        bits >>= np.uint64(8)
        at += np.uint64(8)
    return at + PLACES[bits & np.uint64(255), n]


@kernel
def choose_all(states: Records, config: Configs, bits: Any, out: Any) -> None:
    """Write the action of every game to `out`, int64 (N,). `bits`, uint64 (N,), are the random bits of the games."""
    for i in range(states.shape[0]):
        out[i] = choose(states[i], config[0], bits[i])
