"""Ray RLlib: its environments, and PPO on them."""

from __future__ import annotations

import dataclasses
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.rllib", exc_type=ImportError)

import ray
import torch as th
from gymnasium import VectorizeMode
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

from agents import checkpoint, command, rllib, runs, trained
from agents.rllib import Run, Settings
from tests.helpers.training import flip, refusal
from wotd_env import Game, Rules
from wotd_env.adapters.rllib import multi_agent_env, single_agent_env

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own

TINY = Settings(
    rules=Rules(spaces=1),
    decisions=300,
    milestones=2,
    games=4,
    rollout=128,
    batch_size=64,
    epochs=1,
    width=8,
    milestone_games=10,
    final_games=10,
)


@pytest.fixture(scope="module", autouse=True)
def small_ray() -> Iterator[None]:
    """Two CPUs and little memory, for all tests."""
    memory = 200_000_000
    ray.init("local", num_cpus=2, object_store_memory=memory, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.parametrize("players", [2, 3])
def test_a_game_of_all_seats_is_played_to_its_end(players: int):
    env = multi_agent_env({"players": players, "spaces": 1})
    rng = np.random.default_rng(0)
    observations, _ = env.reset(seed=5)
    game = Game(Rules(players=players, spaces=1))
    state = game.reset(1, seed=5)
    returns = dict.fromkeys(env.possible_agents, 0.0)
    while True:
        (agent,) = observations
        seen = observations[agent]
        assert env.observation_spaces[agent].contains(seen)
        assert {part.dtype for part in seen.values()} == {np.dtype(np.float32)}
        np.testing.assert_array_equal(seen["observations"], game.observe(state)[0])
        np.testing.assert_array_equal(seen["action_mask"], game.legal_actions(state)[0])
        action = rng.choice(np.flatnonzero(seen["action_mask"]))
        game.step(state, [action])
        observations, rewards, terminated, _, _ = env.step({agent: action})
        for each, reward in rewards.items():
            returns[each] += reward
        if terminated["__all__"]:
            break
    assert [returns[f"player_{seat}"] for seat in range(players)] == game.rewards(state)[0].tolist()


@pytest.mark.parametrize("extra", [{}, {"num_envs": 3}], ids=["one", "vector"])
def test_one_seat_sees_what_rllib_wants(extra: dict[str, Any]):
    env = single_agent_env({"players": 3, "opponents": "random", **extra})
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    assert list(seen) == ["observations", "action_mask"]
    action = seen["action_mask"].argmax(-1)
    seen, *_ = env.step(action)
    assert env.observation_space.contains(seen)


@pytest.mark.client("RLlib", "ray", 'register_env("wotd", multi_agent_env)')
@pytest.mark.parametrize("seats", ["all", "one", "vector"])
def test_ppo_of_rllib_with_its_own_masked_module_learns_from_it(seats: str):
    register_env("wotd", multi_agent_env if seats == "all" else single_agent_env)
    mode = VectorizeMode.VECTOR_ENTRY_POINT if seats == "vector" else VectorizeMode.SYNC
    config = (
        PPOConfig()
        .environment("wotd", env_config={"players": 3, "spaces": 0})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=2, gym_env_vectorize_mode=mode)
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
    )
    if seats == "all":
        config.multi_agent(policies={"all"}, policy_mapping_fn=lambda agent, episode, **kwargs: "all")
    algorithm = config.build_algo()
    results = algorithm.train()
    algorithm.stop()
    assert results["env_runners"]["num_env_steps_sampled_lifetime"] >= 64
    (loss,) = [each["total_loss"] for name, each in results["learners"].items() if name != "__all_modules__"]
    assert np.isfinite(loss)


def trained_run(folder: Path, **changes: Any) -> Run:
    run = Run.begin(dataclasses.replace(TINY, folder=folder, **changes))
    run.train(lambda run: None)
    return run


@pytest.mark.parametrize("opponents", ["itself", "greedy"])
def test_the_module_has_the_masks_in_what_it_plays_and_learns(tmp_path: Path, opponents: str):
    run = trained_run(tmp_path / "run", opponents=opponents)
    episodes = run.algorithm.env_runner.sample(num_timesteps=200)
    checked = 0
    for episode in episodes:
        for each in episode.agent_episodes.values() if opponents == "itself" else [episode]:
            masks = each.get_observations()["action_mask"][: len(each)]
            assert masks[np.arange(len(each)), each.get_actions()].all()
            checked += len(each)
    assert checked >= 200


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            {"batch_size": 20_000},
            "batch_size must be at most 16384, the share of a learner, got 20000",
        ),
        ({"learners": 32}, "batch_size must be at most 512, the share of a learner, got 1024"),
    ],
)
def test_what_rllib_could_not_do_is_named_before_it_begins(wrong: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=words):
        Settings(**wrong)


def test_the_command_trains_and_goes_on_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "run"
    fields = [f for f in dataclasses.fields(TINY) if getattr(TINY, f.name) != f.default and f.name != "rules"]
    options = [(f"--{f.name.replace('_', '-')}", str(getattr(TINY, f.name))) for f in fields]
    arguments = ["rllib", *(word for pair in options for word in pair), "--spaces", "1"]
    after, updates = Run.after_update, 0

    def interrupted(self: Run, progress: Callable[[Run], None]) -> None:
        nonlocal updates
        updates += 1
        if updates == 2:  # after the first update
            signal.raise_signal(signal.SIGINT)
        after(self, progress)

    monkeypatch.setattr(Run, "after_update", interrupted)
    assert command.main([*arguments, "--folder", str(folder)]) == 130
    stopped = trained.load(folder).network.state_dict()
    decisions = checkpoint.load(folder / "checkpoint.pt")["decisions"]
    assert 128 <= decisions < 300
    assert not (folder / "result.json").exists()

    again = Run.resume(rllib.Run.read_settings(folder))
    assert again.done == decisions
    for name, weights in again.network().state_dict().items():
        assert weights.equal(stopped[f"mlp_extractor.{name}"])

    capsys.readouterr()
    assert command.main(["--resume", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert (folder / "model.onnx").is_file()
    assert all(name in shown for name in runs.REFERENCES)
    assert set(json.loads((folder / "result.json").read_text())) == set(runs.REFERENCES)
    lines = (folder / "curve.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * (TINY.milestones + 1)
    assert int(lines[-1].split(",")[0]) >= 300
    later = trained.load(folder).network.state_dict()
    assert not all(later[name].equal(stopped[name]) for name in later)


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = trained_run(tmp_path / "run", decisions=1, milestones=1).folder
    assert "width cannot change" in refusal(folder, capsys, "--width", "16")
    content = checkpoint.load(folder / "checkpoint.pt")
    checkpoint.save(
        folder / "checkpoint.pt", content | {"network": content["network"] | {"value.bias": th.zeros(2)}}
    )
    assert "network.value.bias must be" in refusal(folder, capsys)
    flip(folder / "checkpoint.pt")
    assert "checkpoint.pt is damaged" in refusal(folder, capsys)


@pytest.mark.slow
def test_runners_and_learners_in_processes_of_their_own(tmp_path: Path):
    run = trained_run(tmp_path / "run", runners=1, learners=1)
    assert run.done >= 300
    run.algorithm.stop()
