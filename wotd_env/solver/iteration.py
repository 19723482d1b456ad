"""Solve and verify whole families of positions: iterate the values after passes and swaps to convergence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.rules import DICE, PATHS
from wotd_env.planning.turn import NOTHING
from wotd_env.solver import families, powers, turns
from wotd_env.solver.families import Block, Chunk
from wotd_env.solver.positions import Board, index_of
from wotd_env.solver.powers import PowerBlock, Sources
from wotd_env.solver.storage import Section

MOST_ROUNDS = 1000  # limit of the iterations of a block; remaining changes show in the table's residual
FIRST_GUESS = 3  # the iteration starts with the value of the best move by this number of dice


class Group(NamedTuple):
    """Sections that are solved together. With one owner, both entries of `sources` and of `values` are the same."""

    board: Board
    base: NDArray[np.int64]  # (T,): the index of the first value of each layer
    sources: tuple[Sources, Sources]  # by owner
    values: tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]  # by owner: (positions,)
    owners: int  # 1 or 2


class Work(NamedTuple):
    """Counts of the work on some families."""

    blocks: int
    rounds: int  # iterations of all blocks
    most_rounds: int  # iterations of the slowest block


def group_of(board: Board, base: NDArray[np.int64], pair: list[Section], known: dict[Section, Any]) -> Group:
    """Return the arrays of a group of `storage.sections_of`.

    `known` has the values of the sections in this group and in all earlier groups.
    """
    sources = []
    for mine, theirs in pair:
        used = (known[theirs, 0], known[0, theirs]) if mine else (known[0, 0], known[0, 0])
        sources.append(Sources(mine, known[theirs, mine], known[mine, theirs], *used))
    values = [known[section] for section in pair]
    return Group(board, base, (sources[0], sources[-1]), (values[0], values[-1]), len(pair))


@inlined
def _fill(group: Group, block: Block, power: PowerBlock | None, chunk: Chunk, family: Any) -> tuple[Any, Any]:
    """Fill the lanes and the rows of their ends; return the next family and the number of filled lanes."""
    total = np.uint64(chunk.total)
    family, lanes = families.fill_lanes(group.board, block, total, family, chunk.last)
    if power is None:
        families.fill_ends(group.board, group.base, group.values[0], block, total, lanes)
    else:
        for half in range(2):
            positions = families.positions_in(block, half, lanes)
            powers.write_all_indices(group.board, group.base, total, positions, block.indices, power)
            for owner in range(group.owners):
                powers.fill_power_ends(block, power, group.sources[owner], owner, half, lanes)
    return family, lanes


@inlined
def _value(group: Group, block: Block, power: PowerBlock | None, owner: Any, half: Any) -> None:
    """Write the values of the turns of an owner and half to row NOTHING."""
    if power is None:
        families.value_half(block.rows, block.value[0], block.swapped, half)
    else:
        other = group.owners - 1 - owner
        powers.value_power_half(block, power, group.sources[owner], owner, other, half)


@kernel
def solve_families(group: Group, block: Block, power: PowerBlock | None, chunk: Chunk, tolerance: Any) -> Any:
    """Solve families of a layer in all sections of a group, and write their values; return the `Work`.

    All later layers must be solved. `power` is None in the basic game. `tolerance` is the largest change of a value in
    the last iteration, in the dtype of the block.
    """
    rows, value, over = block.rows, block.value, block.over
    family, blocks, rounds, most = np.int64(chunk.first), 0, 0, 0
    while family < chunk.last:
        family, lanes = _fill(group, block, power, chunk, family)
        for owner in range(group.owners):
            for half in range(2):
                for lane in range(lanes):
                    if over[half, lane]:
                        value[owner, half, lane] = turns.final_result(group.board, block.codes[half, lane])
                    else:
                        guess = value.dtype.type(-1)
                        for path in range(PATHS):
                            end = families.first_end(owner, half) + np.uint64(DICE * path + FIRST_GUESS - 1)
                            guess = max(guess, rows[end, lane])
                        value[owner, half, lane] = guess
        count = 0
        change = tolerance + 1
        while change > tolerance and count < MOST_ROUNDS:
            change = tolerance * 0
            for owner in range(group.owners):
                for half in range(2):
                    _value(group, block, power, owner, half)
                    for lane in range(lanes):
                        if not over[half, lane]:
                            new = rows[NOTHING, lane]
                            change = max(change, abs(new - value[owner, half, lane]))
                            value[owner, half, lane] = new
            count += 1
        blocks += 1
        rounds += count
        most = max(most, count)
        # A position that is its own mirror is written once, with the value of half 0.
        for owner in range(group.owners):
            for half in range(1, -1, -1):
                for lane in range(lanes):
                    if half == 0 or not block.twin[lane]:
                        codes = block.codes[half, lane]
                        index = index_of(group.board, group.base, np.uint64(chunk.total), codes)
                        group.values[owner][index] = value[owner, half, lane]
    return Work(blocks, rounds, most)


@kernel
def check_families(group: Group, block: Block, power: PowerBlock | None, chunk: Chunk) -> Any:
    """Return the largest Bellman error over families of a layer; inf if a value is not a number."""
    value = block.value
    residual = 0.0
    family = np.int64(chunk.first)
    while family < chunk.last:
        family, lanes = _fill(group, block, power, chunk, family)
        for owner in range(group.owners):
            for half in range(2):
                for lane in range(lanes):
                    codes = block.codes[half, lane]
                    index = index_of(group.board, group.base, np.uint64(chunk.total), codes)
                    value[owner, half, lane] = group.values[owner][index]
        for owner in range(group.owners):
            for half in range(2):
                _value(group, block, power, owner, half)
                for lane in range(lanes):
                    new = np.float64(block.rows[NOTHING, lane])
                    if block.over[half, lane]:
                        new = np.float64(turns.final_result(group.board, block.codes[half, lane]))
                    error = abs(new - value[owner, half, lane])
                    residual = max(residual, error if error == error else np.inf)
    return residual
