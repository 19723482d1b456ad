"""The benchmark entry of the tree search `mcts` with the learned value function of `td`."""

from wotd_env.policies.mcts import Mcts


def load(budget: int = 50, seed: int = 0) -> Mcts:
    return Mcts(budget, learned=True)
