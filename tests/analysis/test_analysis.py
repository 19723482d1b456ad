"""Equities and regrets, compared with one step of the rules engine; grades, compared with known sums."""

import json
import re
from typing import Any

import numpy as np
import pytest

from tests.helpers.commands import wotd
from tests.helpers.exact import ROLLS_AFTER, before_roll, random_positions, value_after, value_of_rolls
from tests.helpers.games import positions
from tests.helpers.learned import some_value
from wotd_env import Game, IllegalActionError, Phase, Rules, analysis, make_policy, notation, solver
from wotd_env.arena import replay
from wotd_env.cli import WRONG_USE
from wotd_env.core.dice import HOLD_KEEP, keep_index
from wotd_env.planning import learned
from wotd_env.policy import ask

SPACES = 0


@pytest.fixture(scope="module")
def game():
    return Game(Rules(spaces=SPACES), skip_forced=False)


@pytest.fixture(scope="module")
def visited(game):
    """Return states of random games at all kinds of decisions."""
    states = positions(game.rules, 400, 30)
    assert {Phase.KEEP, Phase.MOVE, Phase.EXTRA} == set(states["phase"])
    return states


def test_move_equities_equal_one_step_of_the_engine(game, table, visited):
    state = visited[visited["phase"] == Phase.MOVE]
    result = analysis.analyze(game, state, table)
    row, action = np.nonzero(game.legal_actions(state))
    after = state[row]
    game.decide(after, action)
    ends = after["phase"] != Phase.EXTRA
    for seat in (0, 1):
        mine = ends & (state["player"][row] == seat)
        expected = value_after(game, table, after[mine], seat)
        assert result.actions[row[mine], action[mine]] == pytest.approx(expected, abs=1e-6)
    assert np.array_equal(np.isfinite(result.actions), game.legal_actions(state).astype(bool))


def test_extra_turn_equities_equal_one_step_of_the_engine(game, table, visited):
    state = visited[visited["phase"] == Phase.EXTRA]
    result = analysis.analyze(game, state, table)
    for action in (52, 53):
        after = state.copy()
        game.decide(after, np.full(len(after), action))
        own = np.where(after["player"] == state["player"], 1, -1)
        rows = np.arange(len(after))
        mover = after["player"].astype(int)
        value = own * table.value(after["pieces"][rows, mover], after["pieces"][rows, 1 - mover])
        assert result.actions[:, action] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("rolls_left", [2, 1])
def test_hold_equities_equal_expectimax(game, table, rolls_left):
    mine, theirs = random_positions(SPACES, 12, seed=6)
    for position in before_roll(mine, theirs):
        stop = value_of_rolls(game, table, position)
        rolls = stop
        for _ in range(rolls_left - 1):
            rolls = (ROLLS_AFTER @ rolls)[HOLD_KEEP].max(1)
        held = (ROLLS_AFTER @ rolls)[HOLD_KEEP]
        held[:, 31] = stop
        state = np.repeat(position.reshape(1), 20)
        state["rng"] = np.arange(20)
        game.roll(state)
        state["rolls_left"] = rolls_left
        result = analysis.analyze(game, state, table)
        legal = game.legal_actions(state)[:, :32].astype(bool)
        number = [keep_index(sorted(dice)) for dice in state["dice"].tolist()]
        assert result.actions[:, :32][legal] == pytest.approx(held[number][legal], abs=2e-6)
        assert result.equity == pytest.approx(held[number].max(1), abs=2e-6)


def test_equity_before_a_roll_equals_the_table_value(game, table):
    mine, theirs = random_positions(SPACES, 50, seed=8)
    state = before_roll(mine, theirs)
    result = analysis.analyze(game, state, table)
    assert result.equity == pytest.approx(table.value(mine, theirs), abs=1e-6)
    assert not np.isfinite(result.actions).any()


def test_regret_is_zero_for_the_best_action_and_never_negative(game, table, visited):
    result = analysis.analyze(game, visited, table)
    assert (analysis.regret(game, visited, result.best, table) == 0).all()
    rng = np.random.default_rng(1)
    random = make_policy("random").act(game, visited, rng)
    lost = analysis.regret(game, visited, random, table)
    assert (lost >= 0).all()
    assert lost.max() > 0.5
    assert lost == pytest.approx(result.equity - result.actions[np.arange(len(visited)), random], abs=1e-6)


