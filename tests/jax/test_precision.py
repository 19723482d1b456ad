"""The setting JAX_ENABLE_X64 changes neither the games nor the dtypes."""

import pytest

from tests.helpers import run_python

pytest.importorskip("jax")

PLAY = """
import hashlib
from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np

from wotd_env import Rules
from wotd_env.jax import WayOfTheDragon, auto_reset

jax.config.update("jax_disable_most_optimizations", True)
digest = hashlib.sha256()


def note(state):
    for field in fields(state):
        leaf = getattr(state, field.name)
        print(field.name, leaf.dtype)
        digest.update(np.asarray(leaf).tobytes())


def shapes(function, *arguments):
    # tracing needs no compilation
    print([leaf.dtype for leaf in jax.tree.leaves(jax.eval_shape(function, *arguments))])


env = WayOfTheDragon(Rules(players=3, powers="any", dead_pieces=4, colors="random", spaces=4, max_turns=20))
state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), 16))
step = jax.jit(jax.vmap(auto_reset(env.step, env.init)))
for turn in range(80):
    note(state)
    mask = np.asarray(state.legal_action_mask)
    actions = (mask * np.random.default_rng(turn).random(mask.shape)).argmax(1)  # int64
    state = step(state, actions, jax.random.split(jax.random.key(turn), 16))
shapes(jax.vmap(env.decide), state, actions)
shapes(jax.vmap(env.throw), state, np.arange(16))
shapes(jax.vmap(env.chance_logits), state)
shapes(jax.vmap(env.observe), state, np.arange(16) % 3)
note(env.from_records(env.to_records(state)))
print(digest.hexdigest())
"""
EXAMPLES = {
    "jax_ppo": (
        "from examples import jax_ppo as x\n"
        "x.train(x.Settings(total_timesteps=32, num_envs=4, num_steps=8, width=8, evaluation_games=2))"
    ),
    "jax_search": (
        "import jax\n"
        "from examples import jax_search as x\n"
        "state = jax.vmap(x.env.init)(jax.random.split(jax.random.key(0), 2))\n"
        "print(x.search(state, jax.random.key(0), 2).shape)"
    ),
}


def run(script: str, enabled: int) -> str:
    """Return the output of a script with the given value of JAX_ENABLE_X64."""
    return run_python("-c", script, JAX_ENABLE_X64=str(enabled), JAX_PLATFORMS="cpu").stdout


def test_games_and_dtypes_are_the_same_with_64_bits():
    assert run(PLAY, 0) == run(PLAY, 1)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_with_64_bits(example: str):
    if example == "jax_search":
        pytest.importorskip("mctx")
    assert run(EXAMPLES[example], 1)
