"""Tournaments: matchups, seats, seeds and invalid options."""

import math
from itertools import permutations

import numpy as np
import pytest

from tests.helpers.arena_policies import Lowest
from tests.helpers.tournaments import OWN, QUICK, TOURNAMENT, digests_of, played, same
from wotd_env import Game, Phase, Rules, make_policy
from wotd_env.arena import Tournament, run
from wotd_env.arena import tournament as tournament_module
from wotd_env.arena.results import share_error
from wotd_env.arena.store import Store
from wotd_env.arena.tournament import Block, game_seed, seatings

# ------------------------------------------------------------------------------------------------ matchups and seats


@pytest.mark.parametrize(
    ("policies", "players", "matchups"),
    [
        ("abc", 2, ["ab", "ac", "bc"]),
        ("cba", 3, ["abc"]),
        ("abcd", 3, ["abc", "abd", "acd", "bcd"]),
        ("ab", 3, ["aab", "abb"]),
        ("abc", 4, ["aabc", "abbc", "abcc"]),
        ("a", 2, ["aa"]),
    ],
)
def test_matchups_contain_every_choice_of_policies(policies, players, matchups):
    tournament = Tournament(tuple(policies), Rules(players=players))
    assert ["".join(matchup) for matchup in tournament.matchups] == matchups


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_each_policy_takes_every_seat_once_per_duplicate(players):
    seats = seatings(np.arange(300), players)
    assert seats.shape == (300, players, players)
    assert (np.sort(seats, 1) == np.arange(players)[:, None]).all()  # over the games, in every seat
    assert (np.sort(seats, 2) == np.arange(players)).all()  # over the seats, in every game


@pytest.mark.parametrize("players", [3, 4])
def test_every_seating_order_occurs(players):
    seats = seatings(np.arange(math.factorial(players - 1)), players)
    assert len({tuple(game) for game in seats.reshape(-1, players).tolist()}) == len(
        list(permutations(range(players)))
    )


@pytest.mark.parametrize(
    "rules", [QUICK, Rules(players=4, spaces=1, powers="any"), Rules(players=3, spaces=1)], ids=str
)
def test_the_games_of_a_duplicate_have_the_same_dice(rules):
    # a policy that meets only itself plays the same game from every seat
    matchup = ("greedy",) * rules.players
    games = played(Tournament(("greedy",), rules), Block(matchup, 0, 20)).games.reshape(20, rules.players)
    for field in ("turns", "points", "share", "rank"):
        assert (games[field] == games[field][:, :1]).all()
    assert len(np.unique(games["points"][:, 0], axis=0)) > 5  # and a different game in each duplicate


def test_a_game_can_be_replayed_from_its_seed():
    tournament = Tournament(("first", "greedy"), QUICK, seed=5)
    matchup = tournament.matchups[0]
    games = played(tournament, Block(matchup, 256, 3)).games
    game, policies = Game(QUICK), [make_policy(name) for name in matchup]
    state = game.reset(1, seed=game_seed(5, matchup, 257))
    seats = seatings([257], 2)[0, 1]  # its second game
    while state["phase"][0] != Phase.OVER:
        game.step(state, policies[seats[state["player"][0]]].act(game, state, np.random.default_rng(0)))
    assert games[3]["duplicate"] == 257
    assert games[3]["points"].tolist() == game.scores(state)[0].tolist()
    assert games[3]["turns"] == state["turn"][0]


def test_dice_differ_between_matchups_and_seeds():
    seeds = {
        game_seed(seed, matchup, 0) for seed in range(3) for matchup in (("a", "b"), ("a", "c"), ("ab",))
    }
    assert len(seeds) == 9
    # far more than the games of a tournament
    assert min(abs(a - b) for a in seeds for b in seeds if a != b) > 10**12


# ----------------------------------------------------------------------------------------------------- reproducibility


def test_results_do_not_depend_on_workers(reference):
    assert same(run(TOURNAMENT, workers=2), reference)


def test_a_larger_tournament_plays_only_new_games(tmp_path, reference):
    file = tmp_path / "games.sqlite"
    for games in (40, 600):
        run(Tournament(TOURNAMENT.policies, QUICK, games, seed=3), file)
    with Store(TOURNAMENT, file, digests_of(TOURNAMENT)) as store:
        for matchup in TOURNAMENT.matchups:
            assert [i for i, _, _ in store.stored(matchup)] == [0]
    assert same(run(TOURNAMENT, file), reference)


def test_adding_a_policy_does_not_change_other_matchups(reference):
    pair = Tournament((OWN + "Gambler", "random"), QUICK, games=1300, seed=3)
    matchup = pair.matchups[0]
    assert np.array_equal(run(pair).games[matchup], reference.games[matchup])


def test_block_size_does_not_matter_to_deterministic_policies(monkeypatch):
    tournament = Tournament(("first", "greedy"), Rules(players=3, spaces=0), games=900)
    whole = run(tournament)
    monkeypatch.setattr(tournament_module, "BLOCK", 7)
    assert same(run(tournament), whole)


def test_seeds_give_different_results(reference):
    other = run(Tournament(TOURNAMENT.policies, QUICK, games=1300, seed=4))
    assert not same(other, reference)


def test_a_matchup_stops_when_its_interval_is_narrow_enough(reference):
    tournament = Tournament(TOURNAMENT.policies, QUICK, games=1300, seed=3, until=0.03)
    results = run(tournament)
    sizes = {matchup: len(games) for matchup, games in results.games.items()}
    assert min(sizes.values()) < 1300
    for matchup, games in results.games.items():
        assert np.array_equal(games, reference.games[matchup][: len(games)])
        assert len(games) == 1300 or share_error(matchup, games, luck=False) <= 0.03
        assert (
            len(games) == 512
            or share_error(matchup, games[: (len(games) - 1) // 512 * 512], luck=False) > 0.03
        )
    assert same(run(tournament, workers=2), results)


# ------------------------------------------------------------------------------------------------------- invalid input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": ()}, "policies must be at least one name"),
        ({"policies": ("random", "random")}, "got 'random' twice"),
        ({"games": 0}, "games must be an integer from 1 to"),
        ({"games": 10.5}, "games must be an integer"),
        ({"games": 10**8}, "games must be an integer from 1 to 20000000, got 100000000"),
        ({"games": 10**7, "policies": tuple("abcdef")}, "from 1 to 1333333 with 15 matchups, got 10000000"),
        ({"policies": "greedy"}, r"policies must be a tuple of names, got 'greedy': write \('greedy',\)"),
        ({"seed": -1}, "seed must be an integer from 0 to"),
        ({"until": 0.0}, "until must be between 0 and 0.5"),
    ],
)
def test_invalid_tournaments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Tournament(**{"policies": ("random", "first"), **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": -1}, "workers must be an integer of at least 0"),
        ({"time_limit": 0}, "time_limit must be more than 0 seconds"),
        (
            {"policies": {"other": Lowest()}},
            r"policies must be among those of the tournament, got \['other'\]",
        ),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run(Tournament(("random", "first"), QUICK, games=10), **options)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_value_without_equities_cannot_measure_luck(workers, tmp_path):
    file = tmp_path / "games.sqlite"
    with pytest.raises(ValueError, match="luck must name a policy with a method equity"):
        run(Tournament(("random", "first"), QUICK, luck="random"), file, workers=workers)
    assert not file.exists()
