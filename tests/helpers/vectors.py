"""Play and compare vector environments."""

import numpy as np


def random_actions(masks, rng, illegal=0.0):
    """Return random legal actions; with probability `illegal`, any action."""
    actions = (rng.random(masks.shape) * masks).argmax(1)
    wild = rng.random(len(masks)) < illegal
    return np.where(wild, rng.integers(0, masks.shape[1], len(masks)), actions)


def assert_same(one, other):
    """Assert that types, shapes, values and keys are equal, recursively."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert sorted(one) == sorted(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, np.ndarray) and one.dtype == object:
        assert one.shape == other.shape
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


def play(env, seed, steps):
    """Return all results of a seeded run."""
    rng, results = np.random.default_rng(1), [env.reset(seed=seed)]
    for _ in range(steps):
        results.append(env.step(random_actions(env.action_masks(), rng)))
    return results
