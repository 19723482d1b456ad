"""The native Gymnasium vector environment: one learner in each of many games, one compiled call for each step."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, DTypeLike, NDArray

from wotd_env.core import batch, engine
from wotd_env.core.arguments import check_choice, check_integer
from wotd_env.core.batch import view
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.game import Game, IllegalActionError, check_seed
from wotd_env.core.rules import MAX_PLAYERS, Phase
from wotd_env.core.state import ROW, STATE, Record, Records, scratch
from wotd_env.envs.common import (
    Format,
    action_space,
    fixed_seat,
    next_game,
    next_games,
    read_options,
    rules_for,
    warn_of_illegal,
)
from wotd_env.envs.opponents import Opponents, play_scripts
from wotd_env.policy import Policy
from wotd_env.rendering import FPS, RENDER_MODES, Viewer

__all__ = ["WayOfTheDragonVectorEnv"]

_NO_ACTIONS = np.empty(0, np.int64)
_NO_FLAGS = np.empty(0, np.bool_)
_NO_ROWS = np.empty((0, 0), np.int8)

LEARNER = np.dtype(
    [
        ("seat", "i1"),
        ("steps", "i4"),  # actions in this game; 0 until its first decision
        ("ended", "?"),  # the next step begins another game
        ("lost", "?"),  # ... because of an illegal action
        ("waiting", "?"),  # within a step: a policy outside the compiled loop decides next
    ]
)
"""The learner of one environment."""


class _Settings(NamedTuple):
    """Settings that all environments share."""

    scripts: int  # of the other seats, see Opponents
    seat: int  # the learner's in every game, or ANY_SEAT
    step_limit: int  # 0: no limit
    same_step: bool  # autoreset in the step that ends a game


class _Step(NamedTuple):
    """The arrays of one step. The final ones are written only for games that end in it, under SAME_STEP."""

    actions: NDArray[np.int64]  # (N,), or (0,) to go on with the games that wait
    illegal: NDArray[np.bool_]  # (N,), like actions
    observation: NDArray[np.int8]  # (N, D)
    mask: NDArray[np.int8]  # (N, A)
    reward: NDArray[np.float64]  # (N,)
    terminated: NDArray[np.bool_]  # (N,)
    truncated: NDArray[np.bool_]  # (N,)
    final_observation: NDArray[np.int8]  # (N, D), or (0, 0) in other modes
    final_mask: NDArray[np.int8]  # (N, A), or (0, 0) in other modes


class WayOfTheDragonVectorEnv(VectorEnv[Any, ArrayLike, NDArray[Any]]):
    """N games in one environment: `gymnasium.make_vec("wotd_env:wotd_env/WayOfTheDragon-v0", N)`.

    It equals Gymnasium's `SyncVectorEnv` over N single environments: observations, rewards, flags, infos, options and
    seeds (environment i gets seed + i). There are two differences. Policies other than `random` and `greedy` draw from
    one generator, `np_random`, for all games. A reset of some games returns the action masks of all games.

    Actions are integers (N,). Observations are int8 (N, D); with `mask_in="obs"` they are a dict that also contains
    `"action_mask"`, int8 (N, A). With `mask_in="info"` the masks are in the infos. The mask of a game that has ended is
    all ones. Rewards are float64 (N,), flags bool (N,). Every call returns new arrays. Copies by `copy.deepcopy` or
    `pickle` continue the running games.

    Args:
        num_envs: N.
        opponents: a policy or its name, or a list with one for each other seat, in turn order after the learner's.
        seat: the learner's seat, or `"random"` to draw it for every game.
        mask_in: `"info"` or `"obs"`.
        observation_dtype: `int8` or `float32`, as NumPy dtype or its name.
        mask_dtype: `int8` or `bool`, as NumPy dtype or its name.
        encoding: of observations: `"one_hot"`, `"compact"`, `"tokens"` or `"features"` (docs/environment.md).
        illegal: the effect of an illegal action. `"lose"`: the game ends with the reward of a loss,
            `infos["illegal_action"]` contains the action, and the first one is explained in a warning. `"raise"`:
            `IllegalActionError`, and nothing changes.
        autoreset_mode: a `gymnasium.vector.AutoresetMode` or its value.
        num_threads: threads that share the games. No result depends on it.
        render_mode: one of `wotd_env.rendering.RENDER_MODES`, or None. `render` returns a tuple with a picture of each
            game. `"human"` shows the first games in a window at every reset and step.
        max_episode_steps: actions of the learner after which a game is truncated, as Gymnasium's `TimeLimit` does.
        **rules: the fields of `wotd_env.Rules`.

    Attributes:
        autoreset_mode: the mode, also in `metadata`.
        game: the `Game` that is played; `game.observation_layout` names the parts of an observation.
        seat: the learner's seat in every game, int8 (N,).
        record: a copy of the games, STATE (N,).

    Raises:
        TypeError: for an unknown argument.
        ValueError: for an invalid value.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        opponents: str | Policy | Sequence[str | Policy] = "greedy",
        seat: int | str = "random",
        mask_in: str = "info",
        observation_dtype: DTypeLike = "int8",
        mask_dtype: DTypeLike = "int8",
        encoding: str = "one_hot",
        illegal: str = "lose",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        num_threads: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **rules: Any,
    ) -> None:
        super().__init__()
        self.game = Game(rules_for(type(self), rules), num_threads=num_threads, encoding=encoding)
        self.opponents = Opponents(Game(self.game.rules, num_threads=num_threads), opponents)
        self.illegal = check_choice("illegal", illegal, ("lose", "raise"))
        self.render_mode = check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        self._viewer = Viewer(self.game, render_mode)
        if not isinstance(autoreset_mode, AutoresetMode):
            check_choice("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {
            "render_modes": RENDER_MODES,
            "render_fps": FPS,
            "autoreset_mode": self.autoreset_mode,
        }
        self.num_envs = check_integer("num_envs", num_envs, 1)
        self._format = Format(self.game, mask_in, observation_dtype, mask_dtype)
        self.single_observation_space = self._format.space()
        self.single_action_space = action_space(self.game)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        limit = 0 if max_episode_steps is None else check_integer("max_episode_steps", max_episode_steps, 1)
        self._settings = _Settings(
            scripts=self.opponents.scripts,
            seat=fixed_seat(self.game.rules, seat),
            step_limit=limit,
            same_step=self.autoreset_mode == AutoresetMode.SAME_STEP,
        )
        self._started = False
        self._state = np.zeros(num_envs, STATE)
        self._learners = np.zeros(num_envs, LEARNER)
        self._mask = _NO_ROWS  # of the learners' legal actions, int8 (N, A)
        self._warned = False  # of an illegal action

    @property
    def seat(self) -> NDArray[np.int8]:
        """The learner's seat in every game, int8 (N,)."""
        return self._learners["seat"].copy()

    @property
    def record(self) -> NDArray[np.void]:
        """A copy of the games, STATE (N,). It includes the dice to come."""
        self._check_started()
        return self._state.copy()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start games.

        Args:
            seed: environment i plays the game of seed + i, or of the i-th seed of a list. Without a seed its dice
                continue from its last game; the first game gets a random seed.
            options: those of the single environment, and `"reset_mask"`, bool (N,): the environments to reset.

        Returns:
            The observations and infos of all environments.

        Raises:
            ValueError: for an invalid seed or option; the running games continue.
            TypeError: for a `"reset_mask"` of another type.
        """
        seeds = self._read_seeds(seed)
        where = self._read_reset_mask(options)
        state, seats = self._next_games(seeds, options, where)
        super().reset(seed=next((one for one in seeds if one is not None), None) if seeds else None)
        self._state, self._learners["seat"] = state, seats
        for field in ("steps", "ended", "lost"):
            self._learners[field][where] = 0
        self._learners["waiting"] = where
        self._started = True
        step = self._new_step(_NO_ACTIONS, _NO_FLAGS)
        self._play(step)
        self.game.apply(
            view_learners, self._state, self._learners, step.observation, step.mask, validate=False
        )
        self._mask = step.mask.copy()
        self._render_for_human()
        return self._format.show(step.observation, step.mask), self._info(step.mask)

    def step(
        self, actions: ArrayLike
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take the learners' actions, integers (N,). The others play until the learner decides or the game ends.

        Returns:
            Observations, rewards, terminated, truncated, infos.

        Raises:
            ResetNeeded: before the first reset, and for an ended environment under `AutoresetMode.DISABLED`.
            IllegalActionError: for an illegal action with `illegal="raise"`; nothing has changed.
            ValueError: for actions of another shape or type; nothing has changed.
        """
        self._check_started()
        ended = self._learners["ended"]
        if self.autoreset_mode == AutoresetMode.DISABLED and ended.any():
            raise ResetNeeded(
                f"environments {np.flatnonzero(ended).tolist()} have ended and autoreset is disabled: reset them "
                "with options={'reset_mask': terminated | truncated} before step()"
            )
        if isinstance(actions, np.ndarray) and actions.shape == (self.num_envs, 1):
            actions = actions.ravel()
        chosen = self.game.as_actions(self._state, actions)
        illegal = np.empty(self.num_envs, np.bool_)
        about_illegal = {}
        if find_illegal(self._state, self._learners, self._mask, chosen, illegal):
            about_illegal = self._answer_illegal(actions, illegal)
        step = self._new_step(chosen, illegal)
        self._play(step)
        self._mask = step.mask.copy()
        info = self._info(step.mask)
        info |= self._final_info(step, about_illegal) if self._settings.same_step else about_illegal
        self._render_for_human()
        return (
            self._format.show(step.observation, step.mask),
            step.reward,
            step.terminated,
            step.truncated,
            info,
        )

    def action_masks(self) -> NDArray[Any]:
        """Return the masks of the learners' legal actions, `mask_dtype` (N, A). Ended games have all ones."""
        self._check_started()
        return self._mask.copy().view(self._format.mask_dtype)

    def render(self) -> tuple[Any, ...] | None:
        """Return a picture of each game, or show them. Without a render mode, warn and return None."""
        self._check_started()
        pictures = self._viewer.render(self._state)
        return None if pictures is None else tuple(pictures)

    def _render_for_human(self) -> None:
        if self.render_mode == "human":
            self.render()

    def close_extras(self, **kwargs: Any) -> None:
        """Close the window if there is one."""
        self._viewer.close()

    def _check_started(self) -> None:
        if not self._started:
            raise ResetNeeded("no game has begun: call reset() first")

    # ------------------------------------------------------------------------------------------------ new games

    def _read_seeds(self, seed: Any) -> Sequence[int | None] | range:
        """Return the seeds of all environments, or nothing without a seed."""
        if seed is None:
            return ()
        if isinstance(seed, str) or not (isinstance(seed, Sequence) or np.ndim(seed)):
            first = int(check_seed(seed))
            return range(first, first + self.num_envs)
        if len(seed) != self.num_envs:
            raise ValueError(
                f"seed must be an integer or a list of {self.num_envs}, one for each environment, got {len(seed)}"
            )
        return [None if one is None else int(check_seed(one)) for one in seed]

    def _read_reset_mask(self, options: Mapping[str, Any] | None) -> NDArray[np.bool_]:
        """Return which environments to reset, bool (N,)."""
        where = (options or {}).get("reset_mask")
        if where is None:
            return np.ones(self.num_envs, np.bool_)
        if not isinstance(where, np.ndarray) or where.dtype != np.bool_:
            raise TypeError(f"options['reset_mask'] must be a bool array ({self.num_envs},), got {where!r}")
        if where.shape != (self.num_envs,) or not where.any():
            raise ValueError(
                f"options['reset_mask'] must be a bool array ({self.num_envs},) with at least one True, got {where!r}"
            )
        if not (self._started or where.all()):
            raise ResetNeeded("call reset() without a reset_mask first: some environments have no game yet")
        return where

    def _next_games(
        self,
        seeds: Sequence[int | None] | range,
        options: Mapping[str, Any] | None,
        where: NDArray[np.bool_],
    ) -> tuple[NDArray[np.void], NDArray[np.int8]]:
        """Return a copy of the games with the next ones started in `where`, STATE (N,), and the learners' seats."""
        game, n = self.game, self.num_envs
        starter, given = read_options(game.rules, options, "reset_mask")
        fresh, seeded = np.zeros(n, STATE), np.zeros(n, np.bool_)
        if isinstance(seeds, range):
            seeded = where
            batch.seed(fresh, seeded, np.uint64(seeds[0]))
        elif seeds:
            seeded = where & [one is not None for one in seeds]
            for i in np.flatnonzero(seeded).tolist():
                batch.seed(fresh[i : i + 1], seeded[i : i + 1], check_seed(seeds[i]))
        state, seats = self._state.view(ROW).copy().view(STATE), self._learners["seat"].copy()
        if given is not None:
            state[where] = given
            state["rng"][seeded] = fresh["rng"][seeded]
        else:
            unseeded = where & ~seeded & (not self._started)
            batch.seed(fresh, unseeded, check_seed(secrets.randbits(63)))
            np.copyto(state.view(ROW), fresh.view(ROW), where=seeded | unseeded)
        starters, lost = game.starters(starter, n), self._learners["lost"] & ~seeded
        arguments = (where, starters, seats, self._settings.seat, lost, given is None)
        game.apply(next_games, state, *arguments, validate=False)
        return state, seats

    # ------------------------------------------------------------------------------------------------ a step

    def _answer_illegal(self, given: ArrayLike, illegal: NDArray[np.bool_]) -> dict[str, Any]:
        """Return the infos on illegal actions. Explain the first one, in an error or, once, in a warning."""
        actions = self.game.as_actions(self._state, given)
        first = int(illegal.argmax())
        state = self._state[first : first + 1]
        action = int(np.asarray(given, object)[first])  # also one beyond 64 bits
        if self.illegal == "raise":
            legal = np.flatnonzero(self._mask[first]).tolist()
            words = f"game {first}: {self.game.explain_illegal(state, action)}"
            raise IllegalActionError(first, action, legal, words)
        if not self._warned:
            self._warned = True
            warn_of_illegal(self.game.explain_illegal(state, action))
        return {"illegal_action": np.where(illegal, actions, 0), "_illegal_action": illegal}

    def _new_step(self, actions: NDArray[np.int64], illegal: NDArray[np.bool_]) -> _Step:
        """Return new arrays for a step."""
        n, size, num_actions = self.num_envs, self.game.observation_size, self.game.num_actions
        same_step = self._settings.same_step
        return _Step(
            actions=actions,
            illegal=illegal,
            observation=np.empty((n, size), np.int8),
            mask=np.empty((n, num_actions), np.int8),
            reward=np.zeros(n, np.float64),
            terminated=np.zeros(n, np.bool_),
            truncated=np.zeros(n, np.bool_),
            final_observation=np.empty((n, size), np.int8) if same_step else _NO_ROWS,
            final_mask=np.zeros((n, num_actions), np.int8) if same_step else _NO_ROWS,
        )

    def _play(self, step: _Step) -> None:
        """Take the actions, if any. Play until all learners are to decide or have ended."""
        while True:
            arguments = (self._learners, step, self._settings, scratch)
            self.game.apply(step_learners, self._state, *arguments, validate=False)
            if not self.opponents.outside:
                return
            waiting = np.flatnonzero(self._learners["waiting"])
            if not waiting.size:
                return
            try:
                self.opponents.decide(self._state, self._learners["seat"], waiting, self.np_random)
            except BaseException:  # a policy failed, or Ctrl-C: only some games have moved
                self._started = False
                raise
            step = step._replace(actions=_NO_ACTIONS, illegal=_NO_FLAGS)

    def _info(self, mask: NDArray[np.int8]) -> dict[str, Any]:
        """Return infos with the masks, int8 (N, A), of all environments."""
        info: dict[str, Any] = self._format.info(mask)
        if info:
            info["_action_mask"] = np.ones(self.num_envs, np.bool_)
        return info

    def _final_info(self, step: _Step, illegal: dict[str, Any]) -> dict[str, Any]:
        """Return infos on the games that ended in a step and were restarted in it."""
        ended = step.terminated | step.truncated
        games = np.flatnonzero(ended)
        if not games.size:
            return {}
        rows = self._format.show_rows(step.final_observation[games], step.final_mask[games])
        final = np.full(self.num_envs, None, object)
        final[games] = np.fromiter(rows, object, len(games))
        info = self._format.info(step.final_mask)
        info |= {f"_{name}": ended.copy() for name in info}
        return {
            "final_obs": final,
            "_final_obs": ended,
            "final_info": info | illegal,
            "_final_info": ended.copy(),
        }


