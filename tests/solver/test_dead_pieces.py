"""Tables of games with layouts of dead pieces (R15), compared with the rules engine."""

from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pytest
from typer.testing import CliRunner

from tests import reference
from tests.helpers.exact import before_roll, check_oracle, one_turn, random_positions
from tests.helpers.iterated import iterate
from tests.helpers.positions import to_records
from wotd_env import Game, Rules, make_policy, solver, symmetry
from wotd_env.analysis import Advisor
from wotd_env.cli import app
from wotd_env.core.layouts import dead_of, standard_layouts
from wotd_env.planning.planner import plan
from wotd_env.solver import backward
from wotd_env.solver.families import fill_lanes, new_block
from wotd_env.solver.positions import board_of, index_of
from wotd_env.solver.table import describe_needs, size_of

LAYOUT = "#/#/./#/#"
RULES = Rules(spaces=1, dead_pieces=LAYOUT)


def own() -> Rules:
    """Return rules with immunity and different dead pieces on the own paths."""
    return Rules(spaces=1, dead_pieces="#/#/#/./#", immunity=True, colors=("earth", "fire"))


@pytest.fixture(scope="module")
def table():
    return solver.solve(RULES, solver.cache_file(RULES))


def before_turns(rules: Rules, seed: int, count: int, late: bool = False) -> np.ndarray:
    """Return positions before a turn of either player in unfinished games, STATE (N,)."""
    dead, rng = dead_of(str(rules.dead_pieces)), np.random.default_rng(seed)
    state = before_roll(*random_positions(rules.spaces, count, seed, late, dead))
    state["dead"], state["color"] = dead, Game(rules).new(1)["color"]
    state["player"] = rng.integers(0, 2, count)
    if rules.powers != "none":
        state["used"] = rng.integers(0, 4, count)
    return state


def check_one_turn(rules: Rules, table: solver.Table, count: int) -> None:
    """Compare values with expectimax of one turn through the engine."""
    game = Game(rules, skip_forced=False)
    for late in (False, True):
        state = before_turns(rules, 3, count, late)
        values = table.for_seats(game, state)[np.arange(count), state["player"]]
        if rules.powers == "none":
            expected = np.array([one_turn(game, table, position) for position in state])
        else:
            expected = plan(game, state, table.for_seats)[1]
        assert values == pytest.approx(expected, abs=1e-6)


def test_values_equal_one_turn_of_the_engine(table):
    check_one_turn(RULES, table, 40)


@pytest.mark.slow
def test_own_paths_with_different_dead_pieces(tmp_path):
    rules = own()
    table = solver.solve(rules, tmp_path / "own.wotd")
    check_one_turn(rules, table, 20)
    assert list(table.starts) == ["water", "fire"]
    # Seat 1 has the path with a dead piece.
    for seat, value in zip((1, 0), table.starts.values(), strict=True):
        state = Game(rules).new(1, starting_player=seat, roll=False)
        assert table.for_seats(Game(rules), state)[0, seat] == value
    assert solver.verify(table.file) < 5e-7


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_values_equal_one_turn_of_the_engine_on_random_layouts(number, tmp_path):
    rng, known = np.random.default_rng(number), standard_layouts(1) + standard_layouts(2)
    variant = [{}, {"powers": "any"}, {"immunity": True}, {"powers": "own", "colors": ("metal", "earth")}]
    rules = None
    while rules is None or size_of(rules) > 25_000_000:
        paths = rng.permutation(known[rng.integers(len(known))].split("/"))
        rules = Rules(spaces=len(paths[0]), dead_pieces="/".join(paths), **variant[number % 4])
    table = solver.solve(rules, tmp_path / "layout.wotd")
    check_one_turn(rules, table, 25)
    assert solver.verify(table.file) < 5e-7


def test_late_values_equal_plain_value_iteration(table):
    dead = tuple(frozenset({1} if path == "#" else ()) for path in LAYOUT.split("/"))
    pieces = ((6, 3, 5, 0, 2), (4, 5, 1, 3, 0), *[(0,) * 5] * 3)
    values = iterate(reference.Rules(spaces=1), reference.State(dead=dead, pieces=pieces), seat=0)
    assert len(values) > 100
    found = table.for_seats(Game(RULES), to_records(values))[:, 0]
    assert found == pytest.approx(list(values.values()), abs=1e-6)


BOARDS = {
    "basic": (0, False),
    "immunity": (0, True),
    "two kinds": (1, False, 2, (2, 2, 2, 0, 0)),
    "five kinds": (2, False, 2, (6, 2, 4, 0, 0)),
    "equal own paths": (1, True, 2, (2, 2, 0, 2, 2)),
    "different own paths": (1, True, 2, (2, 2, 2, 2, 0)),
}


