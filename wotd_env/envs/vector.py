"""The native Gymnasium vector environment: many games with one learner each, and policies in the other seats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, DTypeLike, NDArray

from wotd_env.core.arguments import as_actions, check_choice, check_integer
from wotd_env.core.game import Game
from wotd_env.core.rules import rules_for
from wotd_env.core.state import ROW, STATE, States, scratch, take
from wotd_env.envs import starts
from wotd_env.envs.common import Format, warn_of_illegal
from wotd_env.envs.learners import Settings, StepArrays, advance, find_illegal
from wotd_env.envs.opponents import Given, Opponents
from wotd_env.envs.results import NO_ACTION, entries, frozen
from wotd_env.rendering import FPS, RENDER_MODES, Renderer


class WayOfTheDragonVectorEnv(VectorEnv[Any, ArrayLike, NDArray[Any]]):
    """N games in one environment: `gymnasium.make_vec("wotd_env:wotd_env/WayOfTheDragon-v0", N)`.

    The environment behaves like Gymnasium's `SyncVectorEnv` over N single environments. There are two differences:

    - Policies other than `random` and `greedy` draw from `np_random`, one generator for all games.
    - A reset of only some games also returns the action masks of the other games.

    Actions are integers (N,). Observations are int8 (N, D), and `infos["action_mask"]` is int8 (N, A). With
    `mask_in="obs"` observations are `{"observation": int8 (N, D), "action_mask": int8 (N, A)}`. The mask of an ended
    game is all ones. Rewards are float64 (N,); `terminated` and `truncated` are bool (N,). The other infos are those of
    the single environment, with a row for each game. Every call returns new arrays, except for infos that have not
    changed: these are shared and read-only. Copies made with `copy.deepcopy` or `pickle` continue the running games.

    The arguments `opponents`, `seat`, `mask_in`, `observation_dtype`, `mask_dtype`, `encoding`, `layouts` and
    `illegal` are those of `WayOfTheDragonEnv`.

    Args:
        num_envs: the number of games, N.
        autoreset_mode: a `gymnasium.vector.AutoresetMode` or its value.
        num_threads: the number of threads that play the games; the results do not depend on it.
        render_mode: one of `wotd_env.rendering.RENDER_MODES`, or None. `render` returns a tuple with a picture of each
            game. `"human"` shows the first games of the batch in a window at every reset and step.
        max_episode_steps: maximum number of the learner's actions in a game. A game that reaches this number is
            truncated, as with Gymnasium's `TimeLimit`.
        **rules: the fields of `wotd_env.Rules`.

    Attributes:
        autoreset_mode: the `AutoresetMode`, also in `metadata`.
        game: the `Game` that is played; `game.observation_layout` names the parts of an observation.
        layouts: the dead pieces of the layouts that games draw, uint16 (L, 5); L is 0 without the argument.
        seat: the learner's seat in every game, int8 (N,).
        record: a copy of the games, STATE (N,).

    Raises:
        TypeError: for an unknown argument.
        ValueError: for an invalid value.
    """

    # True until `__init__` succeeds, because Gymnasium 1.2 also closes an environment whose `__init__` failed.
    closed = True

    def __init__(
        self,
        num_envs: int = 1,
        *,
        opponents: Given = "greedy",
        seat: int | str = "random",
        mask_in: str = "info",
        observation_dtype: DTypeLike = "int8",
        mask_dtype: DTypeLike = "int8",
        encoding: str = "one_hot",
        layouts: Sequence[str] | None = None,
        illegal: str = "lose",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        num_threads: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **rules: Any,
    ) -> None:
        super().__init__()
        self.game = Game(rules_for(type(self), rules), num_threads=num_threads, encoding=encoding)
        self.layouts = starts.read_layouts(self.game.rules, layouts)
        self._opponents = Opponents(Game(self.game.rules, num_threads=num_threads), opponents, self.layouts)
        self.illegal = check_choice("illegal", illegal, ("lose", "raise"))
        self.render_mode = render_mode
        self._renderer = Renderer(self.game, render_mode)
        if not isinstance(autoreset_mode, AutoresetMode):
            check_choice("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self.autoreset_mode = mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": RENDER_MODES, "render_fps": FPS, "autoreset_mode": mode}
        self.num_envs = check_integer("num_envs", num_envs, 1)
        self._format = Format(self.game, mask_in, observation_dtype, mask_dtype)
        self.single_observation_space = self._format.space()
        self.single_action_space = Discrete(self.game.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        limit = 0 if max_episode_steps is None else check_integer("max_episode_steps", max_episode_steps, 1)
        seat, same_step = starts.fixed_seat(self.game.rules, seat), mode == AutoresetMode.SAME_STEP
        self._seat, self._limit, self._same_step = seat, limit, same_step
        self._set_opponents(self._opponents)
        self._started = False
        self._state = np.zeros(num_envs, STATE)
        self._learners = np.zeros(num_envs, starts.LEARNER)
        self._mask = np.empty((0, 0), np.int8)  # (N, A)
        self._nothing = np.empty((num_envs, 0), np.int8)
        self._all = frozen(np.ones(num_envs, np.bool_))
        self._illegal = np.zeros(num_envs, np.bool_)
        # all infos of a step in which no game starts or ends, except the action masks
        self._running: dict[str, Any] = {
            "seat": self.seat,
            "illegal_action": frozen(np.full(num_envs, NO_ACTION)),
            **entries(frozen(self._no_result()), self.game.rules.players),
        }
        if len(self.layouts) or self.game.rules.dead_pieces:
            self._running["layout"] = self._state["dead"].copy()
        if self._opponents.names is not None:
            self._running["opponent"] = self._opponents.names[self._learners["opponent"]]
        self._mask_names = [f"_{name}" for name in [*self._format.info(self._mask), *self._running]]
        self._running |= dict.fromkeys(self._mask_names, self._all)
        self._warned = False
        self.closed = False

    @property
    def opponents(self) -> Given:
        """The opponents of the next games. An assigned value has no effect on running games.

        The argument `opponents` must have been a `Pool` if the assigned value is one, and vice versa, because the keys
        of the infos do not change.
        """
        return self._opponents.given

    @opponents.setter
    def opponents(self, opponents: Given) -> None:
        new = self._opponents.replaced(opponents)
        self._learners["opponent"] = new.keep(self._opponents, self._learners["opponent"])
        self._set_opponents(new)

    def _set_opponents(self, opponents: Opponents) -> None:
        self._opponents = opponents
        draws = starts.Draws(self._seat, opponents.cumulative, self.layouts)
        self._settings = Settings(opponents.scripts, draws, self._limit, self._same_step)

    @property
    def seat(self) -> NDArray[np.int8]:
        """The learner's seat in every game, int8 (N,)."""
        return self._learners["seat"].copy()

    @property
    def record(self) -> States:
        """A copy of the games, STATE (N,), including the future dice."""
        self._check_started()
        return self._state.copy()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start the next game in all environments, or only in those selected by the option `"reset_mask"`.

        Args:
            seed: environment i gets seed + i, or item i of a list. Without a seed, an environment continues the random
                stream of its last game; the first game gets a random seed.
            options: the options of the single environment; also `"reset_mask"`, bool (N,), True for each environment to
                reset.

        Returns:
            The observations and infos of all environments.

        Raises:
            ValueError: for an invalid seed or option; the running games continue.
            TypeError: for a `"reset_mask"` that is not a bool array.
        """
        seeds = starts.read_seeds(seed, self.num_envs)
        games = self._read_reset_mask((options or {}).get("reset_mask"))
        chosen = starts.read_options(self.game.rules, options, "reset_mask")
        last = take(self._state, games) if self._started else None
        learners = self._learners[games]
        some = starts.Seeds(seeds.number[games], seeds.given[games])
        state = starts.next_games(self.game, last, learners, self._settings.draws, some, chosen)
        self._state.view(ROW)[games], self._learners[games] = state.view(ROW), learners
        super().reset(seed=int(seeds.number[seeds.given][0]) if seeds.given.any() else None)
        self._started = True
        self._learners["waiting"] = True  # even after a reset of only some games, all masks are returned
        self._result = self._no_result()
        step = self._new_step()
        self._play(step)
        return self._show(step, True)

    def step(
        self, actions: ArrayLike
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take the learners' actions, integers (N,).

        Returns:
            Observations, rewards, terminated, truncated, infos.

        Raises:
            ResetNeeded: before the first reset, and for an ended environment under `AutoresetMode.DISABLED`.
            IllegalActionError: for an illegal action with `illegal="raise"`; nothing has changed.
            ValueError: for actions of a wrong shape or type; nothing has changed.
        """
        self._check_started()
        ended = self._learners["ended"]
        if self.autoreset_mode == AutoresetMode.DISABLED and ended.any():
            raise ResetNeeded(
                f"environments {np.flatnonzero(ended).tolist()} have ended and autoreset is disabled: reset them "
                "with options={'reset_mask': terminated | truncated} before step()"
            )
        chosen = as_actions(actions, len(self._state))
        step = self._new_step(chosen)
        lost = find_illegal(self._state, self._learners, self._mask, chosen, step.illegal)
        if lost:
            self._answer_illegal(actions, step)
        changed = self._play(step)
        final = self._final_info(step) if changed and self._same_step else {}
        observation, info = self._show(step, changed)
        info |= final
        if lost and not self._same_step:
            info["illegal_action"] = np.where(step.illegal, step.actions, NO_ACTION)
        return observation, step.reward, step.terminated, step.truncated, info

    def action_masks(self) -> NDArray[Any]:
        """Return the learners' action masks, `mask_dtype` (N, A)."""
        self._check_started()
        return self._mask.copy().view(self._format.mask_dtype)

    def render(self) -> tuple[Any, ...] | None:
        """Return a picture of each game, or show games in mode `"human"`. Warn if there is no render mode."""
        self._check_started()
        return self._renderer.render(self._state)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the window if there is one."""
        self._renderer.close()

    def _check_started(self) -> None:
        if not self._started:
            raise ResetNeeded("no game has started: call reset() first")

    def _read_reset_mask(self, where: Any) -> NDArray[np.int64]:
        """Return the indices of the environments to reset."""
        if where is None:
            return np.arange(self.num_envs)
        expected = f"options['reset_mask'] must be a bool array ({self.num_envs},) with at least one True"
        if not isinstance(where, np.ndarray) or where.dtype != np.bool_:
            raise TypeError(f"{expected}, got {where!r}")
        if where.shape != (self.num_envs,) or not where.any():
            raise ValueError(f"{expected}, got {where!r}")
        if not (self._started or where.all()):
            raise ResetNeeded("call reset() without a reset_mask first: some environments have no game yet")
        return np.flatnonzero(where)

    def _answer_illegal(self, given: ArrayLike, step: StepArrays) -> None:
        """Warn of the first illegal action. With `illegal="raise"`, raise an error."""
        if self.illegal == "raise" or not self._warned:
            error = self.game.error_in(self._state, int(step.illegal.argmax()), given)
            if self.illegal == "raise":
                raise error
            warn_of_illegal(error)
            self._warned = True

    def _new_step(self, actions: NDArray[np.int64] | None = None) -> StepArrays:
        """Return new arrays for a step, or for a reset if `actions` is None."""
        n, size, num_actions = self.num_envs, self.game.observation_size, self.game.num_actions
        same_step = self._same_step
        return StepArrays(
            acting=actions is not None,
            actions=np.zeros(n, np.int64) if actions is None else actions,
            illegal=self._illegal,
            observation=np.empty((n, size), np.int8),
            mask=np.empty((n, num_actions), np.int8),
            reward=np.zeros(n),
            terminated=np.zeros(n, np.bool_),
            truncated=np.zeros(n, np.bool_),
            final_observation=np.empty((n, size), np.int8) if same_step else self._nothing,
            final_mask=np.zeros((n, num_actions), np.int8) if same_step else self._nothing,
            result=self._result,
        )

    def _no_result(self) -> NDArray[np.int8]:
        return np.zeros((self.num_envs, 3 * self.game.rules.players), np.int8)

    def _play(self, step: StepArrays) -> bool:
        """Play every game until its learner must act or the game is over.

        Return whether any game has started or ended for its learner.
        """
        changed = False
        while True:
            arguments = (self._learners, step, lambda: self._settings, scratch)
            changed |= any(self.game.apply(advance, self._state, *arguments, validate=False))
            if not self._opponents.outside:
                return changed
            waiting = np.flatnonzero(self._learners["waiting"])
            if not waiting.size:
                return changed
            try:
                self._opponents.decide(self._state, self._learners, waiting, self.np_random)
            except BaseException:  # an error or Ctrl-C has interrupted some turns: require a reset
                self._started = False
                raise
            step = step._replace(acting=False)

    def _show(self, step: StepArrays, changed: bool) -> tuple[Any, dict[str, Any]]:
        """Return the learners' observations and the infos. `changed` is the result of `_play`."""
        self._mask = step.mask.copy()
        if self.render_mode == "human":
            self.render()
        if changed:
            self._running["seat"] = frozen(self.seat)
            if "layout" in self._running:
                self._running["layout"] = frozen(self._state["dead"].copy())
            if self._opponents.names is not None:
                self._running["opponent"] = frozen(self._opponents.names[self._learners["opponent"]])
        info = self._format.info(step.mask) | self._running
        if changed and not self._same_step:
            info |= entries(self._take_result(), self.game.rules.players)
        return self._format.show(step.observation, step.mask), info

    def _take_result(self) -> NDArray[np.int8]:
        """Return the results of the games that have ended in this step. Replace their array by zeros."""
        result, self._result = self._result, self._no_result()
        return result

    def _final_info(self, step: StepArrays) -> dict[str, Any]:
        """Return the infos about the games that ended in this step."""
        ended = step.terminated | step.truncated
        games = np.flatnonzero(ended)
        if not games.size:
            return {}
        shown = self._format.show(step.final_observation.take(games, 0), step.final_mask.take(games, 0))
        if isinstance(shown, dict):
            shown = [dict(zip(shown, row, strict=True)) for row in zip(*shown.values(), strict=True)]
        final = np.empty(self.num_envs, object)  # games that have not ended keep None
        final[games] = np.fromiter(shown, object, len(games))
        result, where = self._take_result(), ended.copy()
        # 0 in games that have not ended, as in `SyncVectorEnv`
        illegal_action = self._running["illegal_action"] * ended
        np.copyto(illegal_action, step.actions, where=step.illegal)
        info = {
            **self._format.info(step.final_mask),
            "seat": self._running["seat"] * ended,  # of the games before this step
            "illegal_action": illegal_action,
            **entries(result, self.game.rules.players),
        }
        if "layout" in self._running:
            info["layout"] = self._running["layout"] * ended[:, None]
        if self._opponents.names is not None:
            info["opponent"] = np.where(ended, self._running["opponent"], None)
        return {
            "final_obs": final,
            "_final_obs": ended,
            "final_info": info | dict.fromkeys(self._mask_names, where),
            "_final_info": ended.copy(),
        }
