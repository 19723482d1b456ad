"""TD(lambda) by self-play: learning, training runs, and bad input."""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch as th
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from typer.testing import CliRunner

from agents import checkpoint, command, evaluate, runs, td
from agents.checkpoint import CheckpointError
from agents.evaluate import Counts
from agents.td import Network, Run, Samples, self_play
from tests.helpers.games import positions
from tests.helpers.learned import some_value
from tests.helpers.training import TINY_TD, arguments, contents, flip, in_games, put, refusal, same, trained
from tools import models as tool
from wotd_env import Game, Rules, analysis, make_policy, models, solver
from wotd_env.cli import app as wotd
from wotd_env.planning import learned
from wotd_env.planning.playing import play_turns
from wotd_env.policies.planner import Planner

VARIANTS = [
    Rules(players=3, spaces=1, powers="any"),
    Rules(players=5, spaces=1, powers="own", immunity=True, colors="random"),
    Rules(players=4, spaces=2, dead_pieces=5, start="loser", max_turns=20),
]

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
            np.testing.assert_allclose(samples.chances[t * 8 + i], chances, atol=1e-5)
            np.testing.assert_array_equal(
                samples.active[t * 8 + i], value.features.write(game, met[t][0][i : i + 1])[0]
            )
    assert ended > 20
    np.testing.assert_allclose(samples.chances.sum(1), 1, atol=1e-5)


@pytest.mark.parametrize("rules", [Rules(), *VARIANTS], ids=str)
def test_planner_values_equal_the_network_outputs(rules: Rules):
    th.manual_seed(3)
    network = Network(rules, 64)
    game, state = Game(rules), positions(rules)
    value = network.value()
    with th.no_grad():
        logits = network(th.from_numpy(value.features.write(game, state)))
    n = rules.players
    expected = (n * logits.softmax(1).numpy() - 1) / (n - 1)
    seats = (np.arange(n) - state["player"][:, None]) % n
    np.testing.assert_allclose(value(game, state), np.take_along_axis(expected, seats, 1), atol=1e-5)


def test_gradient_steps_fit_the_targets(tmp_path: Path):
    run = Run(dataclasses.replace(TINY_TD, folder=tmp_path, updates=1, batches=300, average=0.9)).begin()
    game = run.game
    state = game.reset(20, seed=9, roll=False)
    for _ in range(5):
        play_turns(game, state, run.value)
    active = th.from_numpy(run.value.features.write(game, state).astype(np.int32))
    chances = th.from_numpy(np.linspace([0.1, 0.9], [0.9, 0.1], 20, dtype=np.float32))
    distinct = th.from_numpy(np.unique(np.sort(active, 1), axis=0, return_index=True)[1])
    run.samples = [Samples(active[distinct], chances[distinct])]
    run.learn()
    with th.no_grad():
        fitted = run.averaged(active[distinct]).softmax(1)
    np.testing.assert_allclose(fitted, chances[distinct], atol=0.02)


# ------------------------------------------------------------------------------------------------------------- running


def test_training_starts_from_the_network_that_init_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    first = trained(TINY_TD, tmp_path / "first")
    settings = dataclasses.replace(TINY_TD, folder=tmp_path / "second", init=str(first.folder))
    second = Run(settings).begin()
    for mine, its in zip(second.value.network, first.value.network, strict=True):
        np.testing.assert_array_equal(mine, its)
    second.stop = True
    with pytest.raises(runs.Stopped):
        second.train(lambda run: None)
    measured = [row._replace(done=0, seconds=0) for row in first.curve[-len(first.references) :]]
    assert [row._replace(seconds=0) for row in second.curve] == measured

    whole = trained(TINY_TD, tmp_path / "whole", init=str(first.folder))
    assert not same(whole, first)
    assert "init cannot change" in refusal(second.folder, capsys, "--init", "td")
    shutil.rmtree(first.folder)  # resuming does not need it
    rest = Run.resume(td.Run.read_settings(second.folder))
    rest.train(lambda run: None)
    assert same(rest, whole)


