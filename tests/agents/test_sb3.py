"""Training runs of the Stable-Baselines3 baseline."""

from __future__ import annotations

import dataclasses
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

from agents import checkpoint, command, sb3
from agents.checkpoint import CheckpointError
from agents.sb3 import Run, Settings
from agents.selfplay import SelfPlayVecEnv
from tests.helpers import ROOT
from tests.helpers.training import TINY_SB3, arguments, same, trained
from wotd_env import Game, Rules, make_policy
from wotd_env.adapters.sb3 import SB3VecEnv


@pytest.mark.parametrize(
    "games",
    [
        lambda game: SelfPlayVecEnv(game, [make_policy("random")] * 8, 0),
        lambda game: SB3VecEnv(8, opponents="random", spaces=game.rules.spaces),
    ],
    ids=["self-play", "vector environment"],
)
def test_training_runs_with_different_seeds_share_no_games(games: Callable[[Game], VecEnv]):
    rules = Rules(spaces=1)
    streams: list[set[int]] = []
    for seed in 0, 1:
        env = games(Game(rules))
        sb3.make_model(Settings(rules=rules, seed=seed, games=8, steps=32, batch_size=64), env)
        env.reset()
        state = env.env.record if isinstance(env, SB3VecEnv) else env.state  # type: ignore[attr-defined]
        streams.append(set(state["rng"].tolist()))
    assert len(streams[0]) == len(streams[1]) == 8
    assert not streams[0] & streams[1]


def test_an_interrupted_run_resumes_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    changes: dict[str, Any] = {"past": 0.5, "greedy": 0.25}  # the pool of snapshots must be restored, too
    whole = trained(TINY_SB3, tmp_path / "whole", **changes)

    # Ctrl-C in the middle of the second rollout, between two milestones.
    steps = 0
    step = SelfPlayVecEnv.step_async

    def interrupted(self: SelfPlayVecEnv, actions: np.ndarray) -> None:
        nonlocal steps
        steps += 1
        if steps == TINY_SB3.steps + 5:
            signal.raise_signal(signal.SIGINT)
        step(self, actions)

    folder = tmp_path / "parts"
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(SelfPlayVecEnv, "step_async", interrupted)
    assert command.main(arguments(dataclasses.replace(TINY_SB3, **changes), folder)) == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert steps == 2 * TINY_SB3.steps
    assert f"--resume {folder}" in capsys.readouterr().out
    assert not (folder / "result.json").exists()

    assert command.main(["--resume", str(folder)]) == 0
    assert steps == TINY_SB3.updates * TINY_SB3.steps
    assert (folder / "result.json").exists()
    assert same(whole, Run.resume(Run.read_settings(folder)))


def test_other_devices_learn_and_save_the_same_network(tmp_path: Path):
    here, there = tmp_path / "here", tmp_path / "there"
    changes: dict[str, Any] = {"updates": 3, "milestones": 1, "milestone_games": 2}
    settings = dataclasses.replace(TINY_SB3, **changes)
    words = [*arguments(settings, there), "--device", "pretended"]
    pretended = [sys.executable, "-m", "tests.helpers.fake_device", *words]
    done = subprocess.run(pretended, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    trained(settings, here)
    saved, other = (checkpoint.load(folder / "checkpoint.pt") for folder in (here, there))
    for name in ("network", "optimizer", "state"):
        checkpoint.check(name, other[name], saved[name])  # also checks that tensors are in main memory
    for name, tensor in saved["network"].items():
        assert tensor.equal(other["network"][name]), name

    more = dataclasses.replace(Run.read_settings(there), updates=4)
    with pytest.raises(CheckpointError, match="device must be cpu or another device of torch"):
        Run.resume(more)
    run = Run.resume(dataclasses.replace(more, device="cpu"))
    run.train(lambda run: None)
    assert run.updates == 4


@pytest.mark.slow
def test_self_play_learns(tmp_path: Path):
    run = trained(
        TINY_SB3,
        tmp_path / "run",
        rules=Rules(),
        updates=37,
        milestones=6,
        games=128,
        steps=64,
        batch_size=1024,
        width=64,
        milestone_games=1000,
    )
    random, greedy, _ = (row.wins / row.games for row in run.curve[-3:])
    # Seeds 0 to 6: at least 0.994 and 0.244 (mean 0.34, standard deviation 0.05); untrained at most 0.76 and 0.02.
    assert random > 0.95
    assert greedy > 0.1


def test_opponent_shares_never_exceed_the_number_of_games(tmp_path: Path):
    settings = dataclasses.replace(TINY_SB3, games=3, steps=64, past=0.5, greedy=0.5, folder=tmp_path)
    run = Run(settings)
    network, greedy = run.past, run.references["greedy"]
    snapshots = [getattr(policy, "network", None) is network for policy in run.env.opponents]
    assert snapshots == [True, True, False]
    assert run.env.opponents[2] is greedy


def test_tensorboard_shows_the_losses_of_sb3(tmp_path: Path):
    run = trained(TINY_SB3, tmp_path / "run")
    shown = EventAccumulator(str(run.folder)).Reload()
    for name in ("train/loss", "train/approx_kl", "strength/wins_against_random"):
        assert 0 < shown.Scalars(name)[-1].step <= run.done, name
