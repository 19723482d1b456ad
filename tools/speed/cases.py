"""The measured cases, and the functions that return their loops.

A loop of games chooses each action uniformly at random. At every decision, it reads the observation and, if the
environment has one, the action mask. A step is one decision in one game, or what the row names: a planned turn or a
picture. A reset is not a step.
"""

import functools
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from wotd_env import speed
from wotd_env.speed import CHUNK, SEED, Chunk, agent_loop, chooser, repeated


def same_bytes(batch: int, players: int, threads: int) -> Chunk:
    """Return a loop that only writes memory.

    A step writes as many bytes as a step of `wotd_env.speed.game`.
    """
    from wotd_env import STATE, Game, Rules

    game = Game(Rules(players=players))
    width = STATE.itemsize + game.observation_size + game.num_actions + 4 * players + 1
    target = np.empty((batch, width), np.int8)

    def step() -> float:
        start = perf_counter()
        target.fill(1)
        return perf_counter() - start

    return repeated(step, batch)


def pictures(batch: int, players: int, threads: int) -> Chunk:
    """Return a loop that renders every position of random games; only the rendering is timed."""
    from wotd_env import Game, Rules, make_policy
    from wotd_env.rendering import render_rgb

    game = Game(Rules(players=players))
    state = game.reset(1, seed=SEED)
    policy, rng = make_policy("random"), np.random.default_rng(SEED)

    def chunk() -> tuple[int, float]:
        inside = 0.0
        for _ in range(100):
            before = state.copy()
            game.step_autoreset(state, policy.act(game, state, rng))
            start = perf_counter()
            render_rgb(game, state, before)
            inside += perf_counter() - start
        return 100, inside

    return chunk


def vector_steps(
    batch: int, players: int, threads: int, masked: bool = True, spaces: int = 7, regret: bool = False
) -> Chunk:
    """Return a loop of the vector environment with autoreset. If `regret` is true, `RegretReward` wraps it."""
    import warnings

    from wotd_env.envs.vector import WayOfTheDragonVectorEnv
    from wotd_env.wrappers.vector import RegretReward

    base = WayOfTheDragonVectorEnv(
        batch, players=players, spaces=spaces, num_threads=threads, autoreset_mode="SameStep"
    )
    env = RegretReward(base) if regret else base
    env.reset(seed=SEED)
    rng = np.random.default_rng(SEED)

    def step() -> float:
        mask = base.action_masks() if masked else np.ones((batch, base.game.num_actions))
        actions = (rng.random(mask.shape, np.float32) * mask).argmax(1)
        start = perf_counter()
        with warnings.catch_warnings(action="ignore"):  # the environment warns at the first illegal action
            env.step(actions)
        return perf_counter() - start

    return repeated(step, batch)


def turns(batch: int, players: int, threads: int, learned: bool = False) -> Chunk:
    """Return a loop that plans turns in mid-game."""
    from wotd_env import Game, Rules
    from wotd_env.planning.learned import LearnedValue, Weights, shapes
    from wotd_env.planning.planner import Value, plan
    from wotd_env.planning.playing import play_turns
    from wotd_env.planning.values import hand_made

    game = Game(Rules(players=players), num_threads=threads)
    state = game.reset(batch, seed=SEED, roll=False)
    for _ in range(10 * players):
        play_turns(game, state, hand_made)
    value: Value = hand_made
    if learned:
        rng = np.random.default_rng(SEED)
        sizes = shapes(game.rules, width=64).values()
        value = LearnedValue(
            game.rules, Weights(*(rng.normal(size=size).astype(np.float32) for size in sizes))
        )

    def chunk() -> tuple[int, float]:
        start = perf_counter()
        plan(game, state, value)
        return batch, perf_counter() - start

    return chunk