def test_equal_seeds_give_equal_weights_with_any_number_of_threads(tmp_path: Path):
    games = 600  # enough for two threads
    one = trained(TINY_TD, tmp_path / "1", seed=1, games=games, updates=3)
    assert same(one, trained(TINY_TD, tmp_path / "2", seed=1, games=games, updates=3, threads=2))
    assert same(one, trained(TINY_TD, tmp_path / "3", seed=1, games=games, updates=3, threads=3))
    assert not same(one, trained(TINY_TD, tmp_path / "4", seed=2, games=games, updates=3))


def test_an_interrupted_run_resumes_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    whole = trained(TINY_TD, tmp_path / "whole")
    learn, updates = Run.learn, 0

    def interrupted(self: Run) -> float:
        nonlocal updates
        updates += 1
        if updates == 2:  # between two milestones
            signal.raise_signal(signal.SIGINT)
        return learn(self)

    folder, before = tmp_path / "parts", signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(Run, "learn", interrupted)
    assert command.main(arguments(TINY_TD, folder)) == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert updates == 2
    assert f"--resume {folder}" in capsys.readouterr().out
    assert learned.load(folder / "value.npz").rules == TINY_TD.rules
    assert not (folder / "result.json").exists()

    assert command.main(["--resume", str(folder)]) == 0
    assert updates == TINY_TD.updates
    assert (folder / "result.json").exists()
    rest = Run.resume(td.Run.read_settings(folder))
    assert same(whole, rest)
    assert all(map(np.array_equal, whole.value.network, learned.load(folder / "value.npz").network))


@pytest.mark.parametrize("replay", [1, 2, 9])
def test_old_samples_are_dropped(tmp_path: Path, replay: int):
    run = Run(dataclasses.replace(TINY_TD, folder=tmp_path, replay=replay)).begin()
    run.train(lambda run: None)
    assert len(run.samples) == min(replay, TINY_TD.updates + 1)


def test_new_and_finished_runs_can_be_resumed(tmp_path: Path):
    whole = trained(TINY_TD, tmp_path / "whole")
    Run(dataclasses.replace(TINY_TD, folder=tmp_path / "run")).begin()
    run = Run.resume(td.Run.read_settings(tmp_path / "run"))
    run.train(lambda run: None)
    assert same(whole, run)
    more = Run.resume(dataclasses.replace(td.Run.read_settings(run.folder), updates=8))
    assert (more.updates, more.done) == (6, 6 * 16 * 4)
    more.train(lambda run: None)
    assert (more.updates, more.done, more.total) == (8, 8 * 16 * 4, 8 * 16 * 4)
    assert td.Run.read_settings(run.folder).updates == 8


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_every_variant_trains(tmp_path: Path, rules: Rules):
    run = trained(TINY_TD, tmp_path / "run", rules=rules, updates=2)
    assert run.curve[-1].done == run.done
    assert td.Run.read_settings(run.folder).rules == rules
    state = run.game.reset(50, seed=0)
    actions = make_policy(f"td:{run.folder}").act(run.game, state, np.random.default_rng(0))
    assert run.game.legal_actions(state)[np.arange(50), actions].all()


def test_train_writes_a_complete_run_folder_and_prints_next_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "a run"
    assert command.main(arguments(TINY_TD, folder)) == 0
    names = {path.name.split(".")[0] for path in folder.iterdir()}
    assert names == {"", "checkpoint", "config", "curve", "events", "game", "result", "value"}
    shown = capsys.readouterr().out
    assert all(name in shown for name in runs.REFERENCES)
    curve = (folder / "curve.csv").read_text().splitlines()
    assert curve[0] == "turns,cpu_seconds,opponent,games,wins,ties,losses"
    assert len(curve) == 1 + 3 * (TINY_TD.milestones + 1)
    assert '"td_lambda": 0.8' in (folder / "config.json").read_text()

    play_it, grade_it = (shlex.split(line) for line in shown.splitlines()[-3:-1])
    assert play_it[1:] == ["arena", str(folder), "greedy", "planner", "--spaces", "1"]
    few = ["--games", "4", "--workers", "0", "--file", str(tmp_path / "arena.sqlite"), "--quiet"]
    result = CliRunner().invoke(wotd, [*play_it[1:], *few])
    assert result.exit_code == 0, result.output
    assert grade_it[1:] == ["analyze", str(folder), "--spaces", "1"]


