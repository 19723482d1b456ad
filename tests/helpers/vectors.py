"""Play and compare vector environments."""

import numpy as np
from gymnasium.utils.env_checker import data_equivalence


def random_actions(masks, rng, illegal=0.0):
    """Return random legal actions; with probability `illegal`, any action."""
    actions = (rng.random(masks.shape) * masks).argmax(1)
    wild = rng.random(len(masks)) < illegal
    return np.where(wild, rng.integers(0, masks.shape[1], len(masks)), actions)


def assert_same(one, other):
    """Assert that types, shapes, values and keys are equal, recursively."""
    assert data_equivalence(one, other, exact=True)


def play(env, seed, steps):
    """Return all results of a seeded run."""
    rng, results = np.random.default_rng(1), [env.reset(seed=seed)]
    for _ in range(steps):
        results.append(env.step(random_actions(env.action_masks(), rng)))
    return results
