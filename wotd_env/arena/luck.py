"""The luck of the dice: how much each roll changes the expected reward.

The luck of a roll is the equity after the roll minus the mean equity over all outcomes of the roll. The luck of a game
has mean zero for every policy and every estimate of equity, however rough. With better estimates, luck explains more of
the result. Luck is used as a control variate: it narrows intervals without bias. Any policy with a method `equity` can
measure luck, see `wotd_env.policy.HasEquity`.
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
from wotd_env.policy import HasEquity

Equity = Callable[[Game, States], NDArray[np.floating[Any]]]


def make_equity(policy: str, trust: bool = False) -> Equity:
    """Return the method `equity` of the policy with this name."""
    made = make_policy(policy, trust=trust)
    if not isinstance(made, HasEquity):
        raise ValueError(f"luck must name a policy with a method equity(game, state), got {policy!r}")
    return made.equity


def luck(
    rules: Rules, equity: Equity, seed: int, shape: tuple[int, ...], moves: NDArray[np.int16]
) -> NDArray[np.float64]:
    """Play the games of a block again, and return the luck of every seat.

    Args:
        rules: the rules of the games.
        equity: function that estimates the equity of positions.
        seed: the seed of the first duplicate.
        shape: (number of games, number of seats).
        moves: [game, step], the action in each game at each step of the block; -1 if the game had no decision then.

    Returns:
        Luck in shares of the win, float64 [game, seat]. Luck of one seat counts against the other seats in equal parts.
    """
    games, seats = shape
    game = Game(rules, skip_forced=False)  # so that every roll is visible
    state = np.repeat(game.reset(games // seats, seed=seed, roll=False), seats)
    order = np.argsort(moves == -1, axis=1, kind="stable")  # the actions of each game before the gaps
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
            return total * (seats - 1) / seats  # converts rewards to shares of the win
        taken[going] += ~forced[going]
        moved = state[going]
        game.decide(moved, chosen[going], validate=False)
        state[going] = moved
