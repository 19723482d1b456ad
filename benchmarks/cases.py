"""What is measured: one function for each loop, ours first, then the peers that are installed.

A loop function makes everything it needs and returns `chunk`, which plays some milliseconds' worth of uniformly random
decisions, observation and action mask read at each where the interface has them. `chunk` returns how many decisions of
how many games that were, and the seconds spent in the environment alone, without the choice of actions.

One step is one decision of one game; calls that only reset a finished game do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Chunk = Callable[[], tuple[int, float]]

CHUNK = 1 << 16  # decisions
SEED = 0


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes:
        name: unique, short.
        what: what a step is and includes.
        loop: the function of this module that makes the loop.
        needs: the package that has to be installed.
        batch: games side by side.
        players: seats of a game.
        threads: cores that the process may use.
        arguments: what else `loop` is called with.
    """

    name: str
    what: str
    loop: str
    needs: str = "wotd_env"
    batch: int = 1
    players: int = 2
    threads: int = 1
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def installed(self) -> bool:
        """Whether the package is there."""
        return find_spec(self.needs) is not None

    def make(self) -> Chunk:
        """Make the loop."""
        make: Callable[..., Chunk] = globals()[self.loop]
        return make(batch=self.batch, players=self.players, threads=self.threads, **self.arguments)


BATCHES = (1, 8, 64, 512, 8192, 65536, 1_000_000)
FUSED = "Game.advance: step, restart, observation, mask, rewards, done"
PEER_LOOP = "jitted step, observation and mask read, NumPy choice"

CASES = [
    *(Case(f"game-{batch}", FUSED, "game", batch=batch) for batch in BATCHES),
    *(Case(f"game-8192-{n}p", FUSED, "game", batch=8192, players=n) for n in (3, 4, 5)),
    Case(
        "game-8192-5p-any", f"{FUSED}; all powers", "game", batch=8192, players=5, arguments={"powers": "any"}
    ),
    Case(
        "game-8192-checked", f"{FUSED}; actions validated", "game", batch=8192, arguments={"validate": True}
    ),
    Case("game-65536-2t", f"{FUSED}; two threads", "game", batch=65536, threads=2),
    Case("bytes-8192", "the limit: only the same bytes are written", "same_bytes", batch=8192),
    Case("game-calls-1", "Game.step, legal_actions, observe with out=", "game_calls"),
    Case("vector-4096", "vector environment against greedy", "vector", batch=4096),
    Case(
        "vector-4096-random",
        "vector environment against random",
        "vector",
        batch=4096,
        arguments={"opponents": "random"},
    ),
    Case("aec-raw", "raw_env: agent_iter, last, step", "aec"),
    Case("aec", "env(): the same through PettingZoo's wrappers", "aec", arguments={"wrapped": True}),
    Case("single", "Gymnasium environment against greedy", "single"),
    Case(
        "cartpole-vec-8192",
        "Gymnasium CartPole, NumPy vector entry point (no mask)",
        "cartpole",
        "gymnasium",
        batch=8192,
    ),
    Case("cartpole-vec-65536", "the same", "cartpole", "gymnasium", batch=65536),
    Case("tictactoe", "PettingZoo tictactoe, env()", "tictactoe", "pygame", arguments={"wrapped": True}),
    Case("tictactoe-raw", "PettingZoo tictactoe, raw_env", "tictactoe", "pygame"),
    Case(
        "maedn",
        "OpenSpiel maedn from Python, observation and mask",
        "open_spiel",
        "pyspiel",
        players=4,
        arguments={"game": "maedn(players=4)"},
    ),
    Case(
        "backgammon",
        "OpenSpiel backgammon from Python, observation and mask",
        "open_spiel",
        "pyspiel",
        arguments={"game": "backgammon"},
    ),
    Case(
        "pgx-tictactoe-8192",
        f"pgx tic_tac_toe: {PEER_LOOP}",
        "pgx",
        "pgx",
        batch=8192,
        arguments={"game": "tic_tac_toe"},
    ),
    Case(
        "pgx-backgammon-64",
        f"pgx backgammon: {PEER_LOOP}",
        "pgx",
        "pgx",
        batch=64,
        arguments={"game": "backgammon"},
    ),
    Case(
        "envpool-cartpole-1024", "EnvPool CartPole, synchronous (no mask)", "envpool", "envpool", batch=1024
    ),
]


# ------------------------------------------------------------------------------------------------------- wotd_env


