"""The native Gymnasium vector environment: many games in which one seat learns, one compiled call for a step."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from wotd_env.core import batch, engine
from wotd_env.core.arguments import check_choice, check_integer
from wotd_env.core.batch import is_legal, view
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.game import Game, check_seed
from wotd_env.core.rules import MAX_PLAYERS, Phase, Rules
from wotd_env.core.state import ROW, STATE, Record, Records, scratch
from wotd_env.envs.common import (
    action_space,
    fixed_seat,
    next_game,
    next_games,
    observation_space,
    read_options,
    warn_of_illegal,
)
from wotd_env.envs.opponents import Opponents, play_scripts
from wotd_env.policy import Policy
from wotd_env.rendering import FPS, RENDER_MODES, Viewer

__all__ = ["WayOfTheDragonVectorEnv"]

Observation = NDArray[np.int8] | dict[str, NDArray[np.int8]]

# Stages of an environment. Between two steps it is unused before its first reset, waits for the learner, or has ended,
# perhaps lost by an illegal action. Within a step it may wait for a policy outside the compiled loop, either to reply
# to the learner's action or to open a game.
UNUSED, WAITING, ENDED, LOST, REPLY, OPENING = range(6)

_NO_ACTIONS = np.empty(0, np.int64)
_NO_ROWS = np.empty((0, 0), np.int8)


LEARNER = np.dtype(
    [
        ("seat", "i1"),
        ("stage", "i1"),
        ("steps", "i4"),  # that it has taken in this game
    ]
)
"""Where the learner of an environment is."""


class _Settings(NamedTuple):
    """What is the same in all environments and steps."""

    scripts: int  # of the other seats, see Opponents
    seat: int  # the learner's in every game, or ANY_SEAT
    step_limit: int  # 0 for none
    same_step: bool  # the mode of autoreset


class _Outputs(NamedTuple):
    """What a step fills in; the last two only for games that are restarted in the same step, as they were before."""

    observation: NDArray[np.int8]  # (N, D)
    mask: NDArray[np.int8]  # (N, A)
    reward: NDArray[np.float64]  # (N,)
    terminated: NDArray[np.bool_]  # (N,)
    truncated: NDArray[np.bool_]  # (N,)
    lost: NDArray[np.bool_]  # (N,) by an illegal action
    final_observation: NDArray[np.int8]  # (N, D), (0, 0) in other modes
    final_mask: NDArray[np.int8]  # (N, A), (0, 0) in other modes


class WayOfTheDragonVectorEnv(VectorEnv[Observation, ArrayLike, NDArray[Any]]):
    """N environments `WayOfTheDragonEnv` in one: `gymnasium.make_vec("wotd_env:wotd_env/WayOfTheDragon-v0", N)`.

    In every autoreset mode it does what Gymnasium's `SyncVectorEnv` over the single environment does: observations,
    rewards, flags, infos, seeds (environment i gets seed + i) and options are equal. Only what policies other than
    `random` and `greedy` draw differs: it comes from one generator for all games, `np_random`.

    Actions are integers (N,), observations int8 (N, D), with `mask_in="obs"` in a dict beside `"action_mask"`, int8
    (N, A); with `mask_in="info"` infos hold the masks. Where a game has ended they are all ones. Rewards are float64
    (N,), flags bool (N,). Every call returns new arrays. Copies made by `copy.deepcopy` or `pickle` go on with the
    games where they stand.

    Args:
        num_envs: N.
        opponents: a policy or its name, or a list with one for each other seat, in turn order after the learner's.
        seat: the learner's seat, or `"random"` for another draw in every game.
        mask_in: `"info"` or `"obs"`.
        observation_dtype: `"int8"`, or `"float32"` for clients that cast nothing themselves.
        mask_dtype: `"int8"`, or `"bool"` for clients that want that.
        encoding: of observations: `"one_hot"`, `"compact"`, `"tokens"` or `"features"` (docs/environment.md).
        illegal: what an illegal action does: `"lose"` ends the game with the reward of a loss, warns once, and says in
            the info `"illegal_action"` what was legal, and in which position; `"raise"` raises `IllegalActionError`,
            and nothing changes.
        autoreset_mode: a `gymnasium.vector.AutoresetMode` or its value.
        num_threads: threads that share the games; no result depends on it. It is the only switch: nothing else starts
            threads. Leave it at 1 in workers that share a machine.
        render_mode: one of `wotd_env.rendering.RENDER_MODES`, what `render` returns, a tuple with a picture of each
            game; `"human"`: every reset and step shows the first games in a window; or None.
        max_episode_steps: actions of the learner after which a game is truncated, as by Gymnasium's `TimeLimit`.
        **rules: the fields of `wotd_env.Rules`.

    Attributes:
        autoreset_mode: the mode, as in `metadata`.
        game: the `Game` that is played; `game.observation_layout` tells the observation's parts.
        seat: the learner's seat in every running game, int8 (N,).
        record: a copy of the games as they stand, STATE (N,).

    Raises:
        TypeError: for an unknown argument.
        ValueError: for a wrong value.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        opponents: str | Policy | Sequence[str | Policy] = "greedy",
        seat: int | str = "random",
        mask_in: str = "info",
        observation_dtype: str = "int8",
        mask_dtype: str = "int8",
        encoding: str = "one_hot",
        illegal: str = "lose",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        num_threads: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **rules: Any,
    ) -> None:
        super().__init__()
        self.game = Game(Rules(**rules), num_threads=num_threads, encoding=encoding)
        self.opponents = Opponents(Game(self.game.rules, num_threads=num_threads), opponents)
        self.mask_in = mask_in
        self.illegal = check_choice("illegal", illegal, ("lose", "raise"))
        self.render_mode = check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        self._viewer = Viewer(self.game, render_mode)
        modes = [mode.value for mode in AutoresetMode]
        self.autoreset_mode = AutoresetMode(
            autoreset_mode
            if isinstance(autoreset_mode, AutoresetMode)
            else check_choice("autoreset_mode", autoreset_mode, modes)
        )
        self.metadata = {
            "render_modes": RENDER_MODES,
            "render_fps": FPS,
            "autoreset_mode": self.autoreset_mode,
        }
        self.num_envs = check_integer("num_envs", num_envs, 1)
        self.single_observation_space = observation_space(self.game, mask_in, observation_dtype, mask_dtype)
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
        self._dtype, self._mask_dtype = np.dtype(observation_dtype), np.dtype(mask_dtype)
        self._state = np.zeros(num_envs, STATE)
        self._learners = np.zeros(num_envs, LEARNER)  # at stage UNUSED
        self._lost = np.zeros(num_envs, STATE)  # the last games lost by illegal actions, as they stood
        self._warned = False  # of illegal actions

    @property
    def seat(self) -> NDArray[np.int8]:
        """The learner's seat in every running game, int8 (N,)."""
        return self._learners["seat"].copy()

    @property
    def record(self) -> NDArray[np.void]:
        """A copy of the games as they stand, STATE (N,), dice to come included."""
        self._check_begun()
        return self._state.copy()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start games.

        Args:
            seed: environment i plays the game of seed + i, or of the i-th seed of a list. Without a seed its dice go
                on from its last game, in its first game from a random seed.
            options: those of the single environment, and `"reset_mask"`, bool (N,): the environments to reset.

        Returns:
            Observations of all environments, and infos that hold the masks of those that were reset.

        Raises:
            ValueError: for a wrong seed or option; the running games go on.
            TypeError: for a `"reset_mask"` of another type.
        """
        seeds = self._seeds(seed)
        where = self._reset_mask(options)
        state, learners = self._begun(seeds, options, where)
        one = next((s for s in seeds if s is not None), None) if isinstance(seeds, list) else seeds
        super().reset(seed=one)
        self._state, self._learners["seat"][:] = state, learners
        self._learners["stage"][where] = OPENING
        self._learners["steps"][where] = 0
        outputs = self._outputs()
        self._go_on(_NO_ACTIONS, outputs)
        self._look(outputs.observation, outputs.mask)
        info = self._info(np.where(where[:, None], outputs.mask, np.int8(0)), where)
        self._render_for_human()
        return self._shown(outputs.observation, outputs.mask), info

    def step(
        self, actions: ArrayLike
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take the learner's actions, integers (N,); then others play up to its next decisions or the ends of games.

        Returns:
            Observations, rewards, terminated, truncated, infos.

        Raises:
            ResetNeeded: before the first reset, and for an environment that has ended under `AutoresetMode.DISABLED`.
            IllegalActionError: for an illegal action with `illegal="raise"`; nothing has changed.
            ValueError: for actions of another shape or type; nothing has changed.
        """
        ended = (self._learners["stage"] == ENDED) | (self._learners["stage"] == LOST)
        self._check_begun()
        if self.autoreset_mode == AutoresetMode.DISABLED and ended.any():
            raise ResetNeeded(
                f"environments {np.flatnonzero(ended).tolist()} have ended and autoreset is disabled: reset them, "
                "by options={'reset_mask': terminated | truncated}, before step()"
            )
        state = self._state
        if self.illegal == "raise" and ended.any():  # their actions are not looked at
            state = state.copy()
            state["phase"][ended] = Phase.OVER
        if isinstance(actions, np.ndarray) and actions.shape == (self.num_envs, 1):
            actions = actions.ravel()
        chosen = self.game.as_actions(state, actions)
        if self.illegal == "raise":
            self.game.check(state, actions)
        outputs = self._outputs()
        self._go_on(chosen, outputs)
        info = self._info(outputs.mask, np.ones(self.num_envs, np.bool_))
        illegal = self._explain_illegal(chosen, outputs.lost)
        if self._settings.same_step:
            self._add_ends(info, illegal, outputs)
        else:
            info |= illegal
        self._render_for_human()
        shown = self._shown(outputs.observation, outputs.mask)
        return shown, outputs.reward, outputs.terminated, outputs.truncated, info

    def action_masks(self) -> NDArray[Any]:
        """Return the masks of the learners' legal actions, `mask_dtype` (N, A); all ones where a game has ended."""
        mask = np.empty((self.num_envs, self.game.num_actions), np.int8)
        self._look(_NO_ROWS, mask)
        return mask.view(self._mask_dtype)

    def render(self) -> tuple[Any, ...] | None:
        """Return the positions as the render mode has them, show them, or warn that there is no render mode."""
        self._check_begun()
        pictures = self._viewer.render(self._state)
        return None if pictures is None else tuple(pictures)

    def _render_for_human(self) -> None:
        if self.render_mode == "human":
            self.render()

    def close_extras(self, **kwargs: Any) -> None:
        """Close the window if there is one."""
        self._viewer.close()

    def _check_begun(self) -> None:
        if (self._learners["stage"] == UNUSED).any():
            raise ResetNeeded("no game has begun: call reset() first")

    # ------------------------------------------------------------------------------------------------ how games begin

    def _seeds(self, seed: Any) -> int | list[int | None] | None:
        """Return the seed that `reset` is given, or the list of seeds, in plain numbers."""
        if seed is None:
            return None
        if isinstance(seed, str) or not (isinstance(seed, Sequence) or np.ndim(seed)):
            return int(check_seed(seed))
        if len(seed) != self.num_envs:
            raise ValueError(
                f"seed must be an integer or a list of {self.num_envs}, one for each environment, got {len(seed)}"
            )
        return [None if one is None else int(check_seed(one)) for one in seed]

    def _reset_mask(self, options: Mapping[str, Any] | None) -> NDArray[np.bool_]:
        """Return which environments to reset."""
        where = (options or {}).get("reset_mask")
        if where is None:
            return np.ones(self.num_envs, np.bool_)
        if not isinstance(where, np.ndarray) or where.dtype != np.bool_:
            raise TypeError(f"options['reset_mask'] must be a bool array ({self.num_envs},), got {where!r}")
        if where.shape != (self.num_envs,) or not where.any():
            raise ValueError(
                f"options['reset_mask'] must be a bool array ({self.num_envs},) with a True in it, got {where!r}"
            )
        if (self._learners["stage"][~where] == UNUSED).any():
            raise ResetNeeded("call reset() without a reset_mask first: some environments have no game yet")
        return where.copy()  # infos hold it

    def _begun(
        self,
        seeds: int | list[int | None] | None,
        options: Mapping[str, Any] | None,
        where: NDArray[np.bool_],
    ) -> tuple[NDArray[np.void], NDArray[np.int8]]:
        """Return the games with those asked for begun anew, STATE (N,), and the learners' seats, int8 (N,)."""
        game, n = self.game, self.num_envs
        starter, given = read_options(game.rules, options, "reset_mask")
        fresh = np.zeros(n, STATE)  # new games, by their streams
        seeded = np.zeros(n, np.bool_)
        if isinstance(seeds, int):
            seeded = where
            batch.seed(fresh, where, np.uint64(seeds))
        elif seeds is not None:
            seeded = where & [one is not None for one in seeds]
            for i, one in enumerate(seeds):
                if one is not None:
                    batch.seed(fresh[i : i + 1], seeded[i : i + 1], np.uint64(one))
        state, learners = self._state.view(ROW).copy().view(STATE), self._learners["seat"].copy()
        if given is not None:
            state[where] = given
            state["rng"][seeded] = fresh["rng"][seeded]
        else:
            first = where & ~seeded & (self._learners["stage"] == UNUSED)
            batch.seed(fresh, first, check_seed(secrets.randbits(63)))
            np.copyto(state.view(ROW), fresh.view(ROW), where=seeded | first)
        starters, lost = game.starters(starter, n), (self._learners["stage"] == LOST) & ~seeded
        arguments = (where, starters, learners, self._settings.seat, lost, given is None)
        game.apply(next_games, state, *arguments, validate=False)
        return state, learners

    # ------------------------------------------------------------------------------------------------ the compiled loop

    def _outputs(self) -> _Outputs:
        """Return new arrays for a step."""
        n, size, actions = self.num_envs, self.game.observation_size, self.game.num_actions
        same_step = self._settings.same_step
        return _Outputs(
            observation=np.empty((n, size), self._dtype),
            mask=np.empty((n, actions), np.int8),
            reward=np.empty(n, np.float64),
            terminated=np.empty(n, np.bool_),
            truncated=np.empty(n, np.bool_),
            lost=np.empty(n, np.bool_),
            final_observation=np.empty((n, size), self._dtype) if same_step else _NO_ROWS,
            final_mask=np.zeros((n, actions), np.int8) if same_step else _NO_ROWS,
        )

    def _go_on(self, actions: NDArray[np.int64], outputs: _Outputs) -> None:
        """Take the actions, if any, and go on until all environments wait for their learners or have ended."""
        while True:
            self.game.apply(
                step_learners,
                self._state,
                self._learners,
                actions,
                self._settings,
                scratch,
                self._lost,
                outputs,
                validate=False,
            )
            if not self.opponents.outside:
                return
            waiting = np.flatnonzero(self._learners["stage"] >= REPLY)
            if not waiting.size:
                return
            try:
                self.opponents.decide(self._state, self._learners["seat"], waiting, self.np_random)
            except BaseException:  # a policy failed, or Ctrl-C: some games have moved on, others have not
                self._learners["stage"] = UNUSED
                raise
            actions = _NO_ACTIONS

    def _look(self, observation: NDArray[np.int8], mask: NDArray[np.int8]) -> None:
        """Fill in what the learners see, or (without columns) the masks alone."""
        self._check_begun()
        self.game.apply(view_learners, self._state, self._learners, observation, mask, validate=False)

    # ------------------------------------------------------------------------------------------------ what is returned

    def _shown(self, observation: NDArray[np.int8], mask: NDArray[np.int8]) -> Any:
        if self.mask_in == "info":
            return observation
        return {"observation": observation, "action_mask": mask.view(self._mask_dtype)}

    def _info(self, mask: NDArray[np.int8], where: NDArray[np.bool_]) -> dict[str, Any]:
        """Return infos that hold the masks, given as int8 (N, A), of some environments, bool (N,)."""
        if self.mask_in == "obs":
            return {}
        return {"action_mask": mask.view(self._mask_dtype), "_action_mask": where}

    def _explain_illegal(self, actions: NDArray[np.int64], lost: NDArray[np.bool_]) -> dict[str, Any]:
        """Return infos that say what was legal, and where, in games that were lost by an illegal action."""
        if not lost.any():
            return {}
        words = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(lost):
            words[i] = self.game.explain_illegal(self._lost[i : i + 1], int(actions[i]))
            if not self._warned:
                self._warned = True
                warn_of_illegal(words[i])
        return {"illegal_action": words, "_illegal_action": lost}

    def _add_ends(self, info: dict[str, Any], illegal: dict[str, Any], outputs: _Outputs) -> None:
        """Add to infos how the games have ended that were restarted in the same step."""
        ended = outputs.terminated | outputs.truncated
        games = np.flatnonzero(ended)
        if not games.size:
            return
        final = np.full(self.num_envs, None, object)
        rows, masks = outputs.final_observation[games], outputs.final_mask[games]
        for game, row, mask in zip(games, rows, masks, strict=True):
            final[game] = self._shown(row, mask)
        info["final_obs"], info["_final_obs"] = final, ended
        info["final_info"], info["_final_info"] = (
            self._info(outputs.final_mask, ended.copy()) | illegal,
            ended.copy(),
        )


