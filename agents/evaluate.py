"""Measure the strength of a policy: a batch of games against an opponent, with every seat equally often."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env import Game
from wotd_env.policy import Policy, ask, play_out

MEASURING = 1 << 63
"""Seed of the measurements at milestones. The games of a training have smaller seeds."""

FINAL = MEASURING + (1 << 32)
"""Seed of the final measurement. Its games differ from those at milestones, which may have influenced choices."""


class Counts(NamedTuple):
    """Numbers of games by result."""

    games: int
    wins: int
    ties: int
    losses: int


def measure(
    game: Game,
    policy: Policy,
    opponent: Policy,
    games: int,
    seed: int,
    progress: Callable[[int], None] = lambda over: None,
) -> Counts:
    """Play games between a policy on one seat and an opponent on all other seats.

    A game is won if the policy gets the whole prize. It is tied if the prize is shared or the game is truncated.

    Args:
        game: the game.
        policy: the policy to measure; it has every seat equally often.
        opponent: the policy of the other seats.
        games: games to play, rounded up to a multiple of the number of players.
        seed: equal seeds give equal results.
        progress: called with the number of finished games.

    Returns:
        The numbers of games by result.
    """
    n = game.rules.players
    each = -(-games // n)
    rng = np.random.default_rng(seed)
    state = game.reset(each * n, seed=seed)
    seat = np.arange(each * n) % n

    def choose(player: int, games: NDArray[np.int64]) -> NDArray[np.int64]:
        return ask((policy, opponent)[player], game, state[games], rng)

    for actions in play_out(game, state, (np.arange(n) != seat[:, None]).astype(np.int64), choose):
        progress(int((actions < 0).sum()))
    progress(len(state))
    rewards = game.rewards(state)[np.arange(len(state)), seat]
    wins = int((rewards == 1).sum())
    losses = int((rewards < 0).sum())
    return Counts(len(state), wins, len(state) - wins - losses, losses)
