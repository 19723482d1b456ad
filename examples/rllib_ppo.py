"""Ray RLlib: masked PPO by self-play, on one machine or a cluster.

Each seat is an agent of a multi-agent environment. All agents share one network. RLlib masks the illegal actions.

    pip install --editable ".[train,rllib]"
    python examples/rllib_ppo.py --save rllib_ppo.onnx
    RAY_ADDRESS=HOST:PORT python examples/rllib_ppo.py --num-env-runners 32    # 32 processes of a cluster play
"""

import os
import shlex
import time
from dataclasses import dataclass
from typing import Any

import torch as th
import tyro
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env
from torch import nn

from wotd_env import evaluate
from wotd_env.adapters.rllib import multi_agent_env
from wotd_env.policies.function import FunctionPolicy

ENCODING = "features"  # a few dozen handcrafted features, which suit small networks


@dataclass(frozen=True)
class Settings:
    """Train a network with RLlib's PPO in self-play, and measure it against greedy and random."""

    save: str = ""
    """File for the trained network, such as rllib_ppo.onnx."""
    total_timesteps: int = 100_000
    """Decisions of all seats."""
    num_env_runners: int = 0
    """Processes that play, on any node of the cluster; 0: this process plays."""
    num_envs: int = 32
    """Number of parallel games in each process."""
    batch_size: int = 8192
    """Decisions of an update."""
    minibatch_size: int = 512
    evaluation_games: int = 1000

    def __post_init__(self) -> None:
        least = {"save": "", "num_env_runners": 0, "batch_size": self.minibatch_size}
        for name, value in vars(self).items():
            if not value >= (low := least.get(name, 1)):
                raise ValueError(f"{name} must be at least {low}, got {value}")
        if os.path.isdir(self.save) or not os.path.isdir(os.path.dirname(self.save) or "."):
            raise ValueError(f"save must be a file in an existing folder, got {self.save}")


class Logits(nn.Module):
    """The logits of a trained module of RLlib."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, observation: th.Tensor, action_mask: th.Tensor) -> th.Tensor:
        """Return logits (N, A) for observations, int8 (N, D), and action masks, int8 (N, A)."""
        batch = {"obs": {"observations": observation.float(), "action_mask": action_mask.float()}}
        logits: th.Tensor = self.module.forward_inference(batch)["action_dist_inputs"]
        return logits

    def save(self, file: str) -> None:
        """Write the network to an ONNX file, which plays as the policy `onnx:FILE`."""
        spaces = self.module.observation_space
        example = tuple(
            th.ones(2, *spaces[name].shape, dtype=th.int8) for name in ("observations", "action_mask")
        )
        rows = {0: th.export.Dim("rows")}
        program = th.onnx.export(
            self.eval(), example, input_names=["observation", "action_mask"], output_names=["logits"],
            dynamic_shapes=(rows, rows), verbose=False,
        )  # fmt: skip
        assert program is not None
        program.model.metadata_props["wotd_encoding"] = ENCODING
        program.save(file)


def train(settings: Settings) -> Any:
    """Train a network, print its progress, and return the algorithm."""
    register_env("wotd", multi_agent_env)
    config = (
        PPOConfig()
        .environment("wotd", env_config={"encoding": ENCODING}, disable_env_checking=True)
        .env_runners(num_env_runners=settings.num_env_runners, num_envs_per_env_runner=settings.num_envs)
        .multi_agent(policies={"all"}, policy_mapping_fn=lambda agent, episode, **kwargs: "all")
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
        .training(
            lr=1e-3, gamma=1.0, lambda_=0.9, entropy_coeff=0.01, use_kl_loss=False, vf_clip_param=float("inf"),
            train_batch_size_per_learner=settings.batch_size, minibatch_size=settings.minibatch_size, num_epochs=4,
        )
        .debugging(seed=0, log_level="ERROR")
    )  # fmt: skip
    algorithm, done = config.build_algo(), 0
    while done < settings.total_timesteps:
        done = int(algorithm.train()["env_runners"]["num_env_steps_sampled_lifetime"])
        print(f"{done} decisions, {time.process_time():.0f} s of processor time", flush=True)
    logits = Logits(algorithm.get_module("all"))
    choose = th.no_grad()(lambda *seen: logits(*map(th.from_numpy, seen)).argmax(1).numpy())
    policy = FunctionPolicy(choose, batched=True, encoding=ENCODING)
    for name in ("greedy", "random"):
        print(f"{evaluate(policy, name, settings.evaluation_games).share:.1%} against {name}", flush=True)
    return algorithm


if __name__ == "__main__":
    settings = tyro.cli(Settings)
    trained = train(settings)
    if settings.save:
        Logits(trained.get_module("all")).save(settings.save)
        policy = shlex.quote(f"onnx:{settings.save}")
        print(f"wotd arena {policy} greedy\nwotd benchmark {policy}")
