"""Measured agents: regrets, win shares, result files, comparisons, and the command."""

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from tests.helpers.arena_policies import Lowest
from tests.helpers.commands import wotd
from tests.helpers.damage import survive
from tools import benchmark as page
from wotd_env import Game, Rules, analysis, benchmark, solver
from wotd_env.benchmark import STAGES, Result, drawing, measuring
from wotd_env.cli import FAILED, FORFEITS, INTERRUPTED
from wotd_env.policies.function import FunctionPolicy
from wotd_env.reporting import Estimate

SMALL = Rules(spaces=0)
OWN = Rules(players=3, powers="own", colors="random")
OPTIONS: dict[str, Any] = {"games": 40, "size": 20}


@pytest.fixture(scope="module")
def measured():
    return {name: benchmark.measure(name, SMALL, **OPTIONS) for name in ("oracle", "greedy", "random")}


@pytest.fixture
def files(measured, tmp_path):
    paths = {name: tmp_path / f"{name}.json" for name in measured}
    for name, path in paths.items():
        path.write_text(measured[name].to_json())
    return paths


def test_perfect_play_has_no_regret(measured):
    perfect = measured["oracle"]
    means = [mean for by_stage in perfect.regret.values() for mean in by_stage.values()]
    assert {mean.value for mean in means} == {0.0}
    assert perfect.against_perfect.value == 0.5


def test_weaker_agents_have_more_regret_and_win_less(measured):
    of = [measured[name] for name in ("oracle", "greedy", "random")]
    regrets = [each.regret["all"]["all"].value for each in of]
    assert regrets == sorted(regrets)
    assert regrets[1] > 0
    shares = [each.win_shares[2]["planner"].value for each in of]
    assert shares == sorted(shares, reverse=True)
    assert of[1].against_perfect.low > of[2].against_perfect.high


def test_regrets_equal_the_means_of_the_positions(measured):
    greedy = measured["greedy"]
    positions = greedy.positions()
    regret = positions.regret(np.array(greedy.actions))
    assert len(regret) == len(greedy.actions) <= 20 * 15
    assert greedy.regret["all"]["all"].value == pytest.approx(regret.mean())
    kind, stage = analysis.KINDS.index("second hold"), STAGES.index("endgame")
    rows = (positions.kind == kind) & (positions.stage == stage)
    cell = greedy.regret["second hold"]["endgame"]
    assert cell.value == pytest.approx(regret[rows].mean())
    # one decision a game: an ordinary mean
    spread = 1.959964 * regret[rows].std(ddof=1) / np.sqrt(rows.sum())
    assert cell.high - cell.value == pytest.approx(spread)
    assert 0 <= cell.low <= cell.value


def test_decisions_of_a_game_count_as_one_observation():
    positions = benchmark.load(rules=SMALL).first(2)
    doubled = positions.take(np.arange(len(positions.game)).repeat(2))
    regret = np.random.default_rng(0).random(len(positions.game))
    one = measuring.mean_regret(positions, regret)["all"]["all"]
    both = measuring.mean_regret(doubled, regret.repeat(2))["all"]["all"]
    assert both == pytest.approx(one)


def test_shares_have_all_references_and_numbers_of_players(measured):
    assert list(measured["random"].win_shares) == [2, 3, 4, 5]
    assert list(measured["random"].win_shares[3]) == ["greedy", "planner", "td"]
    # td has no network for four players here
    assert list(measured["random"].win_shares[4]) == ["greedy", "planner"]
    assert list(measured["greedy"].win_shares[3]) == ["planner", "td"]
    assert all(0 <= share.low <= share.high <= 1 for share in measured["random"].win_shares[5].values())


def test_equal_seeds_give_equal_results(measured):
    again = benchmark.measure("random", SMALL, **OPTIONS)
    assert dataclasses.replace(again, decisions_per_second=0) == dataclasses.replace(
        measured["random"], decisions_per_second=0
    )
    other = benchmark.measure("random", SMALL, seed=1, **OPTIONS)
    assert other.actions != again.actions


