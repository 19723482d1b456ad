"""The loop of all training runs: checkpoints, resuming, milestones, interruptions and damage."""

import dataclasses
import errno
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents import checkpoint, command, evaluate, loop, ppo, sb3, td
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.settings import LARGEST
from tests.helpers import ROOT
from tests.helpers.damage import no_room, survive
from tests.helpers.tables import flipped
from tests.helpers.training import (
    TINY_PPO,
    TINY_SB3,
    TINY_TD,
    VARIANTS,
    Change,
    arguments,
    change_checkpoint,
    contents,
    in_games,
    learner_of,
    put,
    refusal,
    replace_tensor,
    resumed,
    same,
    settings_in,
    started,
    trained,
)
from wotd_env import Game, Rules, files
from wotd_env.policies import oracle

WITH_POOL = dataclasses.replace(TINY_SB3, past=0.5, greedy=0.25, milestones=3, total_timesteps=768)
AGAINST = dataclasses.replace(TINY_TD, against="random", games=600, updates=2)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run folder. Tests must not modify it."""
    return trained(TINY_PPO, tmp_path_factory.mktemp("finished") / "run", updates=1, milestones=1).folder


# ------------------------------------------------------------------------------------------------------- determinism


@pytest.mark.parametrize("settings", [TINY_PPO, TINY_TD, AGAINST, TINY_SB3], ids=learner_of)
def test_the_same_seed_gives_the_same_weights_with_any_number_of_threads(settings: Any, tmp_path: Path):
    for name, threads, seed in (("one", 1, 1), ("two", 2, 1), ("three", 3, 1), ("other", 1, 2)):
        more = {"threads": threads} if learner_of(settings) == "td" else {}
        trained(settings, tmp_path / name, seed=seed, **more)
    assert same(tmp_path / "one", tmp_path / "two")
    assert same(tmp_path / "one", tmp_path / "three")
    assert not same(tmp_path / "one", tmp_path / "other")


@pytest.mark.parametrize(
    ("settings", "signals"), [(TINY_PPO, 1), (TINY_TD, 1), (WITH_POOL, 2)], ids=["ppo", "td", "sb3 at once"]
)
def test_an_interrupted_run_resumes_to_the_same_weights(
    settings: Any,
    signals: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """The first signal stops the run after the current update, the second one at once."""
    trained(settings, tmp_path / "whole")
    learner = loop.module_of(learner_of(settings)).Learner
    update, at = learner.update, settings.updates // 2 - 1 + settings.updates % 2

    def interrupted(self: Any, number: int) -> Any:
        for _ in range(signals if number == at else 0):
            signal.raise_signal(signal.SIGINT)
        return update(self, number)

    folder, handler = tmp_path / "parts", signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(learner, "update", interrupted)
        assert command.main(arguments(settings, folder)) == 130
    assert signal.getsignal(signal.SIGINT) is handler
    assert f"--resume {folder}" in capsys.readouterr().out
    assert checkpoint.load(folder / CHECKPOINT)[1]["updates"] == at + 2 - signals
    assert not (folder / loop.RESULT).exists()
    assert command.main(["--resume", str(folder)]) == 0
    assert (folder / loop.RESULT).exists()
    assert same(tmp_path / "whole", folder)


@pytest.mark.parametrize("settings", [TINY_PPO, TINY_TD, TINY_SB3], ids=learner_of)
def test_a_run_resumed_before_its_first_update_learns_the_same_weights(settings: Any, tmp_path: Path):
    with started(settings, tmp_path / "run"):
        pass
    trained(settings, tmp_path / "whole")
    with resumed(tmp_path / "run") as run:
        loop.train(run, lambda run: None)
    assert same(tmp_path / "run", tmp_path / "whole")


@pytest.mark.slow
def test_killed_or_restarted_training_runs_learn_the_same_weights(tmp_path: Path):
    pytest.importorskip("fcntl")  # missing on systems without fork
    words = [sys.executable, "-m", "tests.helpers.training_kills", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["kills"] >= 100
    assert not result["wrong"]


# -------------------------------------------------------------------------------------------------------- milestones


def test_a_finished_run_can_be_extended(tmp_path: Path):
    folder = tmp_path / "run"
    with started(TINY_PPO, folder, updates=2, milestones=1) as run:
        loop.train(run, lambda run: None)
        loop.finish(run)
    for name in ("model.zip", "value.npz"):  # files of other learners
        (folder / name).touch()
    with resumed(folder) as run:
        assert run.done == run.total
        assert all((folder / name).is_file() for name in loop.OF_THE_END)
    with resumed(folder, updates=3) as run:
        assert run.updates == 2
        assert not any((folder / name).exists() for name in loop.OF_THE_END)  # results of the shorter run
        loop.train(run, lambda run: None)
        assert run.updates == 3
    assert settings_in(folder).updates == 3


def test_a_shortened_run_is_measured_at_its_new_end(tmp_path: Path):
    folder = tmp_path / "run"
    with started(TINY_PPO, folder, milestones=1) as run, pytest.raises(loop.Stopped):
        loop.train(run, lambda run: setattr(run, "stop", run.done > 0))
    assert 0 < run.done < run.total
    assert {row.done for row in run.curve} == {0}
    with resumed(folder, updates=run.updates) as less:
        loop.train(less, lambda run: None)
    assert {row.done for row in less.curve} == {0, run.done}


def test_tensorboard_shows_losses_speed_and_strength_at_milestones(tmp_path: Path):
    run = trained(TINY_PPO, tmp_path / "run")
    shown = EventAccumulator(str(run.folder)).Reload()
    points = shown.Scalars("strength/wins_against_random")
    expected = [(row.done, np.float32(row.wins / row.games)) for row in run.curve if row.opponent == "random"]
    assert [(point.step, point.value) for point in points] == expected
    seconds = shown.Scalars("strength_by_seconds/wins_against_random")
    by_seconds = [int(row.seconds) for row in run.curve if row.opponent == "random"]
    assert [(point.step, point.value) for point in seconds] == [
        (step, value) for step, (_, value) in zip(by_seconds, expected, strict=True)
    ]
    names = [
        *("loss", "entropy", "approx_kl", "clipfrac", "gradient_norm", "regret", "learning_rate"),
        *("critic_loss", "critic_explained_variance", "critic_gradient_norm", "critic_learning_rate"),
    ]
    for name in (*(f"train/{name}" for name in names), "time/decisions_per_second"):
        assert [point.step for point in shown.Scalars(name)] == [32 * i for i in range(1, 5)], name


def test_tensorboard_shows_the_regret_on_solved_boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(oracle, "AT_ONCE", 500_000)
    run = trained(TINY_TD, tmp_path / "run", rules=Rules(spaces=0))
    shown = EventAccumulator(str(run.folder)).Reload().Scalars("strength/regret")
    assert [point.step for point in shown] == [0, 192, 384]
    assert all(0 <= point.value < 2 for point in shown)
    assert shown[-1].value == pytest.approx(
        evaluate.graded(run.learner.policy(), run.settings.rules, run.settings.milestone_games).regret
    )


# ----------------------------------------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda file: file.write_bytes(flipped(file.read_bytes(), -9)), "is damaged"),
        (lambda file: file.write_bytes(file.read_bytes()[:-999]), "is damaged"),
        (lambda file: file.write_bytes(b""), "is damaged"),
        (lambda file: file.write_text("nothing of the kind"), "is damaged, or not a checkpoint of train.py"),
        (lambda file: file.write_bytes((file.parent / "curve.csv").read_bytes()), "is damaged, or not"),
        (
            lambda file: checkpoint.save(file, {}, {"format": "other"}),
            "not a checkpoint of this version of train.py",
        ),
        (lambda file: (file.unlink(), file.mkdir()), "the checkpoint cannot be read"),
        (lambda file: file.unlink(), "there is no checkpoint"),
    ],
)
def test_an_unreadable_checkpoint_is_reported_and_left_unchanged(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], damage: Any, words: str
):
    folder = shutil.copytree(finished, tmp_path / "run")
    damage(folder / CHECKPOINT)
    if (folder / CHECKPOINT).is_dir():
        with pytest.raises(CheckpointError, match=words):
            checkpoint.load(folder / CHECKPOINT)
    else:
        message = refusal(folder, capsys)
        assert words in message
        assert (
            "Restore a copy" in message or "in an empty folder" in message or "in another folder" in message
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (in_games("player", 7), "game 2: player must be from 0 to 1"),
        (in_games("pieces", 100), "game 2: pieces must be"),
        (replace_tensor("state", th.zeros(64, dtype=th.uint8)), "state must be ('torch.uint8', (512,))"),
        (replace_tensor("network.path.weight", th.zeros(3)), "network.path.weight must be"),
        (replace_tensor("network.path.bias", th.zeros(8, dtype=th.float64)), "network.path.bias must be"),
        (
            replace_tensor("more", th.zeros(1)),
            "its tensors are not those of the settings; they differ in more",
        ),
        (lambda tensors, facts: tensors.pop("optimizer.0.step"), "they differ in optimizer.0.step"),
        (
            lambda tensors, facts: tensors["critic.samples.active"].fill_(10**6),
            "feature indices out of range",
        ),
        (put("many", "updates"), "invalid literal for int()"),
        (put([[256]], "curve"), "missing 6 required"),
        (lambda tensors, facts: facts.pop("settings"), "settings must be a dict"),
        (put("many", "settings", "num_envs"), "num_envs must be of type int, got 'many'"),
        (put(-3, "settings", "num_envs"), "num_envs must be an integer from 1"),
        (put(10**9, "settings", "width"), f"width must be an integer from 1 to {LARGEST}, got 1000000000"),
        (put("slow", "settings", "preset"), "preset must be quick or standard, got 'slow'"),
        (put({"players": 9}, "settings", "rules"), "players must be an integer from 2 to 5, got 9"),
        (put([1], "settings", "rules"), "rules must be of type dict"),
        (put(3, "settings", "rules", "players"), "must be"),
        (put("sb3", "learner"), "settings must be a dict with keys among"),
    ],
)
def test_every_part_of_a_checkpoint_is_validated_before_use(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], change: Change, words: str
):
    folder = shutil.copytree(finished, tmp_path / "run")
    change_checkpoint(folder, change)
    message = refusal(folder, capsys)
    assert words in message
    assert f"{CHECKPOINT} cannot be used: " in message
    assert "Restore a copy" in message


@pytest.mark.slow
def test_damaged_checkpoints_are_refused_or_read_unchanged(tmp_path: Path, finished: Path):
    def read(file: Path) -> Any:
        tensors, facts = checkpoint.load(file)
        return facts, {name: tensor.tolist() for name, tensor in tensors.items()}

    survive(Path(shutil.copy(finished / CHECKPOINT, tmp_path)), read, flips=660, errors=CheckpointError)


def test_no_setting_in_a_checkpoint_loads_a_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """A checkpoint may name a policy, but only the person who resumes the run decides whether it is loaded."""
    (tmp_path / "planted.py").write_text("from wotd_env.policies.planner import Planner as go\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("init", "against"):
        folder = trained(TINY_TD, tmp_path / name, updates=1, milestones=1).folder
        change_checkpoint(folder, put("planted:go", "settings", name))
        assert command.main(["--resume", str(folder)]) == 2
        message = capsys.readouterr().err
        assert "planted" not in sys.modules
        assert "settings must be a dict with keys" in message or "repeat --against planted:go" in message


def test_a_run_against_a_policy_needs_the_policy_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = trained(TINY_TD, tmp_path / "run", against="greedy", updates=1, milestones=1).folder
    assert {row[2] for row in checkpoint.load(folder / CHECKPOINT)[1]["curve"]} == {"greedy"}
    assert "repeat --against greedy" in refusal(folder, capsys)
    assert "repeat --against greedy" in refusal(folder, capsys, "--against", "first")
    assert command.main(["--resume", str(folder), "--against", "greedy"]) == 0
    assert "planner" not in capsys.readouterr().out.split("Next commands")[0]


def test_settings_of_a_run_cannot_change_on_resume(finished: Path, capsys: pytest.CaptureFixture[str]):
    assert "rules is " in refusal(finished, capsys, "--players", "3")
    message = refusal(finished, capsys, "--width", "9")
    assert f"width is 8 in {finished} and cannot change on resume, got 9: omit --width" in message
    other = finished.parent / "other"
    assert "folder" in refusal(finished, capsys, "--folder", str(other))
    assert not other.exists()


def test_resuming_needs_only_the_checkpoint_file(tmp_path: Path, finished: Path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "config.json").write_text("{")
    (folder / "curve.csv").unlink()
    with resumed(folder):
        pass
    assert (folder / "curve.csv").read_bytes() == (finished / "curve.csv").read_bytes()
    assert json.loads((folder / "config.json").read_text())["settings"]["width"] == TINY_PPO.width


# ------------------------------------------------------------------------------------------------------ surroundings


def test_permission_errors_are_not_reported_as_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(*arguments: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "opponent.npz")

    monkeypatch.setattr(loop, "strengths", refuse)
    assert command.main(arguments(TINY_PPO, tmp_path / "run")) == 2
    message = capsys.readouterr().err
    assert "opponent.npz" in message
    assert "Fix that, then resume with: " in message


def test_a_second_training_run_in_a_folder_is_refused(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str]
):
    folder = shutil.copytree(finished, tmp_path / "run")
    with resumed(folder):
        assert command.main(["--resume", str(folder)]) == 2
        assert "another training run uses" in capsys.readouterr().err
    assert command.main(arguments(TINY_PPO, folder)) == 2
    assert "already contains a run; resume it with --resume" in capsys.readouterr().err
    empty = tmp_path / "new"
    empty.mkdir()
    unfinished = f"{files.PART}checkpoint"  # written by the training that holds the lock
    (empty / unfinished).touch()
    with loop.locked(empty):
        assert command.main(arguments(TINY_PPO, empty)) == 2
        assert "another training run uses" in capsys.readouterr().err
    assert contents(empty) == {".lock": b"", unfinished: b""}
    with started(TINY_PPO, empty):  # as after an interrupted start
        pass


@pytest.mark.parametrize("size", [0, 1000])
def test_a_run_can_start_again_after_a_full_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int
):
    with no_room(size):
        code = command.main(arguments(TINY_PPO, tmp_path))
    message = capsys.readouterr().err
    assert code == 1
    assert message.startswith("train.py: error: ")
    assert str(tmp_path / CHECKPOINT) in message
    assert contents(tmp_path) == {".lock": b""}
    with started(TINY_PPO, tmp_path):
        pass


def test_a_run_can_be_resumed_after_a_full_disk(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    folder, whole = shutil.copytree(finished, tmp_path / "run"), shutil.copytree(finished, tmp_path / "whole")
    longer = ("--updates", "2", "--milestones", "2")
    update, size = ppo.Learner.update, (folder / CHECKPOINT).stat().st_size // 2
    resource = pytest.importorskip("resource")

    def fill(self: ppo.Learner, number: int) -> dict[str, float]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        return update(self, number)

    with no_room(2**30), monkeypatch.context() as patch:
        patch.setattr(ppo.Learner, "update", fill)
        code = command.main(["--resume", str(folder), *longer])
    message = capsys.readouterr().err
    assert code == 1
    assert message.startswith("train.py: error: ")
    assert message.count("\n") == 1
    assert "File too large" in message
    assert f"The last checkpoint in {folder} is intact" in message
    assert not list(folder.glob(".part*"))

    for name in loop.OF_THE_END:
        (folder / name).write_text("{}")
    before = contents(folder)
    with no_room(size):  # the disk is still full
        code = command.main(["--resume", str(folder)])
    assert code == 1
    assert str(folder / CHECKPOINT) in capsys.readouterr().err
    assert contents(folder) == before

    for each in (folder, whole):
        assert command.main(["--resume", str(each), *longer]) == 0
    assert same(folder, whole)


@pytest.mark.parametrize(
    "named",
    [preset for learner in (ppo, td, sb3) for preset in learner.PRESETS.values()],
    ids=lambda named: f"{learner_of(named)} {named.preset}",
)
def test_presets_set_their_own_values(named: Any, tmp_path: Path):
    name, folder = learner_of(named), tmp_path / "run"
    words = [name, "--preset", named.preset, "--width", "96", "--folder", str(folder)]
    assert command.parse(words) == (name, dataclasses.replace(named, width=96, folder=folder))


@pytest.mark.parametrize("rules", VARIANTS[1:], ids=str)
@pytest.mark.parametrize("settings", [TINY_PPO, TINY_TD], ids=learner_of)
def test_every_variant_trains(settings: Any, rules: Rules, tmp_path: Path):
    rules = dataclasses.replace(rules, max_turns=20)  # the games at milestones take most of the time
    run = trained(settings, tmp_path / "run", rules=rules, updates=2, milestones=1)
    assert run.curve[-1].done == run.total
    assert settings_in(run.folder).rules == rules
    game = Game(rules)
    state = game.reset(50, seed=0)
    actions = run.learner.policy().act(game, state, np.random.default_rng(0))
    assert game.legal_actions(state)[np.arange(50), actions].all()
