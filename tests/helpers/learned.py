"""Untrained value networks for the tests."""

import numpy as np

from wotd_env import Rules
from wotd_env.planning.learned import LearnedValue, Weights, shapes


def some_value(rules: Rules, width: int = 32, seed: int = 0) -> LearnedValue:
    """Return a value with random weights."""
    rng = np.random.default_rng(seed)
    weights = (rng.normal(scale=0.3, size=shape) for shape in shapes(rules, width).values())
    return LearnedValue(rules, Weights(*(weight.astype(np.float32) for weight in weights)))
