"""Numbers for the positions of the two-player basic game.

What one path holds is a *code*: the space of the piece of the player to move and that of the other one. Paths are
alike, so a position, seen by the player to move before the first roll, is a multiset of five codes. Its *progress* is
the sum of all ten spaces; positions of equal progress are a *layer*, and within it they are numbered by the
combinatorial number system (by the largest code, then the second largest ...). Where the value of a position is among
the values of all layers is its *index*.

A *shape* is a code up to exchanging the two pieces. The positions over one multiset of five shapes are a *family*: what
swaps and passes can reach from one another, and nothing else, lies in one family. The *mirror* of a position is the
same one with the players exchanged, which is how the other player sees it.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import kernel
from wotd_env.core.rules import DICE, NUMBERED, PATHS, Rules

__all__ = ["Board", "board_of"]

NONE = 65535
"""The code of what cannot be: two pieces on one space, a move that is forbidden."""

# What compiled code is given has no type that Python could check; these names say what it is.
Codes = Any
"""The codes of the five paths, uint64 (5,), ascending."""
Values = Any
"""The values of positions, float, one layer after the other."""
Bases = Any
"""Where in the values each layer begins, int64 (T,)."""


class Board(NamedTuple):
    """The positions for one number of plain spaces; C codes, H shapes, totals of progress 0..T-1.

    Codes ascend by progress, then by shape; 2 h - 1 and 2 h are the codes of shape h, 0 the code of shape 0 (both
    pieces off the board), which is its own mirror.
    """

    spaces: int
    mine: NDArray[np.int8]
    """(C,): the space of the piece of the player to move"""
    theirs: NDArray[np.int8]
    """(C,): that of the other player's piece"""
    progress: NDArray[np.uint16]
    """(C,): the sum of the two"""
    code: NDArray[np.uint16]
    """(S+6, S+6): the code of two spaces, or NONE"""
    flip: NDArray[np.uint16]
    """(C,): the code with the players exchanged"""
    after: NDArray[np.uint16]
    """(C, 6): the code when the player to move has gone 0..5 spaces, or NONE (R3, R4)"""
    swapped: NDArray[np.uint16]
    """(C,): the code after a swap, or NONE (R6)"""
    standing: NDArray[np.int16]
    """(C,): how far I am ahead by points, then by pieces on numbered spaces (R10); summed over paths it has the sign of
    the result"""
    numbered: NDArray[np.uint8]
    """(C,): bit 0: my piece stands on a numbered space, bit 1: the other player's does (R9)"""
    shape_progress: NDArray[np.uint16]
    """(H,)"""
    below: NDArray[np.uint32]
    """(5, T, C+1): how many multisets of i+1 codes, all less than c, have progress t"""
    shapes_below: NDArray[np.uint32]
    """(5, T, H+1): the same for shapes"""
    sizes: NDArray[np.int64]
    """(T,): positions in each layer"""
    families: NDArray[np.int64]
    """(T,): families in each layer"""

    @property
    def positions(self) -> int:
        """All positions."""
        return int(self.sizes.sum())


@functools.cache
def board_of(spaces: int) -> Board:
    """Return the board with that many plain spaces, 0 to 10.

    Raises:
        ValueError: for any other number.
    """
    Rules(spaces=spaces)
    top = spaces + NUMBERED
    shapes = sorted(
        ((high, low) for high in range(top + 1) for low in range(high)), key=lambda s: (sum(s), s)
    )
    codes = [(0, 0)] + [pair for high, low in shapes for pair in ((high, low), (low, high))]
    number = {pair: i for i, pair in enumerate(codes)}

    def code(mine: int, theirs: int, possible: bool = True) -> int:
        return number.get((mine, theirs), NONE) if possible else NONE

    progress = np.array([sum(pair) for pair in codes], np.uint16)
    layers = PATHS * (2 * top - 1) + 1
    shape_progress = progress[[0, *range(1, len(codes), 2)]]
    below, shapes_below = _multisets(progress, layers), _multisets(shape_progress, layers)
    # A point counts for more than all pieces on numbered spaces.
    worth = np.array([(PATHS + 1) * max(s - spaces, 0) + (s > spaces) for s in range(top + 1)])
    return Board(
        spaces=spaces,
        mine=np.array([m for m, _ in codes], np.int8),
        theirs=np.array([t for _, t in codes], np.int8),
        progress=progress,
        code=np.array([[code(m, t) for t in range(top + 1)] for m in range(top + 1)], np.uint16),
        flip=np.array([code(t, m) for m, t in codes], np.uint16),
        after=np.array(
            [[code(m + dice, t, m <= spaces or not dice) for dice in range(DICE + 1)] for m, t in codes],
            np.uint16,
        ),
        swapped=np.array([code(t, m, m > 0 and t > 0) for m, t in codes], np.uint16),
        standing=np.array([worth[m] - worth[t] for m, t in codes], np.int16),
        numbered=np.array([(m > spaces) + 2 * (t > spaces) for m, t in codes], np.uint8),
        shape_progress=shape_progress,
        below=below,
        shapes_below=shapes_below,
        sizes=below[-1, :, -1].astype(np.int64),
        families=shapes_below[-1, :, -1].astype(np.int64),
    )


