"""Training runs of PPO."""

from __future__ import annotations

import dataclasses
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.vec_env import VecEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents import checkpoint, command, ppo, runs
from agents import runs as folders
from agents.checkpoint import CheckpointError
from agents.ppo import Run, Settings
from agents.selfplay import SelfPlayVecEnv
from tests.helpers import ROOT
from tests.helpers.learned import some_value
from tests.helpers.training import (
    CREDITED,
    TINY_PPO,
    arguments,
    refusal,
    resumed,
    same,
    skip_export,
    trained,
)
from wotd_env import Game, Rules, make_policy
from wotd_env.adapters.sb3 import SB3VecEnv
from wotd_env.planning import learned

GREEDY, RANDOM, FIRST = (make_policy(name) for name in ("greedy", "random", "first"))


VARIANTS = [
    Rules(spaces=3),
    Rules(players=3, spaces=3, powers="any"),
    Rules(players=5, spaces=3, powers="own", immunity=True, colors="random"),
    Rules(players=4, spaces=3, dead_pieces=5, start="loser"),
]


@pytest.mark.parametrize(
    "games",
    [
        lambda game: SelfPlayVecEnv(game, [make_policy("random")] * 8, 0),
        lambda game: SB3VecEnv(8, opponents="random", spaces=game.rules.spaces),
    ],
    ids=["self-play", "vector environment"],
)
def test_no_game_of_a_training_is_one_of_another_seed(games: Callable[[Game], VecEnv]):
    rules = Rules(spaces=1)
    streams: list[set[int]] = []
    for seed in 0, 1:
        env = games(Game(rules))
        ppo.make_model(Settings(rules=rules, seed=seed, games=8, steps=32), env)
        env.reset()
        state = env.env.record if isinstance(env, SB3VecEnv) else env.state  # type: ignore[attr-defined]
        streams.append(set(state["rng"].tolist()))
    assert len(streams[0]) == len(streams[1]) == 8
    assert not streams[0] & streams[1]