def cartpole(batch: int, players: int, threads: int, envpool: bool = False) -> Chunk:
    """Return a loop of CartPole games in Gymnasium or, if `envpool` is true, in EnvPool."""
    env: Any
    if envpool:
        import envpool as peer

        env = peer.make_gymnasium("CartPole-v1", num_envs=batch, num_threads=threads, seed=SEED)
        env.reset()
    else:
        import gymnasium

        env = gymnasium.make_vec("CartPole-v1", batch, vectorization_mode="vector_entry_point")
        env.reset(seed=SEED)
    rng, rounds = np.random.default_rng(SEED), max(1, CHUNK // batch)

    def chunk() -> tuple[int, float]:
        inside, reset = 0.0, 0
        for _ in range(rounds):
            actions = rng.integers(0, 2, batch, np.int32)
            start = perf_counter()
            _, _, terminated, truncated, _ = env.step(actions)
            inside += perf_counter() - start
            reset += int(np.count_nonzero(terminated | truncated))
        return rounds * batch - reset, inside

    return chunk


def tictactoe(batch: int, players: int, threads: int, wrapped: bool = False) -> Chunk:
    """Return the loop of tictactoe in PettingZoo."""
    import warnings

    with warnings.catch_warnings():
        # PettingZoo deprecates the name of this module, but version 1.26 offers no other name.
        warnings.simplefilter("ignore", DeprecationWarning)
        from pettingzoo.classic import tictactoe_v3

    return agent_loop(tictactoe_v3.env() if wrapped else tictactoe_v3.raw_env(), 200)


def open_spiel(batch: int, players: int, threads: int, game: str) -> Chunk:
    """Return the loop of an OpenSpiel game; chance nodes are sampled in Python."""
    import pyspiel

    import wotd_env.adapters.openspiel  # noqa: F401  # registers the game

    spiel = pyspiel.load_game(game)
    rng = np.random.default_rng(SEED)

    def chunk() -> tuple[int, float]:
        decisions, inside = 0, 0.0
        while decisions < 2000:
            start = perf_counter()
            state = spiel.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    chances = state.chance_outcomes()
                    inside += perf_counter() - start
                    outcomes, probabilities = zip(*chances, strict=True)
                    at = int(np.searchsorted(np.cumsum(probabilities), rng.random()))
                    action = outcomes[min(at, len(outcomes) - 1)]
                else:
                    state.observation_tensor(state.current_player())
                    state.legal_actions_mask()
                    legal = state.legal_actions()
                    inside += perf_counter() - start
                    action = legal[int(rng.random() * len(legal))]
                    decisions += 1
                start = perf_counter()
                state.apply_action(action)
            inside += perf_counter() - start
        return decisions, inside

    return chunk


def pgx(batch: int, players: int, threads: int, game: str) -> Chunk:
    """Return the loop of a pgx game with automatic reset."""
    import jax
    import pgx as peer
    from pgx.experimental.wrappers import auto_reset

    env = peer.make(game)
    step_all = jax.vmap(auto_reset(env.step, env.init))

    def with_keys(state: Any, actions: Any, key: Any) -> Any:
        key, sub = jax.random.split(key)
        return step_all(state, actions, jax.random.split(sub, batch)), key

    step = jax.jit(with_keys)
    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(SEED), batch))
    choose, key = chooser(SEED), jax.random.key(SEED + 1)
    rounds = max(1, (CHUNK // 8) // batch)

    def chunk() -> tuple[int, float]:
        nonlocal state, key
        inside = 0.0
        for _ in range(rounds):
            actions = choose(np.asarray(state.legal_action_mask))
            start = perf_counter()
            state, key = step(state, actions.astype(np.int32), key)
            np.asarray(state.observation)
            np.asarray(state.terminated)
            inside += perf_counter() - start
        return rounds * batch, inside

    return chunk


def scan(batch: int, players: int, threads: int, game: str = "", powers: str = "none") -> Chunk:
    """Return the loop of a game in JAX. Random choice, step and automatic reset are compiled into one function."""
    import jax
    from jax import numpy as jnp

    if game:
        import pgx as peer
        from pgx.experimental.wrappers import auto_reset

        env = peer.make(game)
    else:
        from wotd_env.jax import WayOfTheDragon, auto_reset

        env = WayOfTheDragon(players=players, powers=powers)
    step_all = jax.vmap(auto_reset(env.step, env.init))
    rounds = max(16, CHUNK // batch)  # fewer would measure the start of the loop on a GPU

    factors = np.random.default_rng(SEED).integers(1 << 32, size=env.num_actions, dtype=np.uint32) | 1

    def body(state: Any, key: Any) -> tuple[Any, None]:
        choice, dice = jax.random.split(key)
        # One random number per game is enough: its products with the `factors` of the actions are in random order.
        numbers = jax.random.bits(choice, (batch, 1)) * factors >> 8 | 1
        numbers = jnp.where(state.legal_action_mask, numbers, 0)
        actions = jnp.where(numbers == numbers.max(1, keepdims=True), np.arange(env.num_actions), 0).max(1)
        return step_all(state, actions, jax.random.split(dice, batch)), None

    @jax.jit
    def loop(state: Any, key: Any) -> Any:
        return jax.lax.scan(body, state, jax.random.split(key, rounds))[0]

    key = jax.random.key(SEED)
    state = jax.jit(jax.vmap(env.init))(jax.random.split(key, batch))

    def chunk() -> tuple[int, float]:
        nonlocal state, key
        key = jax.random.fold_in(key, 0)
        start = perf_counter()
        state = jax.block_until_ready(loop(state, key))  # type: ignore[no-untyped-call]
        return rounds * batch, perf_counter() - start

    return chunk


class Case(NamedTuple):
    """A measured case: a row of the table in docs/results/speed.md."""

    name: str
    what: str  # description of a step
    loop: Callable[..., Chunk]
    batch: int = 1
    players: int = 2  # 0: a game without players
    threads: int = 1
    needs: str = "wotd_env"

    def make(self) -> Chunk:
        """Return the loop of the case."""
        return self.loop(batch=self.batch, players=self.players, threads=self.threads)

    @property
    def installed(self) -> bool:
        """Whether the required package is installed."""
        return find_spec(self.needs) is not None


BATCHES = (1, 8, 64, 512, 8192, 65536, 1_000_000)
STEP = "Game.step_autoreset: step, restart"
FUSED = f"{STEP}, observation, mask, rewards, done"
VECTOR = "vector environment against greedy"
SCAN = "choice, step and reset in one jitted scan"
FROM_PYTHON = "from Python, observation and mask"
IN_OPENSPIEL = "the game in OpenSpiel: rolls drawn in Python, observation and mask"
CARTPOLE = "Gymnasium CartPole, NumPy vector entry point (no mask)"
PICTURE = "render_rgb: a picture of 640 by 480 pixels after each decision"
PEER_LOOP = "jitted step, observation and mask read, NumPy choice"

masks = ("mask",)
ends = ("mask", "rewards", "done")
of_openspiel = partial(Case, needs="pyspiel")
of_pgx = partial(Case, needs="pgx")
of_jax = partial(Case, needs="jax")

CASES = [
    *(Case(f"game-{batch}", FUSED, speed.game, batch) for batch in BATCHES),
    *(Case(f"game-8192-{n}p", FUSED, speed.game, 8192, n) for n in (3, 4, 5)),
    Case("game-8192-5p-any", f"{FUSED}; all powers", partial(speed.game, powers="any"), 8192, 5),
    Case("game-8192-checked", f"{FUSED}; actions validated", partial(speed.game, validate=True), 8192),
    Case("game-8192-5p-own-checked", f"{FUSED}; own powers, actions validated",
         partial(speed.game, powers="own", validate=True), 8192, 5),
    Case("game-8192-rules", "Game.step_autoreset: only step and restart", partial(speed.game, fill=()), 8192),
    Case("game-8192-mask", f"{STEP}, mask", partial(speed.game, fill=masks), 8192),
    Case("game-8192-ends", f"{STEP}, mask, rewards, done", partial(speed.game, fill=ends), 8192),
    Case("game-16384", FUSED, speed.game, 16384),
    *(Case(f"game-{n}-2t", f"{FUSED}; two threads", speed.game, n, threads=2) for n in (16384, 65536)),
    Case("bytes-8192", "limit: write as many bytes as game-8192", same_bytes, 8192),
    Case("game-one", "Game.step_autoreset for one game, actions validated", speed.one_game),
    Case("vector-4096", VECTOR, speed.vector, 4096),
    Case("vector-4096-random", "vector environment against random", partial(speed.vector, opponents="random"), 4096),
    Case("vector-1024-masked", f"{VECTOR}, SAME_STEP, masked random actions", vector_steps, 1024),
    Case("vector-1024-unmasked", f"{VECTOR}, SAME_STEP, unmasked random actions",
         partial(vector_steps, masked=False), 1024),
    Case("vector-1024-1-space", f"{VECTOR}, SAME_STEP, one plain space", partial(vector_steps, spaces=1), 1024),
    Case("vector-1024-regret", "the same, rewarded with exact regrets (RegretReward)",
         partial(vector_steps, spaces=1, regret=True), 1024),
    Case("plan-2048", "planner: a whole turn, by the hand-made value", turns, 2048),
    Case("plan-2048-learned", "planner: a whole turn, by a learned value", partial(turns, learned=True), 2048),
    Case("aec-raw", "raw_env: agent_iter, last, step", speed.aec),
    Case("aec", "env(): agent_iter, last, step, through PettingZoo's wrappers", partial(speed.aec, wrapped=True)),
    Case("single", "Gymnasium environment against greedy", speed.single),
    of_openspiel("openspiel", IN_OPENSPIEL, partial(open_spiel, game="way_of_the_dragon")),
    of_openspiel("openspiel-5p", IN_OPENSPIEL, partial(open_spiel, game="way_of_the_dragon(players=5)"), players=5),
    Case("pictures-640", PICTURE, pictures, needs="resvg_py"),
    Case("pictures-640-5p", PICTURE, pictures, players=5, needs="resvg_py"),
    *(Case(f"cartpole-vec-{n}", CARTPOLE, cartpole, n, players=0) for n in (8192, 65536)),
    Case("tictactoe", "PettingZoo tictactoe, env()", partial(tictactoe, wrapped=True), needs="pygame"),
    Case("tictactoe-raw", "PettingZoo tictactoe, raw_env", tictactoe, needs="pygame"),
    of_openspiel("maedn", f"OpenSpiel maedn {FROM_PYTHON}", partial(open_spiel, game="maedn(players=4)"), players=4),
    of_openspiel("backgammon", f"OpenSpiel backgammon {FROM_PYTHON}", partial(open_spiel, game="backgammon")),
    of_pgx("pgx-tictactoe-8192", f"pgx tic_tac_toe: {PEER_LOOP}", partial(pgx, game="tic_tac_toe"), 8192),
    of_pgx("pgx-backgammon-64", f"pgx backgammon: {PEER_LOOP}", partial(pgx, game="backgammon"), 64),
    of_jax("jax-game-64", f"wotd_env.jax: {SCAN}", scan, 64),
    of_jax("jax-game-8192", f"wotd_env.jax: {SCAN}", scan, 8192),
    of_pgx("jax-backgammon-64", f"pgx backgammon: {SCAN}", partial(scan, game="backgammon"), 64),
    of_pgx("jax-tictactoe-8192", f"pgx tic_tac_toe: {SCAN}", partial(scan, game="tic_tac_toe"), 8192),
    Case("envpool-cartpole-1024", "EnvPool CartPole, synchronous (no mask)", partial(cartpole, envpool=True), 1024,
         players=0, needs="envpool"),
]  # fmt: skip


@functools.cache
def _loop(name: str) -> Chunk:
    return next(case for case in CASES if case.name == name).make()


def sample(name: str, seconds: float) -> tuple[float, float]:
    """Measure a case for `seconds`, and return the two rates of `wotd_env.speed.rate`. The loop is made only once."""
    return speed.rate(_loop(name), seconds)
