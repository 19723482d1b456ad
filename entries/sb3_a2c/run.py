"""The benchmark entry of A2C from Stable-Baselines3, without action masks."""

from stable_baselines3 import A2C

from entries.sb3 import Baseline

baseline = Baseline("sb3_a2c", A2C, n_steps=16, gae_lambda=0.9, ent_coef=0.01)
train, load = baseline.train, baseline.load
