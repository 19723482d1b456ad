"""Training runs of PPO."""

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

from agents import checkpoint, command, ppo, runs
from agents import folder as folders
from agents.checkpoint import CheckpointError
from agents.ppo import Run, Settings
from agents.selfplay import SelfPlayVecEnv
from agents.trained import load
from tests.helpers import ROOT
from tests.helpers.learned import some_value
from tests.helpers.training import (
    CREDITED,
    TINY_PPO,
    arguments,
    contents,
    refusal,
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
    one, same, other = (
        trained(TINY_PPO, tmp_path / name, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    for name, tensor in weights(one).items():
        np.testing.assert_array_equal(tensor, weights(same)[name])
    assert any((tensor != weights(other)[name]).any() for name, tensor in weights(one).items())
    assert [row[:1] + row[2:] for row in one.curve] == [row[:1] + row[2:] for row in same.curve]


def test_a_run_that_was_interrupted_goes_on_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    whole = trained(TINY_PPO, tmp_path / "whole")

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
    monkeypatch.setattr(SelfPlayVecEnv, "step_async", interrupted)
    assert command.main([*arguments(TINY_PPO, folder), "--decisions", "1024"]) == 130
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert steps == 2 * TINY_PPO.steps
    assert f"--resume {folder}" in capsys.readouterr().out
    assert (folder / "model.zip").exists()
    assert not (folder / "result.json").exists()

    assert command.main(["--resume", str(folder)]) == 0
    assert steps == TINY_PPO.decisions // TINY_PPO.games
    assert (folder / "result.json").exists()
    rest = Run.resume(dataclasses.replace(Run.read_settings(folder)))
    for name, tensor in weights(whole).items():
        np.testing.assert_array_equal(tensor, weights(rest)[name])
    np.testing.assert_array_equal(whole.env.state, rest.env.state)
    assert [row[:1] + row[2:] for row in whole.curve] == [row[:1] + row[2:] for row in rest.curve]


def test_on_another_device_a_network_learns_and_is_kept_alike(tmp_path: Path):
    here, there = tmp_path / "here", tmp_path / "there"
    changes = {"decisions": 512, "milestones": 1, "games": 8, "milestone_games": 2, **CREDITED}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in changes.items() if name != "planned"]
    command = [sys.executable, "-m", "tests.helpers.fake_device", *arguments(there), *words, "--planned"]
    done = subprocess.run([*command, "--device", "pretended"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    trained(here, **changes)
    saved, same = (checkpoint.load(folder / "checkpoint.pt") for folder in (here, there))
    for name in ("network", "optimizer", "pool", "state"):
        checkpoint.check(name, same[name], saved[name])  # also that it lies in main memory
    for name, tensor in saved["network"].items():
        assert tensor.equal(same["network"][name]), name
        assert tensor.equal(load(there).network.state_dict()[name]), name

    more = dataclasses.replace(Run.read_settings(there), decisions=640)
    with pytest.raises(CheckpointError, match="device must be cpu or one that torch can use here"):
        Run.resume(more)
    run = Run.resume(dataclasses.replace(more, device="cpu"))
    run.train(lambda run: None)
    assert run.done == 640


def test_a_finished_run_can_be_given_more_decisions(tmp_path: Path):
    run = trained(TINY_PPO, tmp_path / "run")
    run.finish()
    (run.folder / folders.RESULT).write_text("{}")
    same = Run.resume(Run.read_settings(run.folder))
    assert same.done == same.total
    assert all((run.folder / name).is_file() for name in folders.OF_THE_END)
    longer = dataclasses.replace(Run.read_settings(run.folder), decisions=2048)
    more = Run.resume(longer)
    assert more.model.num_timesteps == 1024
    assert not any(
        (run.folder / name).exists() for name in folders.OF_THE_END
    )  # they were of the shorter one
    more.train(lambda run: None)
    assert more.model.num_timesteps == 2048
    assert len(more.pool) > len(run.pool)
    assert Run.read_settings(run.folder).decisions == 2048


def test_a_run_that_is_to_learn_less_than_it_has_is_measured_where_it_stands(tmp_path: Path):
    run = Run.begin(dataclasses.replace(TINY_PPO, folder=tmp_path / "run", milestones=1))
    with pytest.raises(runs.Stopped):
        run.train(lambda run: setattr(run, "stop", run.done > 0))
    assert 0 < run.done < run.total
    assert len(run.pool) == 1  # the network before it learns
    less = Run.resume(dataclasses.replace(Run.read_settings(run.folder), decisions=run.done))
    less.train(lambda run: None)
    less.finish()
    assert {row[0] for row in less.curve} == {0, run.done}
    for name, tensor in load(run.folder).network.state_dict().items():
        assert tensor.equal(less.pool[1][name]), name


def test_tensorboard_shows_the_strength_at_every_milestone(tmp_path: Path):
    run = trained(TINY_PPO, tmp_path / "run")
    shown = EventAccumulator(str(run.folder)).Reload().Scalars("strength/wins_against_random")
    expected = [(row[0], np.float32(row[4] / row[3])) for row in run.curve if row[2] == "random"]
    assert [(point.step, point.value) for point in shown] == expected


def test_shares_of_the_games_never_add_up_to_more_than_all(tmp_path: Path):
    settings = dataclasses.replace(TINY_PPO, games=3, steps=64, past=0.5, greedy=0.5, folder=tmp_path)
    run = Run(settings)
    assert run.opponents.tolist() == ["snapshots", "snapshots", "greedy"]


def test_a_run_goes_on_when_what_paid_its_credits_has_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "value.npz"
    file.write_bytes(learned.save(some_value(TINY_PPO.rules)))
    settings: dict[str, Any] = CREDITED | {"credit": f"td:{file}"}
    run = Run.begin(dataclasses.replace(TINY_PPO, **settings, decisions=256, folder=tmp_path / "run"))
    file.unlink()
    message = refusal(run.folder, capsys)
    assert f"the run in {run.folder} cannot go on: credit must name a policy for the rules at hand" in message
    assert "value.npz" in message
    assert command.main(["--resume", str(run.folder), "--credit", "planner"]) == 0


@pytest.mark.parametrize("rules", VARIANTS[1:], ids=str)
@pytest.mark.parametrize("settings", [{}, CREDITED], ids=["rules", "credited"])
def test_every_variant_trains(tmp_path: Path, rules: Rules, settings: dict[str, Any]):
    run = trained(TINY_PPO, tmp_path / "run", rules=rules, decisions=512, **settings)
    assert run.curve[-1][0] == 512
    assert Run.read_settings(run.folder).rules == rules


def test_a_start_cut_short_can_be_begun_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".lock").write_bytes(b"")
    (folder / "new-checkpoint.pt").write_bytes(b"half")
    folders.make_folder(folder)
    run = Run.begin(dataclasses.replace(TINY_PPO, folder=folder))
    assert "new-checkpoint.pt" not in contents(folder)
    with pytest.raises(FileExistsError, match=r"there is a run in folder .* --resume .* goes on with it"):
        Run.begin(dataclasses.replace(TINY_PPO, folder=folder))

    # Before it has learned anything, too, it can be resumed, to the same end.
    other = Run.resume(Run.read_settings(folder))
    other.train(lambda run: None)
    run.train(lambda run: None)
    for name, tensor in weights(run).items():
        np.testing.assert_array_equal(tensor, weights(other)[name])
    assert [row[:1] + row[2:] for row in run.curve] == [row[:1] + row[2:] for row in other.curve]


@pytest.mark.slow
def test_self_play_learns(tmp_path: Path):
    run = trained(
        tmp_path / "run",
        decisions=300_000,
        milestones=6,
        games=128,
        steps=64,
        batch_size=1024,
        width=64,
        milestone_games=1000,
    )
    random, greedy, _ = (row[4] / row[3] for row in run.curve[-3:])
    # Seeds 0 to 6: at least 0.994 and 0.244 (mean 0.34, standard deviation 0.05); at first at most 0.76 and 0.02.
    assert random > 0.95
    assert greedy > 0.1
