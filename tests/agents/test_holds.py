"""The layer that plans holds: values, gradients, and the variant for ONNX."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th

from agents.holds import ENDS, IMPOSSIBLE, OTHER_ENDS, PATH_ENDS, _by_tensors, planned_holds
from wotd_env.core.dice import (
    COUNTS,
    EQUILIBRIUM,
    HOLD_KEEP,
    LEGAL_HOLDS,
    NUM_HOLDS,
    NUM_KEEPS,
    NUM_ROLLS,
    THROW_ROLL,
    THROW_SIZE,
    THROW_START,
)
from wotd_env.core.rules import DICE, DRAGON, PATHS

ADVANCED, SWAPPED, PASSED = range(ENDS - OTHER_ENDS, ENDS)


def some_ends(count: int, seed: int) -> th.Tensor:
    """Return random values of ends, (count, ENDS). The share of impossible moves and swaps grows by row from 0 to 1."""
    generator = th.Generator().manual_seed(seed)
    ends = th.randn(count, ENDS, generator=generator)
    blocked = th.rand(count, ENDS, generator=generator) < th.linspace(0, 1, count)[:, None]
    blocked[:, [ADVANCED, PASSED]] = False
    return ends.masked_fill(blocked, IMPOSSIBLE)


def stop_value(ends: np.ndarray, roll: int) -> float:
    """Return the value of stopping with a roll. Swaps are optional; a pass is possible only if no move is."""
    counts = COUNTS[roll].tolist()
    moves = [ends[path * PATH_ENDS + counts[path] - 1] for path in range(PATHS) if counts[path]]
    if roll == EQUILIBRIUM:
        moves = [ends[ADVANCED]]
    swaps = []
    if counts[DRAGON] == DICE - 1:
        swaps = [ends[path * PATH_ENDS + DICE] for path in range(PATHS) if counts[path]]
    elif counts[DRAGON] == DICE:
        swaps = [ends[SWAPPED]]
    possible = [move for move in moves if move != IMPOSSIBLE] or [ends[PASSED]]
    return float(max(possible + swaps))


def means(rolls: np.ndarray) -> np.ndarray:
    """Return the mean value of each keep, (462,), given the values of all rolls."""
    return np.array(
        [rolls[THROW_ROLL[THROW_START[k] : THROW_START[k] + THROW_SIZE[k]]].mean() for k in range(NUM_KEEPS)]
    )


@pytest.mark.parametrize("rerolls", [1, 2])
def test_hold_values_match_a_direct_computation(rerolls):
    for ends in some_ends(8, seed=0).numpy():
        check_holds(ends, rerolls)


def check_holds(ends: np.ndarray, rerolls: int) -> None:
    """Compare the values of holds with a slow computation from their definition."""
    stop = np.array([stop_value(ends, roll) for roll in range(NUM_ROLLS)])
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


def test_hold_values_and_gradients_are_zero_without_rerolls():
    ends = th.randn(5, ENDS, requires_grad=True)
    found = planned_holds(ends, th.arange(5), th.zeros(5, dtype=th.int64))
    found.sum().backward()
    assert not found.any()
    assert ends.grad is not None
    assert not ends.grad.any()


@pytest.mark.parametrize("rerolls", [1, 2])
def test_the_gradient_of_a_hold_is_its_distribution_over_ends(rerolls):
    generator = th.Generator().manual_seed(1)
    ends = some_ends(40, seed=1).requires_grad_()
    rolls = th.randint(NUM_ROLLS, (40,), generator=generator)
    found = planned_holds(ends, rolls, th.full((40,), rerolls))
    for hold in range(NUM_HOLDS):
        (gradient,) = th.autograd.grad(found[:, hold].sum(), ends, retain_graph=True)
        assert (gradient >= 0).all()
        assert th.allclose(gradient.sum(1), th.ones(40), atol=1e-5)
        assert th.allclose((gradient * ends).sum(1), found[:, hold], atol=1e-5)


def test_the_onnx_variant_computes_the_same_hold_values():
    generator = th.Generator().manual_seed(2)
    ends = some_ends(300, seed=2)
    rolls, rerolls = (
        th.randint(NUM_ROLLS, (300,), generator=generator),
        th.randint(3, (300,), generator=generator),
    )
    assert th.allclose(_by_tensors(ends, rolls, rerolls), planned_holds(ends, rolls, rerolls), atol=1e-5)