@kernel
def step_learners(
    states: Records,
    config: Configs,
    learners: Any,
    actions: Any,
    settings: Any,
    scratch: Records,
    lost_games: Records,
    outputs: Any,
) -> None:
    """Do a step in all environments, or, without actions, go on with those that waited for a policy outside.

    Environments that still wait for one are left at stage REPLY or OPENING. Games that are lost by an illegal action
    are copied as they stand, because the next ones may begin in their records.
    """
    rules = config[0]
    rewards = np.empty(MAX_PLAYERS)
    reward, terminated, truncated = outputs.reward, outputs.terminated, outputs.truncated
    for i in range(states.shape[0]):
        s, learner = states[i], learners[i]
        lost = False
        if actions.size:
            reward[i] = 0
            terminated[i] = False
            truncated[i] = False
            outputs.lost[i] = False
            if learner.stage == ENDED or learner.stage == LOST:
                _begin_next(s, rules, learner, settings, learner.stage == LOST)
            else:
                learner.steps += 1
                lost = not is_legal(s, rules, actions[i])
                outputs.lost[i] = lost
                if lost:
                    lost_games[i] = s
                elif s.phase != Phase.OVER:
                    engine.step(s, rules, actions[i])
                learner.stage = REPLY
        elif learner.stage < REPLY:
            continue

        if learner.stage == REPLY:
            if not lost and not play_scripts(s, rules, learner.seat, settings.scripts, scratch):
                continue
            if lost:
                reward[i] = engine.loss(rules)
                terminated[i] = True
            elif s.phase == Phase.OVER:
                engine.rewards(s, rules, rewards)
                reward[i] = rewards[learner.seat]
                terminated[i] = not s.truncated
                truncated[i] = s.truncated
            if settings.step_limit and learner.steps >= settings.step_limit:
                truncated[i] = True
            if not (terminated[i] or truncated[i]):
                learner.stage = WAITING
            elif settings.same_step:
                view(s, rules, learner.seat, lost, outputs.final_observation[i], outputs.final_mask[i])
                _begin_next(s, rules, learner, settings, lost)
            else:
                learner.stage = LOST if lost else ENDED
        if learner.stage == OPENING:
            if not play_scripts(s, rules, learner.seat, settings.scripts, scratch):
                continue
            learner.stage = WAITING
        view(s, rules, learner.seat, learner.stage == LOST, outputs.observation[i], outputs.mask[i])


@kernel
def _begin_next(s: Record, rules: Config, learner: Any, settings: Any, lost: Any) -> None:
    """Start the next game of an environment."""
    learner.steps = 0
    learner.seat = next_game(s, rules, rules.start, learner.seat, settings.seat, lost)
    learner.stage = OPENING


@kernel
def view_learners(states: Records, config: Configs, learners: Any, observation: Any, mask: Any) -> None:
    """Write what all learners see, or (without columns) only their masks."""
    for i in range(states.shape[0]):
        row = observation[i] if observation.size else observation.ravel()
        view(states[i], config[0], learners[i].seat, learners[i].stage == LOST, row, mask[i])
