"""TD(lambda) by self-play: learning, training runs, and bad input."""

import dataclasses
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch as th

from agents import command, evaluate, loop, td
from agents.evaluate import MEASURING
from agents.td import ValueNetwork, self_play
from tests.helpers.games import positions
from tests.helpers.learned import some_value
from tests.helpers.training import (
    LEARNING_TD,
    TINY_TD,
    VARIANTS,
    arguments,
    contents,
    resumed,
    same,
    started,
    trained,
)
from tools import models as tool
from wotd_env import Game, Rules, analysis, make_policy, models, solver
from wotd_env.evaluation import Evaluation, match
from wotd_env.planning import learned
from wotd_env.planning.playing import play_turns
from wotd_env.policies import oracle
from wotd_env.policies.planner import Planner
from wotd_env.policy import check_plays

# ------------------------------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("rules", [Rules(spaces=0), Rules(players=3, spaces=1, powers="any")], ids=str)
def test_self_play_targets_follow_the_td_lambda_formula(rules: Rules):
    game, n, turns, td_lambda = Game(rules), rules.players, 30, 0.7
    value = some_value(rules)
    state = game.reset(8, seed=4, roll=False)
    mine = state.copy()
    drawn = np.random.default_rng(7).random((turns, 8)) < 0.2
    samples = self_play(game, state, value, drawn, td_lambda)

    rng = np.random.default_rng(7)
    met = []  # per turn: the games before it, values before and after, whether the trace continues
    for _ in range(turns):
        before = mine.copy()
        at_random = rng.random(8) < 0.2
        worth = play_turns(game, mine, value, at_random).before
        over = game.is_over(mine)
        after = np.where(over[:, None], game.rewards(mine), value(game, mine))
        game.reset(mine, where=over, roll=False)
        met.append((before, worth, after, ~over & ~at_random))
    assert (mine == state).all()
    ended = 0
    for i in range(8):
        following = None
        for t in range(turns - 1, -1, -1):
            before, worth, after, continues = (each[i] for each in met[t])
            target = worth
            if following is not None and continues:
                target = target + td_lambda * (following - after)
            following = target
            ended += not continues
            chances = (np.roll(target, -int(before["player"])) * (n - 1) + 1) / n
            np.testing.assert_allclose(samples.chances[t, i], chances, atol=1e-5)
            features = value.features.write(game, met[t][0][i : i + 1])[0]
            np.testing.assert_array_equal(samples.active[t, i], features)
    assert ended > 20
    np.testing.assert_allclose(samples.chances.sum(2), 1, atol=1e-5)


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_planner_values_equal_the_network_outputs(rules: Rules):
    th.manual_seed(3)
    network = ValueNetwork(rules, 64)
    game, state = Game(rules), positions(rules)
    value = network.value()
    with th.no_grad():
        logits = network(th.from_numpy(value.features.write(game, state)))
    n = rules.players
    expected = (n * logits.softmax(1).numpy() - 1) / (n - 1)
    seats = (np.arange(n) - state["player"][:, None]) % n
    np.testing.assert_allclose(value(game, state), np.take_along_axis(expected, seats, 1), atol=1e-5)


def test_gradient_steps_fit_the_targets():
    learner = td.Learner(dataclasses.replace(TINY_TD, updates=1, batches=300, average=0.9, replay=1))
    game = learner.game
    state = game.reset(20, seed=9, roll=False)
    for _ in range(5):
        play_turns(game, state, learner.value)
    active = learner.value.features.write(game, state).astype(np.int32)
    chances = np.linspace([0.1, 0.9], [0.9, 0.1], 20, dtype=np.float32)
    distinct = np.unique(np.sort(active, 1), axis=0, return_index=True)[1]
    rows = distinct[np.arange(learner.per_update) % len(distinct)]
    learner.samples.active[0], learner.samples.chances[0] = active[rows], chances[rows]
    numbers = learner.learn(0)
    assert 0 < numbers["explained_variance"] < 1
    assert numbers["gradient_norm"] > 0
    with th.no_grad():
        fitted = learner.averaged(th.from_numpy(active[distinct])).softmax(1)
    np.testing.assert_allclose(fitted, chances[distinct], atol=0.02)


