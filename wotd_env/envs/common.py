"""The shared parts of the standard interfaces: arguments, spaces, and the start of games."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import operator
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import DTypeLike, NDArray

from wotd_env.core import batch, engine
from wotd_env.core.arguments import check_choice, check_integer
from wotd_env.core.checks import check_states
from wotd_env.core.compilation import kernel
from wotd_env.core.config import LOSER, Config, Configs
from wotd_env.core.game import Game, check_seed
from wotd_env.core.observation import parts
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import STATE, Record, Records
from wotd_env.rendering import Viewer

__all__ = [
    "ANY_SEAT",
    "Format",
    "OneGame",
    "action_space",
    "begin",
    "fixed_seat",
    "next_game",
    "next_games",
    "read_options",
    "rules_for",
    "take_action",
]

ANY_SEAT = -1  # the learner's seat is drawn for every game


def fixed_seat(rules: Rules, seat: int | str) -> int:
    """Return the learner's seat from the option of an environment, ANY_SEAT for `"random"`.

    Raises:
        ValueError: for a seat that does not play.
    """
    if isinstance(seat, str) and seat == "random":
        return ANY_SEAT
    return check_integer("seat", seat, 0, rules.players - 1, "or 'random'")


OBSERVATION_DTYPES = ("int8", "float32")
MASK_DTYPES = ("int8", "bool")


def rules_for(environment: type, fields: Mapping[str, Any]) -> Rules:
    """Return the rules of an environment from the keyword arguments that are not its options.

    Raises:
        TypeError: for a name that is neither an option nor a field of Rules. The wording is Python's, because TorchRL
            reads it.
        ValueError: for an invalid value.
    """
    known = [field.name for field in dataclasses.fields(Rules)]
    for name in fields:
        if name not in known:
            options = inspect.signature(environment).parameters.values()
            names = [*known, *(option.name for option in options if option.kind != option.VAR_KEYWORD)]
            near = difflib.get_close_matches(name, names, 1)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            where = f"{environment.__name__}.__init__()"
            raise TypeError(f"{where} got an unexpected keyword argument {name!r}{hint}")
    return Rules(**fields)


class Format:
    """The format in which an environment returns observations and action masks.

    Args:
        game: the rules and the encoding.
        mask_in: `"obs"`: observations are dicts that contain the mask; `"info"`: the infos contain it.
        observation_dtype: a spelling of one of OBSERVATION_DTYPES.
        mask_dtype: a spelling of one of MASK_DTYPES.

    Raises:
        ValueError: for an invalid value.
    """

    def __init__(self, game: Game, mask_in: str, observation_dtype: DTypeLike, mask_dtype: DTypeLike) -> None:
        self.mask_in: str = check_choice("mask_in", mask_in, ("obs", "info"))
        self.dtype = check_dtype("observation_dtype", observation_dtype, OBSERVATION_DTYPES)
        self.mask_dtype = check_dtype("mask_dtype", mask_dtype, MASK_DTYPES)
        self._game = game

    def flat_space(self) -> Box:
        """Return a new space of observations without a mask, `observation_dtype` (D,)."""
        high = np.concatenate(
            [part.highest for part in parts(self._game.rules, self._game.encoding).values()]
        ).astype(self.dtype)
        # Some numbers of tokens are always 0, and Gymnasium warns about empty ranges.
        high = np.maximum(high, 1)
        return Box(np.zeros_like(high), high, dtype=high.dtype.type)

    def space(self) -> Box | Dict:
        """Return a new space of observations."""
        if self.mask_in == "info":
            return self.flat_space()
        mask = Box(0, 1, (self._game.num_actions,), self.mask_dtype.type)
        return Dict({"observation": self.flat_space(), "action_mask": mask})

    def show(self, observation: NDArray[np.int8], mask: NDArray[np.int8]) -> Any:
        """Return observations as `reset` and `step` return them, from int8 (..., D) and int8 (..., A)."""
        if self.dtype != np.int8:
            observation = observation.astype(self.dtype)
        if self.mask_in == "info":
            return observation
        return {"observation": observation, "action_mask": mask.view(self.mask_dtype)}

    def show_rows(self, observation: NDArray[np.int8], mask: NDArray[np.int8]) -> Iterator[Any]:
        """Return the observation of each game, from int8 (N, D) and int8 (N, A)."""
        shown = self.show(observation, mask)
        if self.mask_in == "info":
            return iter(shown)
        return (dict(zip(shown, rows, strict=True)) for rows in zip(*shown.values(), strict=True))

    def info(self, mask: NDArray[np.int8]) -> dict[str, NDArray[Any]]:
        """Return the info that contains the masks, int8 (..., A), or an empty one with `mask_in="obs"`."""
        return {"action_mask": mask.view(self.mask_dtype)} if self.mask_in == "info" else {}


def check_dtype(name: str, value: DTypeLike, allowed: Sequence[str]) -> np.dtype[Any]:
    """Return a dtype, however it is spelled, if its name is allowed; otherwise raise ValueError."""
    try:
        dtype: np.dtype[Any] = np.dtype(check_choice(name, np.dtype(value).name, allowed))
        return dtype
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}") from None


def action_space(game: Game) -> Discrete:
    """Return a new space of A actions."""
    return Discrete(game.num_actions)


def read_options(
    rules: Rules, options: Mapping[str, Any] | None, *more: str
) -> tuple[Any, NDArray[np.void] | None]:
    """Read `reset(options=...)`: return the starting seat, and a copy of the game to continue, STATE (1,), or None.

    Args:
        rules: the rules.
        options: has the keys `"starting_player"` and `"state"`, a record or a batch of one. Other keys get a warning.
        *more: keys that the caller reads.

    Raises:
        ValueError: if the state is not a running game of these rules, or if both keys are given.
    """
    options = options or {}
    known = ("starting_player", "state", *more)
    for key in options:
        if key not in known:
            names = ", ".join(map(repr, known))
            gymnasium.logger.warn("reset() ignores options[%r]; the options are %s", key, names)
    starter, given = options.get("starting_player"), options.get("state")
    if given is None:
        return starter, None
    if starter is not None:
        raise ValueError(
            "options must not have both 'state' and 'starting_player': a state knows who is to act"
        )
    if not isinstance(given, np.ndarray | np.void) or given.dtype != STATE or given.size != 1:
        raise ValueError(f"options['state'] must be one record of wotd_env.STATE, got {given!r}")
    state = np.array(given, STATE).reshape(1)
    try:
        check_states(rules, state)
    except ValueError as error:
        raise ValueError(f"options['state']: {error}") from None
    if state["phase"][0] == Phase.OVER:
        raise ValueError("options['state'] must be a running game, got a finished one")
    return None, state


class OneGame:
    """The shared part of environments with a single game: its record and its pictures."""

    render_mode: str | None
    _state: NDArray[np.void] | None  # STATE (1,), None before the first reset
    _viewer: Viewer

    @property
    def record(self) -> NDArray[np.void]:
        """Return a copy of the game, STATE (1,), with the dice to come; the reset option `state` continues it."""
        return self._started("record").copy()

    def _started(self, what: str) -> NDArray[np.void]:
        """Return the game, STATE (1,)."""
        if self._state is None:
            raise ResetNeeded(f"no game has begun: call reset() before {what}")
        return self._state

    def render(self) -> Any:
        """Return a picture of the position, or show it. Without a render mode, warn and return None."""
        return self._viewer.render_one(self._started("render"))

    def _render_for_human(self) -> None:
        if self.render_mode == "human":
            self.render()

    def close(self) -> None:
        """Close the window if there is one."""
        self._viewer.close()


def begin(
    game: Game,
    last: NDArray[np.void] | None,
    seed: int | None,
    options: Mapping[str, Any] | None,
    learner: int,
    seat: int,
    lost: bool,
) -> tuple[NDArray[np.void], int]:
    """Start the next game of an environment with a single game.

    Args:
        game: the rules.
        last: the environment's last game, STATE (1,), None if there was none.
        seed: the game gets the dice of `Game.reset(1, seed=seed)`. Without a seed the dice of the last game continue; a
            first game gets a random seed.
        options: see `read_options`. A given state has its own dice, unless there is a seed.
        learner: the learner's seat in the last game.
        seat: its seat in the next one, or ANY_SEAT.
        lost: whether the learner lost the last game by an illegal action.

    Returns:
        The game at its first decision, STATE (1,), another array than `last`; and the learner's seat.

    Raises:
        ValueError: for a wrong seed or option.
    """
    everywhere = np.ones(1, np.bool_)
    starter, given = read_options(game.rules, options)
    goes_on = seed is None and last is not None
    state = last.copy() if last is not None and goes_on else np.zeros(1, STATE)
    if not goes_on:
        batch.seed(state, everywhere, check_seed(secrets.randbits(63) if seed is None else seed))
    if given is not None:
        if seed is not None:
            given["rng"] = state["rng"]
        state = given
    starters, learners = game.starters(starter, 1), np.array([learner], np.int8)
    arguments = (everywhere, starters, learners, seat, np.array([lost and goes_on]), given is None)
    game.apply(next_games, state, *arguments, validate=False)
    return state, int(learners[0])


def take_action(game: Game, state: NDArray[np.void], action: Any) -> int:
    """Take an action in a game, STATE (1,), and play to the next decision. Return the result of `batch.step_one`.

    Raises:
        TypeError: if the action is not an integer; nothing has changed.
    """
    player: int = batch.step_one(state, game.config, max(-1, min(as_integer(action), game.num_actions)))
    return player


def as_integer(action: Any) -> int:
    """Return an action as an int. An array of one integer counts as that integer.

    Raises:
        TypeError: if the action is not an integer.
    """
    one = action.item() if isinstance(action, np.ndarray) and action.size == 1 else action
    try:
        if not isinstance(one, bool):
            return operator.index(one)
    except TypeError:
        pass
    raise TypeError(f"action must be an integer, got {action!r}")


def final_rewards(game: Game, state: NDArray[np.void]) -> list[float]:
    """Return every seat's reward of a finished game, STATE (1,), in double precision (R10)."""
    rewards = np.empty((1, game.rules.players))
    batch.rewards(state, game.config, rewards)
    return rewards[0].tolist()  # type: ignore[no-any-return]


