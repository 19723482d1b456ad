"""Results of a tournament: ratings, and estimates with 95 % intervals for each policy, matchup and seat.

The games of a duplicate (see `wotd_env.arena.tournament`) have the same dice, so the statistics treat a duplicate as
one data point. Different matchups have different dice, so their results are independent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.arena.tournament import Forfeit, GameResults, Matchup, Tournament
from wotd_env.extras import needed_for
from wotd_env.intervals import LEVEL, Z
from wotd_env.reporting import Estimate

with needed_for("a tournament", "arena"):
    from scipy.special import expit, stdtrit

    if find_spec("choix") is None:
        raise ModuleNotFoundError("No module named 'choix'", name="choix")

Floats = NDArray[np.float64]


class Mean(NamedTuple):
    """A mean of independent observations that lie between two bounds."""

    value: float
    variance: float  # squared standard error of the mean
    df: float  # degrees of freedom
    low: float
    high: float

    def estimate(self) -> Estimate:
        """Return the mean with its 95 % interval from Student's t distribution."""
        error = float(stdtrit(self.df, (1 + LEVEL) / 2)) * math.sqrt(self.variance)
        return Estimate(self.value, max(self.low, self.value - error), min(self.high, self.value + error))


def mean_of(x: Floats, low: float = 0.0, high: float = 1.0) -> Mean:
    """Return the mean of independent observations between the bounds `low` and `high`.

    The variance includes one extra observation at each finite bound, as in the Agresti-Coull interval. So the interval
    has a positive width even if all observations are equal.
    """
    padded = np.append(x, (low, high)) if math.isfinite(low) else x
    return Mean(float(x.mean()), float(padded.var(ddof=1)) / len(padded), len(padded) - 1, low, high)


def adjusted_mean(x: Floats, luck: Floats) -> Mean:
    """Return the luck-adjusted mean of the win shares `x`. `luck` is a control variate with expected value 0."""
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
    """Fit Bradley-Terry strengths to paired comparisons. Strengths are in Elo points, with mean 0.

    With more than two players, each finishing order is split into pairs, and the fit estimates Plackett-Luce strengths.
    One drawn game is added for each pair of policies, so that the strength of an unbeaten policy is finite. The
    intervals come from the sandwich estimator, with duplicates as clusters.

    `counts` contains one dict for each matchup: (policy A, policy B) -> float64 (D, 2), for D duplicates. Row d
    contains two counts for duplicate d: how often A finished ahead of B, and how often behind.

    Return a dict: policy -> rating, best policy first.
    """
    k = len(policies)
    if k == 1:
        return {policies[0]: Estimate(0.0, 0.0, 0.0)}
    import choix  # slow to import, and workers do not need it

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
    # covariance of the score function
    spread = np.diag(drawn.sum(1)) - drawn
    for pairs in matchups:
        score = np.zeros((len(pairs[0][2]), k))
        for i, j, n in pairs:
            surprise = n[:, 0] - n.sum(1) * expected[i, j]
            score[:, i] += surprise
            score[:, j] -= surprise
        spread += score.T @ score
    inverse = np.linalg.pinv(information)
    error = Z * np.sqrt(np.diag(inverse @ spread @ inverse))
    elo = 400 / math.log(10)  # Elo points per unit of log odds
    bounds = elo * np.stack([strength, strength - error, strength + error], 1)
    return {policies[i]: Estimate(*bounds[i].tolist()) for i in np.argsort(-strength, kind="stable")}


@dataclass(frozen=True)
class Row:
    """The estimates for a policy, in one or all of its matchups, and in one or all seats."""

    policy: str
    matchup: Matchup | None
    """The matchup; None for the mean over all matchups of the policy."""
    seat: int | None
    """The seat; None for all seats."""
    games: int
    share: Estimate
    """Mean share of the win. Each of w winners gets 1/w."""
    adjusted: Estimate | None
    """The luck-adjusted share; None if luck was not measured."""
    rank: Estimate
    """Mean rank. 1 is best; tied seats share the mean of their ranks."""
    difference: Estimate
    """Points of the policy's seat minus the mean points of the other seats."""
    ties: Estimate
    """Fraction of games in which the policy shares the win."""
    forfeits: int


class _Part(NamedTuple):
    """A summary of some games of a policy."""

    games: int
    forfeits: int
    means: dict[str, Mean]


class _MatchupGames:
    """The results of the games of a matchup as arrays [duplicate, game, seat]."""

    def __init__(self, matchup: Matchup, games: GameResults, luck: bool) -> None:
        self.matchup, self.names = matchup, sorted(set(matchup))
        n = len(matchup)
        games = games.reshape(-1, n)
        self.sits = np.array([self.names.index(name) for name in matchup])[games["place"]]
        names = ("rank", "share", "points", "luck")
        self.rank, share, points, lucky = (games[name].astype(np.float64) for name in names)
        self.luck = lucky if luck else None
        forfeit = games["forfeit"][:, :, None]
        self.forfeits = forfeit == np.arange(n)
        self.values = {
            "share": share,
            "rank": self.rank,
            "difference": points - (points.sum(2, keepdims=True) - points) / (n - 1),
            "ties": ((share > 0) & (share < 1) & (forfeit < 0)).astype(np.float64),
        }

    def part(self, policy: str, seat: int | None) -> _Part:
        here = self.sits == self.names.index(policy)
        if seat is not None:
            here = here & (np.arange(len(self.matchup)) == seat)
        weight = here / here.sum((1, 2), keepdims=True)
        bounds = {"rank": (1.0, float(len(self.matchup))), "difference": (-math.inf, math.inf)}
        by_duplicate = {name: (x * weight).sum((1, 2)) for name, x in self.values.items()}
        means = {name: mean_of(x, *bounds.get(name, (0.0, 1.0))) for name, x in by_duplicate.items()}
        if self.luck is not None:
            means["adjusted"] = adjusted_mean(by_duplicate["share"], (self.luck * weight).sum((1, 2)))
        return _Part(int(here.any(2).sum()), int((self.forfeits & here).sum()), means)

    def ahead(self, one: str, other: str) -> Floats:
        """Return two counts per duplicate, (D, 2): how often `one` finished ahead of `other`, and how often behind."""
        first = np.where(self.sits == self.names.index(one), self.rank, np.nan)[:, :, :, None]
        second = np.where(self.sits == self.names.index(other), self.rank, np.nan)[:, :, None, :]
        ahead, behind, equal = (
            compared.sum((1, 2, 3)) for compared in (first < second, first > second, first == second)
        )
        return np.stack([ahead + equal / 2, behind + equal / 2], 1)


