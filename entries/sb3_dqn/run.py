"""Enter DQN of Stable-Baselines3, without masks."""

from stable_baselines3 import DQN

from entries.sb3 import Baseline
from tools import entries

baseline = Baseline(
    "sb3_dqn", DQN, batch_size=256, buffer_size=200_000, learning_starts=5_000, train_freq=1, gradient_steps=2,
    exploration_fraction=0.25,
)  # fmt: skip
train, load = baseline.train, baseline.load

if __name__ == "__main__":
    entries.run(__file__)
