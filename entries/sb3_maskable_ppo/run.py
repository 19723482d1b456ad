"""The benchmark entry of MaskablePPO (sb3-contrib) with an MLP."""

from sb3_contrib import MaskablePPO

from entries.sb3 import Baseline

baseline = Baseline(
    "sb3_maskable_ppo", MaskablePPO, n_steps=64, batch_size=512, n_epochs=4, gae_lambda=0.9, ent_coef=0.01
)
train, load = baseline.train, baseline.load
