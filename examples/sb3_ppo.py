"""Stable-Baselines3: MaskablePPO learns against its own current policy, and is measured against greedy and random.

python examples/sb3_ppo.py --save sb3_ppo.zip
"""

import os
import shlex
import time
from dataclasses import dataclass

import tyro
from sb3_contrib import MaskablePPO

from wotd_env import evaluate
from wotd_env.adapters.sb3 import Learner, SB3VecEnv
from wotd_env.policies.sb3 import Trained

ENCODING = "features"  # a few dozen handcrafted features, which suit small networks


@dataclass(frozen=True)
class Settings:
    """Train a model with MaskablePPO in self-play, and measure it against greedy and random."""

    save: str = ""
    """File for the trained model, such as sb3_ppo.zip."""
    seed: int = 0
    total_timesteps: int = 1_000_000
    """Decisions of the learner."""
    num_envs: int = 256
    """Number of parallel games."""
    evaluation_games: int = 1000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= (low := {"save": "", "seed": 0}.get(name, 1)):
                raise ValueError(f"{name} must be at least {low}, got {value}")
        if os.path.isdir(self.save) or not os.path.isdir(os.path.dirname(self.save) or "."):
            raise ValueError(f"save must be a file in an existing folder, got {self.save}")


def train(settings: Settings) -> MaskablePPO:
    """Train a model, print its win shares, and return it."""
    opponent, started = Learner(ENCODING), time.process_time()
    games = SB3VecEnv(settings.num_envs, opponents=opponent, encoding=ENCODING)
    model = opponent.model = MaskablePPO(
        "MlpPolicy", games, learning_rate=lambda left: 1e-3 * left, n_steps=64, batch_size=1024, n_epochs=4,
        gamma=1.0, gae_lambda=0.9, ent_coef=0.01, seed=settings.seed, device="cpu",
    )  # fmt: skip
    model.learn(settings.total_timesteps)
    for name in ("greedy", "random"):
        result = evaluate(Trained(model.policy, encoding=ENCODING), name, settings.evaluation_games)
        print(f"{result.share:.1%} against {name}, {time.process_time() - started:.0f} s of processor time")
    return model


if __name__ == "__main__":
    settings = tyro.cli(Settings)
    trained = train(settings)
    if settings.save:
        with open(settings.save, "wb") as out:
            trained.save(out)
        policy = shlex.quote(f"sb3:{ENCODING}:{settings.save}")
        print(f"wotd arena {policy} greedy --trust\nwotd benchmark {policy} --trust")
