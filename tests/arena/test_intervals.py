"""Confidence intervals, compared with SciPy."""

import math

import numpy as np
import pytest
from scipy import stats

from wotd_env.intervals import LEVEL, Z, margin_of_error, proportion_confint


def test_quantile_matches_the_level():
    assert pytest.approx(stats.norm.ppf((1 + LEVEL) / 2), abs=1e-15) == Z


def test_interval_of_a_mean_equals_scipy():
    sample = np.random.default_rng(0).normal(3, 2, 400)
    low, high = stats.norm.interval(LEVEL, loc=sample.mean(), scale=stats.sem(sample))
    assert margin_of_error(sample) == pytest.approx((high - low) / 2)


@pytest.mark.parametrize("sample", [[], [1.0]])
def test_margin_of_error_is_infinite_for_fewer_than_two_values(sample):
    assert margin_of_error(np.array(sample)) == math.inf


@pytest.mark.parametrize(("count", "nobs"), [(0, 20), (13, 20), (20, 20), (5_000, 10_000)])
def test_interval_of_a_proportion_is_the_wilson_interval(count: int, nobs: int):
    found = stats.binomtest(count, nobs).proportion_ci(LEVEL, method="wilson")
    assert proportion_confint(count, nobs) == pytest.approx((found.low, found.high), abs=1e-12)
