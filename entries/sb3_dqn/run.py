"""The benchmark entry of DQN from Stable-Baselines3, without action masks."""

from stable_baselines3 import DQN

from entries.sb3 import Baseline

baseline = Baseline(
    "sb3_dqn", DQN, batch_size=256, buffer_size=200_000, learning_starts=5_000, train_freq=1, gradient_steps=2,
    exploration_fraction=0.25,
)  # fmt: skip
train, load = baseline.train, baseline.load
