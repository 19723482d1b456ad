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
from wotd_env.core.batch import is_legal
from wotd_env.core.compilation import kernel
from wotd_env.core.game import Game, check_seed
from wotd_env.core.observation import encode, write_mask
from wotd_env.core.policy import Policy
from wotd_env.core.rules import MAX_PLAYERS, Phase
from wotd_env.core.state import ROW, STATE, scratch
from wotd_env.envs.common import (
    ANY_SEAT,
    action_space,
    check_choice,
    make_rules,
    next_game,
    next_games,
    observation_space,
    read_options,
)
from wotd_env.envs.opponents import Opponents, play
from wotd_env.rendering import FPS, RENDER_MODES, Viewer

__all__ = ["WayOfTheDragonVectorEnv"]

Observation = NDArray[np.int8] | dict[str, NDArray[np.int8]]

# Stages of an environment. Between two steps it is unused before its first reset, waits for the learner, or has ended,
# perhaps lost by an illegal action. Within a step it may wait for a policy outside the compiled loop, either to reply
# to the learner's action or to open a game.
UNUSED, LEARNER, ENDED, LOST, REPLY, OPENING = range(6)

_NO_ACTIONS = np.empty(0, np.int64)
_NO_ROWS = np.empty((0, 0), np.int8)


class _Outputs(NamedTuple):
    """What a step fills in; the last two only for games that are restarted in the same step, as they were before."""

    observation: NDArray[np.int8]  # (N, D)
    mask: NDArray[np.int8]  # (N, A)
    reward: NDArray[np.float64]  # (N,)
    terminated: NDArray[np.bool_]  # (N,)
    truncated: NDArray[np.bool_]  # (N,)
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
        illegal: what an illegal action does: `"lose"` ends the game with the reward of a loss; `"raise"` raises
            `IllegalActionError`, and nothing changes.
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
        illegal: str = "lose",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        num_threads: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **rules: Any,
    ) -> None:
        super().__init__()
        self.game = Game(make_rules(rules), num_threads=num_threads)
        self.opponents = Opponents(self.game, opponents)
        self._fixed_seat = ANY_SEAT if seat == "random" else int(self.game._seats("seat", seat, 1)[0])
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
        self.num_envs = check_count("num_envs", num_envs)
        self.single_observation_space = observation_space(self.game, mask_in)
        self.single_action_space = action_space(self.game)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._step_limit = (
            0 if max_episode_steps is None else check_count("max_episode_steps", max_episode_steps)
        )
        self._state = np.zeros(num_envs, STATE)
        self._learners = np.zeros(num_envs, np.int8)  # their seats
        self._stages = np.full(num_envs, UNUSED, np.int8)
        self._steps = np.zeros(num_envs, np.int32)  # taken by the learner in this game

    @property
    def seat(self) -> NDArray[np.int8]:
        """The learner's seat in every running game, int8 (N,)."""
        return self._learners.copy()

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
        seed = int(seed) if isinstance(seed, np.integer) else seed
        where = self._reset_mask(options)
        state, learners = self._begun(seed, options, where)
        one = seed if isinstance(seed, int | None) else next((s for s in seed if s is not None), None)
        super().reset(seed=one)
        self._state, self._learners = state, learners
        self._stages[where] = OPENING
        self._steps[where] = 0
        outputs = self._outputs()
        self._advance(_NO_ACTIONS, outputs)
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
        ended = (self._stages == ENDED) | (self._stages == LOST)
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
        chosen = self.game._actions(state, actions)
        if self.illegal == "raise":
            self.game._check(state, actions)
        outputs = self._outputs()
        self._advance(chosen, outputs)
        info = self._info(outputs.mask, np.ones(self.num_envs, np.bool_))
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            self._add_ends(info, outputs)
        self._render_for_human()
        shown = self._shown(outputs.observation, outputs.mask)
        return shown, outputs.reward, outputs.terminated, outputs.truncated, info

    def action_masks(self) -> NDArray[np.int8]:
        """Return the masks of the learners' legal actions, int8 (N, A); all ones where a game has ended."""
        mask = np.empty((self.num_envs, self.game.num_actions), np.int8)
        self._look(_NO_ROWS, mask)
        return mask

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
        if (self._stages == UNUSED).any():
            raise ResetNeeded("no game has begun: call reset() first")

    # ------------------------------------------------------------------------------------------------ how games begin

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
        if (self._stages[~where] == UNUSED).any():
            raise ResetNeeded("call reset() without a reset_mask first: some environments have no game yet")
        return where

    def _begun(
        self,
        seed: int | Sequence[int | None] | None,
        options: Mapping[str, Any] | None,
        where: NDArray[np.bool_],
    ) -> tuple[NDArray[np.void], NDArray[np.int8]]:
        """Return the games with those asked for begun anew, STATE (N,), and the learners' seats, int8 (N,)."""
        game, n = self.game, self.num_envs
        starter, given = read_options(game.rules, options, "reset_mask")
        fresh = np.zeros(n, STATE)  # new games, by their streams
        seeded = np.zeros(n, np.bool_)
        if isinstance(seed, int):
            seeded = where
            batch.seed(fresh, where, check_seed(seed))
        elif seed is not None:
            if len(seed) != n:
                raise ValueError(
                    f"seed must be an integer or a list of {n}, one for each environment, got {len(seed)}"
                )
            seeded = where & [one is not None for one in seed]
            for i in np.flatnonzero(seeded).tolist():
                batch.seed(fresh[i : i + 1], np.ones(1, np.bool_), check_seed(seed[i]))
        state, learners = self._state.view(ROW).copy().view(STATE), self._learners.copy()
        if given is not None:
            state[where] = given
            state["rng"][seeded] = fresh["rng"][seeded]
        else:
            first = where & ~seeded & (self._stages == UNUSED)
            batch.seed(fresh, first, check_seed(secrets.randbits(63)))
            np.copyto(state.view(ROW), fresh.view(ROW), where=seeded | first)
        starters, lost = game._starters(starter, n, fresh=False), (self._stages == LOST) & ~seeded
        game._spread(next_games, state, where, starters, learners, self._fixed_seat, lost, given is None)
        return state, learners

    # ------------------------------------------------------------------------------------------------ the compiled loop

    def _outputs(self) -> _Outputs:
        """Return new arrays for a step."""
        n, size, actions = self.num_envs, self.game.observation_size, self.game.num_actions
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        return _Outputs(
            observation=np.empty((n, size), np.int8),
            mask=np.empty((n, actions), np.int8),
            reward=np.empty(n, np.float64),
            terminated=np.empty(n, np.bool_),
            truncated=np.empty(n, np.bool_),
            final_observation=np.empty((n, size), np.int8) if same_step else _NO_ROWS,
            final_mask=np.zeros((n, actions), np.int8) if same_step else _NO_ROWS,
        )

    def _advance(self, actions: NDArray[np.int64], outputs: _Outputs) -> None:
        """Take the actions, if any, and go on until all environments wait for their learners or have ended."""
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        arrays = (self._state, self._learners, self._stages, self._steps)
        settings = (self.opponents.scripts, scratch, self._fixed_seat, self._step_limit, same_step)
        self.game._spread(advance, *arrays, actions, *settings, *outputs)
        while self.opponents.outside and (waiting := np.flatnonzero(self._stages >= REPLY)).size:
            try:
                self.opponents.decide(self._state, self._learners, waiting, self.np_random)
            except BaseException:  # a policy failed, or Ctrl-C: some games have moved on, others have not
                self._stages[:] = UNUSED
                raise
            self.game._spread(advance, *arrays, _NO_ACTIONS, *settings, *outputs)

    def _look(self, observation: NDArray[np.int8], mask: NDArray[np.int8]) -> None:
        """Fill in what the learners see, or (without columns) the masks alone."""
        self._check_begun()
        self.game._spread(look_all, self._state, self._learners, self._stages, observation, mask)

    # ------------------------------------------------------------------------------------------------ what is returned

    def _shown(self, observation: NDArray[np.int8], mask: NDArray[np.int8]) -> Any:
        return {"observation": observation, "action_mask": mask} if self.mask_in == "obs" else observation

    def _info(self, mask: NDArray[np.int8], where: NDArray[np.bool_]) -> dict[str, Any]:
        """Return infos that hold the masks, int8 (N, A), of some environments, bool (N,)."""
        if self.mask_in == "obs":
            return {}
        return {"action_mask": mask, "_action_mask": where}

    def _add_ends(self, info: dict[str, Any], outputs: _Outputs) -> None:
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
        info["final_info"], info["_final_info"] = self._info(outputs.final_mask, ended.copy()), ended.copy()


