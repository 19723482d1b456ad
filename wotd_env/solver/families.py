"""Values of whole families of positions, sixteen positions and their mirrors side by side.

Everything that leaves a family makes progress, so it is looked up in later layers once; what stays in the family
(passes and swaps) is iterated to convergence: sixteen positions, then their mirrors, each time with the newest values
of the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wotd_env.core.compilation import kernel
from wotd_env.core.dice import NUM_KEEPS
from wotd_env.core.rules import DICE, PATHS
from wotd_env.planning.turn import LANES, NOTHING, Rows, new_rows
from wotd_env.solver.positions import NONE, Bases, Board, Values, index_of, write_multiset
from wotd_env.solver.turns import (
    AGAIN,
    ENDS,
    NEVER,
    PROGRESS,
    End,
    final_result,
    is_over,
    work_out,
    write_indices,
)

__all__ = ["Block", "check_families", "new_block", "solve_families"]


IMPOSSIBLE = 2 * LANES
"""Where in the values of a block that of what is not possible is."""


class Block(NamedTuple):
    """What one thread works on: lanes of positions (half 0) and their mirrors (half 1)."""

    rows: np.ndarray
    """float (462 + 2 * 37, LANES): a turn, then the ends of each half"""
    value: np.ndarray
    """float (3, LANES), of each half; the last row is that of what is not possible, for the other player"""
    codes: np.ndarray
    """uint64 (2, LANES, 5), ascending"""
    partner: np.ndarray
    """uint64 (LANES, 5): where in the mirror's codes the path with the i-th code is"""
    swapped: np.ndarray
    """uint64 (2, 5, LANES): where in `value.ravel()` the position after a swap is, as the other player sees it"""
    over: np.ndarray
    """bool (2, LANES): the game has ended"""
    twin: np.ndarray
    """bool (LANES,): the position is its own mirror"""
    advanced: np.ndarray
    """uint64 (5,), to work in"""
    indices: np.ndarray
    """int64 (PROGRESS, LANES), to work in"""


def new_block(dtype: Any = np.float32) -> Block:
    """Return a block for one thread."""
    return Block(
        rows=new_rows(NUM_KEEPS + 2 * ENDS, dtype),
        value=np.full((3, LANES), -NEVER, dtype),
        codes=np.zeros((2, LANES, PATHS), np.uint64),
        partner=np.zeros((LANES, PATHS), np.uint64),
        swapped=np.full((2, PATHS, LANES), IMPOSSIBLE, np.uint64),
        over=np.ones((2, LANES), np.bool_),
        twin=np.zeros(LANES, np.bool_),
        advanced=np.zeros(PATHS, np.uint64),
        indices=np.zeros((PROGRESS, LANES), np.int64),
    )


@kernel
def fill_lanes(board: Board, block: Block, total: Any, first: Any, last: Any) -> Any:
    """Put families of a layer into the lanes, as many as fit; return the next family and the lanes filled."""
    shapes = np.zeros(PATHS, np.uint64)
    # Paths of the same shape are a group. Members of the family differ by how many paths of each group have the second
    # of the shape's two codes; the member's number has a digit for each group.
    group = np.zeros(PATHS, np.uint64)  # its first path, for each path
    size = np.zeros(PATHS, np.uint64)  # its paths, noted at the first one
    stride = np.zeros(PATHS, np.uint64)  # of its digit, noted at the first one
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
                block.over[half, lane] = is_over(board, block.codes[half, lane])
        lanes += np.int64(pairs)
        family += 1
    return family, lanes


@kernel
def fill_ends(board: Board, block: Block, total: Any, lanes: Any, values: Values, base: Bases) -> None:
    """Fill the rows of the ends that make progress from the values of later layers."""
    rows, indices = block.rows, block.indices
    for half in range(2):
        first = np.uint64(NUM_KEEPS + half * ENDS)
        write_indices(
            board,
            block.codes[half, :lanes],
            block.codes[1 - half, :lanes],
            block.partner[:lanes],
            block.over[half, :lanes],
            total,
            base,
            block.advanced,
            indices,
        )
        for end in range(PROGRESS):
            row, again = first + np.uint64(end), AGAIN[end]
            # Without a branch for ends that are not possible, which the processor would guess wrong.
            for lane in range(lanes):
                index = indices[end, lane]
                value = values[np.uint64(max(index, 0))]
                value = value if again else -value
                rows[row, lane] = NEVER if index < 0 else value


