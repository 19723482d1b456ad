"""Tree search in JAX: stochastic MuZero of mctx, with the exact rules and dice instead of learned models.

The example connects `wotd_env.jax` to a search with chance nodes. The environment's method `decide` leads to a chance
node, `chance_logits` gives the log-probabilities of the node's 252 rolls, and `throw` leads to the next decision. A
heuristic replaces the networks. `Search` is a policy for two players, which all commands accept.

Gumbel MuZero (`mctx.gumbel_muzero_policy`) is unsuitable here. It stores one sampled roll for each action that
it tries, and then prefers the actions whose stored roll was lucky.

    pip install mctx
    wotd arena examples.jax_search:Search greedy --games 20
    wotd benchmark examples.jax_search:Search --size 2 --games 4
    python examples/jax_search.py         # 200 games against each of greedy and random
"""

import functools
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from jax import Array

from wotd_env import Game, Rules, evaluate
from wotd_env.core.arguments import check_integer
from wotd_env.core.dice import COUNTS, HOLD_KEEP
from wotd_env.jax import State, WayOfTheDragon
from wotd_env.policy import check_made_for

BATCH = 64  # number of searches at the same time; each number would be compiled separately
env = WayOfTheDragon()
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


@functools.partial(jax.jit, static_argnums=2)
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


class Search:
    """A policy that searches with `simulations` simulations for each decision."""

    def __init__(self, simulations: int = 32) -> None:
        self.simulations = check_integer("simulations", simulations, 1)

    def check_rules(self, rules: Rules) -> None:
        """Raise ValueError if the search is not made for these rules."""
        check_made_for("the search of jax_search.py", env.rules, rules)

    def act(self, game: Game, state: Any, rng: np.random.Generator) -> Any:
        """Choose actions (N,) for positions STATE (N,)."""
        actions = np.zeros(len(state), np.int64)
        for rows in np.split(np.arange(len(state)), range(BATCH, len(state), BATCH)):
            batch = env.from_records(state[np.resize(rows, BATCH)])
            chosen = search(batch, jax.random.key(int(rng.integers(1 << 32))), self.simulations)
            actions[rows] = np.asarray(chosen)[: len(rows)]
        return actions


if __name__ == "__main__":
    for opponent in ("greedy", "random"):
        result, spent = evaluate(Search(), opponent, 200), time.process_time()
        print(f"{result} against {opponent}, {spent:.0f} s of processor time", flush=True)