def game(batch: int, players: int, threads: int, powers: str = "none", validate: bool = False) -> Chunk:
    """Return the loop of `Game.advance` with actions of the `random` policy."""
    from wotd_env import Game, Rules, make_policy

    game = Game(Rules(players=players, powers=powers), num_threads=threads)
    state = game.reset(batch, seed=SEED)
    observation = np.empty((batch, game.observation_size), np.int8)
    mask = game.legal_actions(state)
    rewards = np.empty((batch, players), np.float32)
    done = np.empty(batch, np.bool_)
    policy, rng = make_policy("random"), np.random.default_rng(SEED)
    rounds = max(1, CHUNK // batch)

    def chunk() -> tuple[int, float]:
        inside = 0.0
        for _ in range(rounds):
            actions = policy.act(game, state, rng)
            start = perf_counter()
            game.advance(state, actions, observation, mask, rewards, done, validate=validate)
            inside += perf_counter() - start
        return rounds * batch, inside

    return chunk


def game_calls(batch: int, players: int, threads: int) -> Chunk:
    """Return the loop of the separate calls, for one game."""
    from wotd_env import Game, Rules

    game = Game(Rules(players=players), num_threads=threads)
    state = game.reset(batch, seed=SEED)
    observation = np.empty((batch, game.observation_size), np.int8)
    mask = game.legal_actions(state)
    actions = np.empty(batch, np.int64)
    draw = np.random.default_rng(SEED).random(CHUNK)

    def chunk() -> tuple[int, float]:
        inside = 0.0
        for x in draw.tolist():
            legal = mask[0].nonzero()[0]
            actions[0] = legal[int(x * len(legal))]
            start = perf_counter()
            game.step(state, actions, validate=False)
            if state["phase"][0] == 4:
                game.reset(state)
            game.legal_actions(state, out=mask)
            game.observe(state, out=observation)
            inside += perf_counter() - start
        return len(draw), inside

    return chunk


def same_bytes(batch: int, players: int, threads: int) -> Chunk:
    """Return a loop that writes as many bytes as `game` reads and writes, and does nothing else."""
    from wotd_env import STATE, Game, Rules

    game = Game(Rules(players=players), num_threads=threads)
    width = STATE.itemsize + game.observation_size + game.num_actions + 4 * players + 1
    target = np.empty((batch, width), np.int8)
    rounds = max(1, CHUNK // batch)

    def chunk() -> tuple[int, float]:
        start = perf_counter()
        for i in range(rounds):
            target.fill(i & 1)
        return rounds * batch, perf_counter() - start

    return chunk


def vector(batch: int, players: int, threads: int, opponents: str = "greedy") -> Chunk:
    """Return the loop of the native vector environment."""
    import gymnasium

    import wotd_env  # noqa: F401  # registers

    env = gymnasium.make_vec(
        "wotd_env/WayOfTheDragon-v0",
        num_envs=batch,
        players=players,
        opponents=opponents,
        num_threads=threads,
        autoreset_mode="SameStep",
    )
    _, info = env.reset(seed=SEED)
    choose = chooser(SEED)
    rounds = max(1, CHUNK // batch)

    def chunk() -> tuple[int, float]:
        nonlocal info
        inside = 0.0
        for _ in range(rounds):
            actions = choose(info["action_mask"])
            start = perf_counter()
            info = env.step(actions)[-1]
            inside += perf_counter() - start
        return rounds * batch, inside

    return chunk


def aec(batch: int, players: int, threads: int, wrapped: bool = False) -> Chunk:
    """Return the loop of the PettingZoo environment."""
    from wotd_env import way_of_the_dragon_v0

    make = way_of_the_dragon_v0.env if wrapped else way_of_the_dragon_v0.raw_env
    return agent_loop(make(players=players), 20)


def single(batch: int, players: int, threads: int) -> Chunk:
    """Return the loop of the Gymnasium environment."""
    import gymnasium

    import wotd_env  # noqa: F401  # registers

    env = gymnasium.make("wotd_env/WayOfTheDragon-v0", players=players, opponents="greedy").unwrapped
    rng = np.random.default_rng(SEED)

    def chunk() -> tuple[int, float]:
        decisions, inside = 0, 0.0
        for _ in range(40):
            start = perf_counter()
            _, info = env.reset(seed=decisions)
            over = False
            while not over:
                legal = info["action_mask"].nonzero()[0]
                action = legal[int(rng.random() * len(legal))]
                _, _, terminated, truncated, info = env.step(action)
                over = terminated or truncated
                decisions += 1
            inside += perf_counter() - start
        return decisions, inside

    return chunk


# ---------------------------------------------------------------------------------------------------------- peers


def cartpole(batch: int, players: int, threads: int) -> Chunk:
    """Return the loop of Gymnasium's vectorised CartPole."""
    import gymnasium

    env = gymnasium.make_vec("CartPole-v1", batch, vectorization_mode="vector_entry_point")
    env.reset(seed=SEED)
    rng = np.random.default_rng(SEED)
    rounds = max(1, CHUNK // batch)

    def chunk() -> tuple[int, float]:
        inside, reset = 0.0, 0
        for _ in range(rounds):
            actions = rng.integers(0, 2, batch)
            start = perf_counter()
            _, _, terminated, truncated, _ = env.step(actions)
            inside += perf_counter() - start
            reset += int(np.count_nonzero(terminated | truncated))
        return rounds * batch - reset, inside

    return chunk


def tictactoe(batch: int, players: int, threads: int, wrapped: bool = False) -> Chunk:
    """Return the loop of PettingZoo's tictactoe."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the module's name; 1.26 has no other
        from pettingzoo.classic import tictactoe_v3

    return agent_loop(tictactoe_v3.env() if wrapped else tictactoe_v3.raw_env(), 200)


def agent_loop(env: Any, games: int) -> Chunk:
    """Return the loop of every AEC environment: observation and action mask of the agent to act."""
    rng = np.random.default_rng(SEED)

    def chunk() -> tuple[int, float]:
        decisions = 0
        start = perf_counter()
        for _ in range(games):
            env.reset(seed=decisions)
            for _agent in env.agent_iter():
                observation, _, terminated, truncated, _ = env.last()
                if terminated or truncated:
                    env.step(None)
                    continue
                legal = observation["action_mask"].nonzero()[0]
                env.step(int(legal[int(rng.random() * len(legal))]))
                decisions += 1
        return decisions, perf_counter() - start

    return chunk


def open_spiel(batch: int, players: int, threads: int, game: str) -> Chunk:
    """Return the loop of an OpenSpiel game, its chance nodes sampled in Python."""
    import pyspiel

    spiel = pyspiel.load_game(game)
    rng = np.random.default_rng(SEED)

    def chunk() -> tuple[int, float]:
        decisions = 0
        start = perf_counter()
        while decisions < 2000:
            state = spiel.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
                    at = int(np.searchsorted(np.cumsum(probabilities), rng.random()))
                    state.apply_action(outcomes[min(at, len(outcomes) - 1)])
                    continue
                state.observation_tensor(state.current_player())
                state.legal_actions_mask()
                legal = state.legal_actions()
                state.apply_action(legal[int(rng.random() * len(legal))])
                decisions += 1
        return decisions, perf_counter() - start

    return chunk


def pgx(batch: int, players: int, threads: int, game: str) -> Chunk:
    """Return the loop of a pgx game with automatic reset."""
    import jax
    import pgx as peer
    from pgx.experimental.wrappers import auto_reset

    env = peer.make(game)
    step = jax.jit(jax.vmap(auto_reset(env.step, env.init)))
    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(SEED), batch))
    choose, key = chooser(SEED), jax.random.key(SEED + 1)
    rounds = max(1, (CHUNK // 8) // batch)

    def chunk() -> tuple[int, float]:
        nonlocal state, key
        inside = 0.0
        for _ in range(rounds):
            actions = choose(np.asarray(state.legal_action_mask))
            start = perf_counter()
            key, sub = jax.random.split(key)
            state = step(state, actions.astype(np.int32), jax.random.split(sub, batch))
            np.asarray(state.observation)
            np.asarray(state.terminated)
            inside += perf_counter() - start
        return rounds * batch, inside

    return chunk


def envpool(batch: int, players: int, threads: int) -> Chunk:
    """Return the loop of EnvPool's CartPole."""
    import envpool as peer

    env = peer.make_gymnasium("CartPole-v1", num_envs=batch, num_threads=threads, seed=SEED)
    env.reset()
    rng = np.random.default_rng(SEED)
    rounds = max(1, CHUNK // batch)

    def chunk() -> tuple[int, float]:
        inside, reset = 0.0, 0
        for _ in range(rounds):
            actions = rng.integers(0, 2, batch).astype(np.int32)
            start = perf_counter()
            _, _, terminated, truncated, _ = env.step(actions)
            inside += perf_counter() - start
            reset += int(np.count_nonzero(terminated | truncated))
        return rounds * batch - reset, inside

    return chunk


def chooser(seed: int) -> Callable[[NDArray[Any]], NDArray[np.int64]]:
    """Return a choice of uniformly random legal actions in NumPy, one random number a game."""
    rng = np.random.default_rng(seed)

    def choose(mask: NDArray[Any]) -> NDArray[np.int64]:
        ranks = np.cumsum(mask, 1, dtype=np.int16)
        wanted = (rng.random(len(mask)) * ranks[:, -1]).astype(np.int16)
        chosen: NDArray[np.int64] = (ranks > wanted[:, None]).argmax(1)
        return chosen

    return choose
