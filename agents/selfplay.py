"""Self-play as an SB3 `VecEnv`: every environment is a game, in which the learner has one seat, or all of them.

With one seat it is asked at that seat's decisions alone. In between the other seats play, and what that brings to the
learner's seat, a lost game above all, is the reward of the learner's last decision. So the transitions of one
environment are those of one seat, and advantages are bootstrapped from that seat's own next decision.

With all seats it is asked at every decision, and the reward is that of the seat that has made it. So the next
observation is mostly another seat's: that suits a learner that looks at each decision by itself (a discount of 0), and
is paid at once, by credits. What the others do by chance, with each other's mistakes, is not in its rewards then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from agents.credit import Creditor
from wotd_env import STATE, Game, Phase
from wotd_env.planning.planner import Value
from wotd_env.policy import Policy, ask


class SelfPlayVecEnv(VecEnv):
    """N games, in each of which the learner has all seats, or one seat, drawn anew for every game.

    Observations are int8 (N, D), rewards float32 (N,), and action masks, which `action_masks()` returns, int8 (N, A).
    The info of a finished game has its `terminal_observation`, and its `result`, the reward of the game itself for the
    learner's seat; with all seats for the one that was the last to act.
    Truncation (R16) is an end like any other, with the result 0: observations count down to it, so a learner must not
    bootstrap there.

    Args:
        game: the game.
        opponents: N policies; the i-th plays all other seats of game i, and for None there are none: the learner has
            all seats. Games of the same policy are played together.
        seed: everything random depends on it alone.
        value: if given, rewards are the credits of decisions by this value of positions, see `agents.credit`.

    Attributes:
        state: STATE (N,), every game at a decision of the learner's seat.
        seat: int8 (N,), the learner's seats; where it has all, the one that is to act.
        rng: draws the seats, and the opponents draw from it; may be replaced between steps.
    """

    render_mode = None

    def __init__(
        self, game: Game, opponents: Sequence[Policy | None], seed: int = 0, value: Value | None = None
    ) -> None:
        n = len(opponents)
        self.game = game
        self._creditor = Creditor(game, value) if value else None
        self._credit = np.zeros((n, game.rules.players), np.float32)
        self.state = np.zeros(n, STATE)
        self.seat = np.zeros(n, np.int8)
        self.opponents = opponents
        super().__init__(
            n, spaces.Box(0, 127, (game.observation_size,), np.int8), spaces.Discrete(game.num_actions)
        )
        self.seed(seed)
        self.reset()

    @property
    def opponents(self) -> list[Policy | None]:
        """The policies of the other seats, one for each game; they may be replaced between steps."""
        return self._opponents

    @opponents.setter
    def opponents(self, opponents: Sequence[Policy | None]) -> None:
        if len(opponents) != len(self.state):
            raise ValueError(
                f"opponents must be {len(self.state)} policies, one for each game, got {len(opponents)}"
            )
        self._opponents = list(opponents)
        self._alone = np.array([policy is None for policy in opponents])
        self._groups = {
            id(policy): (policy, np.zeros(len(self.state), np.bool_))
            for policy in opponents
            if policy is not None
        }
        for i, policy in enumerate(opponents):
            if policy is not None:
                self._groups[id(policy)][1][i] = True

    def reset(self) -> NDArray[np.int8]:
        """Begin all games anew, from the seed given to `seed` before if there is one, and return the observations."""
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
        """Take the learner's actions (N,)."""
        self._credit[:] = 0
        if self._creditor:
            self._credit += self._creditor.step(self.state, actions)
        else:
            self.game.step(self.state, actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Go on to the learner's next decisions; return observations, rewards, dones, infos."""
        rewards, done, infos = self._until_learner()
        return self.game.observe(self.state), rewards, done, infos

    def _until_learner(self) -> tuple[NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Let the opponents play, and new games begin, until the learner is to act in every game."""
        rewards = np.zeros(self.num_envs, np.float32)
        done = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        while True:
            over = self.state["phase"] == Phase.OVER
            if over.any():
                # If few turns are allowed, a second game may end before the learner is asked; the first one counts.
                self._note(np.flatnonzero(over & ~done), rewards, infos)
                done |= over
                self.game.reset(self.state, where=over)
                self.seat[over] = self.rng.integers(self.game.rules.players, size=over.sum())
            waiting = (self.state["player"] != self.seat) & ~self._alone
            if not waiting.any():
                if (
                    self._creditor
                ):  # where a game has ended, what came after belongs to no decision of the learner
                    rewards = np.where(done, rewards, self._credit[np.arange(self.num_envs), self.seat])
                self.seat[self._alone] = self.state["player"][self._alone]
                return rewards, done, infos
            for policy, games in self._groups.values():
                if len(chosen := np.flatnonzero(waiting & games)):
                    state = self.state[chosen]
                    actions = ask(policy, self.game, state, self.rng)
                    if self._creditor:
                        self._credit[chosen] += self._creditor.step(state, actions)
                    else:
                        self.game.step(state, actions)
                    self.state[chosen] = state

    def _note(
        self, games: NDArray[np.int64], rewards: NDArray[np.float32], infos: list[dict[str, Any]]
    ) -> None:
        """Note how games have ended for the learner."""
        ended, seats = self.state[games], self.seat[games]
        results = self.game.rewards(ended)[np.arange(len(games)), seats]
        rewards[games] = self._credit[games, seats] if self._creditor else results
        last = self.game.observe(ended, seats)
        for i, game in enumerate(games):
            infos[game]["terminal_observation"] = last[i]
            infos[game]["result"] = float(results[i])

    def action_masks(self) -> NDArray[np.int8]:
        """Return the learner's legal actions, int8 (N, A)."""
        return self.game.legal_actions(self.state)

    # The other methods that SB3 asks of a VecEnv. All environments are this object, so each has its attributes.

    def close(self) -> None:
        """There is nothing to close."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute, once for each environment."""
        return [getattr(self, attr_name)] * self._count(indices)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of all environments."""
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        """Call `action_masks`: a row for each environment."""
        rows = getattr(self, method_name)(*args, **kwargs)
        return rows if indices is None else [rows[i] for i in self._get_indices(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """No environment is wrapped."""
        return [False] * self._count(indices)

    def _count(self, indices: VecEnvIndices) -> int:
        chosen: Iterable[int] = self._get_indices(indices)
        return len(list(chosen))