# ------------------------------------------------------------------------------------------------------------- running


def test_training_starts_from_the_network_that_init_names_and_can_be_stopped(tmp_path: Path):
    first = trained(TINY_TD, tmp_path / "first")
    with started(TINY_TD, tmp_path / "second", init=str(first.folder)) as second:
        for mine, its in zip(second.learner.value.network, first.learner.value.network, strict=True):  # type: ignore[attr-defined]
            np.testing.assert_array_equal(mine, its)
        second.stop = True
        with pytest.raises(loop.Stopped):
            loop.train(second, lambda run: None)
    assert second.updates == 1
    check_plays(make_policy(str(second.folder)), TINY_TD.rules)  # a stopped run is a policy
    measured = [row._replace(done=0, seconds=0) for row in first.curve[-3:]]
    assert [row._replace(seconds=0) for row in second.curve] == measured

    trained(TINY_TD, tmp_path / "whole", init=str(first.folder))
    assert not same(tmp_path / "whole", first.folder)
    shutil.rmtree(first.folder)  # resuming does not need it
    with resumed(second.folder) as rest:
        loop.train(rest, lambda run: None)
    assert same(rest.folder, tmp_path / "whole")


@pytest.mark.parametrize("replay", [1, 2, 9])
def test_an_update_learns_from_the_samples_of_the_last_updates(replay: int, monkeypatch: pytest.MonkeyPatch):
    learner = td.Learner(dataclasses.replace(TINY_TD, replay=replay))
    per_update = learner.per_update
    seen: list[th.Tensor] = []
    forward = ValueNetwork.forward

    def noted(self: ValueNetwork, active: th.Tensor) -> th.Tensor:
        seen.append(active)
        return forward(self, active)

    monkeypatch.setattr(ValueNetwork, "forward", noted)
    columns = learner.samples.active.shape[2]
    for number in range(5):
        active = np.full((per_update, columns), number, np.int32)
        learner.store(number, td.Samples(active, np.full((per_update, 2), 0.5, np.float32)))
        seen.clear()
        learner.learn(number)
        numbers = {int(value) for active in seen for value in active.unique()}
        assert number in numbers
        assert numbers <= set(range(max(0, number + 1 - replay), number + 1))


@pytest.mark.slow
def test_self_play_learns(tmp_path: Path):
    run = trained(LEARNING_TD, tmp_path / "run")
    assert loop.strengths(run, 2000, MEASURING)["greedy"].wins > 1150
    table = solver.solve(0, tmp_path / "0.wotd")
    untrained = Planner(ValueNetwork(run.settings.rules, 64).value())
    before, after = (
        analysis.grade(player, table, games=500).all.regret for player in (untrained, run.learner.policy())
    )
    assert after < 0.05 * before


# --------------------------------------------------------------------------------------------------------- perfect play


