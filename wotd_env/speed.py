"""Measure the speed of an interface with uniformly random decisions.

Each interface has a function that returns a `Chunk`. `wotd speed` and tools/speed/ measure them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Chunk = Callable[[], tuple[int, float]]
"""A function that plays for some milliseconds, and reads the observation and the action mask at every decision.

It returns the number of decisions and the wall-clock seconds inside the environment.
"""

Choose = Callable[[NDArray[Any]], int]  # action mask -> a legal action
CHUNK = 1 << 16  # the chunks of `repeated` have about this many decisions
SEED = 0


def rate(chunk: Chunk, seconds: float) -> tuple[float, float]:
    """Call a chunk for some seconds; return decisions / total time, and decisions / time in the environment."""
    chunk()
    decisions, inside = 0, 0.0
    start = perf_counter()
    while perf_counter() < start + seconds:
        done, spent = chunk()
        decisions += done
        inside += spent
    return decisions / (perf_counter() - start), decisions / inside


def game(
    batch: int,
    players: int,
    threads: int,
    powers: str = "none",
    validate: bool = False,
    fill: Sequence[str] = ("observation", "mask", "rewards", "done"),
) -> Chunk:
    """Return a chunk that steps a batch with `Game.step_autoreset`.

    `fill` contains the names of the arrays that each step writes.
    """
    from wotd_env import Game, Rules, make_policy

    game = Game(Rules(players=players, powers=powers), num_threads=threads)
    state = game.reset(batch, seed=SEED)
    arrays: dict[str, NDArray[Any]] = {
        "observation": np.empty((batch, game.observation_size), np.int8),
        "mask": np.empty((batch, game.num_actions), np.int8),
        "rewards": np.empty((batch, players), np.float32),
        "done": np.empty(batch, np.bool_),
    }
    filled: dict[str, Any] = {name: arrays[name] for name in fill}
    policy, rng = make_policy("random"), np.random.default_rng(SEED)

    def step() -> float:
        actions = policy.act(game, state, rng)
        start = perf_counter()
        game.step_autoreset(state, actions, validate=validate, **filled)
        return perf_counter() - start

    return repeated(step, batch)


def repeated(step: Callable[[], float], batch: int) -> Chunk:
    """Return a chunk that calls `step` repeatedly.

    Each call of `step` executes `batch` decisions and returns the seconds spent inside the environment.
    """
    rounds = max(1, CHUNK // batch)
    return lambda: (rounds * batch, sum(step() for _ in range(rounds)))


def one_game(batch: int, players: int, threads: int, powers: str = "none") -> Chunk:
    """Return a chunk that steps a single game with `Game.step_autoreset`."""
    from wotd_env import Game, Rules

    game = Game(Rules(players=players, powers=powers))
    state = game.reset(1, seed=SEED)
    observation = np.empty((1, game.observation_size), np.int8)
    mask = game.legal_actions(state)
    actions = np.empty(1, np.int64)
    draws = cycle(np.random.default_rng(SEED).random(CHUNK).tolist())

    def step() -> float:
        legal = mask[0].nonzero()[0]
        actions[0] = legal[int(next(draws) * len(legal))]
        start = perf_counter()
        game.step_autoreset(state, actions, observation, mask)
        return perf_counter() - start

    return repeated(step, 1)


def vector(batch: int, players: int, threads: int, powers: str = "none", opponents: str = "greedy") -> Chunk:
    """Return a chunk that steps the native vector environment."""
    from wotd_env.envs.vector import WayOfTheDragonVectorEnv

    rules: dict[str, Any] = {"players": players, "powers": powers}
    env = WayOfTheDragonVectorEnv(
        batch, opponents=opponents, num_threads=threads, autoreset_mode="SameStep", **rules
    )
    _, info = env.reset(seed=SEED)
    choose = chooser(SEED)

    def step() -> float:
        nonlocal info
        actions = choose(info["action_mask"])
        start = perf_counter()
        info = env.step(actions)[-1]
        return perf_counter() - start

    return repeated(step, batch)


def aec(batch: int, players: int, threads: int, powers: str = "none", wrapped: bool = False) -> Chunk:
    """Return a chunk that plays games in the PettingZoo environment."""
    from wotd_env import way_of_the_dragon_v0

    make = way_of_the_dragon_v0.env if wrapped else way_of_the_dragon_v0.raw_env
    return agent_loop(make(players=players, powers=powers), 20)


def single(batch: int, players: int, threads: int, powers: str = "none") -> Chunk:
    """Return a chunk that plays games in the Gymnasium environment."""
    from wotd_env.envs.single import WayOfTheDragonEnv

    env = WayOfTheDragonEnv(players=players, powers=powers)

    def play(seed: int, choose: Choose) -> None:
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(choose(info["action_mask"]))
            over = terminated or truncated

    return _games(play, 40)


def agent_loop(env: Any, games: int) -> Chunk:
    """Return a chunk that plays games in any AEC environment."""

    def play(seed: int, choose: Choose) -> None:
        env.reset(seed=seed)
        for _agent in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            env.step(None if terminated or truncated else choose(observation["action_mask"]))

    return _games(play, games)


def _games(play: Callable[[int, Choose], None], games: int) -> Chunk:
    """Return a chunk of whole games. `play(seed, choose)` plays a game."""
    rng = np.random.default_rng(SEED)

    def chunk() -> tuple[int, float]:
        decisions, choosing, start = 0, 0.0, perf_counter()

        def choose(mask: NDArray[Any]) -> int:
            nonlocal decisions, choosing
            before = perf_counter()
            legal = mask.nonzero()[0]
            action = int(legal[int(rng.random() * len(legal))])
            choosing += perf_counter() - before
            decisions += 1
            return action

        for _ in range(games):
            play(decisions, choose)
        return decisions, perf_counter() - start - choosing

    return chunk


def chooser(seed: int) -> Callable[[NDArray[Any]], NDArray[np.int64]]:
    """Return a function: action masks of N games -> uniformly random legal actions, int64 (N,)."""
    rng = np.random.default_rng(seed)

    def choose(mask: NDArray[Any]) -> NDArray[np.int64]:
        up_to = np.cumsum(mask, 1, dtype=np.int16)
        wanted = (rng.random(len(mask)) * up_to[:, -1]).astype(np.int16)
        chosen: NDArray[np.int64] = (up_to > wanted[:, None]).argmax(1)
        return chosen

    return choose