@pytest.mark.slow
def test_self_play_learns(tmp_path: Path):
    run = trained(
        TINY_TD,
        tmp_path / "run",
        rules=Rules(spaces=0),
        updates=60,
        games=512,
        turns=16,
        replay=8,
        batches=32,
        batch_size=1024,
        milestones=1,
    )
    assert run.measure(2000)["greedy"].wins > 1150
    table = solver.solve(0, tmp_path / "0.wotd")
    untrained = Planner(Network(run.settings.rules, 64).value())
    before, after = (
        analysis.grade(player, table, games=500).all.regret for player in (untrained, Planner(run.value))
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
    monkeypatch.setattr(solver, "cache_file", lambda rules: table)
    assert command.main([*arguments(TINY_TD, tmp_path / "run"), "--spaces", "0", "--updates", "1"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "of 100 games against planner" in shown[-1]
    assert "No comparison with perfect play: " in shown[-1]
    assert words in shown[-1]
    assert table.name in shown[-1]


def test_an_estimate_below_zero_is_no_negative_number_of_wins(solved: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(solver, "cache_file", lambda rules: solved)
    grade = SimpleNamespace(share_against_perfect=-0.41, share_against_perfect_error=0.8, regret=0.02)
    monkeypatch.setattr(analysis, "grade", lambda *arguments, **options: SimpleNamespace(all=grade))
    shown = evaluate.strength("random", Rules(spaces=0), {"planner": Counts(10, 0, 0, 10)})
    assert shown.startswith("The agent would win 0.0 of 100 games against perfect play (-0.41 % ± 0.80")


@pytest.mark.parametrize("cached", [True, False])
def test_the_last_line_shows_the_win_rate_against_perfect_play(
    tmp_path: Path, solved: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
):
    monkeypatch.setattr(solver, "cache_file", lambda rules: solved if cached else tmp_path / "missing")
    monkeypatch.setattr(evaluate, "SMALL", 0)
    rules = Rules(spaces=0)
    value = some_value(rules)
    (tmp_path / "value.npz").write_bytes(learned.save(value))
    results = {"random": Counts(10, 9, 0, 1), "planner": Counts(8, 2, 2, 4)}
    shown = evaluate.strength(str(tmp_path), rules, results)
    assert (tmp_path / "missing").exists() != cached
    assert re.match(r"The agent would win \d+\.\d of 100 games against perfect play", shown)
    found = re.search(r"\((\d+\.\d+) % ± (\d+\.\d+), 95 % interval of 2,000 graded games", shown)
    assert found is not None
    share, band = map(float, found.groups())
    games = 8000
    played = evaluate.measure(Game(rules), Planner(value), make_policy(f"oracle:{solved}"), games, seed=1)
    three_deviations = 150 / games**0.5
    assert abs(share - 100 * (played.wins + played.ties / 2) / games) < band + three_deviations
    assert 0 < band < 2
    assert share < 48


def test_the_last_line_names_the_strongest_reference_without_perfect_play():
    results = {"random": Counts(10, 9, 0, 1), "planner": Counts(8, 2, 2, 4)}
    shown = evaluate.strength("td", Rules(spaces=0, players=3), results)
    assert shown == "The agent wins 25.0 of 100 games against planner (8 games)."


@pytest.mark.parametrize("missing", ["the extra arena", "a table: wotd solve --spaces 3"])
def test_the_last_line_names_what_a_comparison_with_perfect_play_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
):
    monkeypatch.setattr(solver, "cache_file", lambda rules: tmp_path / "missing")
    monkeypatch.setattr(evaluate, "has_arena", lambda: missing != "the extra arena")
    shown = evaluate.strength("td", Rules(spaces=3), {"planner": Counts(8, 2, 2, 4)})
    assert shown.startswith("The agent wins 25.0 of 100 games against planner")
    assert f"A comparison with perfect play needs {missing}" in shown


def test_tensorboard_shows_losses_speed_and_strength(tmp_path: Path):
    run = trained(TINY_TD, tmp_path / "run")
    events = EventAccumulator(str(run.folder)).Reload()
    steps = {tag: [event.step for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    updates = [64 * i for i in range(1, 7)]
    for tag in ("train/loss", "train/learning_rate", "time/turns_per_second"):
        assert steps.pop(tag) == updates
    assert steps == {f"strength/wins_against_{name}": [0, 192, 384] for name in runs.REFERENCES}


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


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run folder. Tests must not modify it."""
    run: Run = trained(TINY_TD, tmp_path_factory.mktemp("finished") / "run", updates=2, milestones=1)
    return run.folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (in_games("pieces", 100), "game 2: pieces must be"),
        (put(th.zeros(64, dtype=th.uint8), "state"), "state must be ('torch.uint8', (1024,)"),
        (put("2", "updates"), "updates must be of type int"),
        (lambda c: c["optimizer"].pop(0), "optimizer must have the keys"),
        (put(th.zeros(3), "averaged", "module.hidden.bias"), "averaged.module.hidden.bias must be"),
        (put("ppo", "learner"), "settings must have the keys"),
        (put("another", "learner"), "has the learner another, not ppo or td"),
        (put("another", "settings", "preset"), "preset must be quick or standard or many"),
        (put({"players": 9}, "settings", "rules"), "players must be"),
        (put("os:abort", "settings", "init"), "names code that would be run: --init os:abort"),
    ],
)
def test_an_inconsistent_checkpoint_is_refused(
    tmp_path: Path,
    finished: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Any], None],
    words: str,
):
    folder = shutil.copytree(finished, tmp_path / "run")
    content = checkpoint.load(folder / "checkpoint.pt")
    content["samples"] = [list(samples) for samples in content["samples"]]
    change(content)
    content["samples"] = [tuple(samples) for samples in content["samples"]]
    checkpoint.save(folder / "checkpoint.pt", content)
    assert words in refusal(folder, capsys)


def test_a_damaged_checkpoint_and_changed_settings_are_refused(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str]
):
    assert "width cannot change" in refusal(finished, capsys, "--width", "64")
    assert "rules cannot change" in refusal(finished, capsys, "--players", "3")
    with runs.locked(finished):
        assert "another training run uses" in refusal(finished, capsys)
    folder = shutil.copytree(finished, tmp_path / "run")
    assert command.main(["ppo", "--resume", str(folder)]) == 2
    assert "has the learner td, not ppo" in capsys.readouterr().err
    flip(folder / "checkpoint.pt")
    assert "checkpoint.pt is damaged" in refusal(folder, capsys)
    with pytest.raises(CheckpointError, match="is damaged"):
        td.Run.read_settings(folder)
    with pytest.raises(FileExistsError, match="already contains a run"):
        Run(dataclasses.replace(TINY_TD, folder=folder)).begin()
    assert contents(folder).keys() == contents(finished).keys()


@pytest.mark.parametrize("preset", td.PRESETS)
def test_presets_set_their_own_values(preset: str, tmp_path: Path):
    _, settings = command.parse(["td", "--preset", preset, "--games", "8", "--folder", str(tmp_path / "run")])
    named = td.PRESETS[preset]
    assert settings.games == 8
    for name in ("preset", "turns", "td_lambda", "replay", "batches"):
        assert getattr(settings, name) == getattr(named, name)


def test_an_unknown_learner_error_lists_the_learners(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        command.main(["dqn", "--updates", "9"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "train.py: error: unknown learner 'dqn'; choose ppo, td, sb3\n"