def test_a_result_file_round_trips(measured, files):
    for name, path in files.items():
        assert Result.read(path) == measured[name]
    content = json.loads(files["greedy"].read_text())
    assert content["versions"].keys() == {"wotd-env", "numpy", "numba"}
    assert content["positions_digest"] == benchmark.load(rules=SMALL).first(20).digest()


def test_an_object_is_measured_under_the_name_of_its_class():
    result = benchmark.measure(Lowest(), SMALL, games=4, size=2)
    assert result.agent == "tests.helpers.arena_policies:Lowest"
    assert result.regret["all"]["all"].value > 0


def test_the_default_board_is_the_longest_that_the_agent_plays():
    class Short(Lowest):
        def check_rules(self, rules):
            if rules.spaces > 1 or rules.players > 2:
                raise ValueError(f"plays short boards, not {rules}")

    result = benchmark.measure(Short(), games=4, size=2)
    assert result.rules == Rules(spaces=1)
    assert list(result.win_shares) == [2]

    class Nowhere(Lowest):
        def check_rules(self, rules):
            raise ValueError("plays nothing")

    with pytest.raises(ValueError, match="Nowhere plays on none of the boards"):
        benchmark.measure(Nowhere(), games=4, size=2)


def test_comparison_pairs_the_regrets(measured):
    shown = benchmark.compare(measured["greedy"], measured["random"])
    rows = {name: cells for name, *cells in shown.rows}
    assert {"all", "first hold", "endgame", "win share, perfect play"} <= rows.keys()
    positions = measured["greedy"].positions()
    regrets = [positions.regret(np.array(measured[name].actions)) for name in ("greedy", "random")]
    difference = float(rows["all"][2].split(" ±")[0])
    assert difference == pytest.approx(1000 * (regrets[0] - regrets[1]).mean(), abs=0.01)
    same = benchmark.compare(measured["greedy"], measured["greedy"])
    assert same.rows[0][3] == "+0.00 ±0.00"


def test_comparison_of_shares_adds_their_errors(measured):
    one, other = measured["greedy"], measured["random"]
    one = dataclasses.replace(one, against_perfect=Estimate(0.4, 0.37, 0.43))
    other = dataclasses.replace(other, against_perfect=Estimate(0.1, 0.06, 0.14))
    rows = {name: cells for name, *cells in benchmark.compare(one, other).rows}
    assert rows["win share, perfect play"] == ["40.0 % ±3.0", "10.0 % ±4.0", "+30.0 ±5.0 %"]


def test_only_results_for_equal_positions_compare(measured):
    other = benchmark.measure("greedy", SMALL, games=4, size=2)
    with pytest.raises(ValueError, match="measure both with equal options"):
        benchmark.compare(measured["greedy"], other)
    changed = dataclasses.replace(other, positions_digest="0")
    with pytest.raises(ValueError, match="measure it again"):
        benchmark.compare(changed, changed)


def test_the_command_measures_prints_and_writes(tmp_path, measured):
    file = tmp_path / "greedy.json"
    options = ("--spaces", 0, "--games", 40, "--size", 20, "--quiet")
    result = wotd("benchmark", "greedy", *options, "--out", file)
    assert result.exit_code == 0, result.stderr
    assert re.search(r"greedy on 0 plain spaces, [\d,]+ decisions/s", result.stdout)
    assert "perfect play" in result.stdout
    assert Result.read(file).actions == measured["greedy"].actions


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("table", "┃ measure"),
        ("markdown", "| measure | greedy | random | first minus second |\n| --- | ---: | ---: | ---: |"),
        ("latex", r"measure & greedy & random & first minus second \\"),
    ],
)
def test_the_command_compares_in_every_format(files, format, expected):
    result = wotd("benchmark", "--compare", files["greedy"], files["random"], "--format", format)
    assert result.exit_code == 0, result.stderr
    assert expected in result.stdout


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format": 9}', '{"format": 1, "actions": 3}', "[" * 99_999]
)
def test_foreign_files_are_not_results(tmp_path, content):
    file = tmp_path / "other.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"other.json must be a result file of wotd benchmark"):
        Result.read(file)


