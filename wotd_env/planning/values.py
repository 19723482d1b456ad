"""The hand-made value of a position, by which the `planner` policy plays.

Every seat has a strength, which is a sum in units of one plain space:

- *progress*: a piece on plain space t is worth t;
- *points*: a piece on number k is worth S - 1 + NUMBER * k, so number 1 is hardly more than the space before it;
- *tempo*: to be the next to act is worth TEMPO;
- *blocking*: a piece loses BLOCKED[c - 1] for every occupied space that c = 1..5 dice would bring it to;
- *power*: a power that is not yet used is worth POWER, or ANY_POWER where the seat may choose which;
- *lead*: a seat with four numbered pieces may end the game, which is worth CLOSING, by how far it is behind.

The nearer the end is, the more a space counts (WEIGHT). What tells how near it is, is the largest number of numbered
pieces that a seat has. The chances to win are the softmax of the strengths times that weight, and the value is the
reward expected from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import DICE, PATHS
from wotd_env.core.state import Record, Records

__all__ = ["hand_made"]

WEIGHT = np.array([0.17, 0.21, 0.24, 0.31, 0.42])
"""Of a space, by the largest number of numbered pieces that a seat has."""
NUMBER = 1.25
TEMPO = 1.4
BLOCKED = np.array([0.1, 0.35, 0.6, 0.35, 0.15])
"""By the dice, less one, that would bring the piece to the occupied space."""
POWER = np.array([0.3, 2.0, 0.8, 1.5, 1.6])
"""By colour."""
ANY_POWER = 4.0
CLOSING = np.array([1.5, 2.6, 0.8, -1.2])
"""By the points behind the best other seat; the last entry is for three points and more."""

NEXT_FIVE = np.uint64((1 << DICE) - 1)
BLOCKED_BY = (np.arange(1 << DICE)[:, None] >> np.arange(DICE) & 1) @ BLOCKED
"""What a piece loses by which of its next five spaces are occupied, as bits."""


def hand_made(game: Game, afterstates: NDArray[np.void]) -> NDArray[np.float32]:
    """Return the value of every state for each seat, float32 (M, n): the rewards expected, zero-sum in [-1, 1].

    Raises:
        ValueError: for a record that is no game of the rules.
    """
    game.check(afterstates)
    return _unchecked(game, afterstates)


def _unchecked(game: Game, afterstates: NDArray[np.void]) -> NDArray[np.float32]:
    """Do the same with records that are trusted."""
    values = np.empty((len(afterstates), game.rules.players), np.float32)
    _hand_made(afterstates, game.config, values)
    return values


hand_made.unchecked = _unchecked  # type: ignore[attr-defined]  # for `plan` and `play_turns`, see `value_of`


@kernel
def _hand_made(states: Records, config: Configs, values: Any) -> None:
    """Write the values of a batch, (N, n)."""
    for i in range(states.shape[0]):
        write_value(states[i], config[0], values[i])


@kernel
def write_value(s: Record, rules: Config, out: Any) -> None:
    """Write the value of a state for each seat, whatever the dice show."""
    n = rules.players
    most_numbered = 0
    for seat in range(n):
        strength = TEMPO if seat == s.player else 0.0
        numbered = 0
        for path in range(PATHS):
            space = np.int64(s.pieces[seat, path])
            if space > rules.spaces:
                numbered += 1
                strength += rules.spaces - 1 + NUMBER * (space - rules.spaces)
            else:
                ahead = engine.occupied(s, rules, path) >> np.uint64(space + 1)
                strength += space - BLOCKED_BY[ahead & NEXT_FIVE]
        if numbered >= PATHS - 1:
            points = engine.score(s, rules, seat)
            behind = 0
            for other in range(n):
                behind = max(behind, engine.score(s, rules, other) - points)
            strength += CLOSING[min(behind, CLOSING.size - 1)]
        if engine.powers_of(s, rules, seat):
            strength += POWER[s.color[seat]] if rules.powers == engine.OWN_POWERS else ANY_POWER
        most_numbered = max(most_numbered, numbered)
        out[seat] = strength
    weight = WEIGHT[min(most_numbered, WEIGHT.size - 1)] * 2 / n
    total = 0.0
    for seat in range(n):
        out[seat] = np.exp(weight * out[seat])
        total += out[seat]
    for seat in range(n):
        out[seat] = (n * out[seat] / total - 1) / (n - 1)
