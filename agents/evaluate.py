"""How strong a policy is: games against an opponent, side by side, in which it has every seat equally often."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env import Game
from wotd_env.policy import Policy, ask, play_out

MEASURING = 1 << 63
"""Seed of the measurements at milestones; the games of a training have smaller ones."""

FINAL = MEASURING + (1 << 32)
"""Seed of the last measurement. It has games of its own, because those at milestones may say what is measured."""


class Counts(NamedTuple):
    """How many games ended how."""

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
    """Let a policy play against an opponent on all other seats; the policy has every seat equally often.

    Args:
        game: the game.
        policy: the one to be measured.
        opponent: the policy of all other seats.
        games: games to play, rounded up to a multiple of the number of players.
        seed: the result depends on it alone.
        progress: called on the way with how many games are over, at last with all.

    Returns:
        How many games ended how. A game is won with the whole prize, tied with a share of it or if it is truncated, and
        lost otherwise.
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
