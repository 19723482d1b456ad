"""The computation of turn values against plain expectimax over dice tuples."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from wotd_env.core import dice
from wotd_env.planning import turn


def brute_force(value_of_roll, kept: tuple[int, ...], rerolls: int):
    """Return the value of rolling all dice but `kept`, then re-rolling optimally."""

    @cache
    def roll(kept, rerolls):
        outcomes = [
            hold(tuple(sorted(kept + throw)), rerolls) for throw in product(range(6), repeat=5 - len(kept))
        ]
        return sum(outcomes) / len(outcomes)

    @cache
    def hold(faces, rerolls):
        if rerolls == 0:
            return value_of_roll(faces)
        subsets = {tuple(f for i, f in enumerate(faces) if kept >> i & 1) for kept in range(31)}
        return max(hold(faces, 0), *(roll(subset, rerolls - 1) for subset in subsets))

    return roll(kept, rerolls)


@pytest.fixture(scope="module")
def rolls():
    return np.random.default_rng(1).normal(size=(dice.NUM_ROLLS, turn.LANES))


def filled(rolls, dtype=np.float64):
    values = turn.new_rows(dtype=dtype)
    values[:] = np.nan
    values[: dice.NUM_ROLLS] = rolls
    return values


@pytest.mark.parametrize("rerolls", [0, 1, 2, 3])
def test_turn_values_equal_expectimax(rolls, rerolls):
    values = filled(rolls)
    for _ in range(rerolls):
        turn.reroll(values)
    turn.expect(values)
    for lane in (0, turn.LANES - 1):
        expected = brute_force(lambda faces, lane=lane: rolls[dice.keep_index(faces), lane], (), rerolls)
        assert values[turn.NOTHING, lane] == pytest.approx(expected, abs=1e-12)


def test_hold_values_equal_expectimax(rolls):
    values = filled(rolls)
    turn.reroll(values)
    turn.expect(values)
    for roll in (0, 17, dice.EQUILIBRIUM, 251):
        for hold in range(31):
            kept = tuple(int(f) for i, f in enumerate(dice.KEEPS[roll]) if hold >> i & 1)
            expected = brute_force(lambda faces: rolls[dice.keep_index(faces), 3], kept, 1)
            assert values[dice.HOLD_KEEP[roll, hold], 3] == pytest.approx(expected, abs=1e-12)


def test_lanes_are_independent(rolls):
    values, changed = filled(rolls), filled(rolls)
    changed[:, 5] += 1
    for array in (values, changed):
        turn.reroll(array)
        turn.expect(array)
    assert np.array_equal(np.delete(values, 5, 1), np.delete(changed, 5, 1))
    assert changed[:, 5] == pytest.approx(values[:, 5] + 1)


def test_float32_agrees_with_float64(rolls):
    exact, rough = filled(rolls), filled(rolls, np.float32)
    for array in (exact, rough):
        turn.reroll(array)
        turn.reroll(array)
        turn.expect(array)
    assert rough == pytest.approx(exact, abs=1e-6)
