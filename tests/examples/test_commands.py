"""Every learner saves its result and prints commands that run; wrong arguments give one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

TINY = {
    "actor_critic_numpy": "--total-timesteps 128 --num-envs 8 --num-steps 8",
    "dqn": "--total-timesteps 320 --num-envs 8 --batch-size 32 --buffer-size 100",
    "jax_ppo": "--total-timesteps 128 --num-envs 8 --num-steps 8 --minibatch-size 32 --width 8 --players 3",
    "ppo": "--total-timesteps 128 --num-envs 8 --num-steps 8 --minibatch-size 32 --players 3",
    "sb3_ppo": "--total-timesteps 512 --num-envs 8",
    "torch_gpu_ppo": "--device cpu --total-timesteps 128 --num-envs 8 --num-steps 8 --minibatch-size 32 --players 3",
    "td0": "--total-timesteps 64 --num-envs 8",
}
NEEDS = {"actor_critic_numpy": "numpy", "jax_ppo": "jax"}


@pytest.fixture(params=TINY)
def learner(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(NEEDS.get(request.param, "sb3_contrib"))
    return str(request.param)


@pytest.mark.filterwarnings("default")  # warnings of torch.onnx
def test_a_saved_learner_plays_in_the_arena_and_the_benchmark(
    learner: str, save_and_measure: Callable[[str, str], None]
):
    pytest.importorskip("typer")
    pytest.importorskip("onnxscript")
    save_and_measure(learner, TINY[learner])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--num-envs 0", "num_envs must be at least 1, got 0"),
        ("--total-timesteps 0", "total_timesteps must be at least [0-9]+, got 0"),
        ("--save nowhere/network", "save must be a file in an existing folder, got nowhere/network"),
        ("--evaluation-games -1", "evaluation_games must be at least 1, got -1"),
    ],
)
def test_wrong_settings_give_one_sentence(
    learner: str,
    options: str,
    message: str,
    run_example: Callable[[str, str], str],
    capsys: pytest.CaptureFixture[str],
):
    with pytest.raises(SystemExit) as stopped:
        run_example(learner, options)
    assert stopped.value.code == 2
    output = capsys.readouterr()
    assert re.search(message, re.sub(r"[│\s]+", " ", output.out + output.err))


def test_numbers_that_are_not_counts_are_checked(
    run_example: Callable[[str, str], str], capsys: pytest.CaptureFixture[str]
):
    for option, message in (
        ("--learning-rate nan", "learning_rate must be at least 0, got nan"),
        ("--ent-coef -0.5", "ent_coef must be at least 0, got -0.5"),
        ("--seed -1", "seed must be at least 0, got -1"),
    ):
        with pytest.raises(SystemExit):
            run_example("actor_critic_numpy", option)
        assert capsys.readouterr().err.endswith(f"error: {message}\n")


@pytest.mark.parametrize("name", ["ppo", "jax_ppo"])
def test_wrong_numbers_of_players_are_refused(
    name: str, run_example: Callable[[str, str], str], capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("sb3_contrib" if name == "ppo" else "jax")
    with pytest.raises(SystemExit):
        run_example(name, "--players 9")
    output = capsys.readouterr()
    assert "players must be" in output.out + output.err
