"""Train algorithms of Stable-Baselines3 by self-play, for the entries `sb3_*`. The current model plays both seats.

The result of a game is the only reward. An algorithm without action masks can choose an illegal action, which loses the
training game. The opponent in training and the measured agent play only legal actions.
"""

import warnings
from dataclasses import asdict, replace
from typing import Any

import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from torch import nn

from agents.export import NetworkPolicy
from entries.entry import WEIGHTS
from wotd_env import Rules
from wotd_env.adapters.sb3 import SB3VecEnv

GAMES = 64  # games played side by side
SPARE = 0.99  # training stops when this share of the budget is used


class Scores(nn.Module):
    """A network for `NetworkPolicy`. It returns the logits or action values of a Stable-Baselines3 model."""

    policy: Any
    decisions = 0  # number of observations scored so far

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rules = rules

    def forward(self, observation: th.Tensor) -> tuple[th.Tensor]:
        """Return the scores of all actions, (N, A), for observations (N, D)."""
        self.decisions += len(observation)
        if hasattr(self.policy, "q_net"):
            return (self.policy.q_net(observation),)
        return (self.policy.get_distribution(observation).distribution.logits,)


class Budget(BaseCallback):
    """A callback that stops training when the decisions of both seats use up the budget."""

    def __init__(self, decisions: int, opponent: Scores) -> None:
        super().__init__()
        self.total, self.opponent = decisions, opponent

    def left(self) -> float:
        used = self.num_timesteps + self.opponent.decisions
        return max(0.0, 1 - used / (SPARE * self.total))

    def _on_step(self) -> bool:
        return self.left() > 0


class Baseline:
    """An algorithm with its settings.

    Attributes:
        rules: the rules of the games.
        layouts: layouts of dead pieces that the games draw, or None; `rules` must have dead pieces.

    Args:
        algorithm: a class of Stable-Baselines3 or sb3-contrib.
        policy: the policy class of the algorithm, or its name.
        learning_rate: initial learning rate; it falls linearly to 0.
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
        self.rules = Rules()
        self.layouts: list[str] | None = None

    def train(self, budget: int, seed: int) -> None:
        """Train for `budget` decisions, and save the weights."""
        opponent = NetworkPolicy(Scores(self.rules), sample=True, encoding=self.encoding)
        callback = Budget(budget, opponent.network)
        model = self._model(opponent, seed, lambda _: self.learning_rate * callback.left())
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*a game is lost by an illegal action")
            model.learn(budget, callback)
        self.weights.mkdir(parents=True, exist_ok=True)
        th.save(model.policy.state_dict(), self.weights / f"{budget}-{seed}.pt")

    def load(self, budget: int = 1_000_000, seed: int = 0) -> NetworkPolicy | None:
        file = self.weights / f"{budget}-{seed}.pt"
        if not file.is_file():
            return None
        agent = NetworkPolicy(Scores(self.rules), encoding=self.encoding)
        model = self._model(agent, seed, self.learning_rate)
        model.policy.load_state_dict(th.load(file, weights_only=True))
        return agent

    def _model(self, opponent: NetworkPolicy, seed: int, learning_rate: Any) -> Any:
        th.set_num_threads(1)  # so that rounding does not depend on the number of cores
        games = asdict(replace(self.rules, dead_pieces=0) if self.layouts else self.rules)
        options = games | {"encoding": self.encoding, "layouts": self.layouts}
        envs = SB3VecEnv(GAMES, opponents=opponent, **options)
        model = self.algorithm(
            self.policy, envs, learning_rate=learning_rate, gamma=1.0, seed=seed, device="cpu", **self.options
        )
        envs.seed(seed << 32)  # without the shift, runs with neighboring seeds would play the same games
        opponent.network.policy = model.policy
        return model