def warn_of_illegal(explanation: str) -> None:
    """Warn of the first illegal action in an environment."""
    gymnasium.logger.warn(
        "a game is lost by an illegal action; there is no warning of further ones: choose by the action mask. %s",
        explanation,
    )


@kernel
def next_games(
    states: Records,
    config: Configs,
    where: Any,
    starters: Any,
    learners: Any,
    seat: Any,
    lost: Any,
    anew: Any,
) -> None:
    """Start the next games of the learners in `where`, or without `anew` continue the games in the records.

    The games are played to their first decisions. `learners` are the seats in the last games, replaced by the next.
    """
    for i in range(states.shape[0]):
        if where[i]:
            s, rules = states[i], config[0]
            if anew:
                learners[i] = next_game(s, rules, starters[i], learners[i], seat, lost[i])
            else:
                learners[i] = choose_seat(s, rules, seat)
                engine.run(s, rules, engine.shown(s), True)


@kernel
def next_game(s: Record, rules: Config, starter: Any, learner: Any, seat: Any, lost: Any) -> Any:
    """Start a learner's next game in the record of its last one, up to the first decision. Return its new seat.

    The order of the other players does not change. A learner that lost the last game by an illegal action is last in
    it (R1).
    """
    chosen = choose_seat(s, rules, seat)
    if starter == LOSER and lost:
        starter = chosen
    elif starter == LOSER:
        engine.move_seats(s, rules, (chosen - learner) % rules.players)
    engine.new_game(s, rules, starter)
    engine.run(s, rules, engine.shown(s), True)
    return chosen


@kernel
def choose_seat(s: Record, rules: Config, seat: Any) -> Any:
    """Return a learner's seat: the given one, or one drawn from the game's stream without advancing it."""
    return np.int64(engine.mix(~s.rng) % np.uint64(rules.players)) if seat == ANY_SEAT else np.int64(seat)
