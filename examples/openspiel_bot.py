"""An OpenSpiel bot as a policy for two players. The bot is OpenSpiel's Monte Carlo tree search.

For each decision, the bot starts an OpenSpiel game at the position and takes one action in this game. All functions and
commands that accept a policy also accept `Search`. The first two commands below take 20 seconds each:

    wotd arena examples.openspiel_bot:Search random --spaces 0 --games 20
    wotd benchmark examples.openspiel_bot:Search --spaces 0 --size 2 --games 4
    python examples/openspiel_bot.py
"""

from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray
from open_spiel.python.algorithms import mcts

from wotd_env import Game, Rules, benchmark
from wotd_env.adapters.openspiel import position

SIMULATIONS = 10
EXPLORATION = 2.0


class Search:
    """A policy that uses OpenSpiel's tree search. Rollouts with random actions evaluate the leaves."""

    def check_rules(self, rules: Rules) -> None:
        """Raise ValueError for more than two players: the search would take seconds for each decision."""
        if rules.players > 2:
            raise ValueError(f"players must be 2, got {rules.players}")

    def act(self, game: Game, state: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions (N,) for positions STATE (N,)."""
        return np.array([self.decide(game, state[i : i + 1], rng) for i in range(len(state))])

    def decide(self, game: Game, state: NDArray[Any], rng: np.random.Generator) -> int:
        """Choose the action for one position, STATE (1,)."""
        random = np.random.RandomState(rng.integers(2**32))
        rooted = pyspiel.load_game("way_of_the_dragon", {"position": position(game.rules, state)})
        evaluator = mcts.RandomRolloutEvaluator(random_state=random)
        bot = mcts.MCTSBot(rooted, EXPLORATION, SIMULATIONS, evaluator, random_state=random)
        return int(bot.step(rooted.new_initial_state()))


if __name__ == "__main__":
    positions = benchmark.load(rules=Rules(spaces=0)).first(10)
    actions = Search().act(Game(positions.rules), positions.state, np.random.default_rng(0))
    print(f"mean regret in {len(actions)} positions: {positions.regret(actions).mean():.3f}")
