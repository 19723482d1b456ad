"""The PettingZoo environment: all seats are agents that take turns."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete, Space
from numpy.typing import NDArray
from pettingzoo.utils import AECEnv, BaseWrapper, wrappers

from wotd_env.core import batch
from wotd_env.core.arguments import check_choice
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase, Rules
from wotd_env.envs.common import (
    OneGame,
    action_space,
    as_integer,
    begin,
    final_rewards,
    observation_space,
    take_action,
)
from wotd_env.rendering import FPS, RENDER_MODES, Viewer

__all__ = ["env", "raw_env"]


def env(**arguments: Any) -> _OrderEnforcing:  # an AECEnv; PettingZoo has no types, and would make it Any
    """Return the environment as PettingZoo's classics come: an illegal action ends the game with reward -1.

    Args:
        **arguments: those of `raw_env`.
    """
    return _OrderEnforcing(_AssertOutOfBounds(_TerminateIllegal(raw_env(**arguments), illegal_reward=-1)))


class raw_env(OneGame, AECEnv[str, Any, int]):  # type: ignore[misc]  # PettingZoo is untyped; the name is what it expects
    """Way of the Dragon for `players` agents, `"player_0"` in seat 0 and so on.

    An agent may act several times in a row: a turn holds several decisions, and those with one legal action are taken
    at once. Rewards are 0 until the game ends, for all agents in the same step; then they sum to 0 (R10), and are all
    0 if the game is truncated after `max_turns` (R16). Copies made by `copy.deepcopy` or `pickle` go on with the game
    where it stands, with the same dice.

    Args:
        mask_in: `"obs"`: observations are `{"observation": int8 (D,), "action_mask": int8 (A,)}`; `"info"`: they
            are int8 (D,), and `infos[agent]` holds the mask.
        encoding: of observations: `"one_hot"`, `"compact"`, `"tokens"` or `"features"` (docs/environment.md).
        render_mode: one of `wotd_env.rendering.RENDER_MODES`, what `render` returns; `"human"`: every step is shown in
            a window; or None.
        **rules: the fields of `wotd_env.Rules`.

    Attributes:
        game: the `Game` that is played; `game.observation_layout` tells the observation's parts.
        state_space: space of `state()`.

    Raises:
        TypeError: for an unknown argument.
        ValueError: for a wrong value.
    """

    metadata = {  # noqa: RUF012  # as PettingZoo has it
        "name": "way_of_the_dragon_v0",
        "render_modes": RENDER_MODES,
        "is_parallelizable": False,
        "render_fps": FPS,
    }

    def __init__(
        self,
        *,
        mask_in: str = "obs",
        observation_dtype: str = "int8",
        encoding: str = "one_hot",
        render_mode: str | None = None,
        **rules: Any,
    ) -> None:
        super().__init__()
        self.game = Game(Rules(**rules), encoding=encoding)
        self.mask_in = mask_in
        self.render_mode = check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        self._viewer = Viewer(self.game, render_mode)
        self.possible_agents = [f"player_{seat}" for seat in range(self.game.rules.players)]
        self.observation_spaces = {
            agent: observation_space(self.game, mask_in, observation_dtype) for agent in self.possible_agents
        }
        self.action_spaces = {agent: action_space(self.game) for agent in self.possible_agents}
        self.state_space = observation_space(self.game, "info", "int8")
        self._dtype = np.dtype(observation_dtype)
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._state: NDArray[np.void] | None = None
        self._loser: int | None = None  # the seat that has lost by an illegal action

    def observation_space(self, agent: str) -> Space[Any]:
        """Return an agent's observation space, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return an agent's action space, always the same object."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game.

        Args:
            seed: the game's dice, those of `Game.reset(1, seed=seed)`. Without it the dice go on from the last game,
                in the first game from a random seed.
            options: `"starting_player"`: the seat that begins; or `"state"`: a game to go on from, such as `record`
                was, with its own dice unless `seed` is given.

        Raises:
            ValueError: for a wrong seed or option; the running game goes on.
        """
        # All seats learn; the one that has lost may begin (R1).
        lost, learner = self._loser is not None, self._loser or 0
        self._state, _ = begin(self.game, self._state, seed, options, learner, learner, lost)
        self._loser = None
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        if self.mask_in == "info":
            self.infos = {
                agent: {"action_mask": np.zeros(self.game.num_actions, np.int8)} for agent in self.agents
            }
        player = int(self._state["player"][0])
        self.agent_selection = self.possible_agents[player]
        self._ask(len(self.agents) if self._state["phase"][0] == Phase.OVER else player)

    def step(self, action: Any) -> None:
        """Take the action of `agent_selection`, None once it is terminated or truncated.

        Raises:
            IllegalActionError: if the action is illegal; nothing has changed.
            ResetNeeded: before the first reset and after the end.
        """
        if self._state is None or not self.agents:
            raise ResetNeeded("no game is running: call reset() before step()")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        player = take_action(self.game, self._state, action)
        if player < 0:
            self.game.check(self._state, [as_integer(action)])  # says what is wrong
        if self.mask_in == "info":
            self.infos[agent] = {"action_mask": np.zeros(self.game.num_actions, np.int8)}
        self._ask(player)

    def _ask(self, player: int) -> None:
        """Let it be a seat's turn to act or, if there is no such seat, the end."""
        if player < len(self.possible_agents):
            self.agent_selection = self.possible_agents[player]
            if self.mask_in == "info":
                self.infos[self.agent_selection] = {"action_mask": self.action_masks()}
        else:
            state = self._started("step")
            ends = self.truncations if state["truncated"][0] else self.terminations
            ends.update(dict.fromkeys(self.agents, True))
            self.rewards = dict(zip(self.agents, final_rewards(self.game, state), strict=True))
            self._accumulate_rewards()
            self._deads_step_first()
        self._render_for_human()

    def _deads_step_first(self) -> str:
        # The end, be it that of the game or, by TerminateIllegalWrapper, that after an illegal action.
        if self._started("step")["phase"][0] != Phase.OVER and self.rewards[self.agent_selection] < 0:
            self._loser = self._seats[self.agent_selection]
        if self.mask_in == "info":
            self.infos = {
                agent: {"action_mask": np.ones(self.game.num_actions, np.int8)} for agent in self.agents
            }
        return str(super()._deads_step_first())

    def observe(self, agent: str) -> Any:
        """Return what an agent sees, at any time after the first reset and also if it is not to act.

        The action mask is all zeros for an agent that is not to act, and all ones after the end.
        """
        observation, mask = self._view(agent)
        return {"observation": observation, "action_mask": mask} if self.mask_in == "obs" else observation

    def _view(self, agent: str) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Return an agent's observation and action mask, new arrays."""
        state = self._started("observe")
        observation = np.empty(self.game.observation_size, self._dtype)
        mask = np.empty(self.game.num_actions, np.int8)
        ended = bool(self.terminations.get(agent, True))  # a wrapper may end a game that is not over
        batch.view_one(state, self.game.config, self._seats[agent], ended, observation, mask)
        return observation, mask

    def action_masks(self) -> NDArray[np.int8]:
        """Return the action mask of the agent to act, int8 (A,)."""
        return self._view(self.agent_selection)[1]

    def state(self) -> NDArray[np.int8]:
        """Return the whole position as one vector, int8 (D,): what seat 0 sees, whoever is to act."""
        whole: NDArray[np.int8] = self.game.observe(self._started("state"), 0)[0]
        return whole


