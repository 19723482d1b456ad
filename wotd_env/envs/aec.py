"""The PettingZoo environment: all seats are agents that take turns."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete, Space
from numpy.typing import DTypeLike, NDArray
from pettingzoo.utils import AECEnv, BaseWrapper, wrappers
from pettingzoo.utils.env_logger import EnvLogger

from wotd_env.core.checks import IllegalActionError
from wotd_env.core.game import Game, final_rewards
from wotd_env.core.rules import Phase, rules_for
from wotd_env.core.state import States
from wotd_env.envs.common import Format, OneGame, as_integer, take_action
from wotd_env.envs.results import NOT_LOST, no_result, result_of
from wotd_env.envs.starts import ALWAYS, NO_LAYOUTS, Draws
from wotd_env.rendering import FPS, RENDER_MODES, Renderer


def env(**arguments: Any) -> _OrderEnforcing:  # type checkers would treat the untyped AECEnv as Any
    """Return the environment `raw_env` with the wrappers that PettingZoo's classic games have.

    An illegal action ends the game. The agent that took the action gets -1, and the other agents get 0.

    Args:
        **arguments: the arguments of `raw_env`.
    """
    return _OrderEnforcing(_AssertOutOfBounds(_TerminateIllegal(raw_env(**arguments))))


class raw_env(OneGame, AECEnv[str, Any, int]):  # type: ignore[misc]  # PettingZoo is untyped; the name is its convention
    """Way of the Dragon for `players` agents, `"player_0"` in seat 0, `"player_1"` in seat 1, and so on.

    An agent may act several times in a row, because a turn has several decisions. Decisions with one legal action are
    taken automatically.

    The game ends for all agents in the same step. The rewards of this step sum to 0 (R10); all earlier rewards are 0.
    If the turn limit ends the game (R16), all rewards are 0. Copies made with `copy.deepcopy` or `pickle`
    continue the running game with the same dice.

    Every `infos[agent]` contains `"scores"` and `"places"`, int8 (n,), and `"winners"`, bool (n,). They are zeros until
    the game ends; then they contain the points of every seat, its place from 1, and whether it has won.

    Args:
        mask_in: the place of the action mask. With `mask_in="obs"`, observations are `{"observation": int8 (D,),
            "action_mask": int8 (A,)}`. With `mask_in="info"`, observations are int8 (D,), and `infos[agent]` also
            contains the mask.
        observation_dtype: `int8` or `float32`, as a NumPy dtype or its name; also the dtype of `state()`.
        mask_dtype: `int8` (needed by `Discrete.sample`) or `bool`, as a NumPy dtype or its name.
        encoding: `"one_hot"`, `"compact"`, `"tokens"` or `"features"`, see docs/reference/encodings.md.
        render_mode: one of `wotd_env.rendering.RENDER_MODES`, or None. `"human"` shows every step in a window.
        **rules: the fields of `wotd_env.Rules`.

    Attributes:
        game: the `Game` that is played; `game.observation_layout` names the parts of an observation.
        state_space: space of `state()`.

    Raises:
        TypeError: for an unknown argument.
        ValueError: for an invalid value.
    """

    # Despite their underscores, `_cumulative_rewards`, `_accumulate_rewards` and `_was_dead_step` are meant for authors
    # of environments (PettingZoo's page "Environment Creation").

    metadata = {  # noqa: RUF012  # as in PettingZoo
        "name": "way_of_the_dragon_v0",
        "render_modes": RENDER_MODES,
        "is_parallelizable": False,
        "render_fps": FPS,
    }

    def __init__(
        self,
        *,
        mask_in: str = "obs",
        observation_dtype: DTypeLike = "int8",
        mask_dtype: DTypeLike = "int8",
        encoding: str = "one_hot",
        render_mode: str | None = None,
        **rules: Any,
    ) -> None:
        super().__init__()
        self.game = Game(rules_for(type(self), rules), encoding=encoding)
        self.render_mode = render_mode
        self._renderer = Renderer(self.game, render_mode)
        self.possible_agents = [f"player_{seat}" for seat in range(self.game.rules.players)]
        self._format = Format(self.game, mask_in, observation_dtype, mask_dtype)
        self.observation_spaces = {agent: self._format.space() for agent in self.possible_agents}
        self.action_spaces = {agent: Discrete(self.game.num_actions) for agent in self.possible_agents}
        self.state_space = self._format.flat_space()
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._state: States | None = None
        self._loser: int | None = None  # the seat that lost the last game by an illegal action

    def observation_space(self, agent: str) -> Space[Any]:
        """Return an agent's observation space, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return an agent's action space, always the same object."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game.

        Args:
            seed: the seed of the dice. The dice are the same as after `Game.reset(1, seed=seed)`. Without a seed the
                random stream of the last game continues; the first game gets a random seed.
            options: `"starting_player"`, the seat that starts; or `"state"`, the record of a game to continue. A
                continued game keeps its future dice unless `seed` is given.

        Raises:
            ValueError: for an invalid seed or option; the running game continues.
        """
        # `seat` has an effect only after a loss by an illegal action; then it must be the loser's seat (R1).
        seat = self._loser or 0
        draws = Draws(seat, ALWAYS, NO_LAYOUTS)
        self._state, *_ = self._next_game(seed, options, seat, self._loser is not None, draws)
        self._loser = None
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: self._info(0) for agent in self.agents}
        over = self._state["phase"][0] == Phase.OVER
        self._select(len(self.agents) if over else int(self._state["player"][0]))

    def step(self, action: Any) -> None:
        """Take an action for the selected agent (`agent_selection`). After the end of the game, `action` must be None.

        Raises:
            IllegalActionError: if the action is illegal; nothing has changed.
            ResetNeeded: if no game is running.
            TypeError: if the action is not an integer; nothing has changed.
        """
        if self._state is None or not self.agents:
            raise ResetNeeded("no game is running: call reset() before step()")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        player = take_action(self.game, self._state, action)
        if player < 0:
            self.game.check(self._state, [as_integer(action)])  # raises IllegalActionError with the reason
        self.infos[agent] = self._info(0)
        self._select(player)

    def forfeit(self) -> None:
        """End the running game as a loss for the selected agent.

        The environment from `env()` calls this method after an illegal action. The selected agent gets -1 and all other
        agents get 0. All agents are terminated and truncated, as after PettingZoo's `TerminateIllegalWrapper`. With
        `start="loser"` the selected agent starts the next game (R1).

        Raises:
            ResetNeeded: if no game is running.
        """
        if self._state is None or not self.agents or any(self.terminations.values()):
            raise ResetNeeded("no game is running: call reset() before forfeit()")
        agent = self.agent_selection
        self._loser = self._seats[agent]
        self.truncations = dict.fromkeys(self.agents, True)
        self._end(dict.fromkeys(self.agents, True), dict.fromkeys(self.agents, 0.0) | {agent: -1.0})

    def _select(self, player: int) -> None:
        """Select the agent of the seat `player`, or end the game if `player` equals the number of players."""
        if player < len(self.possible_agents):
            self.agent_selection = self.possible_agents[player]
            if self._format.mask_in == "info":
                self.infos[self.agent_selection]["action_mask"] = self.action_masks()
        else:
            state = self._started("step")
            (rewards,) = final_rewards(self.game, state).tolist()
            self._end(dict.fromkeys(self.agents, True), dict(zip(self.agents, rewards, strict=True)))
        self._render_for_human()

    def _end(self, terminations: dict[str, bool], rewards: dict[str, float]) -> None:
        self.terminations = terminations
        self.rewards = rewards
        self._accumulate_rewards()
        loser = NOT_LOST if self._loser is None else self._loser
        state = self._started("step")
        self.infos = {agent: self._info(1) | result_of(self.game, state, loser) for agent in self.agents}
        self.agent_selection = self.agents[0]

    def _info(self, legal: int) -> dict[str, Any]:
        info: dict[str, Any] = no_result(self.game.rules.players)
        if self._format.mask_in == "info":
            info |= self._format.info(np.full(self.game.num_actions, legal, np.int8))
        return info

    def observe(self, agent: str) -> Any:
        """Return an agent's observation at any time after the first reset, even on another agent's turn.

        During the game, an agent's mask is all zeros while another agent must act. After the end, every mask is all
        ones.
        """
        return self._format.show(*self._seen_by(agent))

    def _seen_by(self, agent: str) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        self._started("observe")
        ended = bool(self.terminations.get(agent, True))  # also True after `forfeit`
        return self._view(self._seats[agent], ended)

    def action_masks(self) -> NDArray[Any]:
        """Return the action mask of the agent to act, `mask_dtype` (A,)."""
        return self._seen_by(self.agent_selection)[1].view(self._format.mask_dtype)

    def state(self) -> NDArray[Any]:
        """Return the whole position as one vector, `observation_dtype` (D,): the observation of seat 0."""
        whole: NDArray[Any] = self.game.observe(self._started("state"), 0)[0].astype(self._format.dtype)
        return whole


class _Direct(BaseWrapper[str, Any, int]):  # type: ignore[misc]  # PettingZoo is untyped
    """Base class of the wrappers, with direct access to the most used attributes of `raw_env`.

    PettingZoo's wrappers are slow, because they pass every lookup to the next wrapper. Before the first reset,
    the properties of this class raise AttributeError. Python then calls PettingZoo's `__getattr__`, which raises the
    usual error.
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


class _TerminateIllegal(_Direct):
    """A wrapper that ends the game at an illegal action, like PettingZoo's `TerminateIllegalWrapper`.

    PettingZoo's wrapper changes private attributes, and is slower.
    """

    def step(self, action: Any) -> None:
        try:
            super().step(action)
        except IllegalActionError:
            EnvLogger.warn_on_illegal_move()
            self._raw.forfeit()


class _AssertOutOfBounds(_Direct, wrappers.AssertOutOfBoundsWrapper[str, Any, int]):  # type: ignore[misc]
    pass


class _OrderEnforcing(_Direct, wrappers.OrderEnforcingWrapper[str, Any, int]):  # type: ignore[misc]
    pass
