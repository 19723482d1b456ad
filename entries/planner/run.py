"""The benchmark entry of the bundled policy `planner`, an untrained reference."""

from wotd_env import make_policy
from wotd_env.policies import Policy


def load(budget: int = 1, seed: int = 0) -> Policy:
    return make_policy("planner")
