"""The layer that plans holds does what the definition of a turn says, and so does its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th

from agents.holds import ENDS, OFFERS, _by_tensors, planned_holds
from wotd_env.core.dice import (
    HOLD_KEEP,
    LEGAL_HOLDS,
    NUM_HOLDS,
    NUM_KEEPS,
    NUM_ROLLS,
    THROW_ROLL,
    THROW_SIZE,
    THROW_START,
)


def means(rolls: np.ndarray) -> np.ndarray:
    """Return what every keep is worth, (462,), if rolls are worth that."""
    return np.array(
        [rolls[THROW_ROLL[THROW_START[k] : THROW_START[k] + THROW_SIZE[k]]].mean() for k in range(NUM_KEEPS)]
    )


@pytest.mark.parametrize("rerolls", [1, 2])
def test_holds_are_worth_the_mean_of_what_follows(rerolls):
    rng = np.random.default_rng(0)
    ends = rng.normal(size=ENDS).astype(np.float32)
    stop = ends[OFFERS].max(1)
    worth = means(stop)
    if rerolls == 2:
        legal = (LEGAL_HOLDS[:, None] >> np.arange(NUM_HOLDS, dtype=np.uint64) & np.uint64(1)).astype(bool)
        holds = np.where(legal, worth[HOLD_KEEP], -np.inf)
        holds[:, -1] = stop
        worth = means(holds.max(1))
    expected = worth[HOLD_KEEP]
    expected[:, -1] = stop
    rolls = th.arange(NUM_ROLLS)
    found = planned_holds(th.tensor(ends).expand(NUM_ROLLS, -1), rolls, th.full((NUM_ROLLS,), rerolls))
    assert np.allclose(found.numpy(), expected, atol=1e-5)


def test_without_rerolls_there_is_nothing_to_hold():
    ends = th.randn(5, ENDS, requires_grad=True)
    found = planned_holds(ends, th.arange(5), th.zeros(5, dtype=th.int64))
    found.sum().backward()
    assert not found.any()
    assert ends.grad is not None
    assert not ends.grad.any()


@pytest.mark.parametrize("rerolls", [1, 2])
def test_the_gradient_of_a_hold_is_the_distribution_of_the_ends_it_leads_to(rerolls):
    generator = th.Generator().manual_seed(1)
    ends = th.randn(40, ENDS, generator=generator).requires_grad_()
    rolls = th.randint(NUM_ROLLS, (40,), generator=generator)
    found = planned_holds(ends, rolls, th.full((40,), rerolls))
    for hold in range(NUM_HOLDS):
        (gradient,) = th.autograd.grad(found[:, hold].sum(), ends, retain_graph=True)
        assert (gradient >= 0).all()
        assert th.allclose(gradient.sum(1), th.ones(40), atol=1e-5)
        assert th.allclose((gradient * ends).sum(1), found[:, hold], atol=1e-5)


def test_what_onnx_is_given_is_the_same():
    generator = th.Generator().manual_seed(2)
    ends = th.randn(300, ENDS, generator=generator)
    rolls, rerolls = (
        th.randint(NUM_ROLLS, (300,), generator=generator),
        th.randint(3, (300,), generator=generator),
    )
    assert th.allclose(_by_tensors(ends, rolls, rerolls), planned_holds(ends, rolls, rerolls), atol=1e-5)