@pytest.fixture(scope="session")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of the smallest board. Tests must not modify it."""
    file = tmp_path_factory.mktemp("solved") / "0.wotd"
    solver.solve(0, file)
    return file


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda file: file.write_bytes(b"way-of-the-dragon values 1\n" + bytes(9999)), "another version"),
        (lambda file: file.write_text("nothing of the kind"), "is not a table"),
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), "is damaged"),
        (lambda file: file.write_bytes(file.read_bytes()[:-99_999] + bytes(99_999)), "is damaged"),
    ],
)
def test_an_unusable_table_does_not_fail_a_finished_run(
    tmp_path: Path,
    solved: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], Any],
    words: str,
):
    table = Path(shutil.copy(solved, tmp_path / "a [red] table.wotd"))
    damage(table)
    monkeypatch.setattr(oracle, "cache_file", lambda rules: table)
    assert command.main([*arguments(TINY_TD, tmp_path / "run"), "--spaces", "0", "--updates", "1"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "of 100 games against planner" in shown[-1]
    assert "No comparison with perfect play: " in shown[-1]
    assert words in shown[-1]
    assert table.name in shown[-1]


def test_an_estimate_below_zero_is_no_negative_number_of_wins(solved: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(oracle, "cache_file", lambda rules: solved)
    grade = SimpleNamespace(share_against_perfect=-0.41, share_against_perfect_error=0.8, regret=0.02)
    monkeypatch.setattr(evaluate, "grade", lambda *arguments, **options: SimpleNamespace(all=grade))
    shown = evaluate.strength("random", Rules(spaces=0), {"planner": Evaluation(10, 0, 0, 10, 0.0, 0.0, 0.3)})
    assert shown.startswith("The agent would win 0.0 of 100 games against perfect play (-0.41 % ± 0.80")


@pytest.mark.parametrize("cached", [True, False])
def test_the_last_line_shows_the_win_share_against_perfect_play(
    tmp_path: Path, solved: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
):
    monkeypatch.setattr(oracle, "cache_file", lambda rules: solved if cached else tmp_path / "missing")
    monkeypatch.setattr(oracle, "AT_ONCE", 10**6)
    rules = Rules(spaces=0)
    value = some_value(rules)
    (tmp_path / "value.npz").write_bytes(learned.save(value))
    results = {
        "random": Evaluation(10, 9, 0, 1, 0.9, 0.6, 1.0),
        "planner": Evaluation(8, 2, 0, 6, 0.25, 0.0, 0.7),
    }
    shown = evaluate.strength(str(tmp_path), rules, results)
    assert (tmp_path / "missing").exists() != cached
    assert re.match(r"The agent would win \d+\.\d of 100 games against perfect play", shown)
    found = re.search(r"\((\d+\.\d+) % ± (\d+\.\d+), 95 % interval of 2,000 graded games", shown)
    assert found is not None
    share, band = map(float, found.groups())
    games = 8000
    played = match(Game(rules), Planner(value), make_policy(f"oracle:{solved}"), games, seed=1)
    three_deviations = 150 / games**0.5
    assert abs(share - 100 * (played.wins + played.ties / 2) / games) < band + three_deviations
    assert 0 < band < 2
    assert share < 48


def test_the_last_line_names_the_command_that_solves_the_board():
    shown = evaluate.strength("td", Rules(spaces=3), {"planner": Evaluation(8, 2, 0, 6, 0.25, 0.0, 0.7)})
    by_games = "The agent wins 25.0 of 100 games against planner (8 games)."
    assert shown.startswith(f"{by_games} No comparison with perfect play: ")
    assert "wotd solve --spaces 3" in shown


def test_a_finished_run_can_be_bundled_as_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    bundle, run, fixed = (tmp_path / name for name in ("bundle", "run", "fixed"))
    bundle.mkdir()
    monkeypatch.setattr(models, "FOLDER", bundle)
    rules = ("--spaces", "7", "--powers", "own", "--max-turns", "30")
    assert command.main([*arguments(TINY_TD, run), *rules, "--colors", "random"]) == 0
    file = tool.put(run, bundle)
    assert {models.find("td", Rules(powers="own", colors=colors)) for colors in ("random", None)} == {file}
    assert command.main([*arguments(TINY_TD, fixed), *rules]) == 0
    before = contents(bundle)
    assert tool.main([str(tmp_path / "nothing")]) == 2
    assert "error: there is no checkpoint" in capsys.readouterr().err
    half = trained(TINY_TD, tmp_path / "half", rules=Rules(), updates=1)
    with pytest.raises(ValueError, match=r"half is not finished: python train\.py --resume"):
        tool.put(half.folder, bundle)
    with pytest.raises(
        ValueError, match=r"the network in .*fixed is made for .*colors=None.*colors='random'"
    ):
        tool.put(fixed, bundle)
    assert contents(bundle) == before