@kernel
def find_illegal(states: Records, learners: Any, masks: Any, actions: Any, illegal: Any) -> Any:
    """Write which actions the masks forbid, bool (N,), and return whether there are any.

    Games that are over or have ended accept all numbers.
    """
    found = False
    for i in range(states.shape[0]):
        action = actions[i]
        legal = 0 <= action < masks.shape[1] and masks[i, action] != 0
        illegal[i] = not (legal or learners[i].ended or states[i].phase == Phase.OVER)
        found |= illegal[i]
    return found


@kernel
def step_learners(
    states: Records, config: Configs, learners: Any, step: Any, settings: Any, scratch: Records
) -> None:
    """Take the learners' actions, then play on in every game until its learner is to decide or has ended.

    If a policy outside is to decide first, the learner is left waiting. A call without actions continues these games.
    """
    rules = config[0]
    rewards = np.empty(MAX_PLAYERS)
    actions, illegal = step.actions, step.illegal
    reward, terminated, truncated = step.reward, step.terminated, step.truncated
    for i in range(states.shape[0]):
        s, learner = states[i], learners[i]
        if actions.size:
            if learner.ended:
                begin(s, rules, learner, settings)
            else:
                learner.steps += 1
                learner.lost = illegal[i]
                if not illegal[i] and s.phase != Phase.OVER:
                    engine.step(s, rules, actions[i])
        elif not learner.waiting:
            continue

        learner.waiting = not play_scripts(s, rules, learner.seat, settings.scripts, scratch)
        if learner.waiting:
            continue
        if learner.steps > 0:  # a game that is over before the learner's first decision ends in the next step
            if learner.lost:
                reward[i] = engine.loss(rules)
                terminated[i] = True
            elif s.phase == Phase.OVER:
                engine.rewards(s, rules, rewards)
                reward[i] = rewards[learner.seat]
                terminated[i] = not s.truncated
                truncated[i] = s.truncated
            if settings.step_limit and learner.steps >= settings.step_limit:
                truncated[i] = True
            if terminated[i] or truncated[i]:
                learner.ended = True
                if settings.same_step:
                    view(s, rules, learner.seat, learner.lost, step.final_observation[i], step.final_mask[i])
                    begin(s, rules, learner, settings)
                    learner.waiting = not play_scripts(s, rules, learner.seat, settings.scripts, scratch)
                    if learner.waiting:
                        continue
        view(s, rules, learner.seat, learner.lost, step.observation[i], step.mask[i])


@kernel
def begin(s: Record, rules: Config, learner: Any, settings: Any) -> None:
    """Start the next game of an environment."""
    learner.seat = next_game(s, rules, rules.start, learner.seat, settings.seat, learner.lost)
    learner.steps = 0
    learner.ended = False
    learner.lost = False


@kernel
def view_learners(states: Records, config: Configs, learners: Any, observation: Any, mask: Any) -> None:
    """Write every learner's observation, int8 (N, D), and mask, int8 (N, A)."""
    for i in range(states.shape[0]):
        view(states[i], config[0], learners[i].seat, learners[i].lost, observation[i], mask[i])
