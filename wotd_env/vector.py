"""The native Gymnasium vector environment: many games in which one seat learns, one compiled call for a step."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from wotd_env import engine
from wotd_env._compile import kernel
from wotd_env.batch import is_legal
from wotd_env.game import Game
from wotd_env.interface import action_space, check_choice, make_rules, observation_space, read_options
from wotd_env.observation import encode, write_mask
from wotd_env.opponents import Opponents, lot, play
from wotd_env.policies import Policy
from wotd_env.rendering import render_text
from wotd_env.rules import MAX_PLAYERS, Phase
from wotd_env.state import STATE

__all__ = ["WayOfTheDragonVectorEnv"]

Observation = NDArray[np.int8] | dict[str, NDArray[np.int8]]
_Outputs = tuple[
    NDArray[np.int8],
    NDArray[np.int8],
    NDArray[np.float64],
    NDArray[np.bool_],
    NDArray[np.bool_],
    NDArray[np.int8],
]

# Stages of an environment. Between two steps it is unused before its first reset, waits for the learner, or has ended.
# Within a step it may wait for a policy outside the compiled loop, the learner's action taken or its game just begun.
UNUSED, LEARNER, ENDED, TAKEN, BEGUN = range(5)

ANY_SEAT = -1
_NO_ACTIONS = np.empty(0, np.int64)
_NO_ROWS = np.empty((0, 0), np.int8)


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
        render_mode: `"ansi"` or None.
        max_episode_steps: actions of the learner after which a game is truncated, as by Gymnasium's `TimeLimit`.
        **rules: the fields of `wotd_env.Rules`.

    Attributes:
        autoreset_mode: the mode, as in `metadata`.
        game: the `Game` that is played; `game.observation_layout` tells the observation's parts.

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
        self.seat = seat
        self._fixed_seat = ANY_SEAT if seat == "random" else int(self.game._seats("seat", seat, 1)[0])
        self.mask_in = mask_in
        self.illegal = check_choice("illegal", illegal, ("lose", "raise"))
        self.render_mode = check_choice("render_mode", render_mode, (None, "ansi"))
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": ["ansi"], "render_fps": 1, "autoreset_mode": self.autoreset_mode}
        self.num_envs = num_envs
        self.single_observation_space = observation_space(self.game, mask_in)
        self.single_action_space = action_space(self.game)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._step_limit = 0 if max_episode_steps is None else max_episode_steps
        self._state = np.zeros(num_envs, STATE)
        self._learners = np.zeros(num_envs, np.int8)  # their seats
        self._stages = np.full(num_envs, UNUSED, np.int8)
        self._steps = np.zeros(num_envs, np.int64)  # taken by the learner in this game

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
        where = self._reset_mask(options)
        state = self._begun(seed, options, where)
        super().reset(
            seed=seed
            if isinstance(seed, int | None)
            else next((one for one in seed if one is not None), None)
        )
        self._state[where] = state[where]
        self._stages[where] = BEGUN
        self._steps[where] = 0
        self.game._spread(choose_seats, self._state, where, self._fixed_seat, self._learners)
        observation, mask, *_ = outputs = self._outputs()
        self._advance(_NO_ACTIONS, outputs)
        self._look(observation, mask)
        return self._shown(observation, mask), self._info(mask, where)

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
        ended = self._stages == ENDED
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
        chosen = self.game._actions(state, actions, self.illegal == "raise")
        observation, mask, reward, terminated, truncated, final = outputs = self._outputs()
        self._advance(chosen, outputs)
        info = self._info(mask, np.ones(self.num_envs, np.bool_))
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            self._add_ends(info, final, terminated | truncated)
        return self._shown(observation, mask), reward, terminated, truncated, info

    def action_masks(self) -> NDArray[np.int8]:
        """Return the masks of the learners' legal actions, int8 (N, A); all ones where a game has ended."""
        mask = np.empty((self.num_envs, self.game.num_actions), np.int8)
        self._look(_NO_ROWS, mask)
        return mask

    def render(self) -> tuple[str, ...] | None:
        """Return the positions as text, one for each environment."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing without a render_mode; 'ansi' returns text")
            return None
        self._check_begun()
        return tuple(render_text(self.game, self._state[i : i + 1]) for i in range(self.num_envs))

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
    ) -> NDArray[np.void]:
        """Return the games with those asked for begun anew, STATE (N,), each at its first decision."""
        game, n = self.game, self.num_envs
        starter, given = read_options(game.rules, options)
        roll = given is None
        state = self._state.copy()
        seeded = np.zeros(n, np.bool_)
        if isinstance(seed, int | np.integer):
            seeded = where
            state[where] = game.reset(n, seed=seed, starting_player=starter, roll=roll)[where]
        elif seed is not None:
            if len(seed) != n:
                raise ValueError(
                    f"seed must be an integer or a list of {n}, one for each environment, got {len(seed)}"
                )
            seeded = where & [one is not None for one in seed]
            for i in np.flatnonzero(seeded).tolist():
                state[i : i + 1] = game.reset(1, seed=seed[i], starting_player=starter, roll=roll)
        if given is not None:
            games = np.repeat(given, n)
            games["rng"][seeded] = state["rng"][seeded]
            game.roll(games)
            state[where] = games[where]
            return state
        first = where & ~seeded & (self._stages == UNUSED)
        if first.any():
            state[first] = game.reset(n, seed=secrets.randbits(63), starting_player=starter)[first]
        return game.reset(state, where=where & ~seeded & ~first, starting_player=starter)

    # ------------------------------------------------------------------------------------------------ the compiled loop

    def _outputs(self) -> _Outputs:
        """Return new arrays for a step: observations, masks, rewards, terminated, truncated, final observations."""
        n, size = self.num_envs, self.game.observation_size
        return (
            np.empty((n, size), np.int8),
            np.empty((n, self.game.num_actions), np.int8),
            np.empty(n, np.float64),
            np.empty(n, np.bool_),
            np.empty(n, np.bool_),
            np.empty((n, size), np.int8) if self.autoreset_mode == AutoresetMode.SAME_STEP else _NO_ROWS,
        )

    def _advance(self, actions: NDArray[np.int64], outputs: _Outputs) -> None:
        """Take the actions, if any, and go on until all environments wait for their learners or have ended."""
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        arrays = (self._state, self._learners, self._stages, self._steps)
        settings = (self.opponents.scripts, self._fixed_seat, self._step_limit, same_step)
        self.game._spread(advance, *arrays, actions, *settings, *outputs)
        while self.opponents.outside and (waiting := self._stages >= TAKEN).any():
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
        """Return infos that hold the masks of some environments."""
        if self.mask_in == "obs":
            return {}
        if not where.all():
            mask = np.where(where[:, None], mask, np.int8(0))
        return {"action_mask": mask, "_action_mask": where}

    def _add_ends(self, info: dict[str, Any], final: NDArray[np.int8], ended: NDArray[np.bool_]) -> None:
        """Add to infos how games have ended that were restarted in the same step."""
        games = np.flatnonzero(ended)
        if not games.size:
            return
        rows, masks = final[games], np.ones((len(games), self.game.num_actions), np.int8)
        shown = np.full(self.num_envs, None, object)
        for game, row, mask in zip(games, rows, masks, strict=True):
            shown[game] = self._shown(row, mask)
        everywhere = np.zeros((self.num_envs, self.game.num_actions), np.int8)
        everywhere[games] = 1
        info["final_obs"], info["_final_obs"] = shown, ended
        info["final_info"], info["_final_info"] = self._info(everywhere, ended.copy()), ended.copy()


@kernel
def advance(
    states: Any,
    rules: Any,
    learners: Any,
    stages: Any,
    steps: Any,
    actions: Any,
    scripts: Any,
    seat: Any,
    limit: Any,
    same_step: Any,
    observation: Any,
    mask: Any,
    reward: Any,
    terminated: Any,
    truncated: Any,
    final: Any,
) -> None:
    """Do a step in all environments, or, without actions, go on with those that waited for a policy outside.

    Environments that still wait for one are left at stage TAKEN or BEGUN.
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
            if stages[i] == ENDED:
                steps[i] = 0
                learners[i] = restart(s, r, seat)
                stages[i] = BEGUN
            else:
                steps[i] += 1
                lost = not is_legal(s, r, actions[i])
                if not lost and s.phase != engine.OVER:
                    engine.decide(s, r, actions[i])
                    engine.run(s, r, True)
                stages[i] = TAKEN
        elif stages[i] < TAKEN:
            continue

        if stages[i] == TAKEN:
            if not lost and not play(s, r, learners[i], scripts):
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
                encode(s, r, learners[i], final[i])
                steps[i] = 0
                learners[i] = restart(s, r, seat)
                stages[i] = BEGUN
            else:
                stages[i] = ENDED
        if stages[i] == BEGUN:
            if not play(s, r, learners[i], scripts):
                continue
            stages[i] = LEARNER
        look(s, r, learners[i], stages[i] == ENDED, observation[i], mask[i])