def test_regret_rejects_illegal_actions(game, table, visited):
    with pytest.raises(IllegalActionError):
        analysis.regret(game, visited[:2], [54, 54], table)


def test_analyze_rejects_games_of_other_rules(table):
    other = Game(Rules(players=3, spaces=SPACES))
    with pytest.raises(ValueError, match="players"):
        analysis.analyze(other, other.reset(2), table)


def test_the_oracle_has_no_regret(table):
    grades = analysis.grade(make_policy(f"oracle:{table.file}"), table, games=200)
    assert grades.all.regret == 0
    assert grades.all.errors == grades.all.blunders == 0
    assert grades.worst == ()


@pytest.mark.parametrize("policy", ["random", "greedy"])
def test_regrets_add_up_to_the_result_against_perfect_play(table, policy):
    oracle = make_policy(f"oracle:{table.file}")
    grades = analysis.grade(make_policy(policy), table, games=6000, seed=11, opponent=oracle)
    # Both seats start equally often, so the mean result between perfect players is 0.
    spread = 2.3 * (grades.result_error + grades.all.per_game_error)
    assert grades.result == pytest.approx(-grades.all.per_game, abs=spread)
    assert grades.all.share_against_perfect == pytest.approx(50 + 50 * grades.result, abs=50 * spread)
    assert grades.all.per_game == pytest.approx(sum(kind.per_game for kind in grades.kinds[:-1]))
    assert grades.all.decisions == sum(kind.decisions for kind in grades.kinds[:-1])


def test_blunders_can_be_replayed(table):
    grades = analysis.grade(make_policy("random"), table, games=50, seed=3)
    lost = [blunder.regret for blunder in grades.worst]
    assert lost == sorted(lost, reverse=True)
    assert len(lost) == analysis.WORST
    for blunder in grades.worst:
        assert blunder.rules == Rules(spaces=SPACES, start=0)
        game = Game(blunder.rules)
        state = replay(blunder.rules, blunder.game_seed, blunder.moves)
        assert state.tobytes() == blunder.state.tobytes()
        assert analysis.regret(game, state, [blunder.action], table)[0] == pytest.approx(blunder.regret)
        words, best = (game.describe_action(state, action) for action in (blunder.action, blunder.best))
        position = notation.position(blunder.rules, blunder.state)
        assert str(blunder).endswith(f': {words}; best: {best}; position: "{position}"')


def test_the_text_of_a_blunder_names_the_target_spaces(game, visited):
    moves = visited[(visited["phase"] == Phase.MOVE) & (visited["pieces"][:, 0, 0] == 0)]
    state = moves[game.legal_actions(moves)[:, 32] == 1][:1]
    dice = (state["dice"][0] == 0).sum()
    text = str(analysis.Blunder(0.5, state, 32, 32, game.rules, game_seed=0, moves=()))
    assert text.startswith("regret 500 thousandths with dice water, ")
    assert f": move on water, to number {dice}; best: move on water, to number {dice}; position: " in text


def test_same_seed_gives_same_grades(table):
    one, two, other = (
        analysis.grade(make_policy("random"), table, games=40, seed=seed).as_dict() for seed in (1, 1, 2)
    )
    assert json.dumps(one) == json.dumps(two) != json.dumps(other)


def test_decision_kinds_match_the_phases(game, table, visited):
    kind = analysis.kinds(game, visited)
    swaps = game.legal_actions(visited)[:, 55:].any(1)
    for number, name in enumerate(analysis.KINDS):
        phases = set(visited["phase"][kind == number].tolist())
        expected = {"move": Phase.MOVE, "swap": Phase.MOVE, "extra turn": Phase.EXTRA}.get(name, Phase.KEEP)
        assert phases <= {expected}
    assert np.array_equal(kind == 3, swaps)
    assert np.array_equal(kind == 0, (visited["phase"] == Phase.KEEP) & (visited["rolls_left"] == 2))
    assert kind.max() < len(analysis.kinds_of(game.rules))


def test_tiger_holds_are_a_separate_kind():
    game = Game(Rules(powers="own", colors=("metal", "fire"), spaces=2), skip_forced=False)
    state = positions(game.rules)
    holds = state["phase"] == Phase.KEEP
    tiger = holds & (state["rolls_left"] == 0)
    assert tiger.any()
    kind = np.array(analysis.KINDS)[analysis.kinds(game, state)]
    assert set(kind[tiger]) == {"tiger hold"}
    assert set(kind[holds & ~tiger]) == {"first hold", "second hold"}


