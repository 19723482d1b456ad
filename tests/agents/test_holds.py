"""The layer that plans holds: values, gradients, and the variant for ONNX."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th

from agents.holds import ENDS, IMPOSSIBLE, PATH_ENDS, POWER_ENDS, _by_tensors, planned_holds
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

ADVANCED, SWAPPED, PASSED = range(ENDS - 3, ENDS)
WOOD, JUMP = ENDS, ENDS + PATHS * DICE
WOOD_ADVANCED, EARTH_ADVANCED, FEARED = range(ENDS + POWER_ENDS - 3, ENDS + POWER_ENDS)
WITH_POWERS = pytest.mark.parametrize("powers", [False, True])


def some_ends(count: int, powers: bool, seed: int) -> th.Tensor:
    """Return random values of ends, (count, 1 or 2, ...). The share of impossible ones grows by row from 0 to 1."""
    generator = th.Generator().manual_seed(seed)
    shape = (count, 1 + powers, ENDS + powers * POWER_ENDS)
    ends = th.randn(shape, generator=generator)
    blocked = th.rand(shape, generator=generator) < th.linspace(0, 1, count)[:, None, None]
    blocked[..., [ADVANCED, PASSED]] = False
    return ends.masked_fill(blocked, IMPOSSIBLE)


def stop_value(ends: np.ndarray, roll: int) -> float:
    """Return the value of stopping with a roll.

    Swaps and powers are optional. A pass is possible only if no move is, and fear needs a move.
    """
    counts = COUNTS[roll].tolist()
    dragons, shown = counts[DRAGON], [path for path in range(PATHS) if counts[path]]
    moves = [ends[path * PATH_ENDS + counts[path] - 1] for path in shown]
    swaps, powers = [], []
    if roll == EQUILIBRIUM:
        moves = [ends[ADVANCED]]
    if dragons == DICE - 1:
        swaps = [ends[path * PATH_ENDS + DICE] for path in shown]
    elif dragons == DICE:
        swaps = [ends[SWAPPED]]
    possible = [move for move in moves if move != IMPOSSIBLE]
    if len(ends) > ENDS:
        powers += [ends[FEARED]] if possible else []
        if roll == EQUILIBRIUM:
            powers.append(ends[EARTH_ADVANCED])
        else:
            powers += [ends[JUMP + DICE * path + counts[path] - 1] for path in shown]
        for path in range(PATHS if dragons else 0):
            missing = dragons == 1 and len(shown) == PATHS - 1 and path not in shown
            wood = WOOD + DICE * path + counts[path] + dragons - 1
            powers.append(ends[WOOD_ADVANCED if missing else wood])
    return float(max((possible or [ends[PASSED]]) + swaps + powers))


def means(rolls: np.ndarray) -> np.ndarray:
    """Return the mean value of each keep, (462,), given the values of all rolls."""
    return np.array(
        [rolls[THROW_ROLL[THROW_START[k] : THROW_START[k] + THROW_SIZE[k]]].mean() for k in range(NUM_KEEPS)]
    )


@pytest.mark.parametrize(("powers", "rerolls"), [(False, 1), (False, 2), (True, 1), (True, 2), (True, 3)])
def test_hold_values_match_a_direct_computation(powers: bool, rerolls: int):
    for ends in some_ends(8, powers, seed=0).numpy():
        check_holds(ends, rerolls)


def check_holds(ends: np.ndarray, rerolls: int) -> None:
    """Compare the values of holds with a slow computation from their definition."""
    stop = np.array([stop_value(ends[0], roll) for roll in range(NUM_ROLLS)])
    worth = means(np.array([stop_value(ends[-1], roll) for roll in range(NUM_ROLLS)]))
    legal = (LEGAL_HOLDS[:, None] >> np.arange(NUM_HOLDS, dtype=np.uint64) & np.uint64(1)).astype(bool)
    for _ in range(rerolls - 1):
        holds = np.where(legal, worth[HOLD_KEEP], -np.inf)
        holds[:, -1] = stop
        worth = means(holds.max(1))
    expected = worth[HOLD_KEEP]
    expected[:, -1] = stop
    rolls = th.arange(NUM_ROLLS)
    found = planned_holds(th.tensor(ends).expand(NUM_ROLLS, -1, -1), rolls, th.full((NUM_ROLLS,), rerolls))
    assert np.allclose(found.numpy(), expected, atol=1e-5)


@WITH_POWERS
def test_hold_values_and_gradients_are_zero_without_rerolls(powers: bool):
    ends = some_ends(5, powers, seed=0).requires_grad_()
    found = planned_holds(ends, th.arange(5), th.zeros(5, dtype=th.int64))
    found.sum().backward()
    assert not found.any()
    assert ends.grad is not None
    assert not ends.grad.any()


@pytest.mark.parametrize(("powers", "rerolls"), [(False, 1), (False, 2), (True, 1), (True, 2), (True, 3)])
def test_the_gradient_of_a_hold_is_its_distribution_over_ends(powers: bool, rerolls: int):
    generator = th.Generator().manual_seed(1)
    ends = some_ends(40, powers, seed=1).requires_grad_()
    rolls = th.randint(NUM_ROLLS, (40,), generator=generator)
    found = planned_holds(ends, rolls, th.full((40,), rerolls))
    for hold in range(NUM_HOLDS):
        (gradient,) = th.autograd.grad(found[:, hold].sum(), ends, retain_graph=True)
        assert (gradient >= 0).all()
        assert th.allclose(gradient.sum((1, 2)), th.ones(40), atol=1e-5)
        assert th.allclose((gradient * ends).sum((1, 2)), found[:, hold], atol=1e-5)


@WITH_POWERS
def test_the_onnx_variant_computes_the_same_hold_values(powers: bool):
    generator = th.Generator().manual_seed(2)
    ends = some_ends(300, powers, seed=2)
    rolls, rerolls = (th.randint(bound, (300,), generator=generator) for bound in (NUM_ROLLS, 3 + powers))
    assert th.allclose(_by_tensors(ends, rolls, rerolls), planned_holds(ends, rolls, rerolls), atol=1e-5)