@kernel
def restart(s: Any, rules: Any, seat: Any) -> Any:
    """Start the next game in a record, up to its first decision, and return the learner's seat."""
    engine.new_game(s, rules, rules.start)
    engine.run(s, rules, True)
    return choose_seat(s, rules, seat)


@kernel
def choose_seat(s: Any, rules: Any, seat: Any) -> Any:
    """Return the learner's seat in a game at its first decision: the given one, or one drawn by lot."""
    return lot(s, rules) if seat == ANY_SEAT else np.int64(seat)


@kernel
def choose_seats(states: Any, rules: Any, where: Any, seat: Any, learners: Any) -> None:
    """Choose the learners' seats in some games."""
    for i in range(states.shape[0]):
        if where[i]:
            learners[i] = choose_seat(states[i], rules[0], seat)


@kernel
def look(s: Any, rules: Any, learner: Any, ended: Any, observation: Any, mask: Any) -> None:
    """Write what the learner sees, and its legal actions: all once its game has ended."""
    if observation.size:
        encode(s, rules, learner, observation)
    actions, swaps = engine.legal(s, rules)
    if ended:
        actions, swaps = engine.ALL_ACTIONS, ~np.uint64(0)
    write_mask(actions, swaps, mask)


@kernel
def look_all(states: Any, rules: Any, learners: Any, stages: Any, observation: Any, mask: Any) -> None:
    """Write what all learners see, or (without columns) only their masks."""
    for i in range(states.shape[0]):
        row = observation[i] if observation.size else observation.ravel()
        look(states[i], rules[0], learners[i], stages[i] == ENDED, row, mask[i])
