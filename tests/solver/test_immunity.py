"""Tables of games with immunity (R14), compared with the rules engine."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest

from tests import reference
from tests.helpers.exact import before_roll, check_oracle, one_turn, random_positions
from tests.helpers.iterated import iterate
from tests.helpers.positions import to_records
from tests.helpers.tables import short_paths
from wotd_env import Game, Rules, make_policy, solver
from wotd_env.analysis import Advisor
from wotd_env.solver.positions import board_of
from wotd_env.symmetry import permute_states

RULES = Rules(spaces=0, immunity=True)
GAME = Game(replace(RULES, colors="random"), skip_forced=False)


@pytest.fixture(scope="module")
def table():
    return solver.solve(RULES, solver.cache_file(RULES))


@pytest.fixture
def tiny():
    with short_paths(0, True):
        yield


def before_turns(seed: int, count: int, late: bool = False) -> np.ndarray:
    """Return positions before a turn of either player, with random colors, STATE (N,)."""
    mine, theirs = random_positions(0, count, seed, late)
    state = np.concatenate([before_roll(mine, theirs, player) for player in (0, 1)])
    state["color"] = np.random.default_rng(seed).permuted(state["color"], axis=1)
    return state


def value_of(table: solver.Table, state: np.ndarray) -> np.ndarray:
    """Return the values for the players to move."""
    values: np.ndarray = table.for_seats(GAME, state)[np.arange(len(state)), state["player"]]
    return values


@pytest.mark.parametrize("late", [False, True])
def test_values_equal_one_turn_of_the_engine(table, late):
    state = before_turns(3, 60, late)
    expected = [one_turn(GAME, table, position) for position in state]
    assert value_of(table, state) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("colors", [(0, 1), (4, 2), (3, 4)])
def test_late_values_equal_plain_value_iteration(table, colors):
    color = (*colors, *sorted({*range(5)} - {*colors}))
    pieces = ((5, 2, 4, 1, 0), (3, 4, 2, 5, 0), *[(0,) * 5] * 3)
    start = reference.State(pieces=pieces, color=color)
    values = iterate(reference.Rules(spaces=0, immunity=True), start, seat=0)
    found = table.for_seats(GAME, to_records(values))[:, 0]
    assert found == pytest.approx(list(values.values()), abs=1e-6)


def test_values_cover_all_positions():
    board = board_of(0, True)
    assert board.positions == comb(31 + 2, 3) * 31**2 == 5_243_216
    assert board_of(10, True).sizes.max() < 2**32, "ranks are uint32"


def test_values_do_not_depend_on_the_paths_of_the_colors(table):
    state = before_turns(4, 200)
    paths = np.random.default_rng(5).permuted(np.tile(np.arange(5), (len(state), 1)), axis=1)
    permuted = permute_states(GAME.rules, state, paths)
    assert not np.array_equal(permuted["color"], state["color"])
    assert np.array_equal(value_of(table, permuted), value_of(table, state))


def test_the_first_two_columns_are_the_own_paths(table):
    mine, theirs = random_positions(0, 200, seed=6)
    state = before_roll(mine, theirs)
    assert np.array_equal(table.value(mine, theirs), value_of(table, state))
    state["color"] = [2, 3, 0, 1, 4]
    assert not np.array_equal(table.value(mine, theirs), value_of(table, state))


def test_values_differ_from_the_basic_game(table, folder):
    basic = solver.solve(0, folder / "0.wotd")
    assert table.start == pytest.approx(0.2735214, abs=2e-6)
    assert basic.start - table.start > 2e-5
    with pytest.raises(ValueError, match=r"0 plain spaces, immunity, the game has 0 plain spaces$"):
        table.check_rules(Rules(spaces=0))


@pytest.mark.parametrize("colors", [[1, 1, 2, 3, 4], [5, 0, 1, 2, 3], [0, -1, 1, 2, 3]])
def test_impossible_colors_are_rejected(table, colors):
    state = before_turns(7, 2)
    state["color"][1] = colors
    with pytest.raises(
        ValueError,
        match=f"game 1: .* with the dead pieces and colors of the rules; .*{colors[0]}, {colors[1]}",
    ):
        table.for_seats(GAME, state)


def test_the_residual_covers_all_positions(table):
    assert 0 < solver.verify(table.file) < 1e-6


def test_powers_may_be_combined_with_immunity(tiny, tmp_path):
    none = solver.solve(RULES, tmp_path / "none.wotd")
    both = solver.solve(replace(RULES, powers="any"), tmp_path / "any.wotd")
    assert np.array_equal(both.values[0], none.values[0])
    assert solver.verify(both.file) < 1e-6
    values = dict(zip(both.sections, both.values, strict=True))
    for mine, theirs in both.sections:
        assert (values[mine, theirs] >= values[0, theirs] - 2e-6).all()


def test_tables_are_found_by_their_rules(table):
    assert table.file.name == "perfect-0-immunity.wotd"
    rules = Rules(spaces=3, powers="own", immunity=True)
    assert solver.cache_file(rules).name == "perfect-3-own-water-fire-immunity.wotd"
    game = Game(Rules(spaces=0, immunity=True, colors=("wood", "metal")))
    assert Advisor(game).exact
    oracle = make_policy("oracle")
    check_oracle(game, table, oracle)
    missing = Game(Rules(spaces=1, immunity=True))
    with pytest.raises(FileNotFoundError, match="wotd solve --spaces 1 --immunity"):
        oracle.act(missing, missing.reset(1), np.random.default_rng(0))