def test_same_seed_same_weights(tmp_path: Path):
    one, two, other = (
        trained(TINY_PPO, tmp_path / name, decisions=128, milestones=1, seed=seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert same(one, two)
    assert not same(one, other)


def test_an_interrupted_run_continues_as_if_it_had_not_been_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    skip_export(monkeypatch)
    changes: dict[str, Any] = {"past": 0.5, "greedy": 0.25}  # the snapshots of the pool continue too
    whole = trained(TINY_PPO, tmp_path / "whole", **changes)

    # Ctrl-C in the middle of the second rollout, between two milestones.
    steps = 0
    step = SelfPlayVecEnv.step_async

    def interrupted(self: SelfPlayVecEnv, actions: np.ndarray) -> None:
        nonlocal steps
        steps += 1
        if steps == TINY_PPO.steps + 5:
            signal.raise_signal(signal.SIGINT)
        step(self, actions)

    folder = tmp_path / "parts"
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(SelfPlayVecEnv, "step_async", interrupted)
    assert command.main(arguments(dataclasses.replace(TINY_PPO, **changes), folder)) == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert steps == 2 * TINY_PPO.steps
    assert f"--resume {folder}" in capsys.readouterr().out
    assert not (folder / "result.json").exists()

    assert command.main(["--resume", str(folder)]) == 0
    assert steps == TINY_PPO.decisions // TINY_PPO.games
    assert (folder / "result.json").exists()
    assert same(whole, Run.resume(Run.read_settings(folder)))


def test_on_another_device_a_network_learns_and_is_kept_alike(tmp_path: Path):
    here, there = tmp_path / "here", tmp_path / "there"
    changes: dict[str, Any] = {"decisions": 384, "milestones": 1, "milestone_games": 2, **CREDITED}
    settings = dataclasses.replace(TINY_PPO, **changes)
    words = [*arguments(settings, there)[1:], "--device", "pretended"]
    pretended = [sys.executable, "-m", "tests.helpers.fake_device", *words]
    done = subprocess.run(pretended, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    trained(settings, here)
    saved, other = (checkpoint.load(folder / "checkpoint.pt") for folder in (here, there))
    for name in ("network", "optimizer", "state"):
        checkpoint.check(name, other[name], saved[name])  # also that it lies in main memory
    for name, tensor in saved["network"].items():
        assert tensor.equal(other["network"][name]), name

    more = dataclasses.replace(Run.read_settings(there), decisions=512)
    with pytest.raises(CheckpointError, match="device must be cpu or another device of torch"):
        Run.resume(more)
    run = Run.resume(dataclasses.replace(more, device="cpu"))
    run.train(lambda run: None)
    assert run.done == 512


def test_a_finished_run_can_be_given_more_decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    skip_export(monkeypatch)
    run = trained(TINY_PPO, tmp_path / "run", decisions=128, milestones=1)
    run.finish()
    again = resumed(run)
    assert again.done == again.total
    assert all((run.folder / name).is_file() for name in folders.OF_THE_END)
    more = resumed(run, decisions=256)
    assert more.done == 128
    assert not any((run.folder / name).exists() for name in folders.OF_THE_END)  # of the shorter training
    more.train(lambda run: None)
    assert more.done == 256
    assert Run.read_settings(run.folder).decisions == 256


def test_a_run_with_a_lower_total_than_it_has_learned_is_measured_again(tmp_path: Path):
    run = Run.begin(dataclasses.replace(TINY_PPO, folder=tmp_path / "run", milestones=1))
    with pytest.raises(runs.Stopped):
        run.train(lambda run: setattr(run, "stop", run.done > 0))
    assert 0 < run.done < run.total
    assert {row.done for row in run.curve} == {0}
    less = resumed(run, decisions=run.done)
    less.train(lambda run: None)
    assert {row.done for row in less.curve} == {0, run.done}


def test_tensorboard_shows_the_strength_at_every_milestone(tmp_path: Path):
    run = trained(TINY_PPO, tmp_path / "run", decisions=256)
    shown = EventAccumulator(str(run.folder)).Reload().Scalars("strength/wins_against_random")
    expected = [(row.done, np.float32(row.wins / row.games)) for row in run.curve if row.opponent == "random"]
    assert [(point.step, point.value) for point in shown] == expected


def test_shares_of_the_games_never_add_up_to_more_than_all(tmp_path: Path):
    settings = dataclasses.replace(TINY_PPO, games=3, steps=64, past=0.5, greedy=0.5, folder=tmp_path)
    run = Run(settings)
    assert run.opponents.tolist() == ["snapshots", "snapshots", "greedy"]


def test_a_run_continues_with_another_value_when_the_file_of_its_value_has_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    skip_export(monkeypatch)
    file = tmp_path / "value.npz"
    file.write_bytes(learned.save(some_value(TINY_PPO.rules)))
    settings: dict[str, Any] = CREDITED | {"credit": f"td:{file}", "decisions": 128, "milestones": 1}
    run = Run.begin(dataclasses.replace(TINY_PPO, **settings, folder=tmp_path / "run"))
    file.unlink()
    message = refusal(run.folder, capsys)
    assert f"the run in {run.folder} cannot be resumed: credit must name a policy for the rules" in message
    assert "value.npz" in message
    assert command.main(["--resume", str(run.folder), "--credit", "planner"]) == 0


@pytest.mark.parametrize(
    ("rules", "settings"), [(VARIANTS[1], {}), (VARIANTS[2], CREDITED), (VARIANTS[3], CREDITED)], ids=str
)
def test_every_variant_trains(tmp_path: Path, rules: Rules, settings: dict[str, Any]):
    run = trained(TINY_PPO, tmp_path / "run", rules=rules, decisions=128, milestones=1, **settings)
    assert run.curve[-1].done == 128
    assert Run.read_settings(run.folder).rules == rules


def test_a_start_cut_short_can_be_started_again(tmp_path: Path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".lock").write_bytes(b"")
    (folder / ".part-1-checkpoint.pt").write_bytes(b"half")
    run = Run.begin(dataclasses.replace(TINY_PPO, folder=folder, decisions=128, milestones=1))
    assert not list(folder.glob(".part*"))
    with pytest.raises(FileExistsError, match=r"already contains a run; resume it with --resume"):
        Run.begin(dataclasses.replace(TINY_PPO, folder=folder))

    # It can also be resumed before it has learned anything, to the same end.
    copy = shutil.copytree(folder, tmp_path / "copy")
    run.train(lambda run: None)
    other = Run.resume(Run.read_settings(copy))
    other.train(lambda run: None)
    assert same(run, other)


@pytest.mark.slow
def test_self_play_learns(tmp_path: Path):
    run = trained(
        TINY_PPO,
        tmp_path / "run",
        rules=Rules(),
        decisions=300_000,
        milestones=6,
        games=128,
        steps=64,
        batch_size=1024,
        width=64,
        milestone_games=1000,
    )
    random, greedy, _ = (row.wins / row.games for row in run.curve[-3:])
    # Seeds 0 to 6: at least 0.994 and 0.244 (mean 0.34, standard deviation 0.05); at first at most 0.76 and 0.02.
    assert random > 0.95
    assert greedy > 0.1
