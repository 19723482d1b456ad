"""Advice: the equity of every action, from the best available source."""

import shutil

import numpy as np
import pytest

from tests.helpers.games import positions
from wotd_env import Game, Phase, Rules, make_policy, notation, solver
from wotd_env.analysis import BLUNDER, ERROR, Advisor, analyze, review
from wotd_env.planning.planner import best_actions, plan
from wotd_env.policies.td import BundledValue


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "wotd_env.analysis.equity.cache_file", lambda rules: tmp_path / f"perfect-{rules.spaces}.wotd"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("rules", "source"),
    [
        (Rules(), "td-2-none"),
        (Rules(powers="any"), "td-2-any"),
        (Rules(spaces=3), "td-2-none-3"),
        (Rules(spaces=4), "hand-made"),
        (Rules(players=3, powers="own"), "td-3-own"),
        (Rules(players=5, powers="any", immunity=True), "hand-made"),
        (Rules(players=4, dead_pieces=5, powers="any"), "hand-made"),
    ],
)
def test_every_legal_action_has_an_equity(cache, rules, source):
    game = Game(rules)
    advisor = Advisor(game)
    assert source in advisor.source
    assert not advisor.exact
    state = positions(game.rules)
    result = advisor.analyze(state)
    assert np.array_equal(np.isfinite(result.actions), game.legal_actions(state).astype(bool))
    assert np.abs(result.equity).max() <= 1 + 1e-6
    assert np.array_equal(best_actions(result.actions, result.equity), result.best)
    assert np.array_equal(result.actions.max(1), result.equity)


def test_equities_do_not_depend_on_the_batch(cache):
    game = Game(Rules(players=3, powers="own"))
    advisor = Advisor(game)
    state = positions(game.rules)[:100]
    together = advisor.analyze(state)
    for i in range(len(state)):
        single = advisor.analyze(state[i : i + 1])
        assert np.array_equal(single.actions[0], together.actions[i])


def test_a_table_in_the_cache_is_the_best_source(cache, table):
    shutil.copy(table.file, cache / "perfect-0.wotd")
    game = Game(Rules(spaces=0))
    advisor = Advisor(game)
    assert advisor.exact
    assert "perfect-0.wotd" in advisor.source
    assert advisor.skipped == ()
    state = positions(game.rules)
    exact = analyze(game, state, table)
    ours = advisor.analyze(state)
    assert np.array_equal(ours.equity, exact.equity)
    assert np.array_equal(ours.actions, exact.actions)
    assert np.array_equal(ours.best, exact.best)


def test_the_solution_is_not_exact_with_a_low_turn_limit(cache, table):
    shutil.copy(table.file, cache / "perfect-0.wotd")
    advisor = Advisor(Game(Rules(spaces=0, max_turns=2)))
    assert not advisor.exact
    assert advisor.source == "the exact solution of the game without a turn limit, perfect-0.wotd"


def test_a_missing_table_is_not_solved(cache):
    advisor = Advisor(Game(Rules(spaces=0)))
    assert not advisor.exact
    assert "wotd solve --spaces 0" in advisor.skipped[0]
    assert list(cache.iterdir()) == []


def test_an_invalid_table_file_is_skipped(cache):
    (cache / "perfect-7.wotd").write_text("something else")
    advisor = Advisor(Game())
    assert "td-2-none" in advisor.source
    assert "is not a table" in advisor.skipped[0]


def test_damage_found_by_two_threads_skips_one_source(cache, table, monkeypatch):
    shutil.copy(table.file, cache / "perfect-0.wotd")
    game = Game(Rules(spaces=0))
    advisor = Advisor(game)
    state = game.reset(1, seed=0)
    asked = []

    def damaged(game, state, value):
        asked.append(value)
        if len(asked) == 1:
            advisor.analyze(state)  # another thread, before this one sees the error
        if value is asked[0]:
            raise solver.TableError("damaged")
        return plan(game, state, value)

    monkeypatch.setattr("wotd_env.analysis.equity.plan", damaged)
    advisor.analyze(state)
    assert advisor.skipped[0] == "damaged"
    assert advisor.skipped.count("damaged") == 1
    assert asked[0] is asked[1]
    assert asked[2] is asked[3]


def test_a_damaged_table_is_replaced_by_the_next_source(cache, table):
    file = cache / "perfect-0.wotd"
    content = bytearray(table.file.read_bytes())
    content[-1000] ^= 1
    file.write_bytes(content)
    game = Game(Rules(spaces=0))
    advisor = Advisor(game)
    exact_before = advisor.exact
    state = positions(game.rules)
    result = advisor.analyze(state)
    assert (exact_before, advisor.exact) == (True, False)
    assert "td-2-none-0" in advisor.source
    assert "damaged" in advisor.skipped[0]
    assert np.array_equal(result.actions, plan(game, state, BundledValue())[0])


