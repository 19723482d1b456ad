"""Results of a tournament: estimates by policy, matchup and seat.

The games of a duplicate share their dice, so they count as one observation. Different matchups have
different dice, so they are independent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from wotd_env.arena.blocks import Forfeit, GameResults
from wotd_env.arena.estimates import Estimate, Floats, Mean, adjusted_mean, fit_ratings, mean_of, pool
from wotd_env.arena.tournament import Matchup, Tournament


@dataclass(frozen=True)
class Row:
    """The estimates for a policy, over all its matchups or in one matchup, and over all seats or in one seat."""

    policy: str
    matchup: Matchup | None
    """The matchup; None for the mean over all matchups of the policy."""
    seat: int | None
    """The seat; None for all seats."""
    games: int
    share: Estimate
    """Share of the win: 1/w for each of w winners. Equally strong policies average 1/n with n players."""
    adjusted: Estimate | None
    """The luck-adjusted share; None if luck was not measured."""
    rank: Estimate
    """Mean rank: 1 is best; tied seats share the mean of their ranks."""
    difference: Estimate
    """Points of the policy's seat minus the mean points of the other seats."""
    ties: Estimate
    """Share of games in which the policy shares the win with another seat, including truncated games."""
    forfeits: int


_MEASURES = ("share", "adjusted", "rank", "difference", "ties")


class _Part(NamedTuple):
    """Totals of some games of a policy: the numbers of games and forfeits, and the mean of each measure."""

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
        self.rank = games["rank"].astype(np.float64)
        share = games["share"].astype(np.float64)
        points = games["points"].astype(np.float64)
        self.luck = games["luck"].astype(np.float64) if luck else None
        forfeit = games["forfeit"][:, :, None]
        self.forfeits = forfeit == np.arange(n)
        self.values = {
            "share": share,
            "rank": self.rank,
            "difference": points - (points.sum(2, keepdims=True) - points) / (n - 1),
            "ties": ((share > 0) & (share < 1) & (forfeit < 0)).astype(np.float64),
        }

    def part(self, policy: str, seat: int | None) -> _Part:
        """Return the totals of a policy's games in one seat, or in all seats if `seat` is None."""
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
        """Return how often `one` finished ahead of `other` and behind it, (D, 2), per duplicate; ties count half."""
        first = np.where(self.sits == self.names.index(one), self.rank, np.nan)[:, :, :, None]
        second = np.where(self.sits == self.names.index(other), self.rank, np.nan)[:, :, None, :]
        ahead, behind, equal = (
            compared.sum((1, 2, 3)) for compared in (first < second, first > second, first == second)
        )
        return np.stack([ahead + equal / 2, behind + equal / 2], 1)


_Parts = dict[Matchup, dict[tuple[str, int | None], _Part]]  # matchup -> (policy, seat or None) -> totals


def share_error(matchup: Matchup, games: GameResults, luck: bool) -> float:
    """Return the largest error of the policies' win shares in a matchup; with `luck` the shares are luck-adjusted."""
    played = _MatchupGames(matchup, games, luck)
    measure = "adjusted" if luck else "share"
    return max(played.part(policy, None).means[measure].estimate().error for policy in played.names)


def span(dates: Iterable[str]) -> str:
    """Return a text with the first and the last date."""
    ordered = sorted(set(dates))
    return " to ".join(ordered[:1] + ordered[1:][-1:])


class Results:
    """Results of a tournament.

    Args:
        tournament: the tournament.
        games: matchup -> the results of its games, `wotd_env.arena.results_dtype`, in order of duplicates.
        forfeits: all forfeits.
        earlier: date -> number of reused games that earlier runs saved on this day.

    Attributes:
        rows: the rows over all matchups, then the rows of each matchup. Both parts start with a row for each policy
            over all seats, best policy first, and continue with a row for each policy and seat.
        ahead: (policy, other policy) -> share of their common games in which the first policy finishes ahead of the
            other policy; ties count half.
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
        counts: list[dict[tuple[str, str], Floats]] = []  # by matchup: pair -> `_MatchupGames.ahead`
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
        """Return the results except the games as plain Python types, for example for JSON."""
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
        """Return `rows` as dictionaries, column -> value, for example for CSV, Parquet or a data frame."""
        lines = []
        for row in self.rows:
            line: dict[str, Any] = {}
            for name, value in vars(row).items():
                if name in _MEASURES:
                    values = value or (None, None, None)
                    line |= zip((name, f"{name}_low", f"{name}_high"), values, strict=True)
                else:
                    line[name] = " ".join(value) if name == "matchup" and value else value
            lines.append(line)
        return lines