@pytest.fixture(scope="module")
def small() -> Result:
    return benchmark.measure("greedy", SMALL, games=4, size=2)


@pytest.mark.parametrize("flips", [500, pytest.param(5000, marks=pytest.mark.slow)])
def test_damaged_results_are_refused_or_unchanged(tmp_path, small, flips):
    file = tmp_path / "result.json"
    file.write_text(small.to_json())
    assert survive(file, Result.read, flips) > flips // 2  # other flips change only blanks


def changed(result: Result, **values: Any) -> str:
    """Return a result file without a digest, with other values."""
    old = json.loads(result.to_json())
    del old["digest"]
    return json.dumps(old | {"format": 1} | values)


def test_results_without_a_digest_are_read(tmp_path, small):
    file = tmp_path / "result.json"
    file.write_text(changed(small))
    assert Result.read(file) == small
    old = json.loads(changed(small))
    del old["left_out"]  # missing in older files
    file.write_text(json.dumps(old))
    assert Result.read(file).left_out == {}
    file.write_text(changed(small, format=2))
    with pytest.raises(ValueError, match=r"result\.json must be a result file .* does not match its digest"):
        Result.read(file)


@pytest.mark.parametrize(
    "values",
    [
        {"games": "many"},
        {"games": None},
        {"seed": 1.5},
        {"size": "all"},
        {"agent": 7},
        {"hardware": ["a"]},
        {"decisions_per_second": "fast"},
        {"against_perfect": 0},
        {"against_perfect": {"value": 1, "low": None, "high": 2}},
        {"against_perfect": {"value": math.nan, "low": 0, "high": 1}},
        {"win_shares": {"2": {"greedy": {"value": "0.5", "low": 0, "high": 1}}}},
        {"win_shares": {"2": [1]}},
        {"regret": {"all": 3}},
        {"actions": [1, 2]},
        {"versions": 3},
        {"more": 1},
    ],
    ids=str,
)
def test_wrong_types_in_results_are_refused(tmp_path, small, values):
    file = tmp_path / "result.json"
    file.write_text(changed(small, **values))
    with pytest.raises(ValueError, match=r"result\.json must be a result file of wotd benchmark"):
        Result.read(file)


@pytest.mark.parametrize("actions", ["", "3", "1 " * 999, "99999999999999999999"])
def test_results_with_other_actions_are_not_compared(tmp_path, small, actions):
    file = tmp_path / "result.json"
    file.write_text(changed(small, actions=actions))
    for pair in ((small, Result.read(file)), (Result.read(file), small)):
        with pytest.raises(ValueError, match="action"):
            benchmark.compare(*pair)


def test_failing_agents_are_reported(monkeypatch):
    options = ("--spaces", 0, "--games", 40, "--size", 5, "--quiet")
    raises = wotd("benchmark", "tests.helpers.arena_policies:Malformed", *options)
    assert raises.exit_code == FAILED
    assert "tests.helpers.arena_policies:Malformed" in raises.stderr


def test_forfeits_are_reported(monkeypatch):
    forfeited = dataclasses.replace(benchmark.measure("greedy", SMALL, games=4, size=2), forfeits=7)
    monkeypatch.setattr("wotd_env.benchmark.measure", lambda *arguments, **options: forfeited)
    result = wotd("benchmark", "greedy", "--quiet")
    assert result.exit_code == FORFEITS
    assert "7 games were forfeited" in result.stderr


