"""`wotd compile`: compile all kernels."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from pathlib import Path

import numpy as np

import wotd_env
from wotd_env.cli.common import explained, progress_bar
from wotd_env.cli.options import CORES


def command() -> None:
    """Compile all kernels in advance, so that nothing has to wait for the compiler later.

    This takes about 75 s of processor time, once per machine. The compiled code is saved beside the package or, if
    that folder is read-only, in the user's cache folder. The environment variable NUMBA_CACHE_DIR sets another folder.
    """
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with (
        explained(),
        progress_bar("parts") as progress,
        # The initializer hides the workers' messages about compiling.
        ProcessPoolExecutor(CORES, get_context("spawn"), logging.disable, (logging.WARNING,)) as pool,
    ):
        progress(0, len(_PARTS))
        for done, job in enumerate(as_completed([pool.submit(part) for part in _PARTS]), 1):
            job.result()
            progress(done, len(_PARTS))


def _games() -> None:
    from wotd_env.core import batch

    game = wotd_env.Game()
    state = game.reset(4)
    game.observe(state)
    game.observe(state, 1)
    game.scores(state)
    game.rewards(state)
    game.step(state, game.legal_actions(state).argmax(1))
    game.decide(state, np.full(4, 31))
    game.roll_off(0)
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
    from wotd_env.envs.single import WayOfTheDragonEnv
    from wotd_env.envs.vector import WayOfTheDragonVectorEnv

    env = WayOfTheDragonEnv()
    env.reset(seed=0)
    final_rewards(env.game, env.game.reset(1))
    env.step(env.action_masks().argmax())
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
    from wotd_env.planning.learned import LearnedValue, Network, shapes
    from wotd_env.planning.playing import play_turns

    game = wotd_env.Game()
    weights = (np.zeros(shape, np.float32) for shape in shapes(game.rules, 32).values())
    value = LearnedValue(game.rules, Network(*weights))
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
    from wotd_env.solver import guarantees, table
    from wotd_env.solver.families import Chunk
    from wotd_env.solver.positions import board_of

    board = board_of(0, players=3)
    last, base, family = len(board.sizes) - 1, np.zeros(len(board.sizes), np.int64), guarantees.new_family()
    values, chunk = np.zeros((3, int(board.sizes[last])), np.float32), Chunk(last, 0, 1)
    group = guarantees.Guarantees(board, base, (values[0], values[1], values[2]))
    guarantees.solve_guarantees(group, family, chunk, np.float32(1))
    values.flags.writeable = False  # values from a table file are read-only
    group = guarantees.Guarantees(board, base, (values[0], values[1], values[2]))
    guarantees.check_guarantees(group, family, chunk)
    state, sections = wotd_env.Game(players=3).new(0), np.empty(0, np.int64)
    out, blocks = np.empty((0, 3), np.float32), np.empty((0, 3), np.int64)
    for each in (values, values.astype(np.int16)):
        each.flags.writeable = False
        table.look_up(table.Lookup(board, base, base, 1, each), sections, state, out, blocks)


def _tournaments() -> None:
    from wotd_env.arena import Tournament, run
    from wotd_env.benchmark.drawing import numbers

    numbers(np.zeros(1, np.uint64), 0)
    run(Tournament(("random",), games=4, luck="planner"))


_PARTS = (_games, _solver, _guarantees, _environments, _policies, _learned, _tournaments)
"""Functions that together call all kernels; the slowest function is first."""
