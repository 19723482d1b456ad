"""Solve whole families of positions, up to sixteen positions and their mirrors side by side.

Moves make progress, so the values after them come from later layers and are looked up once. Passes and swaps stay in
the family, and their values are iterated to convergence: first the positions, then their mirrors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import kernel
from wotd_env.core.dice import NUM_KEEPS
from wotd_env.core.rules import DICE, PATHS
from wotd_env.planning.turn import LANES, NOTHING, Rows, new_rows
from wotd_env.solver import turns
from wotd_env.solver.positions import NONE, Board, Layers, index_of, write_multiset
from wotd_env.solver.turns import ENDS, NEVER, PROGRESS, End

IMPOSSIBLE = 2 * LANES  # index in `Block.value.ravel()` of the value that stands for an impossible swap
MOST_ROUNDS = 1000  # the most iterations of a block. Later changes show in the residual of the table.
FIRST_GUESS = 3  # the iteration starts with the value of the best move by this number of dice


class Block(NamedTuple):
    """The memory of one thread: one position in each lane (half 0), and their mirrors (half 1)."""

    rows: NDArray[np.floating[Any]]  # (462 + 2 * 37, LANES): the rows of a turn, then the ends of each half
    value: NDArray[np.floating[Any]]  # (3, LANES): the values of each half; row 2: an impossible position
    codes: NDArray[np.uint64]  # (2, LANES, 5), ascending
    partner: NDArray[np.uint64]  # (LANES, 5): for each code, the index in the mirror of the same path
    swapped: NDArray[np.uint64]  # (2, 5, LANES): the index in `value.ravel()` of the mirror after a swap
    over: NDArray[np.bool_]  # (2, LANES): whether the game has ended
    twin: NDArray[np.bool_]  # (LANES,): whether the position is its own mirror
    indices: NDArray[np.int64]  # (PROGRESS, LANES): the positions after each end, see `write_indices`


class Chunk(NamedTuple):
    """Families of one layer: `first` to `last` - 1."""

    total: int
    first: int
    last: int


class Work(NamedTuple):
    """The number of blocks, of all their iterations, and of the iterations of the slowest block."""

    blocks: int
    rounds: int
    most_rounds: int


def new_block(dtype: Any = np.float32) -> Block:
    """Return the memory of one thread; values are computed in `dtype`."""
    return Block(
        rows=new_rows(NUM_KEEPS + 2 * ENDS, dtype),
        value=np.full((3, LANES), -NEVER, dtype),
        codes=np.zeros((2, LANES, PATHS), np.uint64),
        partner=np.zeros((LANES, PATHS), np.uint64),
        swapped=np.full((2, PATHS, LANES), IMPOSSIBLE, np.uint64),
        over=np.ones((2, LANES), np.bool_),
        twin=np.zeros(LANES, np.bool_),
        indices=np.zeros((PROGRESS, LANES), np.int64),
    )


@kernel
def fill_lanes(board: Board, block: Block, total: Any, first: Any, last: Any) -> Any:
    """Fill the lanes with as many families of a layer as fit; return the next family and the number of filled lanes.

    Paths of the same shape are a *group*. Each path has the first or the second code of its shape, so the counts of
    second codes in the groups determine a member of the family. They are the digits of its index; the mirror of member
    m is member (members - 1 - m).
    """
    shapes = np.zeros(PATHS, np.uint64)
    group = np.zeros(PATHS, np.uint64)  # the first path of the group of each path
    size = np.zeros(PATHS, np.uint64)  # the number of paths of the group that starts with this path
    stride = np.zeros(PATHS, np.uint64)  # the weight of its digit in the index of a member
    lanes: Any = 0
    family = first
    while family < last:
        write_multiset(board.shapes_below, board.shape_progress, total, family, shapes)
        members = np.uint64(1)
        for path in range(PATHS):
            if path and shapes[path] == shapes[path - 1]:
                group[path] = group[path - 1]
                size[group[path]] += np.uint64(1)
            else:
                group[path] = path
                size[path] = 1
        for path in range(PATHS):
            if group[path] == path:
                stride[path] = members
                if shapes[path]:
                    members *= size[path] + np.uint64(1)
        pairs = (members + np.uint64(1)) >> np.uint64(1)
        if lanes + pairs > LANES:
            break
        for pair in range(pairs):
            lane = np.uint64(lanes + pair)
            block.twin[lane] = pair == members - np.uint64(1) - np.uint64(pair)
            for path in range(PATHS):
                block.partner[lane, path] = (
                    np.uint64(2) * group[path] + size[group[path]] - np.uint64(1 + path)
                )
            for half in range(2):
                member = members - np.uint64(1) - np.uint64(pair) if half else np.uint64(pair)
                for path in range(PATHS):
                    g = group[path]
                    code = np.uint64(0)
                    if shapes[path]:
                        second = member // stride[g] % (size[g] + np.uint64(1))
                        is_second = np.uint64(path) - g >= size[g] - second
                        code = np.uint64(2) * shapes[path] - np.uint64(not is_second)
                        after = member - stride[g] if is_second else member + stride[g]
                        seen = members - np.uint64(1) - after
                        where = lanes + seen if seen < pairs else LANES + lanes + after
                        block.swapped[half, path, lane] = IMPOSSIBLE if board.swapped[code] == NONE else where
                    else:
                        block.swapped[half, path, lane] = IMPOSSIBLE
                    block.codes[half, lane, path] = code
                block.over[half, lane] = turns.is_over(board, block.codes[half, lane])
        lanes += np.int64(pairs)
        family += 1
    return family, lanes


@kernel
def fill_ends(layers: Layers, block: Block, total: Any, lanes: Any) -> None:
    """Fill the rows of the ends that make progress with the values of later layers."""
    rows, indices, values = block.rows, block.indices, layers.values
    for half in range(2):
        positions = turns.Positions(
            block.codes[half, :lanes],
            block.codes[1 - half, :lanes],
            block.partner[:lanes],
            block.over[half, :lanes],
        )
        turns.write_indices(layers.board, layers.base, np.uint64(total), positions, indices)
        first = np.uint64(NUM_KEEPS + half * ENDS)
        for end in range(PROGRESS):
            row, again = first + np.uint64(end), turns.AGAIN[end]
            # No branch for impossible ends: the processor would mispredict it.
            for lane in range(lanes):
                index = indices[end, lane]
                value = values[np.uint64(max(index, 0))]
                value = value if again else -value
                rows[row, lane] = NEVER if index < 0 else value


@kernel
def value_half(rows: Rows, value: Any, swapped: Any, half: Any) -> None:
    """Write the values of the turns of one half to row NOTHING, with the current values after passes and swaps."""
    everyone = value.ravel()
    first = np.uint64(NUM_KEEPS + half * ENDS)
    for lane in range(LANES):  # R5
        rows[first + np.uint64(End.PASS), lane] = -value[1 - half, lane]
    for path in range(PATHS):  # R6
        for lane in range(LANES):
            rows[first + np.uint64(End.SWAP_ON + path), lane] = -everyone[swapped[half, path, lane]]
    turns.value_turns(rows, first)


@kernel
def solve_families(layers: Layers, block: Block, chunk: Chunk, tolerance: Any) -> Work:
    """Solve families of a layer and write their values. All later layers must be solved.

    `tolerance` is the largest change of a value in the last iteration, in the dtype of the block.
    """
    rows, value, swapped = block.rows, block.value, block.swapped
    family, blocks, rounds, most = np.int64(chunk.first), 0, 0, 0
    while family < chunk.last:
        family, lanes = fill_lanes(layers.board, block, chunk.total, family, chunk.last)
        fill_ends(layers, block, chunk.total, lanes)
        for half in range(2):
            for lane in range(lanes):
                if block.over[half, lane]:
                    value[half, lane] = turns.final_result(layers.board, block.codes[half, lane])
                else:
                    guess = value.dtype.type(NEVER)
                    for path in range(PATHS):
                        end = NUM_KEEPS + half * ENDS + End.MOVE_ON + DICE * path + FIRST_GUESS - 1
                        guess = max(guess, rows[np.uint64(end), lane])
                    value[half, lane] = max(guess, value.dtype.type(-1))
        count = 0
        change = tolerance + 1
        while change > tolerance and count < MOST_ROUNDS:
            change = tolerance * 0
            for half in range(2):
                value_half(rows, value, swapped, half)
                for lane in range(lanes):
                    if not block.over[half, lane]:
                        new = rows[NOTHING, lane]
                        change = max(change, abs(new - value[half, lane]))
                        value[half, lane] = new
            count += 1
        blocks += 1
        rounds += count
        most = max(most, count)
        # A position that is its own mirror gets the value of half 0, written last.
        for half in range(1, -1, -1):
            for lane in range(lanes):
                if half == 0 or not block.twin[lane]:
                    total = np.uint64(chunk.total)
                    index = index_of(layers.board, layers.base, total, block.codes[half, lane])
                    layers.values[index] = value[half, lane]
    return Work(blocks, rounds, most)


@kernel
def check_families(layers: Layers, block: Block, chunk: Chunk) -> Any:
    """Return the largest Bellman error over families of a layer; inf if a value is not a number."""
    rows, value, swapped = block.rows, block.value, block.swapped
    residual = 0.0
    family = np.int64(chunk.first)
    while family < chunk.last:
        family, lanes = fill_lanes(layers.board, block, chunk.total, family, chunk.last)
        fill_ends(layers, block, chunk.total, lanes)
        for half in range(2):
            for lane in range(lanes):
                total = np.uint64(chunk.total)
                index = index_of(layers.board, layers.base, total, block.codes[half, lane])
                value[half, lane] = layers.values[index]
        for half in range(2):
            value_half(rows, value, swapped, half)
            for lane in range(lanes):
                if block.over[half, lane]:
                    new = np.float64(turns.final_result(layers.board, block.codes[half, lane]))
                else:
                    new = np.float64(rows[NOTHING, lane])
                error = abs(new - value[half, lane])
                residual = max(residual, error if error == error else np.inf)
    return residual
