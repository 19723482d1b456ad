"""The intervals of what is measured hold the true value as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from wotd_env.intervals import LEVEL, Z, margin_of_error, proportion_confint


def test_the_quantile_belongs_to_the_level():
    assert pytest.approx(stats.norm.ppf((1 + LEVEL) / 2), abs=1e-15) == Z


def test_the_interval_of_a_mean_is_that_of_scipy():
    sample = np.random.default_rng(0).normal(3, 2, 400)
    low, high = stats.norm.interval(LEVEL, loc=sample.mean(), scale=stats.sem(sample))
    assert margin_of_error(sample) == pytest.approx((high - low) / 2)


@pytest.mark.parametrize("sample", [[], [1.0]])
def test_of_fewer_than_two_values_nothing_is_known(sample):
    assert margin_of_error(np.array(sample)) == math.inf


@pytest.mark.parametrize(("count", "nobs"), [(0, 20), (13, 20), (20, 20), (5_000, 10_000)])
def test_the_interval_of_a_proportion_is_wilsons(count: int, nobs: int):
    found = stats.binomtest(count, nobs).proportion_ci(LEVEL, method="wilson")
    assert proportion_confint(count, nobs) == pytest.approx((found.low, found.high), abs=1e-12)
