"""The luck of the dice: how much each roll changed what a seat could expect.

The luck of a roll is what the position is worth after it, less the mean over all that could have been rolled. The luck
of a game has mean zero, whatever the policies do and however rough the values of positions are. The better they are,
the more of the result it explains. As a control variate it narrows intervals, and moves no estimate in the long run.

Any policy with a method `equity` can measure it:

    def equity(self, game: Game, state: np.ndarray) -> np.ndarray:
        "Expected reward (N,) of the seat to act, also at CHANCE, where it is the mean over all outcomes of the roll."
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import States
from wotd_env.policies import make_policy

__all__ = ["Equity", "luck", "make_equity"]

Equity = Callable[[Game, States], NDArray[np.floating[Any]]]


def make_equity(policy: str, trust: bool = False) -> Equity:
    """Return the method `equity` of a policy, made as `make_policy` makes it.

    Raises:
        ValueError: if there is no such policy, or it has no such method.
    """
    equity = getattr(make_policy(policy, trust=trust), "equity", None)
    if not callable(equity):
        raise ValueError(f"luck must name a policy with a method equity(game, state), got {policy!r}")
    found: Equity = equity
    return found


def luck(
    rules: Rules, equity: Equity, seed: int, shape: tuple[int, ...], moves: NDArray[np.int16]
) -> NDArray[np.float64]:
    """Measure the luck in a block's games by going through them again.

    Args:
        rules: the rules of the games.
        equity: what positions are worth.
        seed: the seed of the first duplicate.
        shape: games, seats.
        moves: [game, call], the actions taken, -1 where the game was not asked.

    Returns:
        The luck of every seat in every game, float64 `shape`, in shares of the win. A roll is luck for the seat that
        rolls, shared by the others as bad luck.
    """
    games, seats = shape
    game = Game(rules, skip_forced=False)  # so that every roll is seen
    state = np.repeat(game.reset(games // seats, seed=seed, roll=False), seats)
    order = np.argsort(moves == -1, axis=1, kind="stable")
    # Without gaps, and with -1 at the end.
    actions = np.pad(np.take_along_axis(moves, order, 1), ((0, 0), (0, 1)), constant_values=-1)
    taken = np.zeros(games, np.int64)
    total = np.zeros(shape)
    while True:
        due = np.flatnonzero(state["phase"] == Phase.CHANCE)
        if due.size:
            rolled = state[due]
            game.roll(rolled)
            change = equity(game, rolled) - equity(game, state[due])
            total[due] -= change[:, None] / (seats - 1)
            total[due, rolled["player"]] += change * seats / (seats - 1)
            state[due] = rolled
        legal = game.legal_actions(state)
        forced = (state["phase"] == Phase.MOVE) & (legal.sum(1) == 1)
        chosen = np.where(forced, legal.argmax(1), actions[np.arange(games), taken])
        going = np.flatnonzero((state["phase"] != Phase.OVER) & (chosen != -1))  # a forfeited game stops
        if not going.size:
            return total * (seats - 1) / seats  # from rewards to shares
        taken[going] += ~forced[going]
        moved = state[going]
        game.decide(moved, chosen[going], validate=False)
        state[going] = moved
