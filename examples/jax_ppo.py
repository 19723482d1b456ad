"""Masked PPO by self-play in JAX: games, rollout, advantages and gradient steps are one jitted function.

The example trains on `wotd_env.jax`. The loops over steps, minibatches and updates are compiled. Another compiled loop
computes the advantages backwards in time, separately for each seat. The example needs only the extra `jax`, and works
for 2 to 5 players.

    python examples/jax_ppo.py --save jax_ppo.npz
    python examples/jax_ppo.py --total-timesteps 1000000 --players 3
"""

import argparse
import functools
import os
import shlex
import time
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from wotd_env import Rules, evaluate
from wotd_env.jax import State, WayOfTheDragon, auto_reset
from wotd_env.policies.function import FunctionPolicy

Params = dict[str, Array]


@dataclass(frozen=True)
class Settings:
    """The settings of a training run."""

    save: str = ""  # file for the trained network, such as jax_ppo.npz
    seed: int = 0
    players: int = 2
    total_timesteps: int = 3_276_800  # decisions of all seats, in rollouts of num_envs * num_steps decisions
    num_envs: int = 512  # number of parallel games
    num_steps: int = 64  # decisions of each game in a rollout
    update_epochs: int = 3  # passes over the decisions of a rollout
    minibatch_size: int = 1024
    learning_rate: float = 1e-3  # initial learning rate of Adam; it falls linearly to 0
    gae_lambda: float = 0.9  # lambda of generalized advantage estimation; there is no discount
    clip_coef: float = 0.2
    ent_coef: float = 0.01  # initial weight of the entropy bonus; it falls linearly to 0
    width: int = 64
    evaluation_games: int = 1000

    def __post_init__(self) -> None:
        Rules(players=self.players)  # raises ValueError unless there are 2 to 5 players
        least = {"save": "", "seed": 0, "total_timesteps": self.num_envs * self.num_steps}
        for name, value in vars(self).items():
            if not value >= (low := least.get(name, int(isinstance(value, int)))):
                raise ValueError(f"{name} must be at least {low}, got {value}")
        if os.path.isdir(self.save) or not os.path.isdir(os.path.dirname(self.save) or "."):
            raise ValueError(f"save must be a file in an existing folder, got {self.save}")


def network(env: WayOfTheDragon, params: Params, observation: Array, mask: Array) -> tuple[Array, Array]:
    """Return the log-probabilities of the actions (N, A) and the values (N,) for the player to act.

    The paths share weights, because the rules treat all paths alike. The network scores each pair (face, number of kept
    dice). The logit of a hold is the sum of six scores, one per face.
    """
    layout, size, seen = env.observation_layout, len(observation), observation.astype(jnp.float32)
    pieces = seen[:, layout["pieces"]].reshape(size, env.num_players, 5, -1).swapaxes(1, 2)
    dead = seen[:, layout["dead"]].reshape(size, 5, -1)
    dice = seen[:, layout["dice"]].reshape(size, 6, 6)  # (face, number of dice), one-hot
    paths = jnp.concatenate([pieces.reshape(size, 5, -1), dead, dice[:, :5]], 2)
    whole = jnp.concatenate([dice[:, 5], seen[:, layout["dice"].stop :]], 1)

    def layer(name: str, x: Array) -> Array:
        return x @ params[name] + params[f"{name}_bias"]

    x = jax.nn.relu(layer("path_in", paths) + layer("whole_in", whole)[:, None])
    y = jax.nn.relu(layer("middle", jnp.concatenate([x.mean(1), x.max(1), whole], 1)))
    x = jax.nn.relu(layer("path_middle", x) + layer("whole_middle", y)[:, None])
    by_path, rest = layer("path_out", x), layer("whole_out", y)

    # The sorted faces of the five dice.
    faces = (dice.argmax(2).cumsum(1)[:, None] <= jnp.arange(5)[:, None]).sum(2)
    keeps = np.arange(32)[:, None] >> np.arange(5) & 1  # [h, i]: 1 if hold h keeps die i
    kept = jnp.einsum("hi,nif->nfh", keeps, jax.nn.one_hot(faces, 6, dtype=jnp.int32))  # (N, face, hold)
    scores = jnp.concatenate([by_path[:, :, :6], rest[:, None, :6]], 1)  # (N, face, number kept)
    holds = jnp.take_along_axis(scores, kept, 2).sum(1)
    moves, swaps = by_path[:, :, 6:9].swapaxes(1, 2), by_path[:, :, 9:]
    logits = jnp.concatenate([holds, moves.reshape(size, -1), rest[:, 6:14], swaps.reshape(size, -1)], 1)
    return jax.nn.log_softmax(jnp.where(mask, logits, -1e9)), rest[:, 14]