def _multisets(progress: NDArray[np.uint16], layers: int) -> NDArray[np.uint32]:
    """Return uint32 (5, T, n+1): how many multisets of i+1 items, all with numbers less than c, have progress t."""
    count = np.zeros((PATHS + 1, layers, len(progress) + 1), np.uint32)
    count[0, 0] = 1
    for c, p in enumerate(progress.tolist()):
        count[:, :, c + 1] = count[:, :, c]
        # One of `size` items is c, and the others may be c as well.
        for size in range(1, PATHS + 1):
            count[size, p:, c + 1] += count[size - 1, : layers - p, c + 1]
    return count[1:]


@kernel
def position_number(board: Board, total: Any, c0: Any, c1: Any, c2: Any, c3: Any, c4: Any) -> Any:
    """Return the number within its layer of the position with these ascending codes and that progress."""
    below, progress = board.below, board.progress
    number = below[4, total, c4]
    total -= progress[c4]
    number += below[3, total, c3]
    total -= progress[c3]
    number += below[2, total, c2]
    total -= progress[c2]
    number += below[1, total, c1]
    total -= progress[c1]
    return number + below[0, total, c0]


@kernel
def number_with(board: Board, total: Any, codes: Codes, path: Any, code: Any) -> Any:
    """Return the number of the position in which the code of one path has become another one."""
    at = np.uint64(path)
    c0 = codes[np.uint64(at <= 0)]
    c1 = codes[np.uint64(1) + np.uint64(at <= 1)]
    c2 = codes[np.uint64(2) + np.uint64(at <= 2)]
    c3 = codes[np.uint64(3) + np.uint64(at <= 3)]
    return position_number(
        board,
        total,
        min(c0, code),
        max(c0, min(c1, code)),
        max(c1, min(c2, code)),
        max(c2, min(c3, code)),
        max(c3, code),
    )


@kernel
def write_multiset(below: Any, progress: Any, total: Any, number: Any, items: Any) -> None:
    """Write the five ascending items (codes, or shapes) of the multiset of a layer that has a number.

    `below` and `progress` are those of the items.
    """
    left = np.uint64(total)
    for i in range(PATHS):
        row = below[PATHS - 1 - i, left]
        # The item sought is the last one with row[item] <= number; it is always from low on, and below high.
        low, high = np.uint64(0), np.uint64(row.size - 1)
        while high - low > 1:
            middle = (low + high) >> np.uint64(1)
            if row[middle] <= number:
                low = middle
            else:
                high = middle
        number -= row[low]
        items[PATHS - 1 - i] = low
        left -= progress[low]


@kernel
def write_layer_codes(board: Board, total: Any, codes: Any) -> None:
    """Write the codes of all positions of a layer, uint64 (positions, 5), in order."""
    for number in range(codes.shape[0]):
        write_multiset(board.below, board.progress, total, number, codes[number])


@kernel
def sort_codes(board: Board, codes: Any) -> Any:
    """Sort five codes in place and return their progress."""
    total = np.uint64(board.progress[codes[0]])
    for path in range(1, PATHS):
        code = codes[path]
        total += np.uint64(board.progress[code])
        i = path
        while i > 0 and codes[i - 1] > code:
            codes[i] = codes[i - 1]
            i -= 1
        codes[i] = code
    return total


@kernel
def index_of(board: Board, codes: Codes, total: Any, base: Bases) -> Any:
    """Return the index of a position with that progress."""
    return base[total] + position_number(
        board, np.uint64(total), codes[0], codes[1], codes[2], codes[3], codes[4]
    )


@kernel
def write_mirror(board: Board, codes: Codes, mirror: Codes, partner: Any) -> None:
    """Write the codes of a position's mirror, and for each of its own codes where the same path is among those.

    Args:
        board: for the board's positions.
        codes: those of the position.
        mirror: is written.
        partner: uint64 (5,), is written.
    """
    for path in range(PATHS):
        mirror[path] = board.flip[codes[path]]
    sort_codes(board, mirror)
    for path in range(PATHS):
        at = np.uint64(0)
        while mirror[at] != board.flip[codes[path]]:
            at += np.uint64(1)
        partner[path] = at
