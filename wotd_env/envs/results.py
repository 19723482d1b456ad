"""The result of a game in the infos of the environments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.game import Game
from wotd_env.core.state import Record, Records, States

NOT_LOST = -1  # a value of `loser` in `write_result`: no seat has lost by an illegal action
NO_ACTION = np.int64(-1)
"""The info `illegal_action` of a step without an illegal action."""


def entries(result: NDArray[np.int8], players: int) -> dict[str, NDArray[Any]]:
    """Return the arrays that `write_result` has filled, int8 (..., 3 n), as entries of infos.

    The entries are the points of each seat, int8 (..., n); its place, int8 (..., n), from 1 for the best, where tied
    seats have the same place; and whether the seat wins or shares the win, bool (..., n).
    """
    n = players
    return {
        "scores": result[..., :n],
        "places": result[..., n : 2 * n],
        "winners": result[..., 2 * n : 3 * n].view(np.bool_),
    }


def no_result(players: int) -> dict[str, NDArray[Any]]:
    """Return the entries of a running game, which are zeros, as new arrays."""
    return entries(np.zeros(3 * players, np.int8), players)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only, so that several infos can share it. Return the array."""
    array.flags.writeable = False
    return array


def result_of(game: Game, state: States, loser: int = NOT_LOST) -> dict[str, NDArray[Any]]:
    """Return the entries of a finished game, STATE (1,). `loser` is as in `write_result`."""
    result = np.empty(3 * game.rules.players, np.int8)
    _write_one(state, game.config, loser, result)
    return entries(result, game.rules.players)


@kernel
def _write_one(states: Records, config: Configs, loser: Any, out: Any) -> None:
    write_result(states[0], config[0], loser, out)


@kernel
def write_result(s: Record, rules: Config, loser: Any, out: Any) -> None:
    """Write the result of a finished game (R10), see `entries`.

    `loser` is the seat that has lost by an illegal action, or NOT_LOST. The other seats then share the win. If the turn
    limit ended the game, all seats have place 1 and no seat wins (R16).
    """
    n = rules.players
    for seat in range(n):
        out[seat] = engine.score(s, rules, seat)
        standing, place = _standing(s, rules, loser, seat), 1
        for other in range(n):
            place += _standing(s, rules, loser, other) > standing
        out[n + seat] = place
        out[2 * n + seat] = place == 1 and (loser != NOT_LOST or not s.expired)


@kernel
def _standing(s: Record, rules: Config, loser: Any, seat: Any) -> Any:
    """Return a number that is larger for a better seat, and equal for tied seats."""
    if loser != NOT_LOST:
        return np.int64(seat != loser)
    return np.int64(0) if s.expired else engine.standing(s, rules, seat)
