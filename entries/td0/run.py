"""The benchmark entry of examples/td0.py, a value learner that plans turns exactly."""

from pathlib import Path

from examples import td0 as example
from wotd_env.policies.planner import Planner

RESULTS = Path(__file__).parent / "results"


def train(budget: int, seed: int) -> None:
    """Train with the settings of the example, and save the weights."""
    value = example.train(example.Settings(seed=seed, evaluation_games=100))
    example.save(value, str(RESULTS / f"{budget}-{seed}.npz"))


def load(budget: int = 1, seed: int = 0) -> Planner:
    return example.load(str(RESULTS / f"{budget}-{seed}.npz"))
