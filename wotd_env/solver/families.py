"""Arrange the positions of families (see `positions`) side by side for vector instructions.

Moves lead to layers that are solved already, so the values after moves are looked up only once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.dice import NUM_KEEPS, NUM_ROLLS
from wotd_env.core.rules import PATHS
from wotd_env.planning.turn import LANES, new_rows
from wotd_env.solver import turns
from wotd_env.solver.positions import NONE, Board, write_multiset
from wotd_env.solver.turns import ENDS, NEVER, PROGRESS

NO_SWAP = 2 * LANES  # index in `Block.value[owner].ravel()` that stands for an impossible swap

# The rows of `Block.rows`:
# - from 0: the rows of a turn (see `planning.turn`)
# - from TIGER: for each roll, the value of an additional re-roll with the power tiger
# - from FIRST_END: for each owner (see `powers`) and half (see `Block`), STRIDE rows with the values of ends
# Within the STRIDE rows of an owner and half:
# - from 0: ends without a power, and fear
# - from USED: the same ends, if the player uses a power in this turn
# - from LEAPT: ends with a jump (power anxiety)
# - from REBORN: passes and swaps with the power rebirth
TIGER = NUM_KEEPS
FIRST_END = TIGER + NUM_ROLLS
USED, LEAPT, REBORN = ENDS, 2 * ENDS, 2 * ENDS + PROGRESS
STAYS = ENDS - PROGRESS  # number of ends that make no progress: a pass, fear, and a swap on each path
STRIDE = REBORN + STAYS


class Block(NamedTuple):
    """The memory of one thread: one position in each lane (half 0), and the mirrors of these positions (half 1)."""

    rows: NDArray[np.floating[Any]]  # (FIRST_END + 4 * STRIDE, LANES)
    value: NDArray[np.floating[Any]]  # (2, 3, LANES): by owner, half and lane; half 2 is for impossible swaps
    codes: NDArray[np.uint64]  # (2, LANES, 5), ascending
    partner: NDArray[np.uint64]  # (LANES, 5): for each code, the index of the same path in the mirror
    swapped: NDArray[np.uint64]  # (2, 5, LANES): index in `value[owner].ravel()` of the position after a swap
    over: NDArray[np.bool_]  # (2, LANES)
    twin: NDArray[np.bool_]  # (LANES,): whether the position is its own mirror
    after: NDArray[np.int64]  # (4, ENDS, LANES), see `write_indices`


class Chunk(NamedTuple):
    """Families `first` to `last - 1` of layer `total`."""

    total: int
    first: int
    last: int


def new_block(dtype: Any = np.float32) -> Block:
    """Return the memory of one thread for values of type `dtype`."""
    rows = new_rows(FIRST_END + 4 * STRIDE, dtype)
    rows[FIRST_END:] = NEVER
    return Block(
        rows=rows,
        value=np.full((2, 3, LANES), -NEVER, dtype),
        codes=np.zeros((2, LANES, PATHS), np.uint64),
        partner=np.zeros((LANES, PATHS), np.uint64),
        swapped=np.full((2, PATHS, LANES), NO_SWAP, np.uint64),
        over=np.ones((2, LANES), np.bool_),
        twin=np.zeros(LANES, np.bool_),
        after=np.zeros((4, ENDS, LANES), np.int64),
    )


@kernel
def fill_lanes(board: Board, block: Block, total: Any, first: Any, last: Any) -> Any:
    """Fill the lanes with as many of the families `first` to `last - 1` of layer `total` as fit.

    Return the next family and the number of filled lanes.

    The paths with equal shapes form a *group*. A shape has two codes, or only one if both pieces are off the board. A
    *member* is a position of the family. The index of a member is a mixed-radix number with one digit for each group.
    This digit is the number of the group's paths that have the second code of their shape. In a family of n members,
    the mirror of member m is member n - 1 - m.

    With immunity (R14), the two own paths come last and belong to no group. `own` and `other` are the codes of these
    two paths, each as seen by the player of the path's color. If `own` and `other` differ, the mirrors form another
    family, in which the two codes are exchanged. The lanes get the two families together. The index of a member then
    has one more digit: 0 for the family with `own < other`, 1 for the family with `own > other`.
    """
    swappable = PATHS - 2 if board.immunity else PATHS
    shapes = np.zeros(PATHS, np.uint64)
    lowest = np.zeros(PATHS, np.uint64)  # for each path, the first code of its shape
    two = np.zeros(PATHS, np.bool_)  # for each path, whether its shape has two codes
    group = np.zeros(PATHS, np.uint64)  # for each path, the first path of its group
    size = np.zeros(PATHS, np.uint64)  # the number of paths of the group that starts with this path
    stride = np.zeros(PATHS, np.uint64)
    lanes: Any = 0
    family = first
    while family < last:
        write_multiset(board.shapes_below, board.shape_progress, total, family, shapes)
        own, other = np.uint64(0), np.uint64(0)
        if board.immunity:
            own = np.uint64(board.first[shapes[3]])
            other = np.uint64(board.flip[board.first[shapes[4]]])
        if own > other:
            family += 1
            continue
        members = np.uint64(1)
        for path in range(swappable):
            lowest[path] = board.first[shapes[path]]
            two[path] = lowest[path] + np.uint64(1) < board.first[shapes[path] + np.uint64(1)]
            if path and shapes[path] == shapes[path - 1]:
                group[path] = group[path - 1]
                size[group[path]] += np.uint64(1)
            else:
                group[path] = path
                size[path] = 1
        for path in range(swappable):
            if group[path] == path:
                stride[path] = members
                if two[path]:
                    members *= size[path] + np.uint64(1)
        if own != other:
            members *= np.uint64(2)
        pairs = (members + np.uint64(1)) >> np.uint64(1)
        if lanes + pairs > LANES:
            break
        for pair in range(pairs):
            lane = np.uint64(lanes + pair)
            block.twin[lane] = pair == members - np.uint64(1) - np.uint64(pair)
            for path in range(swappable):
                g = group[path]
                block.partner[lane, path] = np.uint64(2) * g + size[g] - np.uint64(1 + path)
            if board.immunity:
                block.partner[lane, 3], block.partner[lane, 4] = 4, 3
                block.codes[0, lane, 3], block.codes[1, lane, 3] = own, other
                block.codes[0, lane, 4], block.codes[1, lane, 4] = board.flip[other], board.flip[own]
            for half in range(2):
                member = members - np.uint64(1) - np.uint64(pair) if half else np.uint64(pair)
                for path in range(swappable):
                    g = group[path]
                    code = lowest[path]
                    if two[path]:
                        second = member // stride[g] % (size[g] + np.uint64(1))
                        is_second = np.uint64(path) - g >= size[g] - second
                        code += np.uint64(is_second)
                        after = member - stride[g] if is_second else member + stride[g]
                        seen = members - np.uint64(1) - after
                        where = lanes + seen if seen < pairs else LANES + lanes + after
                        block.swapped[half, path, lane] = NO_SWAP if board.swapped[code, 0] == NONE else where
                    else:
                        block.swapped[half, path, lane] = NO_SWAP
                    block.codes[half, lane, path] = code
                block.over[half, lane] = turns.is_over(board, block.codes[half, lane])
        lanes += np.int64(pairs)
        family += 1
    return family, lanes


@inlined
def positions_in(block: Block, half: Any, lanes: Any) -> turns.Positions:
    """Return the positions of a half in the first `lanes` lanes."""
    codes, partner, over = block.codes, block.partner[:lanes], block.over
    return turns.Positions(codes[half, :lanes], codes[1 - half, :lanes], partner, over[half, :lanes])


@inlined
def first_end(owner: Any, half: Any) -> Any:
    """Return the first of the rows in `Block.rows` that have the ends of this owner and half, as a uint64."""
    return np.uint64(FIRST_END + (2 * owner + half) * STRIDE)
