"""Estimates with 95 % intervals: means of independent observations, and ratings from paired comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.extras import needed_for
from wotd_env.intervals import LEVEL, Z

# These packages are imported early, so that a missing one is reported before hours of games are played.
with needed_for("a tournament", "arena"):
    from scipy.special import expit, stdtrit

    if find_spec("choix") is None:
        raise ModuleNotFoundError("No module named 'choix'", name="choix")

ELO = 400 / math.log(10)  # rating points per unit of the log odds of finishing ahead

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def percent(share: Estimate | None, digits: int = 1) -> str:
    """Return a text with a share and its error in percent, or an empty text for None."""
    return "" if share is None else f"{share.value:.{digits}%} ±{100 * share.error:.{digits}f}"


class Mean(NamedTuple):
    """A mean of independent observations that lie between two bounds."""

    value: float
    variance: float  # squared standard error of the mean
    df: float  # degrees of freedom
    low: float  # least possible value
    high: float  # greatest possible value

    def estimate(self) -> Estimate:
        """Return the mean with its 95 % interval from Student's t distribution."""
        error = float(stdtrit(self.df, (1 + LEVEL) / 2)) * math.sqrt(self.variance)
        return Estimate(self.value, max(self.low, self.value - error), min(self.high, self.value + error))


def mean_of(x: Floats, low: float = 0.0, high: float = 1.0) -> Mean:
    """Return the mean of independent observations between two bounds.

    The variance is computed with one added observation at each bound, as in the Agresti-Coull interval. So the interval
    has a positive width even if all observations are equal.
    """
    padded = np.append(x, (low, high)) if math.isfinite(low) else x
    return Mean(float(x.mean()), float(padded.var(ddof=1)) / len(padded), len(padded) - 1, low, high)


def adjusted_mean(x: Floats, luck: Floats) -> Mean:
    """Return the mean of the shares `x` with luck as a control variate; luck has the expected value 0."""
    spread = float(luck.var())
    slope = float(np.mean((x - x.mean()) * (luck - luck.mean()))) / spread if spread else 0.0
    return mean_of(x - slope * luck)


def pool(means: Sequence[Mean]) -> Mean:
    """Return the mean of independent means, with Welch's degrees of freedom."""
    variances = [mean.variance for mean in means]
    spread = sum(v * v / mean.df for v, mean in zip(variances, means, strict=True))
    return means[0]._replace(
        value=sum(mean.value for mean in means) / len(means),
        variance=sum(variances) / len(means) ** 2,
        df=sum(variances) ** 2 / spread if spread else means[0].df,
    )


def fit_ratings(
    policies: Sequence[str], counts: Iterable[Mapping[tuple[str, str], Floats]]
) -> dict[str, Estimate]:
    """Fit Bradley-Terry strengths to paired comparisons, in Elo points with mean 0.

    With more than two players, each finishing order is split into pairs, and the fit estimates Plackett-Luce strengths.
    One drawn game is added for each pair of policies, so that the strength of an unbeaten policy is finite. The
    intervals use the sandwich estimator; each duplicate is a cluster.

    Args:
        policies: the policies to rate.
        counts: for each matchup of D duplicates, a mapping (policy, other policy) -> counts (D, 2). The two columns
            count how often the first policy finished ahead of the other policy, and how often behind it.

    Returns:
        policy -> rating, best first.
    """
    k = len(policies)
    if k == 1:
        return {policies[0]: Estimate(0.0, 0.0, 0.0)}
    import choix  # takes a second to import, and workers do not need it

    index = {policy: i for i, policy in enumerate(policies)}
    matchups = [[(index[one], index[other], n) for (one, other), n in pairs.items()] for pairs in counts]
    wins = np.full((k, k), 0.5) - np.eye(k) / 2
    for pairs in matchups:
        for i, j, n in pairs:
            wins[[i, j], [j, i]] += n.sum(0)
    strength = choix.ilsr_pairwise_dense(wins, max_iter=10_000)
    strength = strength - strength.mean()
    expected = expit(strength[:, None] - strength)
    weight = (wins + wins.T) * expected * (1 - expected)
    information = np.diag(weight.sum(1)) - weight
    drawn = (0.5 - expected) ** 2
    spread = np.diag(drawn.sum(1)) - drawn  # covariance of the score, so far of the drawn games only
    for pairs in matchups:
        score = np.zeros((len(pairs[0][2]), k))
        for i, j, n in pairs:
            surprise = n[:, 0] - n.sum(1) * expected[i, j]
            score[:, i] += surprise
            score[:, j] -= surprise
        spread += score.T @ score
    inverse = np.linalg.pinv(information)
    error = Z * np.sqrt(np.diag(inverse @ spread @ inverse))
    bounds = ELO * np.stack([strength, strength - error, strength + error], 1)
    return {policies[i]: Estimate(*bounds[i].tolist()) for i in np.argsort(-strength, kind="stable")}