def test_grades_and_reviews_count_the_same_errors(table):
    grades = analysis.grade(make_policy("random"), table, games=1, seed=4)
    state = Game(Rules(spaces=SPACES, start=0)).reset(1, seed=4)
    game, rng, actions = Game(Rules(spaces=SPACES, start=0)), np.random.default_rng([4, 0]), []
    while state["phase"][0] != Phase.OVER:
        actions.append(int(ask(make_policy("random"), game, state, rng)[0]))
        game.step(state, actions[-1:])
    notes = notes_of(notation.record_game(game.rules, actions, seed=4), table)
    classes = [analysis.classify(note.regret) for note in notes]
    assert round(grades.all.blunders * grades.all.decisions) == classes.count("blunder") > 0
    assert round(grades.all.errors * grades.all.decisions) == len(classes) - classes.count("")


@pytest.mark.parametrize(
    ("players", "words"),
    [(2, "0.01 of equity, 0.5 % .* 0.05, 2.5 %"), (5, "0.01 of equity, 0.8 % .* 0.05, 4 %")],
)
def test_errors_are_defined_in_equity_and_in_games_won(players: int, words: str):
    assert re.search(words, analysis.define_errors(players))


def notes_of(recorded: notation.RecordedGame, table: solver.Table) -> list[analysis.Note]:
    return analysis.review(recorded, analysis.Advisor(Game(recorded.rules), table)).notes


def test_a_recorded_game_is_reviewed(table):
    rules = Rules(spaces=SPACES)
    game = Game(rules)
    state = game.reset(1, seed=21)
    rng = np.random.default_rng(1)
    actions, lost = [], []
    while state["phase"][0] != Phase.OVER:
        action = make_policy("random").act(game, state, rng)
        lost.append(float(analysis.regret(game, state, action, table)[0]))
        actions.append(int(action[0]))
        game.step(state, action)
    recorded = notation.record_game(rules, actions, seed=21)
    notes = notes_of(recorded, table)
    assert [note.action for note in notes] == actions
    assert [note.regret for note in notes] == pytest.approx(lost)
    worst = max(notes, key=lambda note: note.regret)
    assert worst.regret > analysis.BLUNDER
    assert f"equity {worst.equity:+.3f}: {worst.words}\n  blunder: regret " in str(worst)
    assert str(worst).endswith(f", best: {worst.best_words}")
    moves = [note for note in notes if 32 <= note.action < 37]
    assert moves
    assert all(", to number " in note.words for note in moves)  # this board has no plain spaces

    wrong = recorded._replace(actions=np.full_like(recorded.actions, 54))
    with pytest.raises(IllegalActionError, match="game 0: action 54"):
        notes_of(wrong, table)


def test_pictures_of_regret_are_reproducible(table, tmp_path):
    grades = {name: analysis.grade(make_policy(name), table, games=20) for name in ("random", "greedy")}
    for ending in ("svg", "pdf", "png"):
        for name in ("regret", "again"):
            analysis.picture(grades, tmp_path / f"{name}.{ending}")
        assert (tmp_path / f"regret.{ending}").read_bytes() == (tmp_path / f"again.{ending}").read_bytes()
    assert "dc:date" not in (tmp_path / "regret.svg").read_text()
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"games": 0}, "games must be an integer from 1 to 10000000, got 0"),
        ({"games": 10**12}, "games must be an integer from 1 to 10000000, got 1000000000000"),
        ({"games": 1.5}, "games must be an integer from 1 to 10000000, got 1.5"),
        ({"seed": -1}, "seed must be an integer from 0 to 2\\*\\*64 - 1, got -1"),
        ({"seed": 2**64}, "seed must be an integer from 0 to"),
        ({"policy": "gredy"}, "policy must be one of .*got 'gredy'"),
        ({"opponent": 3}, "policy 3 must have a method act"),
    ],
)
def test_grade_rejects_invalid_arguments(table, wrong, message):
    with pytest.raises(ValueError, match=message):
        analysis.grade(**({"policy": "first", "table": table, "games": 1} | wrong))


