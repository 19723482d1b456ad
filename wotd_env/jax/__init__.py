"""The game in JAX, with the interface of pgx (extra `jax`).

    import jax
    from wotd_env.jax import WayOfTheDragon, auto_reset

    env = WayOfTheDragon(players=3)
    state = jax.vmap(env.init)(jax.random.split(jax.random.key(0), 1024))
    step = jax.jit(jax.vmap(auto_reset(env.step, env.init)))

docs/how-to/jax.md explains when to use the game in JAX, and how it differs from `wotd_env.Game`.
"""

from __future__ import annotations

from wotd_env.extras import needed_for

with needed_for("the game in JAX", "jax"):
    import jax  # noqa: F401

from wotd_env.jax.env import WayOfTheDragon, auto_reset
from wotd_env.jax.rules import State

__all__ = ["State", "WayOfTheDragon", "auto_reset"]