@kernel
def work_out_half(rows: Rows, value: Any, swapped: Any, half: Any) -> None:
    """Work out the turns of one half with the newest values of the positions after a pass (R5) or a swap (R6).

    The values of the turns are in row NOTHING then.
    """
    everyone = value.ravel()
    first = np.uint64(NUM_KEEPS + half * ENDS)
    for lane in range(LANES):
        rows[first + np.uint64(End.PASS), lane] = -value[1 - half, lane]
    for path in range(PATHS):
        for lane in range(LANES):
            rows[first + np.uint64(End.SWAP_ON + path), lane] = -everyone[swapped[half, path, lane]]
    work_out(rows, first)


@kernel
def solve_families(
    board: Board,
    block: Block,
    total: Any,
    first: Any,
    last: Any,
    values: Values,
    base: Bases,
    tolerance: Any,
    most: Any,
    rounds: Any,
) -> None:
    """Solve families `first` to `last` - 1 of a layer, all later layers being solved.

    Args:
        board: for the board's positions.
        block: the calling thread's own.
        total: the layer.
        first: families from,
        last: and up to.
        values: read and filled.
        base: where in `values` the layers begin.
        tolerance: iterate until no value changes by more.
        most: rounds after which to give up; the changes left then show in the residual.
        rounds: int64 (most + 1,): counts blocks by the number of rounds they took.
    """
    rows, value, swapped = block.rows, block.value, block.swapped
    family = first
    while family < last:
        family, lanes = fill_lanes(board, block, total, family, last)
        fill_ends(board, block, total, lanes, values, base)
        for half in range(2):
            for lane in range(lanes):
                if block.over[half, lane]:
                    value[half, lane] = final_result(board, block.codes[half, lane])
                else:
                    # The first guess is the best move by three dice, as if it were all of the turn.
                    guess = value.dtype.type(NEVER)
                    for path in range(PATHS):
                        end = NUM_KEEPS + half * ENDS + End.MOVE_ON + DICE * path + 2
                        guess = max(guess, rows[np.uint64(end), lane])
                    value[half, lane] = max(guess, value.dtype.type(-1))
        count = 0
        change = tolerance + 1
        while change > tolerance and count < most:
            change = tolerance * 0
            for half in range(2):
                work_out_half(rows, value, swapped, half)
                for lane in range(lanes):
                    if not block.over[half, lane]:
                        new = rows[NOTHING, lane]
                        change = max(change, abs(new - value[half, lane]))
                        value[half, lane] = new
            count += 1
        rounds[count] += 1
        # A position that is its own mirror has one value, that of half 0.
        for half in range(1, -1, -1):
            for lane in range(lanes):
                if half == 0 or not block.twin[lane]:
                    values[index_of(board, block.codes[half, lane], total, base)] = value[half, lane]


@kernel
def check_families(
    board: Board, block: Block, total: Any, first: Any, last: Any, values: Values, base: Bases
) -> Any:
    """Return the largest Bellman error over families `first` to `last` - 1 of a layer, from the values alone."""
    rows, value, swapped = block.rows, block.value, block.swapped
    residual = 0.0
    family = first
    while family < last:
        family, lanes = fill_lanes(board, block, total, family, last)
        fill_ends(board, block, total, lanes, values, base)
        for half in range(2):
            for lane in range(lanes):
                value[half, lane] = values[index_of(board, block.codes[half, lane], total, base)]
        for half in range(2):
            work_out_half(rows, value, swapped, half)
            for lane in range(lanes):
                if block.over[half, lane]:
                    new = np.float64(final_result(board, block.codes[half, lane]))
                else:
                    new = np.float64(rows[NOTHING, lane])
                error = abs(new - value[half, lane])
                residual = max(residual, error if error == error else np.inf)
    return residual