_Parts = dict[Matchup, dict[tuple[str, int | None], _Part]]


def share_error(matchup: Matchup, games: GameResults, luck: bool) -> float:
    """Return the largest `Estimate.error` of the win shares in a matchup; `luck` selects luck-adjusted shares."""
    played = _MatchupGames(matchup, games, luck)
    measure = "adjusted" if luck else "share"
    return max(played.part(policy, None).means[measure].estimate().error for policy in played.names)


def span(dates: Iterable[str]) -> str:
    """Return the first and the last date as "FIRST to LAST", or a single date if all dates are equal."""
    ordered = sorted(set(dates))
    return " to ".join(ordered[:1] + ordered[1:][-1:])


class Results:
    """Results of a tournament.

    Args:
        tournament: the tournament.
        games: matchup -> results of the games, an array of `results_dtype`, sorted by duplicate.
        forfeits: all forfeits.
        earlier: date -> number of reused games that were saved on this date.

    Attributes:
        rows: one group of rows for all matchups together, then one group for each matchup. A group begins with the rows
            for all seats together, best policy first. The rows for single seats follow.
        ahead: (policy A, policy B) -> estimate of the share of their common games in which A finishes ahead of B. Ties
            count half.
        ratings: policy -> rating, best first.
    """

    def __init__(
        self,
        tournament: Tournament,
        games: Mapping[Matchup, GameResults],
        forfeits: Sequence[Forfeit],
        earlier: Mapping[str, int] | None = None,
    ) -> None:
        self.tournament, self.games, self.forfeits = tournament, dict(games), list(forfeits)
        self.earlier = dict(earlier or {})
        parts: _Parts = {}
        counts: list[dict[tuple[str, str], Floats]] = []
        # Convert one matchup at a time: the arrays take several times the memory of the records.
        for matchup, records in games.items():
            arrays = _MatchupGames(matchup, records, tournament.luck is not None)
            seats = (None, *range(tournament.rules.players))
            parts[matchup] = {(name, at): arrays.part(name, at) for name in arrays.names for at in seats}
            counts.append({pair: arrays.ahead(*pair) for pair in itertools.combinations(arrays.names, 2)})
        self.rows = self._rows(parts)
        self.ahead: dict[tuple[str, str], Estimate] = {}
        for one, other in itertools.combinations(sorted(tournament.policies), 2):
            pairs = [of[one, other] for of in counts if (one, other) in of]
            share = self.ahead[one, other] = pool([mean_of(n[:, 0] / n.sum(1)) for n in pairs]).estimate()
            self.ahead[other, one] = Estimate(1 - share.value, 1 - share.high, 1 - share.low)
        self.ratings = fit_ratings(tournament.policies, counts)

    def _rows(self, parts: _Parts) -> list[Row]:
        rows = []
        for policy in self.tournament.policies:
            for seat in (None, *range(self.tournament.rules.players)):
                own = {matchup: each[policy, seat] for matchup, each in parts.items() if policy in matchup}
                games, forfeits, means = zip(*own.values(), strict=True)
                pooled = {name: pool([each[name] for each in means]) for name in means[0]}
                whole = _Part(sum(games), sum(forfeits), pooled)
                for matchup, part in [(None, whole), *own.items()]:
                    estimates: dict[str, Any] = {name: mean.estimate() for name, mean in part.means.items()}
                    estimates.setdefault("adjusted", None)
                    rows.append(Row(policy, matchup, seat, part.games, forfeits=part.forfeits, **estimates))
        total = {row.policy: row.share.value for row in rows if row.matchup is None and row.seat is None}
        best = sorted(total, key=lambda policy: -total[policy])
        return sorted(
            rows,
            key=lambda row: (row.matchup or (), row.seat is not None, best.index(row.policy), row.seat or 0),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the results without the games, as plain Python types, for example for JSON."""
        return {
            "tournament": asdict(self.tournament),
            "games": sum(map(len, self.games.values())),
            "earlier": self.earlier,
            "neutral_share": 1 / self.tournament.rules.players,
            "rows": self.to_rows(),
            "ahead": {
                one: {other: cell._asdict() for (row, other), cell in self.ahead.items() if row == one}
                for one in self.tournament.policies
            },
            "ratings": {policy: rating._asdict() for policy, rating in self.ratings.items()},
            "forfeits": [forfeit._asdict() for forfeit in self.forfeits],
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return `rows` as dictionaries, column -> value, for example for CSV or a data frame."""
        lines = []
        for row in self.rows:
            line: dict[str, Any] = {}
            for name, value in vars(row).items():
                if name in ("share", "adjusted", "rank", "difference", "ties"):
                    values = value or (None, None, None)
                    line |= zip((name, f"{name}_low", f"{name}_high"), values, strict=True)
                else:
                    line[name] = " ".join(value) if name == "matchup" and value else value
            lines.append(line)
        return lines
