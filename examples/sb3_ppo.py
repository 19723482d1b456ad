"""Stable-Baselines3: MaskablePPO learns against its own current policy, and is measured against greedy and random.

The program takes one argument, the number of decisions: `python examples/sb3_ppo.py 1000000`.
"""

import sys
import time
from typing import Any

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy

from wotd_env.adapters.sb3 import Learner, SB3VecEnv

ENCODING = "features"  # a few dozen handcrafted features, which suit small networks


def train(steps: int = 1_000_000, envs: int = 256, evaluation_games: int = 1000) -> MaskablePPO:
    """Train a model on `steps` decisions, print its win rates, and return it."""
    opponent, started = Learner(ENCODING), time.process_time()
    games = SB3VecEnv(envs, opponents=opponent, encoding=ENCODING)
    model = opponent.model = MaskablePPO(
        "MlpPolicy", games, learning_rate=lambda left: 1e-3 * left, n_steps=64, batch_size=1024, n_epochs=4,
        gamma=1.0, gae_lambda=0.9, ent_coef=0.01, seed=0, device="cpu",
    )  # fmt: skip
    model.learn(steps)
    for name in ("greedy", "random"):
        games = SB3VecEnv(100, opponents=name, encoding=ENCODING)
        reward: Any = evaluate_policy(model, games, evaluation_games, warn=False)[0]
        print(f"{(1 + reward) / 2:.1%} against {name}, {time.process_time() - started:.0f} s")
    return model


if __name__ == "__main__":
    train(*map(int, sys.argv[1:2]))
