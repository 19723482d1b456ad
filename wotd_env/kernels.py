"""Compile all kernels in advance, so that nothing waits for the compiler later."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import wotd_env
from wotd_env.core.arguments import check_integer
from wotd_env.extras import MissingExtraError
from wotd_env.process import without_current_folder


def compile_kernels(
    processes: int = 1, *, progress: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Compile all kernels that the installed extras can use. This takes about 75 s of processor time.

    Kernels that are in the cache already are not compiled again. The cache is the folder `wotd-env` in the folder of
    the environment variable NUMBA_CACHE_DIR or, if this variable is not set, in the user's numba cache folder. All
    Python environments of the user with the same sources and the same versions of Python, NumPy and numba share it.

    Args:
        processes: number of processes that compile. With more than one, a script needs the usual guard
            `if __name__ == "__main__":`.
        progress: function of the number of finished parts and the number of all parts.

    Raises:
        ValueError: for an invalid number of processes.
    """
    processes = check_integer("processes", processes, 1, 1024)
    progress(0, len(_PARTS))
    if processes == 1:
        for done, part in enumerate(_PARTS, 1):
            _compile(part)
            progress(done, len(_PARTS))
        return
    with (
        without_current_folder(),
        # The initializer hides the workers' messages about compiling.
        ProcessPoolExecutor(processes, get_context("spawn"), logging.disable, (logging.WARNING,)) as pool,
    ):
        for done, job in enumerate(as_completed([pool.submit(_compile, part) for part in _PARTS]), 1):
            job.result()
            progress(done, len(_PARTS))


def _compile(part: Callable[[], None]) -> None:
    with contextlib.suppress(MissingExtraError):  # its kernels cannot be used either
        part()


def _games() -> None:
    from wotd_env.core import batch
    from wotd_env.core.starting import roll_off_of

    game = wotd_env.Game()
    state = game.reset(4)
    game.observe(state)
    game.observe(state, 1)
    game.scores(state)
    game.rewards(state)
    game.step(state, game.legal_actions(state).argmax(1))
    game.decide(state, np.full(4, 31))
    roll_off_of(game, 0)
    game.reset(state, roll=False)
    game.roll(state, np.zeros((4, 5), np.int8))
    game.roll(state)
    game.step_autoreset(state, game.legal_actions(state).argmax(1))
    batch.legal_one(state[:1], game.config)  # used by the OpenSpiel adapter
    state["player"] = -1
    with contextlib.suppress(ValueError):
        game.scores(state)


def _environments() -> None:
    from wotd_env.core.game import final_rewards
    from wotd_env.envs.results import result_of
    from wotd_env.envs.single import WayOfTheDragonEnv
    from wotd_env.envs.vector import WayOfTheDragonVectorEnv

    env = WayOfTheDragonEnv()
    env.reset(seed=0)
    final_rewards(env.game, env.game.reset(1))
    result_of(env.game, env.game.reset(1))
    env.step(env.action_masks().argmax())
    WayOfTheDragonEnv(encoding="compact").reset(seed=0)
    raw = wotd_env.way_of_the_dragon_v0.raw_env()
    raw.reset(seed=0)
    raw.step(raw.action_masks().argmax())
    envs = WayOfTheDragonVectorEnv(4)
    envs.reset(seed=0)
    envs.step(envs.action_masks().argmax(1))


def _policies() -> None:
    game = wotd_env.Game()
    for name in ("random", "greedy", "planner", "mcts:2"):
        wotd_env.make_policy(name).act(game, game.reset(4), np.random.default_rng(0))


def _learned() -> None:
    from wotd_env.planning.learned import LearnedValue, Weights, shapes
    from wotd_env.planning.playing import play_turns

    game = wotd_env.Game()
    weights = (np.zeros(shape, np.float32) for shape in shapes(game.rules, 32).values())
    value = LearnedValue(game.rules, Weights(*weights))
    state = game.reset(4, roll=False)
    value.features.write(game, state)
    play_turns(game, state, value)


def _solver() -> None:
    from wotd_env import Rules, solver

    game, nearly_over = wotd_env.Game(spaces=0), ([5, 5, 5, 5, 0], [4, 4, 4, 4, 0])
    with tempfile.TemporaryDirectory() as folder:
        basic, powers = Path(folder, "0.wotd"), Path(folder, "0-any.wotd")
        table = solver.solve(0, basic, threads=1)
        solver.solve(Rules(spaces=0, powers="any"), powers, threads=1)
        solver.verify(basic, threads=1)
        solver.verify(powers, threads=1)
        solver.evaluate(wotd_env.make_policy("first"), table, nearly_over)
        for each in (table, solver.compact(basic, Path(folder, "compact.wotd"))):
            each.value([nearly_over[0]], [nearly_over[1]])
            each.for_seats(game, game.reset(1))


def _guarantees() -> None:
    from wotd_env.planning.ends import ends_of
    from wotd_env.solver import guarantees, table
    from wotd_env.solver.families import Chunk
    from wotd_env.solver.positions import board_of

    board, ends = board_of(0, players=3), ends_of(3, powers=False)
    last, base, family = len(board.sizes) - 1, np.zeros(len(board.sizes), np.int64), guarantees.new_family()
    values, chunk = np.zeros((3, int(board.sizes[last])), np.float32), Chunk(last, 0, 1)
    group = guarantees.Guarantees(board, ends, base, (values[0], values[1], values[2]))
    guarantees.solve_guarantees(group, family, chunk, np.float32(1))
    values.flags.writeable = False  # values from a table file are read-only
    group = guarantees.Guarantees(board, ends, base, (values[0], values[1], values[2]))
    guarantees.check_guarantees(group, family, chunk)
    state, sections = wotd_env.Game(players=3).new(0), np.empty(0, np.int64)
    out, blocks = np.empty((0, 3), np.float32), np.empty((0, 3), np.int64)
    for each in (values, values.astype(np.int16)):
        each.flags.writeable = False
        table.look_up(table.Lookup(board, base, base, 1, each), sections, state, out, blocks)


def _tournaments() -> None:
    from wotd_env.arena import Tournament, run

    run(Tournament(("random",), games=4, luck="planner"))


def _benchmark() -> None:
    from wotd_env.benchmark.drawing import numbers

    numbers(np.zeros(1, np.uint64), 0)


_PARTS = (_games, _solver, _guarantees, _environments, _policies, _learned, _tournaments, _benchmark)
"""Functions that together call all kernels; the slowest function is first."""
