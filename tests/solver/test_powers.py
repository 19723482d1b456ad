"""Tables of games with powers, compared with the rules engine through the turn planner."""

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.helpers.exact import before_roll, check_oracle, random_positions
from wotd_env import Game, Power, Rules, analysis, make_policy, solver
from wotd_env.analysis import Advisor
from wotd_env.cli import app
from wotd_env.planning.planner import plan
from wotd_env.solver import storage
from wotd_env.solver.positions import board_of
from wotd_env.solver.storage import ALL_POWERS, sections_of

ANY = Rules(spaces=0, powers="any")
PAIRS = [("water", "fire"), ("metal", "earth"), ("fire", "wood")]  # every power occurs


def own(*colors: str, spaces: int = 0) -> Rules:
    return Rules(spaces=spaces, powers="own", colors=colors)


def make(folder, rules: Rules) -> solver.Table:
    colors = "-".join(rules.colors) if isinstance(rules.colors, tuple) else "any"
    return solver.solve(rules, folder / f"{rules.spaces}-{colors}.wotd")


@pytest.fixture(scope="session", params=[*(own(*pair) for pair in PAIRS), ANY], ids=["wf", "me", "fw", "any"])
def table(request, folder):
    return make(folder, request.param)


def before_turns(table: solver.Table, seed: int) -> np.ndarray:
    """Return positions before a turn of either player, with every combination of used powers, STATE (N,)."""
    states = []
    for late in (False, True):
        mine, theirs = random_positions(table.spaces, 40, seed, late)
        for player in (0, 1):
            for used in range(4):
                state = before_roll(mine, theirs, player)
                state["color"] = Game(table.rules).reset(1, seed=0)["color"]
                state["used"] = used
                states.append(state)
    return np.concatenate(states)


def check_one_turn(table: solver.Table) -> None:
    """Compare the values with turns that the planner plans on the engine, from the values after them."""
    game = Game(table.rules)
    states = before_turns(table, seed=1)
    planned = plan(game, states, table.for_seats)[1]
    known = table.for_seats(game, states)[np.arange(len(states)), states["player"]]
    np.testing.assert_allclose(known, planned, atol=1e-6)


def test_values_equal_one_turn_of_the_engine(table):
    check_one_turn(table)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    [
        own("earth", "fire", spaces=1),
        Rules(spaces=1, powers="any"),
        Rules(spaces=0, powers="any", immunity=True),
        Rules(spaces=0, powers="own", immunity=True, colors=("wood", "earth")),
    ],
)
def test_values_equal_one_turn_of_the_engine_on_larger_boards(rules, tmp_path):
    table = make(tmp_path, rules)
    check_one_turn(table)
    assert solver.verify(table.file) < 1e-6


def test_the_seats_may_have_the_colors_in_either_order(table):
    if table.rules.powers != "own":
        pytest.skip("the colors do not matter")
    assert isinstance(table.rules.colors, tuple)
    game = Game(own(*reversed(table.rules.colors)))
    state = game.reset(1, seed=0, starting_player=0, roll=False)
    second = list(table.starts.values())[1]
    assert table.for_seats(game, state)[0].tolist() == pytest.approx([second, -second])


def test_the_residual_covers_all_sections(table):
    assert 0 < solver.verify(table.file) < 1e-6


def test_a_power_never_hurts_its_holder(table):
    values = dict(zip(table.sections, table.values, strict=True))
    for mine, theirs in table.sections:
        assert (values[mine, theirs] >= values[0, theirs] - 2e-6).all()
        assert (values[mine, theirs] <= values[mine, 0] + 2e-6).all()


def test_the_section_without_powers_is_the_basic_game(table, folder):
    basic = solver.solve(0, folder / "0.wotd")
    assert np.array_equal(table.values[0], basic.values[0])
    assert table.value([[0] * 5], [[0] * 5], (0, 0)) == pytest.approx(basic.start)


def test_sections_are_solved_after_those_that_they_need():
    for rules in (ANY, own("wood", "earth")):
        known = set()
        for pair in sections_of(rules):
            known |= set(pair)
            for mine, theirs in pair:
                needed = {(theirs, mine), (mine, theirs)} | ({(theirs, 0), (0, theirs)} if mine else set())
                assert needed <= known
    assert sections_of(ANY)[-1] == [(ALL_POWERS, ALL_POWERS)]
    assert sections_of(own("wood", "earth"))[-1][0] == (1 << Power.ANXIETY, 1 << Power.DRAGON)