def check_count(name: str, value: Any) -> int:
    """Return an argument that must be an integer of at least 1, otherwise raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
    return int(value)


@kernel
def advance(
    states: Any,
    rules: Any,
    learners: Any,
    stages: Any,
    steps: Any,
    actions: Any,
    scripts: Any,
    scratch: Any,
    seat: Any,
    limit: Any,
    same_step: Any,
    observation: Any,
    mask: Any,
    reward: Any,
    terminated: Any,
    truncated: Any,
    final_observation: Any,
    final_mask: Any,
) -> None:
    """Do a step in all environments, or, without actions, go on with those that waited for a policy outside.

    Environments that still wait for one are left at stage REPLY or OPENING.
    """
    r = rules[0]
    rewards = np.empty(MAX_PLAYERS, np.float32)
    for i in range(states.shape[0]):
        s = states[i]
        lost = False
        if actions.size:
            reward[i] = 0
            terminated[i] = False
            truncated[i] = False
            if stages[i] == ENDED or stages[i] == LOST:
                steps[i] = 0
                learners[i] = next_game(s, r, r.start, learners[i], seat, stages[i] == LOST)
                stages[i] = OPENING
            else:
                steps[i] += 1
                lost = not is_legal(s, r, actions[i])
                if not lost and s.phase != engine.OVER:
                    engine.run(s, r, engine.decide(s, r, actions[i]), True)
                stages[i] = REPLY
        elif stages[i] < REPLY:
            continue

        if stages[i] == REPLY:
            if not lost and not play(s, r, learners[i], scripts, scratch):
                continue
            if lost:
                reward[i] = -1 / (r.players - 1)
                terminated[i] = True
            elif s.phase == engine.OVER:
                engine.rewards(s, r, rewards)
                reward[i] = rewards[learners[i]]
                terminated[i] = not s.truncated
                truncated[i] = s.truncated
            if limit and steps[i] >= limit:
                truncated[i] = True
            if not (terminated[i] or truncated[i]):
                stages[i] = LEARNER
            elif same_step:
                look(s, r, learners[i], lost, final_observation[i], final_mask[i])
                steps[i] = 0
                learners[i] = next_game(s, r, r.start, learners[i], seat, lost)
                stages[i] = OPENING
            else:
                stages[i] = LOST if lost else ENDED
        if stages[i] == OPENING:
            if not play(s, r, learners[i], scripts, scratch):
                continue
            stages[i] = LEARNER
        look(s, r, learners[i], stages[i] == LOST, observation[i], mask[i])


@kernel
def look(s: Any, rules: Any, learner: Any, lost: Any, observation: Any, mask: Any) -> None:
    """Write what the learner sees, and its legal actions: all once its game is over or lost."""
    keep = engine.shown(s)
    if observation.size:
        encode(s, rules, np.int64(learner), keep, observation)
    actions, swaps = engine.legal(s, rules, keep)
    if lost:
        actions, swaps = engine.ALL_ACTIONS, ~np.uint64(0)
    write_mask(actions, swaps, mask)


@kernel
def look_all(states: Any, rules: Any, learners: Any, stages: Any, observation: Any, mask: Any) -> None:
    """Write what all learners see, or (without columns) only their masks."""
    for i in range(states.shape[0]):
        row = observation[i] if observation.size else observation.ravel()
        look(states[i], rules[0], learners[i], stages[i] == LOST, row, mask[i])
