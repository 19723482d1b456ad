"""Numbers for the positions of the two-player basic game.

What one path holds is a *code*: the space of the piece of the player to move and that of the other one. Paths are
alike, so a position, seen by the player to move before the first roll, is a multiset of five codes. Its *progress* is
the sum of all ten spaces; positions of equal progress are a *layer*, and within it they are numbered by the
combinatorial number system (by the largest code, then the second largest ...).

A *shape* is a code up to exchanging the two pieces. The positions over one multiset of five shapes are a *family*: what
swaps, passes and extra turns can reach from one another without progress, and nothing else, lies in one family.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from wotd_env.core.compilation import kernel
from wotd_env.core.rules import DICE, NUMBERED, PATHS, Rules

__all__ = ["Board", "board", "rank"]

NONE = 65535
"""The code of what cannot be: two pieces on one space, a move that is forbidden."""


class Board(NamedTuple):
    """The tables for one number of plain spaces; C codes, H shapes, totals of progress 0..T-1.

    Codes ascend by progress, then by shape; 2 h - 1 and 2 h are the codes of shape h, 0 the code of shape 0 (both
    pieces off the board), which is its own exchange.
    """

    spaces: int
    mine: np.ndarray  # int8 (C,): space of the piece of the player to move
    theirs: np.ndarray  # int8 (C,)
    progress: np.ndarray  # uint16 (C,): the sum of the two
    code: np.ndarray  # uint16 (S+6, S+6): the code of two spaces, or NONE
    flip: np.ndarray  # uint16 (C,): the code with the players exchanged
    after: np.ndarray  # uint16 (C, 6): the code when the player to move has gone 0..5 spaces, or NONE
    swapped: np.ndarray  # uint16 (C,): the code after a swap, or NONE
    standing: (
        np.ndarray
    )  # int16 (C,): points and pieces on numbered spaces, mine less theirs, by weight (R10)
    numbered: np.ndarray  # uint8 (C,): bit 0 my piece, bit 1 theirs stands on a numbered space
    shape_progress: np.ndarray  # uint16 (H,)
    below: np.ndarray  # uint32 (5, T, C+1): multisets of i+1 codes less than c with progress t
    shapes_below: np.ndarray  # uint32 (5, T, H+1): the same for shapes
    sizes: np.ndarray  # int64 (T,): positions in each layer
    families: np.ndarray  # int64 (T,): families in each layer

    @property
    def positions(self) -> int:
        """All positions."""
        return int(self.sizes.sum())


@functools.cache
def board(spaces: int) -> Board:
    """Return the tables for boards with that many plain spaces, 0 to 10.

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
    value = np.array([6 * max(s - spaces, 0) + (s > spaces) for s in range(top + 1)])
    return Board(
        spaces=spaces,
        mine=np.array([m for m, _ in codes], np.int8),
        theirs=np.array([t for _, t in codes], np.int8),
        progress=progress,
        code=np.array([[code(m, t) for t in range(top + 1)] for m in range(top + 1)], np.uint16),
        flip=np.array([code(t, m) for m, t in codes], np.uint16),
        after=np.array(
            [[code(m + count, t, m <= spaces or not count) for count in range(DICE + 1)] for m, t in codes],
            np.uint16,
        ),
        swapped=np.array([code(t, m, m > 0 and t > 0) for m, t in codes], np.uint16),
        standing=np.array([value[m] - value[t] for m, t in codes], np.int16),
        numbered=np.array([(m > spaces) + 2 * (t > spaces) for m, t in codes], np.uint8),
        shape_progress=shape_progress,
        below=below,
        shapes_below=shapes_below,
        sizes=below[-1, :, -1].astype(np.int64),
        families=shapes_below[-1, :, -1].astype(np.int64),
    )


def _multisets(progress: np.ndarray, layers: int) -> np.ndarray:
    """Return uint32 (5, T, n+1): how many multisets of i+1 items, all with numbers less than c, have progress t."""
    count = np.zeros((PATHS + 1, layers, len(progress) + 1), np.uint32)
    count[0, 0] = 1
    for c, p in enumerate(progress.tolist()):
        count[:, :, c + 1] = count[:, :, c]
        for size in range(1, PATHS + 1):  # the size-1 others may be c as well
            count[size, p:, c + 1] += count[size - 1, : layers - p, c + 1]
    return count[1:]


@kernel
def rank(b: Any, total: Any, c0: Any, c1: Any, c2: Any, c3: Any, c4: Any) -> Any:
    """Return the number within its layer of the position with these ascending codes and that progress."""
    below, progress = b.below, b.progress
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
def unrank(below: Any, progress: Any, total: Any, number: Any, items: Any) -> None:
    """Write the five ascending items (codes, or shapes) of the multiset of a layer that has a number.

    `below` and `progress` are those of the items.
    """
    left = np.uint64(total)
    for i in range(PATHS):
        row = below[PATHS - 1 - i, left]
        low, high = np.uint64(0), np.uint64(row.size - 1)  # row[low] <= number < row[high]
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
def layer_codes(b: Any, total: Any, codes: Any) -> None:
    """Write the codes of all positions of a layer, (positions, 5), in order."""
    for number in range(codes.shape[0]):
        unrank(b.below, b.progress, total, number, codes[number])
