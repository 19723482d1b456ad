"""Enter the tree search `mcts` as an untrained reference."""

from tools import entries
from wotd_env.policies.mcts import Mcts


def load(budget: int = 50, seed: int = 0) -> Mcts:
    """Return the search with `budget` playouts per decision."""
    return Mcts(budget)


if __name__ == "__main__":
    entries.run(__file__)
