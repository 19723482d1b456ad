"""The random stream of each game: SplitMix64, whose state is the field `rng` of the record."""

from __future__ import annotations

import numpy as np

from wotd_env.core.compilation import inlined
from wotd_env.core.state import Int, Record

STEP = np.uint64(0x9E3779B97F4A7C15)  # the increment of SplitMix64


@inlined
def mix(x: np.uint64) -> np.uint64:
    """Return a 64-bit hash of a 64-bit number (the finalizer of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def below(s: Record, bound: Int) -> Int:
    """Draw an integer from 0 to `bound` - 1 from the game's stream. For bounds up to 6^5 the bias is under 2^-38."""
    s.rng += STEP
    return ((mix(s.rng) >> np.uint64(13)) * np.uint64(bound)) >> np.uint64(51)
