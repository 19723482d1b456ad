"""What the standard interfaces share: their arguments, their spaces, and how their games begin."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray

from wotd_env.checks import check_states
from wotd_env.game import Game
from wotd_env.rules import Phase, Rules
from wotd_env.state import STATE

__all__ = ["action_space", "begin", "check_choice", "make_rules", "observation_space", "read_options"]


def make_rules(arguments: Mapping[str, Any]) -> Rules:
    """Return the rules of an environment whose remaining keyword arguments are their fields.

    Raises:
        TypeError: for an argument that is no such field.
        ValueError: for a wrong value.
    """
    known = [field.name for field in fields(Rules)]
    for name in arguments:
        if name not in known:
            raise TypeError(f"unknown argument {name!r}; the rules have the fields {', '.join(known)}")
    return Rules(**arguments)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Return the value of an argument if it is one of its choices, otherwise raise ValueError."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def observation_space(game: Game, mask_in: str) -> Box | Dict:
    """Return a new space: int8 (D,), with `mask_in="obs"` in a dict with the action mask, int8 (A,)."""
    high = np.ones(game.observation_size, np.int8)
    high[game.observation_layout["deadline"]] = 127
    flat = Box(np.zeros_like(high), high, dtype=np.int8)
    if check_choice("mask_in", mask_in, ("obs", "info")) == "info":
        return flat
    return Dict({"observation": flat, "action_mask": Box(0, 1, (game.num_actions,), np.int8)})


def action_space(game: Game) -> Discrete:
    """Return a new space of A actions."""
    return Discrete(game.num_actions)


def read_options(rules: Rules, options: Mapping[str, Any] | None) -> tuple[Any, NDArray[np.void] | None]:
    """Return what `reset(options=...)` asks for: the seat to begin, and the game to go on from, STATE (1,), a copy.

    The keys are `"starting_player"` and `"state"`, a record or a batch of one. Others are left to wrappers.

    Raises:
        ValueError: for a state that is no running game of these rules, or for both at once.
    """
    options = options or {}
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
        raise ValueError("options['state'] must be a game that goes on, got a finished one")
    return None, state


def begin(
    game: Game, last: NDArray[np.void] | None, seed: int | None, options: Mapping[str, Any] | None
) -> NDArray[np.void]:
    """Start the next game of an environment that plays one at a time.

    Args:
        game: the rules.
        last: the environment's last game, STATE (1,), None if there was none.
        seed: the game's dice, those of `Game.reset(1, seed=seed)`. Without it the dice of the last game go on, those
            of a first one come from a random seed.
        options: see `read_options`. A given state has its own dice, unless there is a seed.

    Returns:
        The game at its first decision, STATE (1,); another array than `last`.

    Raises:
        ValueError: for a wrong seed or option.
    """
    starter, state = read_options(game.rules, options)
    if state is not None:
        if seed is not None:
            state["rng"] = game.reset(1, seed=seed, roll=False)["rng"]
        game.roll(state)
        return state
    if seed is None and last is not None:
        return game.reset(last.copy(), starting_player=starter)
    return game.reset(1, seed=secrets.randbits(63) if seed is None else seed, starting_player=starter)
