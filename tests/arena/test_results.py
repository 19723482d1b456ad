"""Results: confidence intervals, ratings, luck, files and pictures."""

import csv
import json
import math

import numpy as np
import pytest

from tests.helpers.tournaments import QUICK
from wotd_env import Game, Rules
from wotd_env.arena import Results, Tournament, results_dtype, run, show
from wotd_env.arena.tournament import make_equity, seatings


def test_results_follow_the_rules():
    tournament = Tournament(("greedy", "random"), Rules(players=3, spaces=1, max_turns=25), games=3000)
    for games in run(tournament).games.values():
        expired = games["expired"] == 1
        assert 0 < expired.sum() < len(games)
        assert (games["turns"][expired] == 25).all()
        assert games["share"][expired] == pytest.approx(np.full((expired.sum(), 3), 1 / 3))
        assert games["rank"].sum(1) == pytest.approx(np.full(len(games), 6))
        ended = games[~expired]
        winners = ended["share"] > 0
        assert (ended["rank"][winners] < 2.5).all()
        assert (ended["points"].max(1, keepdims=True) == ended["points"])[winners].all()
        assert ended["share"].sum(1) == pytest.approx(np.ones(len(ended)))


def fake(
    tournament: Tournament, rng: np.random.Generator, strengths: dict[str, float], shared: float = 0.0
) -> Results:
    """Return results with ranks drawn by strength (Plackett-Luce); the games of a duplicate share luck."""
    n = tournament.rules.players
    games = {}
    for matchup in tournament.matchups:
        size = tournament.duplicates
        places = seatings(np.arange(size), n)
        level = np.array([strengths[name] for name in matchup])[places] + rng.gumbel(size=places.shape)
        # seat 0 has the same luck in all games of a duplicate
        level[:, :, 0] += shared * rng.normal(size=(size, 1))
        rank = n - level.argsort(2).argsort(2)
        records = np.zeros((size, n), results_dtype(n))
        records["duplicate"] = np.arange(size)[:, None]
        records["forfeit"] = -1
        records["place"], records["rank"], records["share"] = places, rank, rank == 1
        records["points"] = 10 - rank
        games[matchup] = records.ravel()
    return Results(tournament, games, [])


@pytest.mark.parametrize(
    ("players", "edge", "games"), [(2, 0.0, 200), (2, 1.0, 60), (3, 0.5, 300), (2, 4.0, 400)]
)
def test_intervals_have_the_nominal_coverage(players, edge, games):
    tournament = Tournament(("a", "b", "c")[:players], Rules(players=players), games=games)
    strengths = {"a": edge, "b": 0.0, "c": 0.0}
    share = np.exp(edge) / (np.exp(edge) + players - 1)
    rng = np.random.default_rng(0)
    inside = {"share": 0, "seat": 0, "ahead": 0, "rating": 0, "rank": 0}
    trials = 400
    for _ in range(trials):
        results = fake(tournament, rng, strengths)
        row = next(row for row in results.rows if row.policy == "a" and row.seat is None)
        seat = next(row for row in results.rows if row.policy == "a" and row.seat == 1)
        ahead = results.ahead["a", "b"]
        rating = results.ratings["a"]
        truth = {
            "share": share,
            "seat": share,
            "ahead": np.exp(edge) / (np.exp(edge) + 1),
            "rating": (edge - edge / players) * 400 / np.log(10),
            "rank": players - (players - 1) * np.exp(edge) / (np.exp(edge) + 1),
        }
        estimates = {
            "share": row.share,
            "seat": seat.share,
            "ahead": ahead,
            "rating": rating,
            "rank": row.rank,
        }
        for name, estimate in estimates.items():
            inside[name] += estimate.low <= truth[name] <= estimate.high
    for name, hits in inside.items():
        assert 0.92 <= hits / trials <= 1.0, name
    if edge < 2:  # away from 0 and 1 they are not too wide
        assert max(inside.values()) / trials < 0.985


def test_games_with_shared_dice_are_not_treated_as_independent():
    tournament = Tournament(("a", "b"), games=400)
    rng = np.random.default_rng(1)
    errors, values = [], []
    for _ in range(300):
        results = fake(tournament, rng, {"a": 0.0, "b": 0.0}, shared=5.0)
        errors.append(results.rows[0].share.error)
        values.append(next(row for row in results.rows if row.policy == "a").share.value)
    # each policy has the lucky seat once, so the share varies far less than over 400 independent games
    assert np.mean(errors) < 0.6 * 1.96 * 0.5 / np.sqrt(400)
    assert 1.96 * np.std(values) == pytest.approx(np.mean(errors), rel=0.2)


def test_ratings_recover_strengths_and_stay_finite():
    strengths = {"a": 1.0, "b": 0.3, "c": 0.0, "d": -1.3}
    for players in (2, 3):
        results = fake(
            Tournament(tuple(strengths), Rules(players=players), games=4000),
            np.random.default_rng(0),
            strengths,
        )
        assert list(results.ratings) == list(strengths)
        for name, rating in results.ratings.items():
            assert rating.value == pytest.approx(strengths[name] * 400 / np.log(10), abs=20)
            assert rating.error < 20
    results = fake(Tournament(("a", "b"), games=1000), np.random.default_rng(0), {"a": 100.0, "b": 0.0})
    assert results.rows[0].share.value == 1
    assert 2 * results.ratings["a"].low < 1000  # 973 points give a thousand wins in a row once in 40 times
    assert 400 < results.ratings["a"].low < results.ratings["a"].value < results.ratings["a"].high < 2000


