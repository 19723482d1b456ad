"""The exact solution against the rules engine: nothing here uses the solver's own passes or moves."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.exact import before_roll, one_turn, random_positions
from wotd_env import Game, Phase, Rules, make_policy, solver
from wotd_env.solver.table import read_header, write_header


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="session", params=[0, 1])
def table(request, folder):
    return solver.solve(request.param, folder / f"{request.param}.wotd", threads=1)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("player", [0, 1])
def test_values_satisfy_the_engines_rules(table, late, player):
    game = Game(Rules(spaces=table.spaces), skip_forced=False)
    mine, theirs = random_positions(table.spaces, 60, seed=3 + player, late=late)
    positions = before_roll(mine, theirs, player)
    expected = [one_turn(game, table, position) for position in positions]
    assert table.value(mine, theirs) == pytest.approx(expected, abs=1e-6)


def test_value_of_a_finished_game_is_its_result(table):
    s = table.spaces
    # More points; fewer points; equal points, more numbered pieces; a tie.
    mine = np.array([[5, 5, 5, 5, 5], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 2, 1, 2, 1]]) + s
    theirs = np.array([[4, 4, 4, 4, 4], [2, 2, 2, 2, 2], [5, 0, 0, 0, 0], [2, 1, 2, 1, 2]]) + s
    mine[3, 4], theirs[3, 4] = s + 3, s + 3 - 1
    theirs[3, 0] = s + 3
    state = before_roll(mine, theirs)
    state["phase"] = Phase.OVER
    expected = Game(Rules(spaces=s)).rewards(state)[:, 0]
    assert expected.tolist() == [1, -1, 1, 0]
    assert table.value(mine, theirs).tolist() == expected.tolist()


def test_paths_are_alike(table):
    mine, theirs = random_positions(table.spaces, 200, seed=7)
    paths = np.random.default_rng(8).permuted(np.tile(np.arange(5), (200, 1)), axis=1)
    shuffled = np.take_along_axis(mine, paths, 1), np.take_along_axis(theirs, paths, 1)
    assert np.array_equal(table.value(mine, theirs), table.value(*shuffled))


def test_to_be_on_turn_is_worth_something(table):
    mine, theirs = random_positions(table.spaces, 500, seed=9)
    on_turn, waiting = table.value(mine, theirs), -table.value(theirs, mine)
    assert np.abs(on_turn).max() <= 1
    assert on_turn.mean() > waiting.mean()


def test_residual_is_measured_and_kept_in_the_file(folder):
    table = solver.solve(0, folder / "residual.wotd", threads=2)
    assert table.header["residual"] is None
    residual = solver.verify(table.file)
    assert 0 < residual < 1e-6
    assert solver.load(table.file).header["residual"] == residual


def test_a_wrong_value_shows_in_the_residual(folder):
    table = solver.solve(0, folder / "wrong.wotd", threads=1)
    content = bytearray(table.file.read_bytes())
    value = np.frombuffer(content, "<f4", offset=4096)
    value[1000] += 0.01
    header = table.header | {"sha256": hashlib.sha256(content[4096:]).hexdigest()}
    table.file.write_bytes(content)
    with table.file.open("r+b") as stream:
        write_header(stream, header)
    assert solver.verify(table.file) > 0.001


def test_values_do_not_depend_on_the_threads(folder):
    one = solver.solve(0, folder / "one.wotd", threads=1)
    three = solver.solve(0, folder / "three.wotd", threads=3)
    assert np.array_equal(one.values, three.values)


def test_a_run_that_is_interrupted_goes_on_where_it_was(folder):
    whole = solver.solve(0, folder / "whole.wotd")
    file = folder / "interrupted.wotd"
    calls = []

    def interrupt(done, total):
        calls.append(done)
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.solve(0, file, progress=interrupt)
    assert not file.exists()
    with pytest.raises(solver.TableError, match="unfinished"):
        solver.load(f"{file}.part")
    again = []
    table = solver.solve(0, file, progress=lambda done, total: again.append(done))
    assert again[0] > calls[0]
    assert again[-1] == table.board.positions
    assert np.array_equal(table.values, whole.values)


def test_a_killed_run_goes_on_where_it_was(folder):
    whole = solver.solve(0, folder / "before.wotd")
    file = folder / "killed.wotd"
    program = (
        "import os, signal, sys\n"
        "from wotd_env import solver\n"
        "solver.solve(0, sys.argv[1], progress=lambda d, t: d > t // 2 and os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    assert (
        subprocess.run([sys.executable, "-c", program, str(file)], check=False).returncode == -signal.SIGKILL
    )
    assert read_header(folder / "killed.wotd.part")["layers"] > 0
    assert np.array_equal(solver.solve(0, file).values, whole.values)


def test_files_that_are_no_tables_are_named(folder):
    good = solver.solve(0, folder / "good.wotd").file.read_bytes()
    broken = {
        "foreign": (b"PK" + bytes(10_000), "not a table"),
        "empty": (b"", "not a table"),
        "short": (good[:-4], "damaged"),
        "flipped": (good[:9000] + bytes([good[9000] ^ 1]) + good[9001:], "checksum"),
    }
    for name, (content, message) in broken.items():
        file = folder / f"{name}.wotd"
        file.write_bytes(content)
        with pytest.raises(solver.TableError, match=message) as error:
            solver.load(file)
        assert str(file) in str(error.value)
    with pytest.raises(FileNotFoundError, match="wotd solve"):
        solver.load(folder / "missing.wotd")


def test_other_files_are_not_overwritten(folder):
    file = folder / "mine.wotd"
    file.write_bytes(b"something else")
    with pytest.raises(solver.TableError):
        solver.solve(0, file)
    assert file.read_bytes() == b"something else"
    one = solver.solve(0, folder / "zero.wotd").file
    with pytest.raises(solver.TableError, match="0 spaces"):
        solver.solve(1, one)
    with pytest.raises(ValueError, match="spaces"):
        solver.solve(11, folder / "eleven.wotd")


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        ([[0] * 4], [[0] * 4], "integer arrays"),
        ([[0] * 5], [[0] * 5] * 2, "integer arrays"),
        ([[0] * 5], [[0, 0, 0, 6, 0]], r"theirs\[0, 3\]"),
        ([[0, 2, 0, 0, 0]], [[0, 2, 0, 0, 0]], r"mine\[0, 1\]"),
        ([[0.5] * 5], [[0.5] * 5], "integer arrays"),
    ],
)
def test_positions_that_cannot_be_are_named(folder, mine, theirs, message):
    table = solver.solve(0, folder / "asked.wotd")
    with pytest.raises(ValueError, match=message):
        table.value(mine, theirs)


# ---------------------------------------------------------------------------------------------------------- the oracle


def play(game: Game, policies, games: int, seed: int) -> np.ndarray:
    """Return the results of seat 0, who begins, (games,)."""
    state = game.reset(games, seed=seed, starting_player=0)
    rng = np.random.default_rng(seed)
    while (state["phase"] != Phase.OVER).any():
        actions = np.zeros(games, np.int64)
        for seat, policy in enumerate(policies):
            due = (state["phase"] != Phase.OVER) & (state["player"] == seat)
            actions[due] = policy.act(game, state[due], rng)
        game.step(state, actions)
    return game.rewards(state)[:, 0]


def interval(results: np.ndarray) -> float:
    """Return 4.5 standard errors of the mean: a true value lies outside once in 150,000 tests."""
    return float(4.5 * results.std() / len(results) ** 0.5)


def test_perfect_players_reach_the_start_value(table):
    oracle = make_policy(f"oracle:{table.file}")
    results = play(Game(Rules(spaces=table.spaces)), [oracle, oracle], 10_000, seed=1)
    assert results.mean() == pytest.approx(table.start, abs=interval(results))


@pytest.mark.parametrize("opponent", ["random", "first", "greedy"])
def test_oracle_does_no_worse_than_the_value_promises(table, opponent):
    oracle, other = make_policy(f"oracle:{table.file}"), make_policy(opponent)
    game = Game(Rules(spaces=table.spaces))
    begins = play(game, [oracle, other], 4000, seed=2)
    follows = -play(game, [other, oracle], 4000, seed=3)
    assert begins.mean() > table.start - interval(begins)
    assert follows.mean() > -table.start - interval(follows)


def test_oracle_makes_small_tables_when_they_are_needed(tmp_path, monkeypatch):
    monkeypatch.setattr("wotd_env.policies.oracle.cache_file", lambda spaces: tmp_path / f"{spaces}.wotd")
    oracle = make_policy("oracle")
    game = Game(Rules(spaces=0))
    play(game, [oracle, make_policy("random")], 3, seed=1)
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
def test_oracle_says_which_games_it_does_not_know(table, rules, message):
    game = Game(Rules(**{"spaces": table.spaces, **rules}))
    with pytest.raises(ValueError, match=message):
        make_policy(f"oracle:{table.file}").act(game, game.reset(4), np.random.default_rng(0))


def test_tables_are_kept_where_the_platform_keeps_caches():
    assert solver.cache_file(7).name == "perfect-7.wotd"
    assert "wotd-env" in solver.cache_file(7).parts


def test_a_compact_table_is_half_as_large_and_says_how_far_it_is_off(table, tmp_path):
    small = solver.compact(table.file, tmp_path / "small.wotd")
    assert small.file.stat().st_size - 4096 == (table.file.stat().st_size - 4096) // 2
    mine, theirs = random_positions(table.spaces, 500, seed=5, late=False)
    differences = np.abs(small.value(mine, theirs) - table.value(mine, theirs))
    assert 0 < differences.max() <= small.header["compact_error"] < 1.6e-5
    assert small.start == pytest.approx(table.start, abs=small.header["compact_error"])
    game = Game(Rules(spaces=table.spaces))
    state = game.reset(200, seed=1)
    rng = np.random.default_rng(0)
    one, other = (make_policy(f"oracle:{each.file}").act(game, state, rng) for each in (table, small))
    assert (one == other).mean() > 0.95


def test_what_cannot_be_made_compact_is_named(folder, tmp_path):
    table = solver.solve(0, folder / "0.wotd")
    small = solver.compact(table.file, tmp_path / "small.wotd")
    with pytest.raises(solver.TableError, match="compact already"):
        solver.compact(small.file, tmp_path / "other.wotd")
    with pytest.raises(solver.TableError, match="verify the table that it was made of"):
        solver.verify(small.file)
    with pytest.raises(FileExistsError, match="there already"):
        solver.compact(table.file, small.file)
