"""Solve and verify families of positions. The values after passes and swaps are iterated until they converge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import inlined, kernel
from wotd_env.planning.ends import Ends, ends_of
from wotd_env.planning.turn import NOTHING
from wotd_env.solver import families, powers, turns
from wotd_env.solver.families import Block, Chunk
from wotd_env.solver.positions import Board, index_of
from wotd_env.solver.powers import Held, Sources, offers_with
from wotd_env.solver.storage import Section
from wotd_env.solver.turns import JUMPED, PROGRESS

MOST_ROUNDS = 1000  # maximum number of iterations; if it is too small, `verify` finds a large residual
FIRST_GUESS = 3  # the initial value of a position is the value after its best move by FIRST_GUESS spaces


class Group(NamedTuple):
    """One or two sections that are solved together: one for each owner (see `powers`).

    With one owner, the two entries of each tuple are the same.
    """

    board: Board
    ends: Ends  # the ends without powers
    base: NDArray[np.int64]  # (T,): the index of the first value of each layer
    sources: tuple[Sources, Sources]
    held: tuple[Held, Held]
    values: tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]
    owners: int


class Work(NamedTuple):
    """Statistics of one call of `solve_families`."""

    blocks: int
    rounds: int  # the total number of iterations of all blocks
    most_rounds: int  # the largest number of iterations of a block


def group_of(board: Board, base: NDArray[np.int64], pair: list[Section], known: dict[Section, Any]) -> Group:
    """Return the arrays for solving `pair`, a group of sections from `storage.sections_of`.

    `known` maps each section of this group and of earlier groups to its values.
    """
    sources, ends = [], ends_of(2, powers=False)
    for mine, theirs in pair:
        used = (known[theirs, 0], known[0, theirs]) if mine else (known[0, 0], known[0, 0])
        after = [values.view() for values in (known[theirs, mine], known[mine, theirs], *used)]
        for values in after:  # the kernels are compiled only once if they get the same types
            values.flags.writeable = False
        sources.append(Sources(mine, *after))
    values = [known[section] for section in pair]
    held = [Held(mine, offers_with(mine), ends.offers) for mine, _ in pair]
    both = (sources[0], sources[-1]), (held[0], held[-1]), (values[0], values[-1])
    return Group(board, ends, base, *both, len(pair))


@inlined
def _fill(group: Group, block: Block, chunk: Chunk, family: Any) -> tuple[Any, Any]:
    total = np.uint64(chunk.total)
    after = block.after if group.sources[0].powers else block.after[:JUMPED]
    family, lanes = families.fill_lanes(group.board, block, total, family, chunk.last)
    for half in range(2):
        positions = families.positions_in(block, half, lanes)
        turns.write_indices(group.board, group.ends, group.base, total, positions, after)
        for owner in range(group.owners):
            powers.fill_ends(block, group.sources[owner], group.ends.perfection, owner, half, lanes)
    return family, lanes


@inlined
def _value(group: Group, block: Block, owner: Any, half: Any) -> None:
    first, value = families.first_end(owner, half), block.value[group.owners - 1 - owner]
    powers.value_half(block.rows, value, block.swapped, half, first, group.held[owner])


@inlined
def _sweep(group: Group, block: Block, lanes: Any, write: bool) -> Any:
    """Return the largest difference of new values from those of a block. Write the new values if `write` is true."""
    value, largest = block.value, block.value.dtype.type(0)
    for owner in range(group.owners):
        for half in range(2):
            _value(group, block, owner, half)
            for lane in range(lanes):
                if not block.over[half, lane]:
                    new = block.rows[NOTHING, lane]
                    largest = max(largest, abs(new - value[owner, half, lane]))
                    if write:
                        value[owner, half, lane] = new
    return largest


@inlined
def _merge_twins(group: Group, block: Block, lanes: Any) -> Any:
    """Copy the values of positions that are their own mirrors from the first half of a block to the second half.

    The two halves can differ by more than the last change. Only values of the first half are written to the table.
    Return whether there are such positions.
    """
    found = False
    for lane in range(lanes):
        if block.twin[lane]:
            found = True
            for owner in range(group.owners):
                block.value[owner, 1, lane] = block.value[owner, 0, lane]
    return found


@kernel
def solve_families(group: Group, block: Block, chunk: Chunk, tolerance: Any) -> Any:
    """For all sections of a group, solve the families of a chunk, and write their values.

    All layers with more progress must be solved already. `tolerance` has the dtype of the block.
    """
    rows, value, over, ends = block.rows, block.value, block.over, group.ends
    family, blocks, rounds, most = np.int64(chunk.first), 0, 0, 0
    while family < chunk.last:
        family, lanes = _fill(group, block, chunk, family)
        for owner in range(group.owners):
            for half in range(2):
                for lane in range(lanes):
                    if over[half, lane]:
                        value[owner, half, lane] = turns.final_result(group.board, block.codes[half, lane])
                    else:
                        guess = value.dtype.type(-1)
                        for end in range(PROGRESS):
                            if ends.dice[end] == FIRST_GUESS:
                                guess = max(
                                    guess, rows[families.first_end(owner, half) + np.uint64(end), lane]
                                )
                        value[owner, half, lane] = guess
        count, done = 0, False
        while not done and count < MOST_ROUNDS:
            change = _sweep(group, block, lanes, True)
            count += 1
            if change <= tolerance:
                done = (
                    not _merge_twins(group, block, lanes) or _sweep(group, block, lanes, False) <= tolerance
                )
        blocks += 1
        rounds += count
        most = max(most, count)
        for owner in range(group.owners):
            for half in range(1, -1, -1):
                for lane in range(lanes):
                    if half == 0 or not block.twin[lane]:
                        codes = block.codes[half, lane]
                        index = index_of(group.board, group.base, np.uint64(chunk.total), codes)
                        group.values[owner][index] = value[owner, half, lane]
    return Work(blocks, rounds, most)


@kernel
def check_families(group: Group, block: Block, chunk: Chunk) -> Any:
    """Return the largest Bellman error in the families of a chunk, or inf if a value is NaN."""
    value = block.value
    residual = 0.0
    family = np.int64(chunk.first)
    while family < chunk.last:
        family, lanes = _fill(group, block, chunk, family)
        for owner in range(group.owners):
            for half in range(2):
                for lane in range(lanes):
                    codes = block.codes[half, lane]
                    index = index_of(group.board, group.base, np.uint64(chunk.total), codes)
                    value[owner, half, lane] = group.values[owner][index]
        for owner in range(group.owners):
            for half in range(2):
                _value(group, block, owner, half)
                for lane in range(lanes):
                    new = np.float64(block.rows[NOTHING, lane])
                    if block.over[half, lane]:
                        new = np.float64(turns.final_result(group.board, block.codes[half, lane]))
                    error = abs(new - value[owner, half, lane])
                    residual = max(residual, error if error == error else np.inf)
    return residual
