"""Ray RLlib: masked PPO by self-play, on one machine or a cluster.

Each seat is an agent of a multi-agent environment. All agents share one network. RLlib masks the illegal actions.

    pip install --editable ".[train,rllib]"
    python examples/rllib_ppo.py
    RAY_ADDRESS=HOST:PORT python examples/rllib_ppo.py 100000 32    # 32 processes of a cluster play
"""

import sys
import time
from typing import Any

import gymnasium
import numpy as np
import torch as th
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

from wotd_env.adapters.rllib import multi_agent_env

ENCODING = "features"  # a few dozen handcrafted features, which suit small networks


def train(
    decisions: int = 100_000, runners: int = 0, rollout: int = 8192, evaluation_games: int = 1000
) -> Any:
    """Train a network, print its progress, and return the algorithm.

    `decisions` counts the decisions of all seats; each update uses `rollout` of them. The games run in `runners`
    processes on any node of the cluster. If `runners` is 0, the games run in this process.
    """
    register_env("wotd", multi_agent_env)
    config = (
        PPOConfig()
        .environment("wotd", env_config={"encoding": ENCODING}, disable_env_checking=True)
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=32)
        .multi_agent(policies={"all"}, policy_mapping_fn=lambda agent, episode, **kwargs: "all")
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
        .training(
            lr=1e-3,
            gamma=1.0,
            lambda_=0.9,
            entropy_coeff=0.01,
            use_kl_loss=False,
            vf_clip_param=float("inf"),
            train_batch_size_per_learner=rollout,
            minibatch_size=min(rollout, 512),
            num_epochs=4,
        )
        .debugging(seed=0, log_level="ERROR")
    )
    algorithm, done = config.build_algo(), 0
    while done < decisions:
        done = int(algorithm.train()["env_runners"]["num_env_steps_sampled_lifetime"])
        print(f"{done} decisions, {time.process_time():.0f} s of processor time", flush=True)
    for name in ("greedy", "random"):
        rate = win_rate(algorithm.get_module("all"), name, evaluation_games)
        print(f"{rate:.1%} against {name}", flush=True)
    return algorithm


def win_rate(module: Any, opponent: str, games: int) -> float:
    """Play the most likely actions in a random seat against a named policy, and return the share of games won."""
    name = "wotd_env:wotd_env/WayOfTheDragon-v0"
    envs = gymnasium.make_vec(name, num_envs=games, opponents=opponent, encoding=ENCODING)
    observation, info = envs.reset(seed=1 << 40)
    won, running = np.zeros(games, np.bool_), np.ones(games, np.bool_)
    while running.any():
        seen = {"observations": observation, "action_mask": info["action_mask"]}
        batch = {"obs": {part: th.from_numpy(values).float() for part, values in seen.items()}}
        with th.no_grad():
            action = module.forward_inference(batch)["action_dist_inputs"].argmax(1).numpy()
        observation, reward, terminated, truncated, info = envs.step(action)
        won |= running & (reward == 1)
        running &= ~(terminated | truncated)
    return float(won.mean())


if __name__ == "__main__":
    train(*map(int, sys.argv[1:]))
