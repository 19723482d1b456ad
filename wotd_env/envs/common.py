"""Shared parts of the environments: argument checks, the format of observations, a base class for a single game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict
from numpy.typing import DTypeLike, NDArray

from wotd_env.core import arguments, batch
from wotd_env.core.arguments import check_choice, check_seed
from wotd_env.core.game import Game
from wotd_env.core.observation import parts
from wotd_env.core.state import States
from wotd_env.envs.starts import LEARNER, Draws, next_games, read_options, read_seeds
from wotd_env.rendering import Renderer


class Format:
    """The format in which an environment returns observations and action masks.

    With `mask_in="obs"` an observation is a dict that contains the mask; with `"info"` the info contains the mask.
    """

    def __init__(self, game: Game, mask_in: str, observation_dtype: DTypeLike, mask_dtype: DTypeLike) -> None:
        self.mask_in: str = check_choice("mask_in", mask_in, ("obs", "info"))
        self.dtype = check_dtype("observation_dtype", observation_dtype, ("int8", "float32"))
        self.mask_dtype = check_dtype("mask_dtype", mask_dtype, ("int8", "bool"))
        self._game = game

    def flat_space(self) -> Box:
        """Return a new space for observations without masks, `observation_dtype` (D,)."""
        layout = parts(self._game.rules, self._game.encoding).values()
        # upper bounds of at least 1: Gymnasium warns about the empty range of an entry that is always 0
        high = np.maximum(np.concatenate([part.highest for part in layout]), 1).astype(self.dtype)
        return Box(np.zeros_like(high), high, dtype=high.dtype.type)

    def space(self) -> Box | Dict:
        """Return a new observation space."""
        if self.mask_in == "info":
            return self.flat_space()
        mask = Box(0, 1, (self._game.num_actions,), self.mask_dtype.type)
        return Dict({"observation": self.flat_space(), "action_mask": mask})

    def show(self, observation: NDArray[np.int8], mask: NDArray[np.int8]) -> Any:
        """Convert observations, int8 (..., D), and masks, int8 (..., A), to the form that `reset` and `step` return."""
        if self.dtype != np.int8:
            observation = observation.astype(self.dtype)
        if self.mask_in == "info":
            return observation
        return {"observation": observation, "action_mask": mask.view(self.mask_dtype)}

    def info(self, mask: NDArray[np.int8]) -> dict[str, NDArray[Any]]:
        """Return an info that contains `mask`, int8 (..., A), or an empty info."""
        return {"action_mask": mask.view(self.mask_dtype)} if self.mask_in == "info" else {}


def check_dtype(name: str, value: DTypeLike, allowed: Sequence[str]) -> np.dtype[Any]:
    """Return `value`, a NumPy dtype or its name, as a dtype. Raise ValueError unless its name is in `allowed`."""
    try:
        dtype: np.dtype[Any] = np.dtype(check_choice(name, np.dtype(value).name, allowed))
        return dtype
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}") from None


class OneGame:
    """Base class of the environments with a single game."""

    game: Game
    render_mode: str | None
    _state: States | None  # STATE (1,)
    _renderer: Renderer

    @property
    def record(self) -> States:
        """A copy of the game, STATE (1,), including the future dice. Pass it to `reset` as the option `state`."""
        return self._started("record").copy()

    def _started(self, what: str) -> States:
        """Return the game, STATE (1,). Raise ResetNeeded before the first reset."""
        if self._state is None:
            raise ResetNeeded(f"no game has started: call reset() before {what}")
        return self._state

    def _next_game(
        self, seed: int | None, options: Mapping[str, Any] | None, seat: int, lost: bool, draws: Draws
    ) -> tuple[States, int, int]:
        """Return the next game, STATE (1,), at its first decision; the learner's seat; and the choice of opponents.

        `seat` is the learner's seat in the last game, and `lost` is whether it lost by an illegal action.
        """
        learners = np.zeros(1, LEARNER)
        learners["seat"], learners["lost"] = seat, lost
        seeds = read_seeds(None if seed is None else check_seed(seed), 1)
        chosen = read_options(self.game.rules, options)
        state = next_games(self.game, self._state, learners, draws, seeds, chosen)
        return state, int(learners["seat"][0]), int(learners["opponent"][0])

    def _view(self, seat: int, ended: bool) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Return a seat's observation and action mask as new arrays."""
        observation = np.empty(self.game.observation_size, np.int8)
        mask = np.empty(self.game.num_actions, np.int8)
        state = self._started("observe")
        batch.view_one(state, self.game.config, seat, ended, observation, mask)
        if self.game.encoding != "one_hot":
            batch.observe_integers(state, self.game.config, np.array([seat]), observation[None])
        return observation, mask

    def render(self) -> Any:
        """Return a picture of the position, or show it in mode `"human"`. Warn if there is no render mode."""
        pictures = self._renderer.render(self._started("render"))
        return None if pictures is None else pictures[0]

    def _render_for_human(self) -> None:
        if self.render_mode == "human":
            self.render()

    def close(self) -> None:
        """Close the window if there is one."""
        self._renderer.close()


def take_action(game: Game, state: States, action: Any) -> int:
    """Take an action in a game, STATE (1,), and return the next seat to act.

    Return the number of players if the game is over, and -1 if the action is illegal.
    """
    return batch.step_one(state, game.config, max(-1, min(as_integer(action), game.num_actions)))


def as_integer(action: Any) -> int:
    """Return `action`, an integer or an array or tensor with one integer, as an int. Other types raise TypeError."""
    if (one := arguments.as_integer(action)) is None:
        raise TypeError(f"action must be an integer, got {arguments.kind_of(action)}")
    return one


def warn_of_illegal(explanation: object) -> None:
    """Warn that a game is lost by an illegal action."""
    gymnasium.logger.warn(
        "a game is lost by an illegal action; further ones get no warning: choose actions by the action mask. %s",
        explanation,
    )
