"""The benchmark entry of the tree search `mcts`, an untrained reference."""

from wotd_env.policies.mcts import Mcts


def load(budget: int = 50, seed: int = 0) -> Mcts:
    return Mcts(budget)
