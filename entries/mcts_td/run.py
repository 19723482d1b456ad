"""The benchmark entry of the tree search `mcts` with the learned value function of `td`. The entry trains nothing."""

from wotd_env.policies.mcts import Mcts


def load(budget: int = 50, seed: int = 0) -> Mcts:
    """Return the search with `budget` playouts per decision."""
    return Mcts(budget, learned=True)