def new_params(env: WayOfTheDragon, key: Array, width: int) -> Params:
    """Return random weights. Small weights in the output layers make all actions about equally likely at first."""
    sizes = {name: part.stop - part.start for name, part in env.observation_layout.items()}
    path = (sizes["pieces"] + sizes["dead"]) // 5 + 6
    rest, pairs = env.observation_shape[0] - 5 * path, env.num_players * (env.num_players - 1) // 2
    shapes = {
        "path_in": (path, width),
        "whole_in": (rest, width),
        "middle": (2 * width + rest, 2 * width),
        "path_middle": (width, width),
        "whole_middle": (2 * width, width),
        "path_out": (width, 6 + 3 + pairs),  # per path: scores of kept dice, three moves, swaps
        "whole_out": (2 * width, 6 + 8 + 1),  # scores of kept dragons, other actions, the value
    }
    params = {}
    for sub, (name, shape) in zip(jax.random.split(key, len(shapes)), shapes.items(), strict=True):
        scale = 0.1 if name.endswith("out") else 1.0
        params[name] = scale * jax.random.normal(sub, shape) / shape[0] ** 0.5
        params[f"{name}_bias"] = jnp.zeros(shape[1])
    return params


class Decisions(NamedTuple):
    """Decisions of many games."""

    observation: Array
    mask: Array
    action: Array
    log_prob: Array
    value: Array
    advantage: Array


class Learner(NamedTuple):
    """The state of a training run. `mean` and `square` are Adam's moving averages of the gradient and of its square."""

    params: Params
    mean: Params
    square: Params
    state: State
    key: Array
    update: Array


def new_learner(env: WayOfTheDragon, settings: Settings) -> Learner:
    """Return the state of a training run before its first update."""
    key, games, weights = jax.random.split(jax.random.key(settings.seed), 3)
    params = new_params(env, weights, settings.width)
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = jax.jit(jax.vmap(env.init))(jax.random.split(games, settings.num_envs))
    return Learner(params, zeros, zeros, state, key, jnp.zeros((), jnp.int32))


def rollout(env: WayOfTheDragon, learner: Learner, settings: Settings) -> tuple[State, Decisions]:
    """Play `num_steps` decisions in every game; return the new states, and the decisions with their advantages."""
    step_all = jax.vmap(auto_reset(env.step, env.init))
    everyone = jnp.arange(settings.num_envs)

    def play(state: State, key: Array) -> tuple[State, Any]:
        choice, dice = jax.random.split(key)
        log_probs, value = network(env, learner.params, state.observation, state.legal_action_mask)
        action = jax.random.categorical(choice, log_probs)
        after = step_all(state, action, jax.random.split(dice, settings.num_envs))
        seen = (state.observation, state.legal_action_mask, action, log_probs[everyone, action], value)
        return after, (seen, state.current_player, after.rewards, after.terminated | after.truncated)

    keys = jax.random.split(jax.random.fold_in(learner.key, 0), settings.num_steps)
    state, (seen, actor, rewards, done) = jax.lax.scan(play, learner.state, keys)

    # A_t = r_t + V(s_t') - V(s_t) + gae_lambda * A_t', where t' is the next decision of the same seat. The loop runs
    # backwards. `ahead` contains r_t, V(s_t') and A_t' of each seat. At the end of a game, `ahead` is (reward, 0, 0).
    def back(ahead: tuple[Array, Array, Array], now: Any) -> tuple[Any, Array]:
        actor, rewards, done, value = now
        reward = jnp.where(done[:, None], rewards, ahead[0])
        following, trail = (jnp.where(done[:, None], 0, old) for old in ahead[1:])
        at = everyone, actor
        advantage = reward[at] + following[at] - value + settings.gae_lambda * trail[at]
        return (reward.at[at].set(0), following.at[at].set(value), trail.at[at].set(advantage)), advantage

    nothing = jnp.zeros((settings.num_envs, env.num_players))
    views = [jax.vmap(env.observe, (0, None))(state, seat) for seat in range(env.num_players)]
    values = [network(env, learner.params, view, state.legal_action_mask)[1] for view in views]
    start = nothing, jnp.stack(values, 1), nothing
    _, advantage = jax.lax.scan(back, start, (actor, rewards, done, seen[4]), reverse=True)
    return state, Decisions(*(x.reshape(-1, *x.shape[2:]) for x in (*seen, advantage)))


def loss(
    params: Params, env: WayOfTheDragon, batch: Decisions, target: Array, settings: Settings, left: Array
) -> Array:
    """Return -E[min(r A, clip(r) A)] + 1/2 E[(V - target)^2] - beta E[H], where r = pi(a|s) / pi_old(a|s)."""
    log_probs, value = network(env, params, batch.observation, batch.mask)
    chosen = jnp.take_along_axis(log_probs, batch.action[:, None], 1)[:, 0]
    ratio = jnp.exp(chosen - batch.log_prob)
    clipped = ratio.clip(1 - settings.clip_coef, 1 + settings.clip_coef)
    gain = jnp.minimum(ratio * batch.advantage, clipped * batch.advantage).mean()
    entropy = -(jnp.exp(log_probs) * log_probs).sum(1).mean()
    return -gain + 0.5 * jnp.square(value - target).mean() - settings.ent_coef * left * entropy