@pytest.mark.parametrize("total", [0, 3, 8])
@pytest.mark.parametrize("of", BOARDS)
def test_every_position_is_in_one_lane_with_its_mirror(of, total):
    board, block = board_of(*BOARDS[of]), new_block()
    base = np.zeros(len(board.sizes), np.int64)
    found, family, last = [], 0, int(board.families[total])
    while family < last:
        family, lanes = fill_lanes(board, block, total, family, last)
        for lane in range(lanes):
            codes, mirror = block.codes[:, lane]
            assert np.array_equal(mirror[block.partner[lane]], board.flip[codes])
            for half in range(1 if block.twin[lane] else 2):
                found.append(int(index_of(board, base, np.uint64(total), block.codes[half, lane])))
    assert sorted(found) == list(range(board.sizes[total]))


def test_ranks_of_the_largest_boards_fit_into_32_bits():
    for immunity in (False, True):
        assert board_of(3, immunity, 2, (0, 2, 4, 8, 6)).sizes.max() < 2**32
    with pytest.raises(ValueError, match=r"the board has 477,690,785,281 positions, too many to number"):
        board_of(10, False, 2, (0, 2, 4, 8, 16))


def test_a_layout_without_dead_pieces_has_the_basic_table():
    rules = Rules(spaces=1, dead_pieces="././././.")
    assert rules == Rules(spaces=1)
    assert solver.cache_file(rules) == solver.cache_file(1)


def test_equivalent_layouts_have_the_same_table(table):
    paths = np.array([3, 1, 0, 4, 2])
    layout = "/".join(np.array(LAYOUT.split("/"))[np.argsort(paths)])
    other = replace(RULES, dead_pieces=layout)
    assert layout != LAYOUT
    assert solver.cache_file(other) == table.file
    state = before_turns(RULES, 5, 100)
    permuted = symmetry.permute_states(RULES, state, paths)
    assert np.array_equal(table.for_seats(Game(RULES), state), table.for_seats(Game(other), permuted))


def test_positions_of_other_layouts_are_refused(table, folder):
    state = before_turns(RULES, 6, 3)
    state["dead"][1] = dead_of("././#/#/#")
    with pytest.raises(
        ValueError, match=r"game 1: .* with the dead pieces .* dead pieces \./\./#/#/# and colors"
    ):
        table.for_seats(Game(RULES), state)
    basic = solver.solve(1, folder / "1.wotd")
    with pytest.raises(
        ValueError, match=r"table .* is for 1 plain spaces, the game has .* dead pieces #/#/#/#/\.$"
    ):
        basic.check_rules(RULES)
    with pytest.raises(ValueError, match="game 0: "):
        basic.for_seats(Game(spaces=1), state)
    with pytest.raises(ValueError, match=r"mine\[0, 1\] must be an empty space from 0 to 6, got 1"):
        table.value([[0, 1, 0, 0, 0]], [[0] * 5])


def test_tables_are_found_by_their_rules(table):
    assert table.file.name == "perfect-1-x-x-x-x-_.wotd"
    assert table.rules == Rules(spaces=1, dead_pieces="#/#/#/#/.")
    assert table.value([[0] * 5], [[0] * 5]) == table.start
    game = Game(RULES)
    assert Advisor(game).exact
    oracle = make_policy("oracle")
    check_oracle(game, table, oracle)
    missing = Game(replace(RULES, dead_pieces="./#/././."))
    how = r"wotd solve --spaces 1 --dead-pieces '#/\./\./\./\.' --out"
    with mock.patch("wotd_env.policies.oracle.AT_ONCE", 0), pytest.raises(FileNotFoundError, match=how):
        oracle.act(missing, missing.reset(1), np.random.default_rng(0))


def test_the_commands_know_layouts(table):
    run = partial(CliRunner().invoke, app)
    result = run(["solve", "--spaces", "1", "--dead-pieces", LAYOUT])
    assert (result.exit_code, f"{table.start:.7f}" in result.output) == (0, True), result.output
    for rules in (["--spaces", "1", "--dead-pieces", "#/#/#/./#"], ["--table", str(table.file)]):
        result = run(["analyze", "greedy", *rules, "--games", "20"])
        assert result.exit_code == 0, result.output
    result = run(["solve", "--spaces", "1", "--dead-pieces", "2"])
    assert (result.exit_code, "dead_pieces must be 0 or a layout" in result.output) == (2, True)
    assert "1,994,168 positions" in describe_needs(RULES)


def test_a_table_too_large_for_memory_is_not_started(tmp_path):
    needs = r"1,994,168 positions, .* GB of memory, .*; this machine has 0 GB"
    small = mock.patch.object(backward, "physical_memory", return_value=1e6)
    with small, pytest.raises(MemoryError, match=needs):
        solver.solve(RULES, tmp_path / "large.wotd")
    assert not (tmp_path / "large.wotd.part").exists()
