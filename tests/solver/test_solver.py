"""The exact solution, compared with the rules engine."""

import numpy as np
import pytest
from typer.testing import CliRunner

from tests import reference
from tests.helpers.exact import before_roll, one_turn, play, random_positions
from tests.helpers.iterated import iterate
from tests.helpers.positions import to_records
from wotd_env import Game, Phase, Rules, make_policy, solver
from wotd_env.cli import app
from wotd_env.planning.ends import ends_of
from wotd_env.solver.backward import CHUNK
from wotd_env.solver.evaluate import positions_after
from wotd_env.solver.storage import RULINGS, finish, write_layer


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("player", [0, 1])
def test_values_equal_one_turn_of_the_engine(table, late, player):
    game = Game(Rules(spaces=table.spaces), skip_forced=False)
    mine, theirs = random_positions(table.spaces, 60, seed=3 + player, late=late)
    positions = before_roll(mine, theirs, player)
    expected = [one_turn(game, table, position) for position in positions]
    assert table.value(mine, theirs) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "pieces",
    [
        ((5, 2, 4, 1, 0), (3, 4, 2, 5, 0)),
        ((4, 1, 3, 0, 2), (2, 5, 1, 3, 0)),
        pytest.param(((5, 2, 4, 0, 0), (3, 4, 2, 0, 0)), marks=pytest.mark.slow),
    ],
)
def test_late_values_equal_plain_value_iteration(whole, pieces):
    start = reference.State(pieces=(*pieces, *[(0,) * 5] * 3))
    values = iterate(reference.Rules(spaces=0), start, seat=0)
    found = whole.for_seats(Game(Rules(spaces=0)), to_records(values))[:, 0]
    assert found == pytest.approx(list(values.values()), abs=1e-6)


def test_value_of_a_finished_game_is_its_result(table):
    s = table.spaces
    # More points; fewer points; equal points, more numbered pieces; a tie, which no game reaches.
    mine = np.array([[5, 5, 5, 5, 5], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 2, 1, 2, 1]]) + s
    theirs = np.array([[4, 4, 4, 4, 4], [2, 2, 2, 2, 2], [5, 0, 0, 0, 0], [2, 1, 2, 1, 2]]) + s
    mine[3, 4], theirs[3, 4] = s + 3, s + 3 - 1
    theirs[3, 0] = s + 3
    state = before_roll(mine, theirs)
    state["phase"] = Phase.OVER
    expected = Game(Rules(spaces=s)).rewards(state)[:, 0]
    assert expected.tolist() == [1, -1, 1, 0]
    assert table.value(mine, theirs).tolist() == expected.tolist()


def test_values_do_not_depend_on_the_order_of_paths(table):
    mine, theirs = random_positions(table.spaces, 200, seed=7)
    paths = np.random.default_rng(8).permuted(np.tile(np.arange(5), (200, 1)), axis=1)
    shuffled = np.take_along_axis(mine, paths, 1), np.take_along_axis(theirs, paths, 1)
    assert np.array_equal(table.value(mine, theirs), table.value(*shuffled))


def test_no_game_of_two_players_is_tied(table):
    board = table.board
    tied, ended = [], []
    for total in range(len(board.sizes)):
        size, base = int(board.sizes[total]), table.layout.base
        _, after, results = positions_after(board, ends_of(2, powers=False), base, np.uint64(total), size)
        tied.append(base[total] + np.flatnonzero(results == 0))
        ended.append(np.unique(after[np.isnan(results)]))
    # Tied positions have values but cannot be reached.
    assert len(np.concatenate(tied)) > 100
    assert not np.isin(np.concatenate(tied), np.concatenate(ended)).any()


@pytest.mark.parametrize(("spaces", "start"), [(0, 0.2735635), (1, 0.2678187)])
def test_start_values_belong_to_the_version_of_the_rulings(folder, spaces, start):
    assert RULINGS == 2, "if the values change, raise RULINGS, so that old tables are refused"
    assert solver.solve(spaces, folder / f"{spaces}.wotd").start == pytest.approx(start, abs=2e-6)


def test_verifying_measures_the_residual_and_writes_nothing(whole):
    before = whole.file.read_bytes()
    assert 0 < solver.verify(whole.file) < 1e-6
    assert whole.file.read_bytes() == before


def test_a_wrong_value_shows_in_the_residual(whole, tmp_path):
    values = whole.values.copy()
    values[0, 1000] += 0.01
    file = tmp_path / "wrong.wotd"
    with file.open("w+b", buffering=0) as stream:
        for total, size in enumerate(whole.board.sizes):
            write_layer(stream, whole.layout, total, values[0, whole.layout.base[total] :][:size])
        finish(stream, whole.layout, whole.header)
    assert solver.verify(file) > 0.001


def test_values_do_not_depend_on_the_number_of_threads(folder):
    """The large layers of this board have four chunks, so three threads share them."""
    one = solver.solve(1, folder / "1.wotd", threads=1)
    assert one.board.families.max() > 3 * CHUNK[2]
    three = solver.solve(1, folder / "three.wotd", threads=3)
    assert np.array_equal(one.values, three.values)