def test_grade_accepts_policy_names(table):
    named = analysis.grade("greedy", table, games=20, opponent="first")
    made = analysis.grade(make_policy("greedy"), table, games=20, opponent=make_policy("first"))
    assert named.as_dict() == made.as_dict()
    assert named.spaces == SPACES == named.as_dict()["spaces"]


def test_a_wrong_table_raises_an_error_that_names_it(game):
    state = game.reset(2, seed=1)
    name: Any = "p0.wotd"
    for call in (
        lambda: analysis.analyze(game, state, name),
        lambda: analysis.regret(game, state, [31, 31], name),
        lambda: analysis.grade("greedy", name),
        lambda: analysis.Advisor(game, name),
        lambda: solver.evaluate(make_policy("greedy"), name),
    ):
        with pytest.raises(
            TypeError, match=r"table must be a Table, the result of .*load\(file\), got 'p0.wotd'"
        ):
            call()


# -------------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def record(tmp_path):
    file = tmp_path / "game.txt"
    notation.write_game(file, notation.record_game(Rules(spaces=SPACES), [], seed=1))
    return file


@pytest.mark.parametrize(
    "option",
    ["spaces 0", "games 5", "seed 0", "against greedy", "blunders 3", "out a.json", "plot a.png", "trust"],
)
def test_analyze_rejects_grading_options_for_a_recorded_game(table, record, option):
    result = wotd(f"analyze --{option}", record, "--table", table.file)
    assert result.exit_code == WRONG_USE
    assert f"--{option.split()[0]} is for grading policies, and {record} is a recorded game" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("greedy --spaces 1", "the table {table} is for 0 plain spaces, the game has 1 plain spaces"),
        ("greedy {record}", "give policies, or one recorded game or position, got greedy, {record}"),
        ("greedy --games 1000000000000", "games must be an integer from 1 to 10000000, got 1000000000000"),
        ("greedy --blunders -1", "--blunders must be an integer from 0 to 20, got -1"),
        ("greedy --blunders 21", "--blunders must be an integer from 0 to 20, got 21"),
        ("greedy --seed -1", "seed must be an integer from 0"),
        ("greedy --out nowhere/a.json", "nowhere"),
        ("sb3:{table}", "trust"),
    ],
)
def test_analyze_rejects_invalid_arguments_before_playing(table, record, arguments, message, monkeypatch):
    monkeypatch.setattr("wotd_env.analysis.grading._Tally.play", lambda *_: pytest.fail("games were played"))
    words = arguments.format(table=table.file, record=record)
    result = wotd(f"analyze {words} --quiet", "--table", table.file)
    assert result.exit_code == WRONG_USE
    assert message.format(table=table.file, record=record) in result.output.replace("\n", " ")


def test_a_policy_in_a_folder_with_a_space_is_graded(table, tmp_path, monkeypatch):
    folder = tmp_path / "my runs"
    folder.mkdir()
    (folder / "value.npz").write_bytes(learned.save(some_value(Rules(spaces=SPACES))))
    for name in (str(folder), f"td:{folder / 'value.npz'}"):
        result = wotd("analyze --games 2 --blunders 0 --quiet", name, "--table", table.file)
        assert result.exit_code == 0, result.output


def test_result_error_of_one_game_is_null_in_json(table, tmp_path):
    out = tmp_path / "grades.json"
    result = wotd("analyze greedy --games 1 --quiet", "--table", table.file, "--out", out)
    assert result.exit_code == 0, result.output
    grades = json.loads(out.read_text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert grades["greedy"]["result_error"] is None


def test_analyze_prints_the_board_of_the_table(table):
    result = wotd("analyze first --games 5 --blunders 0 --quiet", "--table", table.file)
    assert result.exit_code == 0
    assert "first: 5 games in self-play on 0 plain spaces" in result.stdout
    assert "thousandths with" not in result.stdout


def test_analyze_passes_trust_to_make_policy(table, monkeypatch):
    asked = []

    def make(name, *, trust=False):
        asked.append((name, trust))
        return make_policy("first")

    monkeypatch.setattr("wotd_env.policies.make_policy", make)
    result = wotd("analyze sb3:a --against sb3:b --trust --games 2 --quiet", "--table", table.file)
    assert result.exit_code == 0, result.output
    assert set(asked) == {("sb3:a", True), ("sb3:b", True)}
