"""Train Stable-Baselines3 by self-play, for the entries `sb3_*`: the current model plays both seats.

The results of games are the only rewards. An algorithm without masks loses the game if it plays an illegal action;
so it learns the rules. As opponents, and when they are measured, all models choose among the legal actions.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback

from tools.entries import WEIGHTS
from wotd_env import Game, Rules
from wotd_env.adapters.sb3 import SB3VecEnv
from wotd_env.core.state import States
from wotd_env.policy import check_made_for

GAMES = 64  # games played side by side
SPARE = 0.99  # share of the budget that training may use before its last step


class Agent:
    """Plays the legal action with a model's highest score or, with `sample`, draws an action by its probability."""

    decisions = 0  # number of decisions so far

    def __init__(self, encoding: str, sample: bool = False) -> None:
        self.game, self.sample = Game(encoding=encoding), sample
        self.policy: Any = None  # the policy of a trained model

    def check_rules(self, rules: Rules) -> None:
        """Raise ValueError for other rules than in training."""
        check_made_for("the agent", self.game.rules, rules)

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`."""
        self.decisions += len(state)
        with th.no_grad():
            scores = self.scores(th.from_numpy(self.game.observe(state))).numpy()
        if self.sample:
            scores = scores + rng.gumbel(size=scores.shape)
        return np.asarray(np.where(game.legal_actions(state) == 1, scores, -np.inf).argmax(1))

    def scores(self, observation: th.Tensor) -> th.Tensor:
        """Return the logits or values of all actions, (N, A), from observations (N, D)."""
        if hasattr(self.policy, "q_net"):
            return self.policy.q_net(observation)  # type: ignore[no-any-return]
        return self.policy.get_distribution(observation).distribution.logits  # type: ignore[no-any-return]


class Budget(BaseCallback):
    """Ends training when both seats together have used the budget; until then the learning rate falls to 0."""

    def __init__(self, decisions: int, opponent: Agent) -> None:
        super().__init__()
        self.total, self.opponent = decisions, opponent

    def left(self) -> float:
        """Return the share of the budget that is left."""
        used = self.num_timesteps + self.opponent.decisions
        return max(0.0, 1 - used / (SPARE * self.total))

    def _on_step(self) -> bool:
        return self.left() > 0


class Baseline:
    """An algorithm with its settings, for `train` and `load` of an entry.

    Args:
        name: of the entry.
        algorithm: a class of Stable-Baselines3 or sb3-contrib.
        policy: the policy of the algorithm.
        encoding: of the observations.
        learning_rate: at the start; it falls linearly to 0.
        **options: other arguments of the algorithm.
    """

    def __init__(
        self,
        name: str,
        algorithm: Any,
        policy: Any = "MlpPolicy",
        *,
        encoding: str = "features",
        learning_rate: float = 1e-3,
        **options: Any,
    ) -> None:
        self.weights = WEIGHTS / name
        self.algorithm, self.policy, self.encoding = algorithm, policy, encoding
        self.learning_rate, self.options = learning_rate, options

    def train(self, budget: int, seed: int) -> None:
        """Train with a budget of decisions, and write the weights."""
        opponent = Agent(self.encoding, sample=True)
        callback = Budget(budget, opponent)
        model = self._model(opponent, seed, lambda _: self.learning_rate * callback.left())
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*a game is lost by an illegal action")
            model.learn(budget, callback)
        self.weights.mkdir(parents=True, exist_ok=True)
        th.save(model.policy.state_dict(), self.weights / f"{budget}-{seed}.pt")

    def load(self, budget: int = 1_000_000, seed: int = 0) -> Agent | None:
        """Return the trained agent, or None if there are no weights."""
        file = self.weights / f"{budget}-{seed}.pt"
        if not file.is_file():
            return None
        agent = Agent(self.encoding)
        model = self._model(agent, seed, self.learning_rate)
        model.policy.load_state_dict(th.load(file, weights_only=True))
        return agent

    def _model(self, opponent: Agent, seed: int, learning_rate: Any) -> Any:
        th.set_num_threads(1)  # sums then round the same on any number of cores
        envs = SB3VecEnv(GAMES, opponents=opponent, encoding=self.encoding)
        model = self.algorithm(
            self.policy, envs, learning_rate=learning_rate, gamma=1.0, seed=seed, device="cpu", **self.options
        )
        envs.seed(seed << 32)  # after SB3's own `envs.seed(seed)`: neighboring seeds would share games
        opponent.policy = model.policy
        return model
