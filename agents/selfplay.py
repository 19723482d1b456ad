"""Self-play as an SB3 `VecEnv`: the learner plays one seat of each game. The seat is drawn at random.

If the game ends in an opponent's turn, the learner's last decision gets the reward. All transitions of a game belong to
the learner's seat, so advantages are bootstrapped from the next decision of that seat.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from wotd_env import STATE, Game, Phase
from wotd_env.adapters.sb3 import SharedVecEnv
from wotd_env.policy import Policy, ask


class SelfPlayVecEnv(SharedVecEnv):
    """Self-play in N games.

    Observations are int8 (N, D), rewards float32 (N,), masks int8 (N, A). The turn limit (R16) ends a game with
    the reward 0.

    Args:
        game: the engine with the rules.
        opponents: N policies. Policy i plays all seats of game i except the learner's.
        seed: the only source of randomness.

    Attributes:
        state: STATE (N,), the games. Every game is at a decision of the learner's seat.
        seat: int8 (N,), the learner's seats.
        rng: the generator that draws the seats and the opponents' actions. It may be replaced between steps.
    """

    render_mode = None

    def __init__(self, game: Game, opponents: Sequence[Policy], seed: int = 0) -> None:
        n = len(opponents)
        self.env, self.game = self, game
        self.state, self.seat = np.zeros(n, STATE), np.zeros(n, np.int8)
        self.opponents = opponents
        observations = spaces.Box(0, 127, (game.observation_size,), np.int8)
        super().__init__(n, observations, spaces.Discrete(game.num_actions))
        self.seed(seed)
        self.reset()

    @property
    def opponents(self) -> list[Policy]:
        """The policies of the opponents, one for each game. The policies may be replaced between steps."""
        return self._opponents

    @opponents.setter
    def opponents(self, opponents: Sequence[Policy]) -> None:
        n = len(self.state)
        if len(opponents) != n:
            raise ValueError(f"opponents must be {n} policies, one for each game, got {len(opponents)}")
        self._opponents = list(opponents)
        distinct = {id(policy): policy for policy in opponents}.values()
        self._groups = [(policy, np.array([other is policy for other in opponents])) for policy in distinct]

    def reset(self) -> NDArray[np.int8]:
        """Start new games and return the observations."""
        if self._seeds[0] is not None:
            self.rng = np.random.default_rng(self._seeds[0])
            self.game.reset(self.state, seed=self._seeds[0])
        else:
            self.game.reset(self.state)
        self._reset_seeds()
        self._reset_options()
        self.seat[:] = self.rng.integers(self.game.rules.players, size=self.num_envs)
        self._until_learner()
        return self.game.observe(self.state)

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Apply the learner's actions, (N,), to the games."""
        self.game.step(self.state, actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Continue the games to the learner's next decisions; return observations, rewards, dones, infos."""
        rewards, done, infos = self._until_learner()
        return self.game.observe(self.state), rewards, done, infos

    def _until_learner(self) -> tuple[NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play the opponents' decisions and start new games, until every game is at a decision of the learner."""
        rewards = np.zeros(self.num_envs, np.float32)
        done = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        while True:
            over = self.state["phase"] == Phase.OVER
            if over.any():
                # With a low turn limit, a second game may end before the learner acts; only the first game is rewarded.
                first = np.flatnonzero(over & ~done)
                rewards[first] = self.game.rewards(self.state[first])[np.arange(len(first)), self.seat[first]]
                last = self.game.observe(self.state[first], self.seat[first])
                for game, observation in zip(first, last, strict=True):
                    infos[game]["terminal_observation"] = observation
                done |= over
                self.game.reset(self.state, where=over)
                self.seat[over] = self.rng.integers(self.game.rules.players, size=over.sum())
            waiting = self.state["player"] != self.seat
            if not waiting.any():
                return rewards, done, infos
            for policy, games in self._groups:
                if len(chosen := np.flatnonzero(waiting & games)):
                    state = self.state[chosen]
                    self.game.step(state, ask(policy, self.game, state, self.rng))
                    self.state[chosen] = state

    def action_masks(self) -> NDArray[np.int8]:
        """Return the learner's legal actions, int8 (N, A)."""
        return self.game.legal_actions(self.state)
