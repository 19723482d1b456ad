"""Enter the tree search `mcts`, a reference without training."""

from tools import entries
from wotd_env.policies.mcts import Mcts


def load(budget: int = 50, seed: int = 0) -> Mcts:
    """Return the search with a budget of playouts."""
    return Mcts(budget)


if __name__ == "__main__":
    entries.run(__file__)
