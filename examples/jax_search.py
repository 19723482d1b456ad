"""Tree search in JAX: stochastic MuZero of mctx, with the exact rules and dice instead of learned models.

The example connects `wotd_env.jax` to a search with chance nodes. The environment's method `decide` leads to a chance
node, `chance_logits` gives the log-probabilities of the node's 252 rolls, and `throw` leads to the next decision. A
heuristic replaces the networks. The example works for two players.

Gumbel MuZero (`mctx.gumbel_muzero_policy`) is unsuitable here. It stores one sampled roll for each action that
it tries, and then prefers the actions whose stored roll was lucky.

    pip install mctx
    python examples/jax_search.py --simulations 32
"""

import argparse
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from jax import Array

from wotd_env import Game, make_policy
from wotd_env.core.dice import COUNTS, HOLD_KEEP
from wotd_env.jax import State, WayOfTheDragon

env = WayOfTheDragon()
game = Game(env.rules)
layout = env.observation_layout


class Node(NamedTuple):
    """A node of the tree: a state at a decision, or an afterstate before its roll."""

    state: State
    mover: Array  # seat that took the last decision


def value(state: State, seat: Array) -> Array:
    """Return the heuristic value of a state for a seat, in [-1, 1].

    The value is tanh(lead / 10). The lead counts spaces, points and the expected length of the next move. The player
    to act is assumed to keep the dice of the most frequent element and to re-roll all others.
    """
    seen = env.observe(state, state.current_player)
    pieces = seen[layout["pieces"]].reshape(2, 5, -1).argmax(2)
    points = jnp.maximum(pieces - env.rules.spaces, 0)
    worth = (jnp.minimum(pieces, env.rules.spaces - 1) + 1.25 * points).sum(1)
    counts = seen[layout["dice"]].reshape(6, 6).argmax(1)
    most = jnp.where(pieces[0] <= env.rules.spaces, counts[:5], 0).max()
    rolls = seen[layout["rolls_left"]].argmax() + (counts.sum() < 5)
    move = most + (5 - most) * (1 - (5 / 6) ** rolls)
    lead = jnp.tanh((worth[0] - worth[1] + move - 1.4) / 10)
    return jnp.where(state.current_player == seat, lead, -lead)


def action_logits(state: State) -> Array:
    """Return heuristic logits, which favor holds of many equal dice and moves to states of high value."""
    counts = state.observation[layout["dice"]].reshape(6, 6).argmax(1)
    roll = (jnp.asarray(COUNTS[:252]) == counts).all(1).argmax()
    kept = jnp.asarray(COUNTS)[jnp.asarray(HOLD_KEEP)[roll]][:, :5].astype(jnp.float32)
    holds = 2 * kept.max(1) - kept.sum(1)
    after = jax.vmap(env.decide, (None, 0))(state, jnp.arange(32, env.num_actions))
    moves = 10 * jax.vmap(value, (0, None))(after, state.current_player)
    return jnp.where(state.legal_action_mask, jnp.concatenate([holds, moves]), -jnp.inf)


def decision(params: None, key: Array, action: Array, node: Node) -> tuple[Any, Node]:
    """Take an action in each node of a batch, without rolling the dice."""
    mover = node.state.current_player
    after = jax.vmap(env.decide)(node.state, action)
    output = mctx.DecisionRecurrentFnOutput(
        chance_logits=jax.vmap(env.chance_logits)(after), afterstate_value=jax.vmap(value)(after, mover)
    )
    return output, Node(after, mover)


def chance(params: None, key: Array, roll: Array, node: Node) -> tuple[Any, Node]:
    """Throw the dice of a batch of afterstates. If the other seat acts next, the discount is -1."""
    state = jax.vmap(env.throw)(node.state, roll)
    over = state.terminated | state.truncated
    same = state.current_player == node.mover
    output = mctx.ChanceRecurrentFnOutput(
        action_logits=jnp.where(over[:, None], 0.0, jax.vmap(action_logits)(state)),
        value=jax.vmap(value)(state, state.current_player),
        reward=jax.vmap(lambda rewards, seat: rewards[seat])(node.state.rewards, node.mover),
        discount=jnp.where(over, 0.0, jnp.where(same, 1.0, -1.0)),
    )
    return output, Node(state, node.mover)


def search(state: State, key: Array, simulations: int) -> Array:
    """Search from each state of a batch; return the chosen actions."""
    root = mctx.RootFnOutput(
        prior_logits=jax.vmap(action_logits)(state),
        value=jax.vmap(value)(state, state.current_player),
        embedding=Node(state, state.current_player),
    )
    chosen: Array = mctx.stochastic_muzero_policy(
        None, key, root, decision, chance, simulations, invalid_actions=~state.legal_action_mask,
        dirichlet_fraction=0.0, temperature=0.0,
    ).action  # fmt: skip
    return chosen


def win_rate(opponent: str, games: int, simulations: int, seed: int) -> float:
    """Return the share of games that the search wins against a named policy."""
    policy, rng = make_policy(opponent), np.random.default_rng(seed)
    choose = jax.jit(lambda state, key: search(state, key, simulations))
    records, seat, key = game.reset(games, seed=seed), np.arange(games) % 2, jax.random.key(seed)
    while not game.is_over(records).all():
        key, sub = jax.random.split(key)
        searched = np.asarray(choose(env.from_records(records), sub))
        actions = np.where(records["player"] == seat, searched, policy.act(game, records, rng))
        game.step(records, actions)
    return float((game.rewards(records)[np.arange(games), seat] == 1).mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the search against greedy and random.")
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    options = vars(parser.parse_args())
    for opponent in ("greedy", "random"):
        started = time.process_time()
        rate = win_rate(opponent, **options)
        spent = time.process_time() - started
        print(f"{rate:.1%} against {opponent}, {spent:.0f} s of processor time", flush=True)