def update(env: WayOfTheDragon, learner: Learner, settings: Settings) -> Learner:
    """Play a rollout and take the gradient steps on its decisions."""
    state, decisions = rollout(env, learner, settings)
    target = decisions.value + decisions.advantage
    scaled = (decisions.advantage - decisions.advantage.mean()) / decisions.advantage.std()
    decisions = decisions._replace(advantage=scaled)
    left = 1 - learner.update / (settings.total_timesteps // len(target))
    size = min(settings.minibatch_size, len(target))

    def descend(carry: tuple[Params, Params, Params, Array], rows: Array) -> tuple[Any, None]:
        params, mean, square, count = carry
        batch = jax.tree.map(lambda x: x[rows], decisions)
        gradient = jax.grad(loss)(params, env, batch, target[rows], settings, left)
        norm = jnp.sqrt(sum(jnp.square(g).sum() for g in gradient.values()))
        gradient = jax.tree.map(lambda g: g * jnp.minimum(1, 0.5 / norm), gradient)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)
        rate, unbias = settings.learning_rate * left / (1 - 0.9**count), 1 / (1 - 0.999**count)
        change = jax.tree.map(lambda m, s: rate * m / (jnp.sqrt(unbias * s) + 1e-5), mean, square)
        params = jax.tree.map(jnp.subtract, params, change)
        return (params, mean, square, count + 1), None

    keys = jax.random.split(jax.random.fold_in(learner.key, 1), settings.update_epochs)
    orders = jax.vmap(lambda key: jax.random.permutation(key, len(target)))(keys)
    rows = orders[:, : len(target) // size * size].reshape(-1, size)
    first = 1.0 + learner.update * len(rows)
    start = learner.params, learner.mean, learner.square, first
    (params, mean, square, _), _ = jax.lax.scan(descend, start, rows)
    return Learner(params, mean, square, state, jax.random.fold_in(learner.key, 2), learner.update + 1)


best = jax.jit(lambda env, *given: network(env, *given)[0].argmax(1), static_argnums=0)


def choose(env: WayOfTheDragon, params: Params, observation: Any, mask: Any) -> Any:
    """Return the most likely actions, int (N,)."""
    # few sizes: each one is compiled
    rows = np.resize(np.arange(len(mask)), 1 << (len(mask) - 1).bit_length())
    return np.asarray(best(env, params, observation[rows], mask[rows] != 0))[: len(mask)]


def policy(env: WayOfTheDragon, params: Params) -> FunctionPolicy:
    """Return the policy that plays the most likely actions."""
    return FunctionPolicy(functools.partial(choose, env, params), batched=True, rules=env.rules)


def load(file: str) -> FunctionPolicy:
    """Return the policy with the saved network, e.g. for `wotd arena examples.jax_ppo:load:FILE greedy`."""
    with np.load(file) as arrays:
        params = dict(arrays)
    return policy(WayOfTheDragon(players=int(params.pop("players"))), params)


def train(settings: Settings) -> Params:
    """Train a network, print its progress up to ten times, and return its weights."""
    env = WayOfTheDragon(players=settings.players)
    updates = settings.total_timesteps // (settings.num_envs * settings.num_steps)
    some = max(1, updates // 10)
    train_some = jax.jit(
        lambda start: jax.lax.fori_loop(0, some, lambda _, x: update(env, x, settings), start)
    )
    learner, started = new_learner(env, settings), time.process_time()
    for done in range(some, updates + 1, some):
        learner = jax.block_until_ready(train_some(learner))  # type: ignore[no-untyped-call]
        spent, games = time.process_time() - started, (settings.evaluation_games, env.rules)
        agent = policy(env, learner.params)
        shares = (evaluate(agent, name, *games).share for name in ("greedy", "random"))
        print(f"update {done}, {spent:.0f} s of processor time: ", end="")
        print("{:.1%} against greedy, {:.1%} against random".format(*shares), flush=True)
    return learner.params


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train with masked PPO in one jitted function.")
    for each in fields(Settings):
        parser.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), default=each.default)
    try:
        settings = Settings(**vars(parser.parse_args()))
    except ValueError as error:
        parser.error(str(error))
    trained = train(settings)
    if settings.save:
        with open(settings.save, "wb") as out:
            np.savez(out, allow_pickle=False, players=settings.players, **trained)
        module = os.path.relpath(__file__).removesuffix(".py").replace(os.sep, ".")
        name, players = shlex.quote(f"{module}:load:{settings.save}"), f"--players {settings.players}"
        print(f"wotd arena {name} greedy {players}\nwotd benchmark {name} {players}")