def test_luck_adjustment_removes_explained_variance():
    tournament = Tournament(("a", "b"), games=2000, luck="a")
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(100):
        results = fake(Tournament(("a", "b"), games=2000), rng, {"a": 0.4, "b": 0.0})
        games = results.games["a", "b"]
        mine = games["share"] - np.exp(0.4 * (1 - 2 * games["place"])) / (
            1 + np.exp(0.4 * (1 - 2 * games["place"]))
        )
        games["luck"] = mine * 0.5 + rng.normal(scale=0.05, size=(len(games), 1)) * (1, -1)
        row = next(row for row in Results(tournament, {("a", "b"): games}, []).rows if row.policy == "a")
        assert row.adjusted is not None
        assert row.adjusted.error < 0.35 * row.share.error
        inside += row.adjusted.low <= 1 / (1 + np.exp(-0.4)) <= row.adjusted.high
    assert inside >= 88


def test_self_play_measures_the_value_of_each_seat():
    results = run(Tournament(("greedy",), QUICK, games=400))
    assert results.rows[0].share.value == 0.5
    assert results.rows[0].share.error < 0.01
    seats = [row for row in results.rows if row.matchup is None and row.seat is not None]
    assert sum(row.share.value for row in seats) == pytest.approx(1)
    assert seats[0].share.error > 0.03


# -------------------------------------------------------------------------------------------------------------- output


def test_results_are_written_as_json_and_csv(tmp_path, reference):
    for ending in show.FORMATS:
        show.write(reference, tmp_path / f"results{ending}")
    document = json.loads((tmp_path / "results.json").read_text())
    with (tmp_path / "results.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert document["rows"] == reference.to_rows()
    assert [float(line["share"]) for line in lines] == [row.share.value for row in reference.rows]
    assert document["tournament"]["rules"]["spaces"] == 0
    with pytest.raises(ValueError, match=r"\.json, \.csv, got results\.xls"):
        show.write(reference, "results.xls")


def test_pictures_are_reproducible(tmp_path, reference):
    for ending in ("svg", "pdf", "png"):
        for name in ("results", "again"):
            show.draw(reference, tmp_path / f"{name}.{ending}", "three players")
        assert (tmp_path / f"results.{ending}").read_bytes() == (tmp_path / f"again.{ending}").read_bytes()
    drawn = (tmp_path / "results.svg").read_text()
    assert drawn.startswith("<?xml")
    assert len(drawn) > 10_000


@pytest.mark.parametrize("luck", ["planner", "oracle"])
def test_luck_from_equities_narrows_the_interval(luck):
    tournament = Tournament(("greedy", "planner"), QUICK, games=600, luck=luck)
    results = run(tournament)
    row = results.rows[0]
    assert row.adjusted is not None
    assert row.adjusted.error < 0.6 * row.share.error
    assert row.share.low < row.adjusted.value < row.share.high
    games = results.games[tournament.matchups[0]]
    assert games["luck"].sum(1) == pytest.approx(np.zeros(len(games)), abs=1e-5)
    mean = games["luck"][:, 0].reshape(-1, 2).mean(1)
    assert abs(mean.mean()) < 4 * mean.std() / math.sqrt(len(mean))
    plain = run(Tournament(tournament.policies, QUICK, games=600))
    for field in ("share", "points", "turns"):  # measuring changes no game
        assert np.array_equal(games[field], plain.games[tournament.matchups[0]][field])


def test_equity_before_a_roll_is_the_mean_over_rolls():
    game = Game(QUICK, skip_forced=False)
    state = game.reset(30, seed=2, roll=False)
    for name in ("planner", "oracle"):
        equity = make_equity(name)
        faces, probabilities = game.chance_outcomes(5)
        rolled = np.repeat(state, len(faces))
        game.roll(rolled, np.tile(faces, (len(state), 1)))
        after = equity(game, rolled).reshape(len(state), -1) @ probabilities
        assert equity(game, state) == pytest.approx(after, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policies", "rules"), [(("greedy", "planner"), Rules(players=n, spaces=0)) for n in (2, 3)], ids=str
)
def test_intervals_contain_the_true_share_in_95_percent_of_tournaments(policies, rules):
    seeds, name = 150, policies[0]
    shares = [
        next(
            row.share
            for row in run(Tournament(policies, rules, games=300, seed=seed)).rows
            if row.policy == name
        )
        for seed in range(seeds)
    ]
    truth = np.mean([share.value for share in shares])  # its own error is 1/12 of the error of a share
    outside = sum(not share.low <= truth <= share.high for share in shares)
    assert 1 <= outside <= 16  # 7.5 are expected; the bounds are about three standard deviations away