def test_equity_of_a_finished_game_is_its_result(cache):
    game = Game(Rules(spaces=0, players=3))
    state = game.reset(8, seed=0)
    rng = np.random.default_rng(0)
    while not game.is_over(state).all():
        game.step(state, make_policy("greedy").act(game, state, rng))
    result = Advisor(game).analyze(state)
    assert np.array_equal(result.equity, game.rewards(state)[np.arange(8), state["player"]])
    assert (result.best == 0).all()


def played(rules: Rules, seed: int, *names: str) -> notation.RecordedGame:
    """Play a game between policies, and return its record."""
    game = Game(rules)
    state = game.reset(1, seed=seed)
    rng = np.random.default_rng(seed)
    players = [make_policy(name) for name in names]
    actions = []
    while not game.is_over(state)[0]:
        actions.append(int(players[state["player"][0]].act(game, state, rng)[0]))
        game.step(state, actions[-1:])
    return notation.record_game(rules, actions, seed=seed, players=names)


@pytest.mark.parametrize("seed", range(4))
def test_regrets_and_luck_add_up_to_the_result_of_a_solved_game(cache, table, seed):
    shutil.copy(table.file, cache / "perfect-0.wotd")
    rules = Rules(spaces=0, start=0)
    summary = review(played(rules, seed, "random", "planner"))
    start = table.start
    assert summary.exact
    for seat, other in ((0, 1), (1, 0)):
        mine, theirs = summary.seats[seat], summary.seats[other]
        expected = (start if seat == 0 else -start) + mine.luck - mine.regret + theirs.regret
        assert mine.result == pytest.approx(expected, abs=1e-4)


def test_a_given_table_is_the_only_source(cache, table, tmp_path):
    recorded = played(Rules(spaces=0), 1, "random", "greedy")
    game = Game(recorded.rules)
    by_table = review(recorded, Advisor(game, table))
    shutil.copy(table.file, cache / "perfect-0.wotd")
    assert by_table.notes == review(recorded).notes
    assert by_table.exact
    damaged = tmp_path / "damaged.wotd"
    content = bytearray(table.file.read_bytes())
    content[-1000] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(solver.TableError, match="damaged"):
        Advisor(game, solver.load(damaged)).analyze(positions(game.rules))
    with pytest.raises(ValueError, match="is for 0 plain spaces, the game has 1"):
        Advisor(Game(Rules(spaces=1)), table)


@pytest.mark.parametrize("rules", [Rules(powers="any"), Rules(players=3, powers="own", spaces=3)])
def test_a_review_counts_the_errors_of_each_seat(cache, rules):
    names = ("random", "planner", "greedy")[: rules.players]
    recorded = played(rules, 2, *names)
    summary = review(recorded)
    assert sum(seat.luck for seat in summary.seats) == pytest.approx(0, abs=1e-4)
    assert [seat.result for seat in summary.seats] == Game(rules).rewards(recorded.states[-1:])[0].tolist()
    for number, seat in enumerate(summary.seats):
        regrets = np.array([note.regret for note in summary.notes if note.seat == number])
        assert seat.decisions == len(regrets)
        assert seat.regret == pytest.approx(regrets.sum())
        assert seat.blunders == (regrets >= BLUNDER).sum()
        assert seat.errors == (regrets >= ERROR).sum()
    assert summary.seats[0].blunders > 0
    assert {note.number for note in summary.notes} <= set(range(len(recorded.actions)))
    assert all(note.action == recorded.actions[note.number] for note in summary.notes)


def test_luck_is_the_change_of_equity_by_rolls(cache):
    rules = Rules(players=3, start=1)
    recorded = played(rules, 5, "greedy", "greedy", "greedy")
    luck = review(recorded).luck
    game = Game(rules, skip_forced=False)
    advisor = Advisor(game)
    unrolled = game.reset(1, seed=5, roll=False)
    assert luck[0] == advisor.analyze(recorded.states[:1]).equity[0] - advisor.analyze(unrolled).equity[0]
    for i, action in enumerate(recorded.actions.tolist()):
        after = recorded.states[i : i + 1].copy()
        game.decide(after, [action])
        if after["phase"][0] != Phase.CHANCE:
            assert luck[i + 1] == 0
        else:
            equity = advisor.analyze(recorded.states[i + 1 : i + 2]).equity[0]
            assert luck[i + 1] == pytest.approx(equity - advisor.analyze(after).equity[0], abs=1e-6)


def test_unfinished_games_are_reviewed(cache):
    whole = played(Rules(), 3, "random", "random")
    part = notation.record_game(whole.rules, whole.actions[:5], seed=3)
    summary, of_whole = review(part), review(whole)
    assert [note.number for note in summary.notes] == [
        note.number for note in of_whole.notes if note.number < 5
    ]
    assert [seat.result for seat in summary.seats] == [0, 0]
    empty = review(notation.record_game(whole.rules, [], seed=3))
    assert empty.notes == []