@pytest.mark.parametrize("threads", [0, -1, 1.5, 10**9])
def test_invalid_numbers_of_threads_are_rejected(whole, tmp_path, threads):
    for call in (
        lambda: solver.solve(0, tmp_path / "0.wotd", threads),
        lambda: solver.verify(whole.file, threads),
    ):
        with pytest.raises(ValueError, match=f"threads must be an integer from 1 to 1024, got {threads}"):
            call()
    result = CliRunner().invoke(
        app, ["solve", "--spaces", "0", "--out", str(tmp_path / "0.wotd"), "--threads", "-1"]
    )
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "threads must be an integer from 1 to 1024, got -1" in result.output


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        ([[0] * 4], [[0] * 4], "integer array"),
        ([[0] * 5], [[0] * 5] * 2, "integer array"),
        ([[0] * 5], [[0, 0, 0, 6, 0]], r"theirs\[0, 3\]"),
        ([[0, 2, 0, 0, 0]], [[0, 2, 0, 0, 0]], r"mine\[0, 1\]"),
        ([[0.5] * 5], [[0.5] * 5], "integer array"),
    ],
)
def test_impossible_positions_are_rejected(folder, mine, theirs, message):
    table = solver.solve(0, folder / "asked.wotd")
    with pytest.raises(ValueError, match=message):
        table.value(mine, theirs)


@pytest.mark.parametrize(
    ("field", "value"), [("player", 2), ("player", -1), ("pieces", 6), ("pieces", -1), ("pieces", 1)]
)
def test_impossible_states_are_rejected(whole, field, value):
    state = before_roll([[0] * 5] * 3, [[0] * 5] * 3)
    state[field][1] = value
    with pytest.raises(
        ValueError, match="game 1: player must be 0 or 1, and pieces on different spaces from 0 to 5"
    ):
        whole.for_seats(Game(Rules(spaces=0)), state)
    with pytest.raises(ValueError, match="state must be a one-dimensional array"):
        whole.for_seats(Game(Rules(spaces=0)), np.zeros(3))


# ---------------------------------------------------------------------------------------------------------- the oracle


def interval(results: np.ndarray) -> float:
    """Return 4.5 standard errors of the mean. Chance exceeds them once in 150,000 tests."""
    return float(4.5 * results.std() / len(results) ** 0.5)


def test_perfect_players_reach_the_start_value(table):
    oracle = make_policy(f"oracle:{table.file}")
    game = Game(Rules(spaces=table.spaces))
    results = play(game, game.reset(10_000, seed=1, starting_player=0), [oracle, oracle])
    assert results.mean() == pytest.approx(table.start, abs=interval(results))


@pytest.mark.parametrize("opponent", ["random", "first", "greedy"])
def test_oracle_scores_at_least_the_start_value(table, opponent):
    oracle, other = make_policy(f"oracle:{table.file}"), make_policy(opponent)
    game = Game(Rules(spaces=table.spaces))
    begins = play(game, game.reset(4000, seed=2, starting_player=0), [oracle, other])
    follows = -play(game, game.reset(4000, seed=6000, starting_player=0), [other, oracle])
    assert begins.mean() > table.start - interval(begins)
    assert follows.mean() > -table.start - interval(follows)


def test_oracle_solves_small_boards_on_demand(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "wotd_env.policies.oracle.cache_file", lambda rules: tmp_path / f"{rules.spaces}.wotd"
    )
    oracle = make_policy("oracle")
    game = Game(Rules(spaces=0))
    play(game, game.reset(3, seed=1, starting_player=0), [oracle, make_policy("random")])
    assert solver.load(tmp_path / "0.wotd").spaces == 0
    state = Game(Rules(spaces=7)).reset(1)
    with pytest.raises(FileNotFoundError, match=r"wotd solve --spaces 7 .*GB.*minutes"):
        oracle.act(Game(Rules(spaces=7)), state, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"players": 3}, "players"),
        ({"powers": "own"}, "powers"),
        ({"immunity": True}, "immunity"),
        ({"dead_pieces": 1, "spaces": 1}, "dead_pieces"),
        ({"spaces": 2}, "plain spaces"),
    ],
)
def test_oracle_rejects_unsolved_games(table, rules, message):
    game = Game(Rules(**{"spaces": table.spaces, **rules}))
    with pytest.raises(ValueError, match=message):
        make_policy(f"oracle:{table.file}").act(game, game.reset(4), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"players": 3, "powers": "any"}, "players"),
        ({"players": 3, "immunity": True}, "immunity must be False, got True"),
        ({"players": 3, "spaces": 1, "dead_pieces": "#/#/./#/#"}, "dead_pieces must be 0, got '#/"),
        ({"powers": "any", "dead_pieces": 1}, "dead_pieces"),
        ({"powers": "own", "colors": "random"}, "colors"),
        (
            {"spaces": 1, "dead_pieces": "#/#/#/./#", "immunity": True, "colors": "random"},
            "colors must be the same in every game",
        ),
    ],
)
def test_unsolvable_rules_are_refused(fields, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        solver.solve(Rules(**fields), tmp_path / "no.wotd")
    assert not list(tmp_path.iterdir())


def test_tables_are_in_the_cache_folder_of_the_platform():
    assert solver.cache_file(7).name == "perfect-7.wotd"
    assert "wotd-env" in solver.cache_file(7).parts
