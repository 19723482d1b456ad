"""`python -m tests.helpers.workload [THREADS]`: call every kernel; print a digest of the results and the idle kernels.

The digest must not depend on the allocator, the number of threads or the cache. Reads of freed or uninitialized memory
change the digest.
"""

import contextlib
import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from tests.helpers.learned import some_value
from tests.helpers.tables import short_paths
from wotd_env import Game, Phase, Rules, analysis, make_policy, solver, way_of_the_dragon_v0
from wotd_env.arena import Tournament, run
from wotd_env.core import batch, compilation
from wotd_env.core.dice import keep_index
from wotd_env.planning.playing import play_turns

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"
VARIANTS = (
    Rules(),
    Rules(players=5, spaces=2, powers="own"),
    Rules(players=3, spaces=3, powers="any", immunity=True, dead_pieces=5, colors="random", start="loser"),
)
POLICIES = ("random", "first", "greedy", "planner", "mcts:10")


DIGEST = hashlib.sha256()


def add(*values: Any) -> None:
    """Add arrays and numbers to the digest."""
    for value in values:
        DIGEST.update(np.ascontiguousarray(value).tobytes())


def games(threads: int) -> None:
    for rules in VARIANTS:
        game, rng = Game(rules, num_threads=threads), np.random.default_rng(0)
        state = game.reset(600, seed=1)
        for turn in range(15):
            for name in POLICIES[: 5 if turn == 0 else 4]:
                actions = make_policy(name).act(game, state, rng)
                add(actions)
            add(game.legal_actions(state), game.observe(state), game.observe(state, 1))
            add(game.scores(state), game.rewards(state))
            half = state.copy()
            game.decide(half, actions)
            game.roll(half)
            game.step(state, actions)
            add(state, half)
            game.reset(state, where=state["phase"] == Phase.OVER)
        observation = np.empty((600, game.observation_size), np.int8)
        mask = np.empty((600, game.num_actions), np.int8)
        reward, done = np.empty((600, rules.players), np.float32), np.empty(600, np.bool_)
        for _ in range(15):
            actions = make_policy("random").act(game, state, rng)
            game.step_autoreset(state, actions, observation, mask, reward, done)
            add(observation, mask, reward, done)
        game.reset(state, roll=False)
        game.roll(state, np.zeros((600, 5), np.int8))
        add(state)
        state["player"][7] = 9
        with contextlib.suppress(ValueError):
            game.observe(state)


def nodes() -> None:
    """Play one record as the OpenSpiel adapter does, with separate chance and decision nodes."""
    for rules in VARIANTS:
        game = Game(rules, skip_forced=False)
        state = game.reset(1, seed=6, roll=False)
        while state["phase"][0] != Phase.OVER:
            if state["phase"][0] == Phase.CHANCE:
                rolled = state.copy()
                game.roll(rolled)
                state["rng"] = rolled["rng"]
                roll = keep_index(rolled["dice"][0].tolist())
                batch.roll_given(state, game.config, np.array([roll], np.uint64))
            else:
                add(*batch.legal_one(state, game.config))
                batch.step(state, game.config, game.legal_actions(state).argmax(1), True, False)
            add(state)


def learned(threads: int) -> None:
    for rules in VARIANTS:
        value, game = some_value(rules), Game(rules, num_threads=threads)
        state = game.reset(600, seed=2, roll=False)
        for _ in range(5):
            add(value.features.write(game, state), value(game, state))
            turns = play_turns(game, state, value, np.arange(600) % 3 == 0)
            game.reset(state, where=state["phase"] == Phase.OVER, roll=False)
            add(state, turns.before, turns.after)


def environments(threads: int) -> None:
    for opponents in ("greedy", "random", "planner"):
        vector: Any = gymnasium.make_vec(
            ID, num_envs=600, opponents=opponents, num_threads=threads, autoreset_mode="SameStep", spaces=1
        )
        vector.reset(seed=3)
        for _ in range(20):
            observation, reward, terminated, truncated, info = vector.step(vector.action_masks().argmax(1))
            add(observation, reward, terminated, truncated, info["action_mask"])
        env: Any = gymnasium.make(ID, opponents=opponents, disable_env_checker=True).unwrapped
        observation, info = env.reset(seed=4)
        ended = False
        while not ended:
            observation, reward, terminated, truncated, info = env.step(env.action_masks().argmax())
            ended = terminated or truncated
            add(observation, reward, info["action_mask"])
    raw = way_of_the_dragon_v0.raw_env(players=3)
    raw.reset(seed=5)
    for _ in range(50):
        add(raw.observe("player_1")["observation"])
        raw.step(raw.action_masks().argmax())


def guarantees(threads: int) -> None:
    """Solve three players on paths of two numbered spaces, which takes a second."""
    rules = Rules(players=3, spaces=0)
    with short_paths(0, players=3), tempfile.TemporaryDirectory() as folder:
        table = solver.solve(rules, Path(folder, "0.wotd"), threads=threads)
        add(table.values, solver.verify(table.file, threads=threads))
        game = Game(rules)
        add(table.for_seats(game, game.reset(3, seed=0, roll=False)))


def solution(threads: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "0.wotd")
        table = solver.solve(0, file, threads=threads)
        compact = solver.compact(file, Path(folder, "compact.wotd"))
        add(table.values, compact.values, solver.verify(file, threads=threads))
        oracle = make_policy(f"oracle:{file}")
        greedy = make_policy("greedy")
        add(solver.evaluate(greedy, table, ([5, 4, 3, 2, 0], [4, 5, 1, 0, 0])))
        add(table.value([[1, 2, 3, 4, 5]], [[2, 3, 4, 5, 1]]), compact.value([[1] * 5], [[2] * 5]))
        for player in (oracle, greedy):
            add(analysis.grade(player, table, games=50, seed=1).stages)
        file = Path(folder, "0-any.wotd")
        table = solver.solve(Rules(spaces=0, powers="any"), file, threads=threads)
        add(table.values, solver.verify(file, threads=threads))


def tournament() -> None:
    results = run(Tournament(("greedy", "planner"), games=100, luck="planner"))
    for played in results.games.values():
        add(played)


def idle_kernels() -> list[str]:
    """Return the kernels that neither Python nor another kernel has called."""
    called: set[str] = set()
    for kernel in compilation.KERNELS:
        called.update(name for name in kernel.py_func.__code__.co_names if name != kernel.py_func.__name__)
    return sorted(
        f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
        for kernel in compilation.KERNELS
        if not kernel.overloads and kernel.py_func.__name__ not in called
    )


def main(threads: int = 1) -> None:
    games(threads)
    nodes()
    learned(threads)
    environments(threads)
    guarantees(threads)
    solution(threads)
    tournament()
    print(DIGEST.hexdigest())
    print("never called:", ", ".join(idle_kernels()) or "none")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
