"""From games to estimates: every interval is a 95 % interval, and clustered by the duplicate game.

The games of a duplicate share their dice, so they are one observation: an estimate is a mean over duplicates, and its
error comes from their spread. Tables have dice of their own and are independent of each other.
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

from wotd_env.arena.blocks import Forfeit, GameResults
from wotd_env.arena.tournament import Matchup, Tournament
from wotd_env.extras import needed_for
from wotd_env.intervals import LEVEL, Z

# At import, so that a missing package is reported before hours of games and not after them.
with needed_for("a tournament", "arena"):
    from scipy.special import expit, stdtrit

    if find_spec("choix") is None:
        raise ModuleNotFoundError("No module named 'choix'", name="choix")

__all__ = ["Estimate", "Results", "Row", "share_error", "span"]

ELO = 400 / math.log(10)
"""Rating points for a factor e in the odds of finishing ahead."""

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


class _Mean(NamedTuple):
    """A mean of independent observations that lie between two bounds."""

    value: float
    variance: float  # of the mean
    df: float
    low: float
    high: float

    def estimate(self) -> Estimate:
        error = float(stdtrit(self.df, (1 + LEVEL) / 2)) * math.sqrt(self.variance)
        return Estimate(self.value, max(self.low, self.value - error), min(self.high, self.value + error))


def _mean(x: Floats, low: float = 0.0, high: float = 1.0) -> _Mean:
    """Return the mean of independent observations between two bounds.

    The error counts one duplicate at each bound on top (after Agresti and Coull), so that it stays honest where every
    game was won, or lost, or all duplicates came out alike.
    """
    padded = np.append(x, (low, high)) if math.isfinite(low) else x
    return _Mean(float(x.mean()), float(padded.var(ddof=1)) / len(padded), len(padded) - 1, low, high)


def _adjusted(x: Floats, luck: Floats) -> _Mean:
    """Return the mean of shares with luck, whose mean is known to be 0, taken out as a control variate."""
    spread = float(luck.var())
    slope = float(np.mean((x - x.mean()) * (luck - luck.mean()))) / spread if spread else 0.0
    return _mean(x - slope * luck)


def _pool(means: Sequence[_Mean]) -> _Mean:
    """Return the mean of the means of independent matchups (Welch's degrees of freedom)."""
    variances = [mean.variance for mean in means]
    spread = sum(v * v / mean.df for v, mean in zip(variances, means, strict=True))
    return means[0]._replace(
        value=sum(mean.value for mean in means) / len(means),
        variance=sum(variances) / len(means) ** 2,
        df=sum(variances) ** 2 / spread if spread else means[0].df,
    )


@dataclass(frozen=True)
class Row:
    """How a policy did: in all matchups or in one, in all seats or in one."""

    policy: str
    matchup: Matchup | None
    """None: the mean over all matchups that it plays in."""
    seat: int | None
    """None: all seats."""
    games: int
    share: Estimate
    """Of the win: 1/w for each of w winners; 1/n is neutral."""
    adjusted: Estimate | None
    """The same with the luck of the dice taken out, if it was measured."""
    rank: Estimate
    """1 is best; equals share the mean of their ranks."""
    difference: Estimate
    """Points, less the mean of the others' points."""
    ties: Estimate
    """Share of games in which it shared the win, truncated games included."""
    forfeits: int


_MEASURES = ("share", "adjusted", "rank", "difference", "ties")


class _MatchupGames:
    """The results of the games of a matchup as arrays [duplicate, game, seat]."""

    def __init__(self, matchup: Matchup, games: GameResults, luck: bool) -> None:
        self.matchup, self.names = matchup, sorted(set(matchup))
        n = len(matchup)
        games = games.reshape(-1, n)
        self.sits = np.array([self.names.index(name) for name in matchup])[games["place"]]
        self.rank = games["rank"].astype(np.float64)
        share = games["share"].astype(np.float64)
        points = games["points"].astype(np.float64)
        self.luck = games["luck"].astype(np.float64) if luck else None
        self.forfeits = games["forfeit"][:, :, None] == np.arange(n)
        contested = games["forfeit"][:, :, None] < 0
        self.values = {
            "share": share,
            "rank": self.rank,
            "difference": points - (points.sum(2, keepdims=True) - points) / (n - 1),
            "ties": ((share > 0) & (share < 1) & contested).astype(np.float64),
        }

    def means(self, policy: str, seat: int | None) -> tuple[int, int, dict[str, _Mean]]:
        """Return games, forfeits, and the mean of every measure of a policy, in one seat or all."""
        here = self.sits == self.names.index(policy)
        if seat is not None:
            here = here & (np.arange(len(self.matchup)) == seat)
        weight = here / here.sum((1, 2), keepdims=True)
        bounds = {"rank": (1.0, float(len(self.matchup))), "difference": (-math.inf, math.inf)}
        means = {
            name: _mean((x * weight).sum((1, 2)), *bounds.get(name, (0.0, 1.0)))
            for name, x in self.values.items()
        }
        if self.luck is not None:
            share = (self.values["share"] * weight).sum((1, 2))
            means["adjusted"] = _adjusted(share, (self.luck * weight).sum((1, 2)))
        return int(here.any(2).sum()), int((self.forfeits & here).sum()), means

    def ahead(self, one: str, other: str) -> Floats:
        """Return how often `one` finished ahead of `other` in each duplicate, and behind: (D, 2); equals count half."""
        first = np.where(self.sits == self.names.index(one), self.rank, np.nan)[:, :, :, None]
        second = np.where(self.sits == self.names.index(other), self.rank, np.nan)[:, :, None, :]
        equal = (first == second).sum((1, 2, 3)) / 2
        return np.stack([(first < second).sum((1, 2, 3)) + equal, (first > second).sum((1, 2, 3)) + equal], 1)


_Means = dict[Matchup, dict[tuple[str, int | None], tuple[int, int, dict[str, _Mean]]]]
"""Matchup -> (policy, seat or all) -> games, forfeits, means."""

_Ahead = dict[Matchup, dict[tuple[str, str], Floats]]
"""Matchup -> (policy, other policy), in order -> how often the one was ahead, and behind, in each duplicate: (D, 2)."""


def _row(
    policy: str, matchup: Matchup | None, seat: int | None, games: int, forfeits: int, means: dict[str, _Mean]
) -> Row:
    estimates: dict[str, Any] = {"adjusted": None} | {name: mean.estimate() for name, mean in means.items()}
    return Row(policy=policy, matchup=matchup, seat=seat, games=games, forfeits=forfeits, **estimates)


def _total(rows: list[Row], policy: str) -> Row:
    return next(row for row in rows if row.policy == policy and row.matchup is None and row.seat is None)


def share_error(matchup: Matchup, games: GameResults, luck: bool) -> float:
    """Return the largest error of a win share in a matchup, adjusted for luck if it was measured."""
    played = _MatchupGames(matchup, games, luck)
    measure = "adjusted" if luck else "share"
    return max(played.means(policy, None)[2][measure].estimate().error for policy in played.names)


def span(dates: Iterable[str]) -> str:
    """Return the first and the last of some dates in words."""
    ordered = sorted(set(dates))
    return " to ".join(ordered[:1] + ordered[1:][-1:])


class Results:
    """What a tournament has shown.

    Args:
        tournament: the tournament.
        games: matchup -> the results of its games, `wotd_env.arena.results_dtype`, in order of duplicates.
        forfeits: all of them.
        earlier: date -> how many of the games this run found in its file, played on that day.

    Attributes:
        rows: estimates: of each policy in all matchups, best first; the same by seat; then of each policy in each
            matchup; and those by seat.
        ahead: (policy, other policy) -> how often it finishes ahead of the other where both play, equals counting half.
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
        seats = [None, *range(tournament.rules.players)]
        means: _Means = {}
        ahead: _Ahead = {}
        # One matchup after the other: as arrays the results take several times the memory.
        for matchup, of in games.items():
            arrays = _MatchupGames(matchup, of, tournament.luck is not None)
            names = arrays.names
            means[matchup] = {(name, seat): arrays.means(name, seat) for name in names for seat in seats}
            ahead[matchup] = {
                (one, other): arrays.ahead(one, other) for one, other in itertools.combinations(names, 2)
            }
        self.rows = self._rows(means)
        self.ahead = self._ahead(ahead)
        self.ratings = self._ratings(ahead)

    def _rows(self, means: _Means) -> list[Row]:
        seats = [None, *range(self.tournament.rules.players)]
        rows = []
        for policy in self.tournament.policies:
            for seat in seats:
                parts = {matchup: of[policy, seat] for matchup, of in means.items() if policy in matchup}
                measures = next(iter(parts.values()))[2]
                pooled = {name: _pool([part[name] for _, _, part in parts.values()]) for name in measures}
                games = sum(part[0] for part in parts.values())
                forfeits = sum(part[1] for part in parts.values())
                rows.append(_row(policy, None, seat, games, forfeits, pooled))
                rows += [_row(policy, matchup, seat, *part) for matchup, part in parts.items()]
        best = sorted(self.tournament.policies, key=lambda policy: -_total(rows, policy).share.value)
        return sorted(
            rows,
            key=lambda row: (row.matchup or (), row.seat is not None, best.index(row.policy), row.seat or 0),
        )

    def _ahead(self, counts: _Ahead) -> dict[tuple[str, str], Estimate]:
        ahead = {}
        for one, other in itertools.combinations(sorted(self.tournament.policies), 2):
            pairs = [of[one, other] for of in counts.values() if (one, other) in of]
            share = ahead[one, other] = _pool([_mean(n[:, 0] / n.sum(1)) for n in pairs]).estimate()
            ahead[other, one] = Estimate(1 - share.value, 1 - share.high, 1 - share.low)
        return ahead

    def _ratings(self, counts: _Ahead) -> dict[str, Estimate]:
        """Fit Bradley-Terry strengths to who finished ahead of whom, in points of Elo with mean 0.

        Among more than two players the pairs of a finishing order, taken together, estimate the strengths of
        Plackett and Luce. Each pair is given one drawn game, so that a policy that never lost stays finite. The
        intervals are those of the sandwich estimator, with duplicates as clusters.
        """
        policies = self.tournament.policies
        k = len(policies)
        if k == 1:
            return {policies[0]: Estimate(0.0, 0.0, 0.0)}
        import choix  # takes a second, which workers need not spend

        wins = np.full((k, k), 0.5) - np.eye(k) / 2
        for of in counts.values():
            for (one, other), n in of.items():
                i, j = policies.index(one), policies.index(other)
                wins[i, j] += n[:, 0].sum()
                wins[j, i] += n[:, 1].sum()
        strength = choix.ilsr_pairwise_dense(wins, max_iter=10_000)
        strength = strength - strength.mean()
        expected = expit(strength[:, None] - strength)
        weight = (wins + wins.T) * expected * (1 - expected)
        information = np.diag(weight.sum(1)) - weight
        drawn = (0.5 - expected) ** 2
        spread = np.diag(drawn.sum(1)) - drawn  # of the score: the drawn games, then each duplicate
        for of in counts.values():
            score = np.zeros((len(next(iter(of.values()))), k))
            for (one, other), n in of.items():
                i, j = policies.index(one), policies.index(other)
                surprise = n[:, 0] - n.sum(1) * expected[i, j]
                score[:, i] += surprise
                score[:, j] -= surprise
            spread += score.T @ score
        inverse = np.linalg.pinv(information)
        error = Z * np.sqrt(np.diag(inverse @ spread @ inverse))
        order = np.argsort(-strength, kind="stable")
        return {
            policies[i]: Estimate(
                *(float(ELO * x) for x in (strength[i], strength[i] - error[i], strength[i] + error[i]))
            )
            for i in order
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the games in plain types, as for JSON."""
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
        """Return `rows` in plain types, one column for each number, as for CSV, Parquet or a data frame."""
        lines = []
        for row in self.rows:
            line: dict[str, Any] = {
                "policy": row.policy,
                "matchup": " ".join(row.matchup) if row.matchup else None,
                "seat": row.seat,
                "games": row.games,
            }
            for name in _MEASURES:
                estimate = getattr(row, name)
                line |= {
                    name: None if estimate is None else estimate.value,
                    f"{name}_low": None if estimate is None else estimate.low,
                    f"{name}_high": None if estimate is None else estimate.high,
                }
            lines.append({**line, "forfeits": row.forfeits})
        return lines
