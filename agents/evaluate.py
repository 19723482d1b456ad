"""Strength in numbers: seat-balanced games in one batch, and shares with their 95 % intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env import Game
from wotd_env.core.policy import Policy, ask, play_out


class Shares(NamedTuple):
    """What became of a number of games."""

    games: int
    wins: int
    ties: int
    losses: int


def play(game: Game, policy: Policy, opponent: Policy, games: int, seed: int) -> Shares:
    """Let a policy play against an opponent on all other seats; the policy has every seat equally often.

    Args:
        game: the game.
        policy: the one to be measured.
        opponent: the policy of all other seats.
        games: games to play, rounded up to a multiple of the number of players.
        seed: the result depends on it alone.

    Returns:
        Shares: a game is won with the whole prize, tied with a share of it or when truncated, and lost otherwise.
    """
    n = game.rules.players
    each = -(-games // n)
    rng = np.random.default_rng(seed)
    state = game.reset(each * n, seed=seed)
    seat = np.arange(each * n) % n

    def choose(player: int, games: NDArray[np.int64]) -> NDArray[np.int64]:
        return ask((policy, opponent)[player], game, state[games], rng)

    for _ in play_out(game, state, (np.arange(n) != seat[:, None]).astype(np.int64), choose):
        pass
    rewards = game.rewards(state)[np.arange(len(state)), seat]
    wins = int((rewards == 1).sum())
    losses = int((rewards < 0).sum())
    return Shares(len(state), wins, len(state) - wins - losses, losses)


def interval(count: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a share, for z = 1.96 at 95 % confidence."""
    share, spread = count / total, z * z / total
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * np.sqrt(share * (1 - share) / total + spread / (4 * total))
    return max(float(middle - half), 0.0), min(float(middle + half), 1.0)
