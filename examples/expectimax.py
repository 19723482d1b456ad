"""Expectimax one turn deep, as a policy for any number of players and any powers.

The example handles rolls explicitly. `Game.decide` stops before the roll, `Game.chance_outcomes` lists the possible
rolls with their probabilities, and `Game.roll(state, dice)` continues with one of them. The search expands whole
batches of positions. It merges equal positions, so that it can search one turn exactly:

    Q(s, a) = E[max over a' of Q(s', a')],  or the heuristic value of s' if the turn ends there

    python examples/expectimax.py
"""

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env import Game, Phase, make_policy

Array = NDArray[Any]

CHUNK = 32
"""Number of positions that are searched together; a larger number needs more memory."""


def heuristic(game: Game, state: Array, seat: Array) -> Array:
    """Return leads in spaces, float64 (N,): the lead of seat `seat[i]` over the best other seat in `state[i]`.

    For a finished game, return 1,000 times the reward of the seat instead.
    """
    everyone, players = np.arange(len(state)), game.rules.players
    space = state["pieces"][:, :players].astype(float)
    points = np.maximum(space - game.rules.spaces, 0)
    worth = (np.minimum(space, game.rules.spaces - 1) + 1.25 * points).sum(2)
    worth[everyone, state["player"]] += 1.4  # mean gain of the coming turn, in spaces
    own = worth[everyone, seat]
    worth[everyone, seat] = -np.inf
    return np.where(game.is_over(state), 1000.0 * game.rewards(state)[everyone, seat], own - worth.max(1))


def merge(state: Array) -> tuple[Array, Array]:
    """Return two arrays: the distinct records of a batch and, for each record of the batch, its index among them."""
    rows = np.ascontiguousarray(state).view(np.dtype((np.void, state.itemsize)))
    _, first, index = np.unique(rows, return_index=True, return_inverse=True)
    return state[first], index


def outcomes(game: Game, state: Array) -> tuple[Array, Array, Array]:
    """Return all outcomes of the next roll in each position of `state`, STATE (N,).

    Returns:
        Three arrays over the M outcomes: the index in `state` (M,), the probability (M,), and the position after the
        roll, STATE (M,). If a position needs no roll, its only outcome is the position itself.
    """
    dice_to_roll = np.where(state["phase"] == Phase.CHANCE, (state["dice"] < 0).sum(1), 0)
    parts = []
    for k in np.unique(dice_to_roll):
        faces, probability = game.chance_outcomes(int(k))
        positions = np.flatnonzero(dice_to_roll == k)
        index = positions.repeat(len(faces))
        after = state[index]
        kept = after["dice"][:, : 5 - k]  # the first 5 - k entries of `dice` are the kept dice
        if k:
            game.roll(after, dice=np.hstack([kept, np.tile(faces, (len(positions), 1))]))
        parts.append((index, np.tile(probability, len(positions)), after))
    index, probability, after = map(np.concatenate, zip(*parts, strict=True))
    return index, probability, after


def action_values(game: Game, state: Array, roots: Array) -> tuple[Array, Array, Array]:
    """Search to the end of the turn, and return the values of all legal actions for the seat to act.

    Args:
        game: the rules, as a `Game` with `skip_forced=False`, so that no roll is skipped.
        state: STATE (N,), positions at decisions. Their field `rng` contains an index in `roots`, not random bits,
            so that positions of different roots are not merged.
        roots: STATE (R,), the positions in which the search began.

    Returns:
        Three arrays (M,) over the legal actions of all decisions: the index of the decision, ascending; the action; the
        value of the action.
    """
    decision, action = np.nonzero(game.legal_actions(state))
    after = state[decision]
    game.decide(after, action)
    after, to = merge(after)
    root = roots[after["rng"]]
    value = heuristic(game, after, root["player"])
    inside = np.flatnonzero((after["turn"] == root["turn"]) & ~game.is_over(after))  # in the same turn
    if inside.size:
        position, probability, following = outcomes(game, after[inside])
        following, reached = merge(following)
        owner, _, q = action_values(game, following, roots)
        best = np.maximum.reduceat(q, np.searchsorted(owner, np.arange(len(following))))
        value[inside] = np.bincount(position, probability * best[reached], len(inside))
    return decision, action, value[to]


class Expectimax:
    """A policy that plays the action with the highest value; `wotd_env.Policy` documents the interface."""

    def act(self, game: Game, state: Array, rng: np.random.Generator) -> Array:
        """Return the best action of every game, int64 (N,)."""
        explicit = Game(game.rules, skip_forced=False)
        actions = np.zeros(len(state), np.int64)
        running = np.flatnonzero(~game.is_over(state))
        for games in np.split(running, range(CHUNK, len(running), CHUNK)):
            roots = state[games]
            roots["rng"] = np.arange(len(roots))
            decision, action, value = action_values(explicit, roots, roots)
            order = np.lexsort((action, -value, decision))  # by decision, then by decreasing value
            actions[games] = action[order[np.searchsorted(decision, np.arange(len(roots)))]]
        return actions


def win_rate(opponent: str, games: int, seed: int, **rules: Any) -> float:
    """Return the share of games that expectimax wins in one seat, against a named policy in all other seats."""
    game, rng = Game(**rules), np.random.default_rng(seed)
    state = game.reset(games, seed=seed)
    seat = np.arange(games) % game.rules.players
    while not game.is_over(state).all():
        actions = np.zeros(games, np.int64)  # finished games ignore their actions
        mine = state["player"] == seat
        for policy, turn in ((Expectimax(), mine), (make_policy(opponent), ~mine)):
            actions[turn] = policy.act(game, state[turn], rng)
        game.step(state, actions)
    return float((game.rewards(state)[np.arange(games), seat] == 1).mean())


def main() -> None:
    """Measure the win rates of expectimax."""
    parser = argparse.ArgumentParser(
        description="Measure expectimax one turn deep against greedy and random."
    )
    parser.add_argument("--games", type=int, default=200, help="games against each opponent")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--players", type=int, default=2)
    parser.add_argument("--powers", default="none", choices=["none", "own", "any"])
    options = vars(parser.parse_args())
    for opponent in ("greedy", "random"):
        started = time.process_time()
        rate = win_rate(opponent, **options)
        spent = time.process_time() - started
        print(f"{rate:.1%} against {opponent}, {spent:.0f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
