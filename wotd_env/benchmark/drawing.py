"""Draw positions: games of players of many strengths, and one decision of each kind and stage from every game.

Everything random is an integer from SplitMix64 with the seed of the game, as in the engine. A game is therefore the
same in every batch, and equal arguments give equal files. Networks are not among the players, because the rounding of
their sums differs between processors. Tables and plans are equal on processors with fused multiply-add, such as those
of x86-64-v3.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.analysis import kinds, kinds_of
from wotd_env.analysis.equity import analyze
from wotd_env.benchmark.positions import SPLITS, STAGES, Positions, stages, write
from wotd_env.core.arguments import check_choice, check_integer
from wotd_env.core.compilation import kernel
from wotd_env.core.game import Game
from wotd_env.core.state import ROW, STATE, States
from wotd_env.core.stream import STEP, mix
from wotd_env.policies import make_policy
from wotd_env.policies.planner import Planner
from wotd_env.policies.random import choose_all
from wotd_env.policy import play_out
from wotd_env.solver import Table
from wotd_env.solver.storage import is_compact
from wotd_env.solver.table import check_table

_MISTAKES = {"random": (0,), "greedy": (0, 4), "planner": (0, 2), "oracle": (0, 1, 4)}
ROSTER = tuple((name, mistakes) for name, each in _MISTAKES.items() for mistakes in each)
"""The players: a policy, and how many of 16 decisions are random instead. Each seat draws one, all equally likely."""
SIZE = 800  # positions of each kind and stage
GAMES = 200  # most games for each position of a kind and stage; rare kinds therefore have fewer positions

BLOCK = 4096  # games played side by side; positions do not depend on it
MAX_SEED = 2**20
_SALT = np.uint64(0x77 << 56)  # separates the draws from the dice


def draw(
    table: Table,
    file: str | Path,
    split: str = "test",
    size: int = SIZE,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Positions:
    """Draw positions with exact equities and write them to a Parquet file.

    A file with a larger `size` contains the positions of a smaller one.

    Args:
        table: the solution of the board, with 32 bits a value.
        file: the file to write.
        split: `"train"`, `"validation"` or `"test"`; splits have different games.
        size: positions of each kind and stage; a rare kind has fewer if `GAMES * size` games do not contain them.
        seed: 0 for the published positions, at most 2**20; other seeds have other games.
        progress: called with the number of games so far and the largest possible number.

    Raises:
        TypeError, ValueError: for a wrong argument.
        OSError: if the file cannot be written.
    """
    check_table(table)
    if is_compact(table.header):
        raise ValueError(f"{table.file} has 16 bits a value; positions need the table before --compact")
    check_choice("split", split, SPLITS)
    size = check_integer("size", size, 1, 1_000_000)
    seed = check_integer("seed", seed, 0, MAX_SEED)
    game, total, done = Game(table.rules), GAMES * size, 0
    cells = len(kinds_of(game.rules)) * len(STAGES)
    missing = np.full(cells, size)
    first = (len(SPLITS) * seed + SPLITS.index(split)) << 40
    states, numbers = [], []
    while done < total and missing.any():
        count = min(BLOCK, total - done)
        state, number, cell = _sample(game, table, np.arange(first + done, first + done + count))
        kept = np.zeros(len(cell), np.bool_)
        for each in range(cells):
            rows = np.flatnonzero(cell == each)[: missing[each]]
            kept[rows] = True
            missing[each] -= len(rows)
        states.append(state[kept])
        numbers.append(number[kept])
        done += count
        progress(done if missing.any() else total, total)
    state = np.concatenate(states)
    state["rng"] = 0
    mask = game.legal_actions(state)
    equity = np.where(mask == 1, analyze(game, state, table).actions, np.float32(np.nan))
    kind, stage = kinds(game, state), stages(game.rules, state)
    positions = Positions(game.rules, split, state, mask, equity, kind, stage, np.concatenate(numbers))
    write(positions, Path(file), {"size": size, "seed": seed, "games": done, "table": table.header["sha256"]})
    return positions


def _sample(
    game: Game, table: Table, seeds: NDArray[np.int64]
) -> tuple[States, NDArray[np.int64], NDArray[np.int64]]:
    """Play games and return a random decision of each kind and stage: states, games, and cells, sorted by game."""
    state = game.reset(len(seeds), seed=int(seeds[0]))
    keys = _numbers(seeds.astype(np.uint64) ^ _SALT, 0)
    drawn = [_numbers(keys, seat) % np.uint64(len(ROSTER)) for seat in range(game.rules.players)]
    seats = np.stack(drawn, 1).astype(np.int64)
    policies = {name: make_policy(name) for name, _ in ROSTER if name != "oracle"}
    policies["oracle"] = Planner(table.for_seats)
    unused = np.random.default_rng(0)  # all choices of these policies are deterministic, except random moves
    played: list[NDArray[np.int64]] = []
    states, priorities = [], []

    def choose(player: int, games: NDArray[np.int64]) -> NDArray[np.int64]:
        name, mistakes = ROSTER[player]
        asked = _take(state, games)
        bits = _numbers(keys[games], game.rules.players + 2 * len(played))
        actions = np.empty(len(games), np.int64)
        game.apply(choose_all, asked, bits, actions)
        sure = np.flatnonzero((bits & np.uint64(15)) >= mistakes)
        if name != "random" and sure.size:
            actions[sure] = policies[name].act(game, _take(asked, sure), unused)
        return actions

    for chosen in play_out(game, state, seats, choose):
        live = np.flatnonzero(chosen >= 0)
        priorities.append(_numbers(keys[live], game.rules.players + 2 * len(played) + 1))
        played.append(live)
        states.append(_take(state, live))
    number, decided = np.concatenate(played), np.concatenate(states)
    cell = kinds(game, decided) * len(STAGES) + stages(game.rules, decided)
    order = np.lexsort((np.concatenate(priorities), cell, number))
    group = (number * (cell.max() + 1) + cell)[order]
    best = order[np.flatnonzero(np.diff(group, prepend=-1))]
    return _take(decided, best), seeds[number[best]], cell[best]


def _take(state: States, rows: NDArray[np.int64]) -> States:
    """Return some of the games. NumPy is slow with records that have fields."""
    return state.view(ROW)[rows].view(STATE)


@kernel
def _numbers(keys: Any, n: Any) -> Any:
    """Return number n of each random stream, given by key, uint64 (N,)."""
    return mix(keys + STEP * np.uint64(n))
