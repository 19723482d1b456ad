"""The benchmark entry of MaskablePPO (sb3-contrib) with the network of `train.py sb3`."""

from sb3_contrib import MaskablePPO

from agents.sb3 import PathPolicy
from entries.sb3 import Baseline
from wotd_env import Rules

baseline = Baseline(
    "sb3_path_network", MaskablePPO, PathPolicy, encoding="one_hot", n_steps=64, batch_size=1024, n_epochs=3,
    gae_lambda=0.9, ent_coef=0.003, policy_kwargs={"features_extractor_kwargs": {"rules": Rules(), "width": 64}},
)  # fmt: skip
train, load = baseline.train, baseline.load
