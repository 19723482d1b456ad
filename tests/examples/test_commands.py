"""Every learner saves its result and prints commands that run; wrong arguments give one sentence."""

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
NEEDS = {"actor_critic_numpy": "numpy", "jax_ppo": "jax", "ray_tune": "ray.tune"}

WRONG = {
    "--num-envs 0": "num_envs must be at least 1, got 0",
    "--total-timesteps 0": "total_timesteps must be at least [0-9]+, got 0",
    "--save nowhere/network": "save must be a file in an existing folder, got nowhere/network",
    "--evaluation-games -1": "evaluation_games must be at least 1, got -1",
}
MORE_WRONG = [
    ("actor_critic_numpy", "--learning-rate nan", "learning_rate must be at least 0, got nan"),
    ("actor_critic_numpy", "--ent-coef -0.5", "ent_coef must be at least 0, got -0.5"),
    ("actor_critic_numpy", "--seed -1", "seed must be at least 0, got -1"),
    ("jax_ppo", "--players 9", "players must be"),
    ("ppo", "--players 9", "players must be"),
    ("ray_tune", "--trials 0", "trials must be at least 1, got 0"),
    ("ray_tune", "dqn", "invalid choice"),
]


@pytest.mark.filterwarnings("default")  # warnings of torch.onnx
@pytest.mark.parametrize("name", TINY)
def test_a_saved_learner_plays_in_the_arena_and_the_benchmark(
    name: str, save_and_measure: Callable[[str, str], None]
):
    for needed in (NEEDS.get(name, "sb3_contrib"), "typer", "onnxscript"):
        pytest.importorskip(needed)
    save_and_measure(name, TINY[name])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [*((name, *wrong) for name in TINY for wrong in WRONG.items()), *MORE_WRONG],
)
def test_wrong_settings_give_one_sentence(
    name: str,
    options: str,
    message: str,
    run_example: Callable[[str, str], str],
    capsys: pytest.CaptureFixture[str],
):
    pytest.importorskip(NEEDS.get(name, "sb3_contrib"))
    with pytest.raises(SystemExit) as stopped:
        run_example(name, options)
    assert stopped.value.code == 2
    output = capsys.readouterr()
    assert re.search(message, re.sub(r"[│\s]+", " ", output.out + output.err))