def test_an_interrupted_table_is_continued(tmp_path, folder):
    """The work stops within the sections of the second color."""
    rules = own("metal", "earth")
    done = 0

    def stop(now: int, total: int) -> None:
        nonlocal done
        done = now
        if now > total * 4 // 7:
            raise KeyboardInterrupt

    file = tmp_path / "powers.wotd"
    with pytest.raises(KeyboardInterrupt):
        solver.solve(rules, file, progress=stop)
    part = tmp_path / "powers.wotd.part"
    layers = storage.read_header(part)["layers"]
    size = len(board_of(0).sizes)
    assert 2 * size < layers < 3 * size
    first: list[int] = []
    table = solver.solve(rules, file, progress=lambda now, total: first.append(now))
    assert first[0] > 0.9 * done, "finished layers are not solved again"
    assert np.array_equal(table.values, make(folder, rules).values)


def test_a_damaged_layer_is_solved_again(tmp_path, folder, caplog):
    rules = own("metal", "earth")
    whole = make(folder, rules)
    content = bytearray(whole.file.read_bytes())
    header = whole.header | {"sha256": None}
    file = tmp_path / "powers.wotd"
    part = tmp_path / "powers.wotd.part"
    content[whole.layout.offset(3, 4) + 99] ^= 1
    part.write_bytes(content)
    with part.open("r+b", buffering=0) as stream:
        storage.write_header(stream, header)
    table = solver.solve(rules, file)
    assert "is damaged" in caplog.text
    assert np.array_equal(table.values, whole.values)


def test_values_do_not_depend_on_the_number_of_threads(tmp_path, folder):
    rules = own("metal", "earth")
    three = solver.solve(rules, tmp_path / "three.wotd", threads=3)
    assert np.array_equal(three.values, make(folder, rules).values)


def test_a_compact_table_has_all_sections(table, tmp_path):
    small = solver.compact(table.file, tmp_path / "small.wotd")
    assert np.abs(small.values * small.unit - table.values).max() <= small.header["compact_error"] < 2e-5
    game = Game(table.rules)
    states = before_turns(table, seed=2)
    np.testing.assert_allclose(small.for_seats(game, states), table.for_seats(game, states), atol=2e-5)


def test_oracle_analysis_and_grades_work_with_powers(table):
    game = Game(table.rules)
    oracle = make_policy(f"oracle:{table.file}")
    assert Advisor(game, table).exact
    check_oracle(game, table, oracle)
    grades = analysis.grade("planner", table, 200).all
    assert 0 < grades.regret < 0.1


def test_a_table_of_other_colors_is_refused(folder):
    table = make(folder, own("water", "fire"))
    with pytest.raises(
        ValueError, match="powers own water fire, the game has 0 plain spaces, powers own water metal"
    ):
        table.check_rules(own("metal", "water"))
    with pytest.raises(ValueError, match="powers must be one of"):
        table.value([[0] * 5], [[0] * 5], (ALL_POWERS, 0))
    with pytest.raises(ValueError, match="basic game only"):
        solver.evaluate(make_policy("first"), table)


def test_the_command_names_the_needs_and_the_value_of_each_color(tmp_path):
    out = str(tmp_path / "powers.wotd")
    command = ["solve", "--spaces", "0", "--powers", "own", "--colors", "fire,water", "--out", out]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "2,272,424 positions" in result.output
    assert "(water)" in result.output
    assert "(fire)" in result.output


def test_the_command_grades_policies_with_powers(folder):
    file = str(make(folder, ANY).file)
    result = CliRunner().invoke(app, ["analyze", "greedy", "--table", file, "--games", "20"])
    assert result.exit_code == 0, result.output
    assert "tiger hold" in result.output
    result = CliRunner().invoke(app, ["analyze", "greedy", "--table", file, "--powers", "own"])
    assert result.exit_code != 0
    assert "the game has 0 plain spaces, powers own water fire" in " ".join(result.output.split())


def test_tables_are_found_by_their_rules():
    assert solver.cache_file(own("wood", "fire", spaces=3)).name == "perfect-3-own-fire-wood.wotd"
    assert solver.cache_file(Rules(spaces=2, powers="any")).name == "perfect-2-any.wotd"
