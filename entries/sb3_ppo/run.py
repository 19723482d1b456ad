"""The benchmark entry of PPO from Stable-Baselines3, without action masks."""

from stable_baselines3 import PPO

from entries.sb3 import Baseline

baseline = Baseline("sb3_ppo", PPO, n_steps=64, batch_size=512, n_epochs=4, gae_lambda=0.9, ent_coef=0.01)
train, load = baseline.train, baseline.load
