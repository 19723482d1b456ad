"""Positions of training and test layouts, and the agents that are graded on them."""

import dataclasses

import numpy as np
import pytest

from wotd_env import Game, Rules, analysis, benchmark, make_policy, solver
from wotd_env.benchmark import generalization, measuring
from wotd_env.benchmark.generalization import BOARDS, TEST, TRAIN, by_split, graded
from wotd_env.core.layouts import layout_of
from wotd_env.reporting import Estimate


def layouts_in(positions):
    return np.array([layout_of(dead, positions.rules.spaces) for dead in positions.state["dead"]])


@pytest.mark.parametrize("rules", BOARDS.values(), ids=benchmark.positions.describe_board)
def test_bundled_positions_have_the_graded_layouts(rules):
    positions = benchmark.load(rules=rules)
    layouts = layouts_in(positions)
    found = list(dict.fromkeys(layouts.tolist()))
    assert found == graded(rules.spaces)
    rows = by_split(rules, positions.state)
    assert {*layouts[rows[TEST]]} <= {*benchmark.layouts("test", rules.spaces)}
    assert {*layouts[rows[TRAIN]]} <= {*benchmark.layouts("train", rules.spaces)}
    assert rows[TRAIN].any()
    assert rows[TEST].any()
    assert np.array_equal(rows[TEST], ~rows[TRAIN])
    games = [{*positions.game[layouts == layout].tolist()} for layout in found]
    assert len(set.union(*games)) == sum(map(len, games))


def test_the_first_positions_are_taken_from_every_layout():
    everything = benchmark.load(rules=BOARDS[2])
    names, counts = np.unique(layouts_in(everything.first(1)), return_counts=True)
    assert {*names} == {*layouts_in(everything)}
    assert counts.max() <= 15
    assert counts.min() >= 10


def test_bundled_equities_are_those_of_the_layout(tmp_path):
    layout = "##/##/##/##/##"
    table = solver.solve(Rules(spaces=2, dead_pieces=layout), tmp_path / "layout.wotd")
    positions = benchmark.load(rules=BOARDS[2])
    rows = layouts_in(positions) == layout
    assert rows.sum() > 100
    state, legal = positions.state[rows], positions.mask[rows] == 1
    exact = analysis.analyze(Game(table.rules), state, table).actions
    assert np.array_equal(positions.equity[rows][legal], exact[legal])


def test_the_score_is_the_mean_regret_in_test_layouts():
    result = benchmark.measure("greedy", BOARDS[2], size=2, games=2)
    positions = result.positions()
    regret = positions.regret(np.array(result.actions))
    test = by_split(positions.rules, positions.state)[TEST]
    assert result.score == result.regret[TEST]["all"]
    assert result.score.value == pytest.approx(regret[test].mean())
    assert result.regret[TRAIN]["all"].value == pytest.approx(regret[~test].mean())
    assert list(result.win_shares) == [2]
    other = dataclasses.replace(result, agent="other")
    assert [row[0] for row in benchmark.compare(result, other).rows if "layouts" in row[0]] == [TRAIN, TEST]


def test_the_table_shows_the_difference_between_the_splits():
    result = benchmark.measure("greedy", BOARDS[2], size=2, games=2)
    splits = {TRAIN: Estimate(0.002, 0.001, 0.003), TEST: Estimate(0.005, 0.005, 0.005)}
    regret = result.regret | {
        name: dict.fromkeys(("all", *benchmark.STAGES), each) for name, each in splits.items()
    }
    shown = measuring.tables(dataclasses.replace(result, regret=regret))[0]
    assert shown.rows[-1] == ["test minus training", *["+3.00 ±1.00"] * 4]


def test_other_rules_have_no_splits():
    positions = benchmark.load(rules=Rules(spaces=2))
    assert by_split(positions.rules, positions.state) == {}
    result = benchmark.measure("greedy", Rules(spaces=2), size=2, games=2, players=2)
    assert TEST not in result.regret
    assert result.score == result.regret["all"]["all"]


def test_an_agent_for_one_board_is_refused_with_the_cure():
    agent = make_policy("td")
    with pytest.raises(ValueError, match="no trained model of td"):
        benchmark.measure(agent, generalization.BOARDS[2], size=2, games=2)
