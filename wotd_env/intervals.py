"""95 % confidence intervals of means and proportions over independent games."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
Z = 1.959963984540054  # the quantile of the standard normal distribution at (1 + LEVEL) / 2


def margin_of_error(sample: NDArray[np.floating]) -> float:
    """Return half the width of the 95 % interval of the mean of `sample`, by the normal approximation.

    `sample` contains independent values, (N,). For fewer than two values the result is infinite.
    """
    if len(sample) < 2:
        return math.inf
    return Z * float(sample.std(ddof=1)) / math.sqrt(len(sample))


def margin_of_ratio(sums: NDArray[np.floating], counts: NDArray[np.number]) -> float:
    """Return half the width of the 95 % interval of the ratio `sums.sum() / counts.sum()`.

    The ratio is the mean of all values in N independent groups, for example the regrets of all decisions in N games.
    Values of the same group may be dependent. Group i has `counts[i]` values with the sum `sums[i]`; `sums` and
    `counts` have the shape (N,). There must be at least one value. For fewer than two groups the result is infinite.
    """
    total = counts.sum()
    return margin_of_error(sums - sums.sum() / total * counts) * len(sums) / float(total)


def proportion_confint(count: float, nobs: int) -> tuple[float, float]:
    """Return the bounds of the Wilson interval of the proportion of `count` successes in `nobs` trials.

    There must be at least one trial. `count` may be fractional, e.g. if a tie counts as half a success.
    """
    share, spread = count / nobs, Z * Z / nobs
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(share * (1 - share) / nobs + spread / (4 * nobs))
    return max(middle - half, 0.0), min(middle + half, 1.0)
