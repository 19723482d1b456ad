"""Measure a policy by games against an opponent; this needs no extra.

Example:
    from wotd_env import evaluate
    result = evaluate("planner", "greedy", games=10_000)
    print(result)  # 66.2 % (65.3-67.2) of 10,000 games
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wotd_env.core.arguments import check_integer
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules, rules_for, win_share
from wotd_env.intervals import proportion_confint
from wotd_env.policies import make_policy
from wotd_env.policy import Policy, check_plays, play_policies

BLOCK = 4096  # games played side by side


class Evaluation(NamedTuple):
    """The results of a policy in games against an opponent."""

    games: int
    wins: int  #: games in which the policy was the only winner
    ties: int  #: games in which the policy shared the win, or that the turn limit ended
    losses: int
    share: float  #: mean share of the win: 1/w for each of w winners, or of all seats at the turn limit
    low: float  #: lower bound of the 95 % interval of `share`
    high: float  #: upper bound of the interval

    def __str__(self) -> str:
        bounds = f"{100 * self.low:.1f}-{100 * self.high:.1f}"
        return f"{100 * self.share:.1f} % ({bounds}) of {self.games:,} games"


def evaluate(
    policy: str | Policy,
    opponent: str | Policy,
    games: int = 10_000,
    rules: Rules | None = None,
    *,
    seed: int = 0,
    trust: bool = False,
) -> Evaluation:
    """Play games of a policy on one seat and an opponent on all other seats; return the policy's share of the wins.

    The policy plays on every seat equally often. Equally strong policies win a share of 1/n in games of n players.
    The same arguments give the same result. For tournaments of several policies, forfeits, worker processes and stored
    games, see `wotd_env.arena`.

    Args:
        policy: the policy, or a name for `make_policy`.
        opponent: the opponent, or its name.
        games: number of games, rounded up to a multiple of the number of players, at most 10,000,000.
        rules: the rules of the games; by default the basic game of two players.
        seed: game i has the seed `seed + i`. Random policies draw from a generator with the seed `seed`.
        trust: consent to read policy files that can run code, see `make_policy`.

    Raises:
        ValueError: for an invalid argument, an unknown policy, or a policy that does not play these rules.
        TypeError: if `rules` is not a Rules.
        IllegalActionError: if a policy chooses an illegal action.
    """
    game = Game(rules_for(Game, {}, rules))
    one, other = (make_policy(each, trust=trust) for each in (policy, opponent))
    for player in (one, other):
        check_plays(player, game.rules)
    return match(game, one, other, games, seed)


def match(game: Game, policy: Policy, opponent: Policy, games: int, seed: int) -> Evaluation:
    """Play the games of `evaluate` with the rules and the threads of `game`."""
    n = game.rules.players
    games = -(-check_integer("games", games, 1, 10_000_000) // n) * n
    seed = check_integer("seed", seed, 0, 2**64 - games)
    rng = np.random.default_rng(seed)
    rewards = np.empty(games)
    for first in range(0, games, BLOCK):
        seat = np.arange(first, min(first + BLOCK, games)) % n
        state = game.reset(len(seat), seed=seed + first)
        seats = (np.arange(n) != seat[:, None]).astype(np.int64)
        for _ in play_policies(game, state, seats, (policy, opponent), rng):
            pass
        rewards[first : first + len(seat)] = game.rewards(state)[np.arange(len(seat)), seat]
    wins, losses = int((rewards == 1).sum()), int((rewards < 0).sum())
    won = float(win_share(rewards, n).sum())
    # Seats differ in strength and winners can share a win. Both reduce the variance, so this interval is wide enough.
    low, high = proportion_confint(won, games)
    return Evaluation(games, wins, games - wins - losses, losses, won / games, low, high)
