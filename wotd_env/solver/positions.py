"""Number the positions of two or three players without gaps, so that their values fit into one array.

A *code* stands for a pair of spaces on one path: the space of the piece of the player to move, and the space of the
other player's piece. The five paths are interchangeable, so a position before the first roll of a turn is a multiset of
five codes. The *progress* of a position is the sum of the spaces of its ten pieces. A *layer* is the set of all
positions with equal progress. The positions of a layer are sorted by their largest code, then by their second largest
code, and so on. The *rank* of a position is its index in this order. The combinatorial number system gives a formula
for the rank.

A *shape* is a code without the order of its two pieces. A *family* is the set of all positions with the same five
shapes. Swaps and passes lead only to positions of the same family. The *mirror* of a position is the position as the
other player sees it: the two pieces of every path are exchanged.

With immunity (R14) there are three *kinds* of paths. A path of kind 1 has the color of the player to move, a path of
kind 2 has the other player's color, and a path of kind 0 has neither color. Codes are sorted by kind, so the codes of
the two *own paths* (kinds 1 and 2) come last. In the mirror, the two own paths exchange their kinds. Pieces on own
paths cannot be swapped, so each code of an own path is its own shape.

With three players a code stands for three spaces, and a position has fifteen pieces.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import kernel
from wotd_env.core.rules import DICE, NUMBERED, PATHS, Rules

NONE = 65535  # marks a missing code: two pieces would be on one space, or the move or swap is illegal

PLACES = (range(3), range(3, 4), range(4, 5))
"""The indices of the codes of kinds 0, 1 and 2 among the five ascending codes of a position with immunity."""

Codes = NDArray[np.uint64]  # the codes of a position, uint64 (5,), ascending


class Board(NamedTuple):
    """A board of S plain spaces for n players, with C codes, H shapes and T layers (progress 0 to T - 1).

    Codes are sorted by progress, then by shape, so the codes of a shape are consecutive. With immunity, this order
    repeats for each kind k of paths, starting at code k * `per_kind`. Seats are counted from the player to move.
    """

    immunity: bool
    per_kind: int  # codes of one kind of path: C without immunity, C / 3 with immunity
    pieces: NDArray[np.int8]  # (C, n): the space of the piece of each seat
    progress: NDArray[np.uint16]  # (C,): the sum of the n spaces
    code: NDArray[np.uint16]  # (S+6,) * n: the code of n spaces on a path of kind 0, or NONE
    flip: NDArray[np.uint16]  # (C,): the code as the next player sees it
    after: NDArray[np.uint16]  # (C, 6): the code after a move by 0 to 5 spaces, or NONE (R3, R4)
    # (C, 6), two players only: the code after a jump over the other piece, or NONE (R12)
    jumped: NDArray[np.uint16]
    # (C, n(n-1)/2): the code after a swap of each pair of seats, or NONE (R6, R14)
    swapped: NDArray[np.uint16]
    standing: NDArray[np.int16]  # (C, n): by seat, 6 * points + number of pieces on numbered spaces (R10)
    numbered: NDArray[np.uint8]  # (C,): bit k is set if the piece of seat k is on a numbered space (R9)
    first: NDArray[np.uint16]  # (H + 1,): the first code of each shape; the last entry is C
    shape_progress: NDArray[np.uint16]  # (H,): the progress of each shape
    below: NDArray[np.uint32]  # (5, T, C + 1): [i, t, c] counts multisets of i + 1 codes < c with progress t
    shapes_below: NDArray[np.uint32]  # (5, T, H + 1): like `below`, but for multisets of shapes
    sizes: NDArray[np.int64]  # (T,): the number of positions in each layer
    families: NDArray[np.int64]  # (T,): the number of families in each layer

    @property
    def positions(self) -> int:
        """The number of positions in all layers."""
        return int(self.sizes.sum())


@functools.cache
def board_of(spaces: int, immunity: bool = False, players: int = 2) -> Board:
    """Return the board with `spaces` plain spaces, 0 to 10; raise ValueError for other numbers."""
    Rules(spaces=spaces)
    top = spaces + NUMBERED

    def order(pieces: tuple[int, ...]) -> tuple[int, ...]:
        return pieces if players > 2 else tuple(-space for space in pieces)

    orders = {
        tuple(sorted(each)): set(permutations(each)) for each in product(range(top + 1), repeat=players)
    }
    apart = [shape for shape in orders if len({*shape} - {0}) == sum(space > 0 for space in shape)]
    shapes = sorted(apart, key=lambda shape: (sum(shape), order(shape)))
    places = PLACES if immunity else (range(PATHS),)
    kinds = range(len(places))
    codes = [(*each, k) for k in kinds for shape in shapes for each in sorted(orders[shape], key=order)]
    index = {code: i for i, code in enumerate(codes)}

    def code(pieces: Sequence[int], kind: int = 0, possible: bool = True) -> int:
        return index.get((*pieces, kind), NONE) if possible else NONE

    def moved(pieces: Sequence[int], kind: int, dice: int) -> int:
        return code([pieces[0] + dice, *pieces[1:]], kind, pieces[0] <= spaces or not dice)

    def jumped(pieces: Sequence[int], kind: int, dice: int) -> int:
        mine, theirs = pieces
        return code([theirs + 1, theirs], kind, mine <= spaces and mine < theirs == mine + dice)

    def swapped(pieces: Sequence[int], kind: int, one: int, other: int) -> int:
        after = list(pieces)
        after[one], after[other] = pieces[other], pieces[one]
        return code(after, kind, pieces[one] > 0 and pieces[other] > 0 and kind == 0)

    two = codes if players == 2 else []
    pieces, kind = np.array(codes)[:, :-1], np.array(codes)[:, -1]
    progress = pieces.sum(1).astype(np.uint16)
    per_kind, dice = len(codes) // len(places), range(DICE + 1)
    of_shape = [*(len(orders[shape]) for shape in shapes), *[1] * (len(codes) - per_kind)]
    first = np.cumsum([0, *of_shape]).astype(np.uint16)
    shape_progress = progress[first[:-1]]
    below = multisets(progress, [places[k] for k in kind])
    shapes_below = multisets(shape_progress, [places[k] for k in kind[first[:-1]]])
    code_of = np.full((top + 1,) * players, NONE, np.uint16)
    code_of[tuple(pieces[:per_kind].T)] = np.arange(per_kind)
    pairs = list(combinations(range(players), 2))
    return Board(
        immunity=immunity,
        per_kind=per_kind,
        pieces=pieces.astype(np.int8),
        progress=progress,
        code=code_of,
        flip=np.array([code([*each[1:], each[0]], -k % len(PLACES)) for *each, k in codes], np.uint16),
        after=np.array([[moved(each, k, d) for d in dice] for *each, k in codes], np.uint16),
        jumped=np.array([[jumped(each, k, d) for d in dice] for *each, k in two], np.uint16, ndmin=2),
        swapped=np.array([[swapped(each, k, *pair) for pair in pairs] for *each, k in codes], np.uint16),
        # One point outweighs five pieces on numbered spaces (R10).
        standing=((PATHS + 1) * np.maximum(pieces - spaces, 0) + (pieces > spaces)).astype(np.int16),
        numbered=((pieces > spaces) << np.arange(players)).sum(1).astype(np.uint8),
        first=first,
        shape_progress=shape_progress,
        below=below,
        shapes_below=shapes_below,
        sizes=below[-1, :, -1].astype(np.int64),
        families=shapes_below[-1, :, -1].astype(np.int64),
    )


def multisets(progress: NDArray[np.uint16], places: list[range]) -> NDArray[np.uint32]:
    """Count the multisets of 1 to 5 elements from n items, which are codes or shapes.

    The result is uint32 (5, T, n + 1), indexed like `Board.below`. `places[c]` has the indices that item c can have
    among the five ascending items of a position.
    """
    layers = PATHS * int(progress.max()) + 1
    count = np.zeros((PATHS + 1, layers, len(progress) + 1), np.uint32)
    count[0, 0] = 1
    for c, p in enumerate(progress.tolist()):
        count[:, :, c + 1] = count[:, :, c]
        # Item c is the largest item so far, and can occur more than once.
        for place in places[c]:
            count[place + 1, p:, c + 1] += count[place, : layers - p, c + 1]
    return count[1:]


@kernel
def rank_of(board: Board, total: Any, codes: Any) -> Any:
    """Return the rank of a position, given its five ascending codes (a tuple) and its progress `total`."""
    below, progress = board.below, board.progress
    c0, c1, c2, c3, c4 = codes
    rank = below[4, total, c4]
    total -= progress[c4]
    rank += below[3, total, c3]
    total -= progress[c3]
    rank += below[2, total, c2]
    total -= progress[c2]
    rank += below[1, total, c1]
    total -= progress[c1]
    return rank + below[0, total, c0]


@kernel
def rank_with(board: Board, total: Any, codes: Codes, path: Any, code: Any) -> Any:
    """Return the rank of a position after `code` replaces `codes[path]`. `total` is the progress after this change."""
    at = np.uint64(path)
    c0 = codes[np.uint64(at <= 0)]
    c1 = codes[np.uint64(1) + np.uint64(at <= 1)]
    c2 = codes[np.uint64(2) + np.uint64(at <= 2)]
    c3 = codes[np.uint64(3) + np.uint64(at <= 3)]
    middle = max(c0, min(c1, code)), max(c1, min(c2, code)), max(c2, min(c3, code))
    return rank_of(board, total, (min(c0, code), *middle, max(c3, code)))


@kernel
def write_multiset(below: Any, progress: Any, total: Any, rank: Any, items: Any) -> None:
    """Find the multiset with rank `rank` in layer `total`. Write its five items to `items`, uint64 (5,), ascending.

    This is the inverse of `rank_of`. For shapes, pass a board's fields `shapes_below` and `shape_progress`.
    """
    left = np.uint64(total)
    for i in range(PATHS):
        row = below[PATHS - 1 - i, left]
        # Binary search for the last item with row[item] <= rank.
        low, high = np.uint64(0), np.uint64(row.size - 1)
        while high - low > 1:
            middle = (low + high) >> np.uint64(1)
            if row[middle] <= rank:
                low = middle
            else:
                high = middle
        rank -= row[low]
        items[PATHS - 1 - i] = low
        left -= progress[low]


@kernel
def sort_codes(board: Board, codes: Codes) -> Any:
    """Sort five codes in place and return the sum of their progress."""
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
def index_of(board: Board, base: Any, total: Any, codes: Codes) -> Any:
    """Return the index of a position in the array of all values. `total`, uint64, is the progress of the position."""
    return base[total] + rank_of(board, total, (codes[0], codes[1], codes[2], codes[3], codes[4]))


@kernel
def write_mirror(board: Board, codes: Codes, mirror: Codes, partner: Codes) -> None:
    """Convert `codes` to the view of the next player, and write them to `mirror` in ascending order.

    Set `partner[i]` so that `codes[i]` and `mirror[partner[i]]` are codes of the same path.
    """
    for path in range(PATHS):
        mirror[path] = board.flip[codes[path]]
    sort_codes(board, mirror)
    for path in range(PATHS):
        at = np.uint64(0)
        while mirror[at] != board.flip[codes[path]]:
            at += np.uint64(1)
        partner[path] = at