class _Direct(BaseWrapper[str, Any, int]):  # type: ignore[misc]  # PettingZoo is untyped
    """Asks the environment itself what every agent loop asks for.

    PettingZoo's wrappers pass each such question down by name, which takes three times as long as the game. Before the
    first reset these properties fail, and the wrappers' own answers stand.
    """

    def __init__(self, env: AECEnv[str, Any, int], **arguments: Any) -> None:
        super().__init__(env, **arguments)
        self._raw = env.unwrapped

    def __str__(self) -> str:
        return str(self._raw)

    agents = property(lambda self: self._raw.agents)
    agent_selection = property(lambda self: self._raw.agent_selection)
    rewards = property(lambda self: self._raw.rewards)
    _cumulative_rewards = property(lambda self: self._raw._cumulative_rewards)
    terminations = property(lambda self: self._raw.terminations)
    truncations = property(lambda self: self._raw.truncations)
    infos = property(lambda self: self._raw.infos)


class _TerminateIllegal(_Direct, wrappers.TerminateIllegalWrapper[str, Any, int]):  # type: ignore[misc]
    pass


class _AssertOutOfBounds(_Direct, wrappers.AssertOutOfBoundsWrapper[str, Any, int]):  # type: ignore[misc]
    pass


class _OrderEnforcing(_Direct, wrappers.OrderEnforcingWrapper[str, Any, int]):  # type: ignore[misc]
    pass