def test_the_command_draws_positions(tmp_path):
    file = tmp_path / "train.parquet"
    result = wotd("positions", "--spaces", 0, "--split", "train", "--size", 2, "--out", file, "--quiet")
    assert result.exit_code == 0, result.stderr
    positions = benchmark.load("train", file=file)
    assert f"{len(positions.game)} positions" in result.stdout
    assert Game(SMALL).rules == positions.rules


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("--powers", "any"), Rules(spaces=3, powers="any")),
        (("--players", 4), Rules(players=4)),
        (("--players", 3, "--powers", "own"), OWN),
        (("--players", 3, "--powers", "own", "--spaces", 7), OWN),
    ],
)
def test_the_default_board_has_the_wanted_players_and_powers(options, wanted):
    result = wotd("benchmark", "greedy", *options, "--games", 2, "--size", 2, "--quiet", "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert Rules.from_dict(json.loads(result.stdout)["rules"]) == wanted


def test_positions_of_three_players_with_own_powers_have_random_colors(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "GAMES", 1)
    equities = np.zeros((2, 1, Game(OWN).num_actions), np.float32)
    # real ones take a minute
    monkeypatch.setattr(drawing, "roll_out", lambda state, *_, **__: equities.repeat(len(state), 1))
    file = tmp_path / "own.parquet"
    options = ("--players", 3, "--powers", "own", "--size", 1, "--out", file, "--quiet")
    result = wotd("positions", *options)
    assert result.exit_code == 0, result.stderr
    assert benchmark.load(file=file).rules == OWN


def test_the_command_draws_positions_with_powers(tmp_path):
    table = solver.solve(Rules(spaces=0, powers="any"), tmp_path / "any.wotd")
    file = tmp_path / "any.parquet"
    options = ("--spaces", 0, "--powers", "any", "--table", table.file, "--size", 2, "--out", file, "--quiet")
    result = wotd("positions", *options)
    assert result.exit_code == 0, result.stderr
    assert benchmark.load(file=file).rules == table.rules


def test_the_results_page_has_every_bundled_board_and_policy(measured):
    row = page.table([measured["greedy"]]).splitlines()[-1]
    assert row.startswith("| 0 | `greedy` | ")
    assert page.table([measured["greedy"]]).count("\n") == 2
    published = page.PAGE.read_text()
    rows = [(page._named(rules.spaces, rules), name) for rules, name in page.wanted(False)]
    rows += [(page._named(rules.players, rules), name) for rules, name in page.wanted(True)]
    for game, name in rows:
        assert f"| {game} | `{name}` | " in published, "run `python -m tools.benchmark`"


# --------------------------------------------------------------------------------------- parts that are left out


def fails_above_two(observation, mask):
    if len(observation) != Game().observation_size:
        raise RuntimeError(f"two players only, got {len(observation)}")
    return mask.argmax()


@pytest.fixture
def no_table(monkeypatch):
    def missing(self, game):
        raise FileNotFoundError("there is no table; make it once with: wotd solve --spaces 7")

    monkeypatch.setattr("wotd_env.policies.oracle.Oracle.table", missing)


def test_an_agent_plays_only_the_games_it_is_made_for(no_table):
    agent = FunctionPolicy(lambda observation, mask: mask.argmax(1), batched=True, rules=Rules())
    found: list[Result] = []
    result = benchmark.measure(agent, games=4, size=2, finished=found.append)
    assert list(result.win_shares) == [2]
    assert result.left_out == {
        "perfect play": "there is no table; make it once with: wotd solve --spaces 7",
        **{
            f"{n} players": f"the function is made for players=2, not for players={n}: choose players=2"
            for n in (3, 4, 5)
        },
    }
    assert found[-1] == result
    pending = [part for part, why in found[0].left_out.items() if why == "not measured yet"]
    assert pending == ["greedy, 2 players", "planner, 2 players", "td, 2 players"]
    assert [len(each.win_shares.get(2, {})) for each in found] == [0, 1, 2, 3]


def test_the_default_board_has_the_players_and_powers_of_the_agent():
    for rules in (Rules(players=4), Rules(spaces=3, powers="any")):
        agent = FunctionPolicy(lambda observation, mask: mask.argmax(1), batched=True, rules=rules)
        assert benchmark.measure(agent, games=4, size=2).rules == rules


def test_the_chosen_number_of_players_is_obeyed(measured):
    result = benchmark.measure("random", SMALL, players=2, games=4, size=2)
    assert list(result.win_shares) == [2]
    assert list(benchmark.measure("random", players=3, games=4, size=2).win_shares) == [3]
    with pytest.raises(ValueError, match="players must be that of rules, 2, got 3"):
        benchmark.measure("random", SMALL, players=3)
    with pytest.raises(ValueError, match="no positions of 0 players"):
        benchmark.measure("random", players=0)


def test_finished_parts_of_a_failing_agent_are_printed_and_written(tmp_path, no_table):
    file, options = tmp_path / "a.json", ("--games", 4, "--size", 2, "--quiet")
    result = wotd("benchmark", f"{__name__}:FAILS", *options, "--out", file)
    assert result.exit_code == FAILED
    assert "two players only" in result.stderr
    assert "give its FunctionPolicy the argument rules" in " ".join(result.stderr.split())
    words = " ".join(result.stdout.split())
    assert "Win share by opponent" in words
    assert "left out: perfect play: there is no table; make it once with: wotd solve --spaces 7" in words
    kept = Result.read(file)
    assert list(kept.win_shares) == [2]
    assert list(kept.left_out) == ["perfect play", "3 players", "4 players", "5 players"]
    obeyed = wotd("benchmark", f"{__name__}:FAILS", *options, "--players", 2)
    assert obeyed.exit_code == 0, obeyed.stderr


def test_finished_parts_of_an_interrupted_command_are_printed_and_written(tmp_path, monkeypatch):
    meet = measuring.meet

    def interrupted(name, policy, reference, *rest):
        if reference == "planner":
            raise KeyboardInterrupt
        return meet(name, policy, reference, *rest)

    monkeypatch.setattr(measuring, "meet", interrupted)
    file = tmp_path / "a.json"
    result = wotd("benchmark", "first", "--spaces", 0, "--games", 4, "--size", 2, "--quiet", "--out", file)
    assert result.exit_code == INTERRUPTED
    assert "left out: planner, 2 players: not measured yet" in result.stdout
    assert list(Result.read(file).win_shares[2]) == ["greedy"]


def test_result_files_contain_no_folders_of_the_machine(files, tmp_path, monkeypatch):
    working, home = tmp_path / "working folder", tmp_path / "home"
    working.mkdir()
    monkeypatch.chdir(working)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    reasons = {
        "3 players": f"{working / 'runs' / 'model.onnx'} is for two",
        "perfect play": f"no {home / 'a.wotd'}",
    }
    text = dataclasses.replace(Result.read(files["greedy"]), left_out=reasons).to_json()
    assert str(tmp_path) not in text
    assert json.loads(text)["left_out"] == {
        "3 players": f"{Path('runs') / 'model.onnx'} is for two",
        "perfect play": f"no {Path('~') / 'a.wotd'}",
    }


def test_a_damaged_table_leaves_out_perfect_play(tmp_path, monkeypatch):
    file = tmp_path / "0.wotd"
    solver.solve(0, file)
    damaged = bytearray(file.read_bytes())
    damaged[100] ^= 255
    file.write_bytes(damaged)
    monkeypatch.setattr("wotd_env.policies.oracle.cache_file", lambda rules: file)
    result = benchmark.measure("first", SMALL, players=2, games=4, size=2)
    assert result.left_out.keys() == {"perfect play"}
    assert f"wotd solve --spaces 0 --out {file}" in result.left_out["perfect play"]


def test_time_without_compilation_leaves_out_compiled_functions():
    ticks = iter(range(100))

    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x)

    with measuring.without_compilation(
        lambda: next(ticks)
    ) as seconds:  # ticks 0, then 1 and 2 around `outer`
        outer(1)
        assert seconds() == 2  # ticks 0 to 3 without the tick from 1 to 2
        outer(1)
        assert seconds() == 3


FAILS = FunctionPolicy(fails_above_two)
