"""Training runs of the Stable-Baselines3 baseline."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from sb3_contrib import MaskablePPO
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents import checkpoint, command, sb3
from agents.checkpoint import CHECKPOINT
from tests.helpers import ROOT
from tests.helpers.training import TINY_SB3, arguments, refusal, resumed, same, trained
from wotd_env import Game, Rules, make_policy
from wotd_env.envs.vector import WayOfTheDragonVectorEnv


def test_training_runs_with_different_seeds_share_no_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seeds: list[int] = []
    reset = WayOfTheDragonVectorEnv.reset

    def noted(self: Any, *, seed: list[int], options: Any) -> Any:
        seeds.extend(seed)
        return reset(self, seed=seed, options=options)

    monkeypatch.setattr(WayOfTheDragonVectorEnv, "reset", noted)
    for seed in 0, 1:
        learner = sb3.Learner(dataclasses.replace(TINY_SB3, seed=seed, folder=tmp_path))
        for number in range(2):
            learner.update(number)
    assert len(set(seeds)) == len(seeds) == 4 * 8


def test_a_snapshot_is_kept_of_every_update_and_the_pool_has_the_given_weights(tmp_path: Path):
    run = trained(TINY_SB3, tmp_path / "run", past=0.5, greedy=0.25)
    learner: Any = run.learner
    assert all(rows.any() for name, rows in learner.snapshots.items() if name.endswith("weight"))
    assert set(learner.env.env.opponents.names) == {"itself", "past", "greedy"}
    np.testing.assert_allclose(learner.env.env.opponents.weights, [0.25, 0.5, 0.25])


def test_tensorboard_shows_the_losses_of_sb3_and_the_falling_learning_rate(tmp_path: Path):
    run = trained(TINY_SB3, tmp_path / "run")
    shown = EventAccumulator(str(run.folder)).Reload()
    for name in ("train/loss", "train/approx_kl"):
        assert 0 < shown.Scalars(name)[-1].step <= run.done, name
    rollout = TINY_SB3.num_envs * TINY_SB3.n_steps
    for point in shown.Scalars("train/learning_rate"):
        done = point.step - rollout  # SB3 logs the values of the update before
        assert point.value == pytest.approx(TINY_SB3.learning_rate * (1 - done / run.total), abs=1e-9)


def test_the_saved_model_is_a_model_of_sb3(tmp_path: Path):
    folder = tmp_path / "run"
    assert command.main(arguments(TINY_SB3, folder)) == 0
    learner = sb3.Learner(TINY_SB3)
    tensors, _ = checkpoint.load(folder / CHECKPOINT)
    checkpoint.restore(tensors, learner.tensors())
    model = MaskablePPO.load(folder / "model.zip")
    for name, weights in learner.model.policy.state_dict().items():
        assert weights.equal(model.policy.state_dict()[name]), name
    game = Game(TINY_SB3.rules)
    state = game.reset(50, seed=1)
    policies = learner.policy(), make_policy(f"sb3:{folder / 'model.zip'}", trust=True)
    one, other = (policy.act(game, state, np.random.default_rng(0)) for policy in policies)
    np.testing.assert_array_equal(one, other)


def test_the_policy_has_the_logits_of_the_path_network():
    learner = sb3.Learner(TINY_SB3)
    game = Game(TINY_SB3.rules)
    state = game.reset(50, seed=1)
    observation, mask = th.from_numpy(game.observe(state)), game.legal_actions(state)
    with th.no_grad():
        logits = learner.network(observation.float())[0].masked_fill(th.from_numpy(mask) == 0, -1e8)
        distribution = learner.model.policy.get_distribution(observation, mask)
    probabilities = distribution.distribution.probs  # type: ignore[union-attr]
    np.testing.assert_allclose(probabilities, logits.softmax(1), atol=1e-6)


def test_other_devices_learn_and_save_the_same_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    here, there = tmp_path / "here", tmp_path / "there"
    settings = dataclasses.replace(TINY_SB3, milestones=3, total_timesteps=768)
    words = [*arguments(settings, there), "--device", "pretended"]
    pretended = [sys.executable, "-m", "tests.helpers.fake_device", *words]
    done = subprocess.run(pretended, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    trained(settings, here)
    assert same(here, there)
    assert "device must be cpu or another device of torch" in refusal(there, capsys)
    with resumed(there, device="cpu") as run:
        assert run.updates == run.settings.updates


@pytest.mark.slow
def test_self_play_learns(tmp_path: Path):
    changes: dict[str, Any] = {"rules": Rules(), "total_timesteps": 303_104, "milestones": 6, "num_envs": 128}
    changes |= {"n_steps": 64, "batch_size": 1024, "width": 64, "milestone_games": 1000, "n_epochs": 3}
    run = trained(TINY_SB3, tmp_path / "run", **changes)
    random, greedy, _ = (row.wins / row.games for row in run.curve[-3:])
    assert random > 0.95
    assert greedy > 0.1
