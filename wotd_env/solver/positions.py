"""Number the positions of two or three players without gaps, so that their values fit into one array.

A *code* stands for a pair of spaces on one path: the space of the piece of the player to move, and the space of the
other player's piece. The five paths are interchangeable, so a position before the first roll of a turn is a multiset of
five codes. The *progress* of a position is the sum of the spaces of its ten pieces. A *layer* is the set of all
positions with equal progress. A layer is sorted by the largest code of a position, then by the second largest code, and
so on. The *rank* of a position is its index in this order; it is computed with the combinatorial number system.

A *shape* is a code without the order of its two pieces. A *family* is the set of all positions with the same five
shapes. Swaps and passes lead only to positions of the same family. The *mirror* of a position is the position as the
other player sees it: the two pieces of every path are exchanged.

With immunity (R14) there are three *kinds* of paths. A path of kind 1 has the color of the player to move, a path of
kind 2 has the other player's color, and a path of kind 0 has neither color. Codes ascend by kind, so the codes of the
two *own paths* (kinds 1 and 2) come last. The mirror exchanges the own paths. Pieces on own paths cannot be swapped, so
there each code is a shape by itself. A family and the family of its mirrors are counted as two families, but they are
solved together.

With three players (`ThreeBoard`) a code stands for three spaces, and a position has fifteen pieces. The other
definitions are the same as in the basic game of two players.
"""

from __future__ import annotations

import functools
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import kernel
from wotd_env.core.rules import DICE, NUMBERED, PATHS, Rules

NONE = 65535  # instead of a code: two pieces on one space, or an illegal move

SEATS = 3  # the number of players on a `ThreeBoard`
PAIRS = ((0, 1), (0, 2), (1, 2))
"""The pairs of seats whose pieces a swap can exchange (R6). Seat 0 is the player to move."""

PLACES = (range(3), range(3, 4), range(4, 5))
"""With immunity, the indices that codes of kinds 0, 1 and 2 can have among the five ascending codes of a position."""

Codes = NDArray[np.uint64]  # the codes of a position, uint64 (5,), ascending


class Board(NamedTuple):
    """The codes and positions on a board for two players, with C codes, H shapes and T layers (progress 0 to T - 1).

    Codes ascend by progress, then by shape. Shape h > 0 has the codes 2 h - 1 and 2 h. Shape 0, with both pieces off
    the board, has the code 0. With immunity this order repeats for each kind k, and its first code is k * `per_kind`.
    """

    spaces: int
    immunity: bool
    per_kind: int  # the number of codes of each kind; without immunity, C
    mine: NDArray[np.int8]  # (C,): the space of the piece of the player to move
    theirs: NDArray[np.int8]  # (C,): the space of the other player's piece
    progress: NDArray[np.uint16]  # (C,): the sum of the two spaces
    code: NDArray[np.uint16]  # (S+6, S+6): the code of a pair of spaces on a path of kind 0, or NONE
    flip: NDArray[np.uint16]  # (C,): the code with the players exchanged
    after: NDArray[np.uint16]  # (C, 6): the code after a move by 0 to 5 spaces, or NONE (R3, R4)
    jumped: NDArray[np.uint16]  # (C, 6): the code after a jump over the other piece, or NONE (R12)
    swapped: NDArray[np.uint16]  # (C,): the code after a swap, or NONE (R6, R14)
    standing: NDArray[np.int16]  # (C,): 6 * lead in points + lead in pieces on numbered spaces (R10)
    numbered: NDArray[np.uint8]  # (C,): bit 0 (1): the piece in `mine` (`theirs`) is on a numbered space (R9)
    first: NDArray[np.uint16]  # (H,): the first code of each shape
    shape_progress: NDArray[np.uint16]  # (H,): the progress of each shape
    below: NDArray[np.uint32]  # (5, T, C + 1): [i, t, c] counts multisets of i + 1 codes < c with progress t
    shapes_below: NDArray[np.uint32]  # (5, T, H + 1): as `below`, for multisets of shapes
    sizes: NDArray[np.int64]  # (T,): the number of positions in each layer
    families: NDArray[np.int64]  # (T,): the number of families in each layer

    @property
    def positions(self) -> int:
        """The number of positions in all layers."""
        return int(self.sizes.sum())


@functools.cache
def board_of(spaces: int, immunity: bool = False) -> Board:
    """Return the board with this number of plain spaces, 0 to 10; raise ValueError for other numbers."""
    Rules(spaces=spaces)  # raises
    top = spaces + NUMBERED
    pairs = [(high, low) for high in range(top + 1) for low in range(high)]
    shapes = sorted(pairs, key=lambda pair: (sum(pair), pair))
    pairs = [(0, 0)] + [pair for high, low in shapes for pair in ((high, low), (low, high))]
    places = PLACES if immunity else (range(PATHS),)
    codes = [(*pair, kind) for kind in range(len(places)) for pair in pairs]
    index = {code: i for i, code in enumerate(codes)}

    def code(mine: int, theirs: int, kind: int = 0, possible: bool = True) -> int:
        return index.get((mine, theirs, kind), NONE) if possible else NONE

    dice = range(DICE + 1)
    after = [[code(m + d, t, k, m <= spaces or not d) for d in dice] for m, t, k in codes]
    jumped = [[code(t + 1, t, k, m <= spaces and m < t == m + d) for d in dice] for m, t, k in codes]
    mine, theirs, kind = np.array(codes).T
    progress = (mine + theirs).astype(np.uint16)
    first = np.array([0, *range(1, len(pairs), 2), *range(len(pairs), len(codes))], np.uint16)
    layers = PATHS * (2 * top - 1) + 1
    below = multisets(progress, [places[k] for k in kind], layers)
    shapes_below = multisets(progress[first], [places[k] for k in kind[first]], layers)
    # A point counts more than all pieces on numbered spaces (R10).
    worth = np.array([(PATHS + 1) * max(s - spaces, 0) + (s > spaces) for s in range(top + 1)])
    return Board(
        spaces=spaces,
        immunity=immunity,
        per_kind=len(pairs),
        mine=mine.astype(np.int8),
        theirs=theirs.astype(np.int8),
        progress=progress,
        code=np.array([[code(m, t) for t in range(top + 1)] for m in range(top + 1)], np.uint16),
        flip=np.array([code(t, m, -k % len(PLACES)) for m, t, k in codes], np.uint16),
        after=np.array(after, np.uint16),
        jumped=np.array(jumped, np.uint16),
        swapped=np.array([code(t, m, k, m > 0 and t > 0 and k == 0) for m, t, k in codes], np.uint16),
        standing=(worth[mine] - worth[theirs]).astype(np.int16),
        numbered=((mine > spaces) + 2 * (theirs > spaces)).astype(np.uint8),
        first=first,
        shape_progress=progress[first],
        below=below,
        shapes_below=shapes_below,
        sizes=below[-1, :, -1].astype(np.int64),
        families=shapes_below[-1, :, -1].astype(np.int64),
    )


def multisets(progress: NDArray[np.uint16], places: list[range], layers: int) -> NDArray[np.uint32]:
    """Return a table of counts like `Board.below`, uint32 (5, T, n + 1), for n items (codes or shapes) and T `layers`.

    `progress` has the progress of each item. `places` has the indices that each item can have among five ascending
    items.
    """
    count = np.zeros((PATHS + 1, layers, len(progress) + 1), np.uint32)
    count[0, 0] = 1
    for c, p in enumerate(progress.tolist()):
        count[:, :, c + 1] = count[:, :, c]
        # Add the multisets with c as the largest item. It can occur more than once.
        for place in places[c]:
            count[place + 1, p:, c + 1] += count[place, : layers - p, c + 1]
    return count[1:]


class ThreeBoard(NamedTuple):
    """The codes and positions on a board for three players, with C codes, H shapes and T layers.

    Codes ascend by progress, then by shape, so the codes of a shape are consecutive. Seats are counted from
    the player to move, who is seat 0.
    """

    spaces: int
    pieces: NDArray[np.int8]  # (C, 3): the space of the piece of each seat
    progress: NDArray[np.uint16]  # (C,): the sum of the three spaces
    code: NDArray[np.uint16]  # (S+6, S+6, S+6): the code of three spaces, or NONE
    flip: NDArray[np.uint16]  # (C,): the code as the next player sees it
    after: NDArray[np.uint16]  # (C, 6): the code after a move by 0 to 5 spaces, or NONE (R3, R4)
    swapped: NDArray[np.uint16]  # (C, 3): the code after a swap of each of the PAIRS, or NONE (R6)
    standing: NDArray[np.int16]  # (C, 3): by seat, 6 * points + pieces on numbered spaces (R10)
    numbered: NDArray[np.uint8]  # (C,): bit k: the piece of seat k is on a numbered space (R9)
    first: NDArray[np.uint16]  # (H + 1,): the first code of each shape; the last entry is C
    shape_progress: NDArray[np.uint16]  # (H,): the progress of each shape
    below: NDArray[np.uint32]  # (5, T, C + 1): as in `Board`
    shapes_below: NDArray[np.uint32]  # (5, T, H + 1): as in `Board`
    sizes: NDArray[np.int64]  # (T,): the number of positions in each layer
    families: NDArray[np.int64]  # (T,): the number of families in each layer

    @property
    def positions(self) -> int:
        """The number of positions in all layers."""
        return int(self.sizes.sum())


@functools.cache
def three_board_of(spaces: int) -> ThreeBoard:
    """Return the board for three players with this number of plain spaces."""
    top = spaces + NUMBERED

    def apart(pieces: tuple[int, ...]) -> bool:
        on_board = [space for space in pieces if space]
        return len(set(on_board)) == len(on_board)

    shapes = sorted(
        {tuple(sorted(pieces)) for pieces in product(range(top + 1), repeat=SEATS) if apart(pieces)},
        key=lambda shape: (sum(shape), shape),
    )
    of_shape = [sorted(set(permutations(shape))) for shape in shapes]
    codes = [code for orders in of_shape for code in orders]
    index = {code: i for i, code in enumerate(codes)}

    def code(pieces: list[int], possible: bool = True) -> int:
        return index.get(tuple(pieces), NONE) if possible else NONE

    def moved(pieces: tuple[int, ...], dice: int) -> int:
        return code([pieces[0] + dice, *pieces[1:]], pieces[0] <= spaces or not dice)

    def exchanged(pieces: tuple[int, ...], pair: tuple[int, int]) -> int:
        after = list(pieces)
        after[pair[0]], after[pair[1]] = pieces[pair[1]], pieces[pair[0]]
        return code(after, pieces[pair[0]] > 0 and pieces[pair[1]] > 0)

    pieces = np.array(codes)
    progress = pieces.sum(1).astype(np.uint16)
    first = np.cumsum([0, *map(len, of_shape)]).astype(np.uint16)
    shape_progress = progress[first[:-1]]
    places, layers = [range(PATHS)] * len(codes), PATHS * (3 * top - 3) + 1
    below, shapes_below = (multisets(each, places, layers) for each in (progress, shape_progress))
    code_of = np.full((top + 1,) * SEATS, NONE, np.uint16)
    code_of[tuple(pieces.T)] = np.arange(len(codes))
    # A point counts more than all pieces on numbered spaces (R10).
    standing = (PATHS + 1) * np.maximum(pieces - spaces, 0) + (pieces > spaces)
    return ThreeBoard(
        spaces=spaces,
        pieces=pieces.astype(np.int8),
        progress=progress,
        code=code_of,
        flip=np.array([code([*each[1:], each[0]]) for each in codes], np.uint16),
        after=np.array([[moved(each, dice) for dice in range(DICE + 1)] for each in codes], np.uint16),
        swapped=np.array([[exchanged(each, pair) for pair in PAIRS] for each in codes], np.uint16),
        standing=standing.astype(np.int16),
        numbered=((pieces > spaces) << np.arange(SEATS)).sum(1).astype(np.uint8),
        first=first,
        shape_progress=shape_progress,
        below=below,
        shapes_below=shapes_below,
        sizes=below[-1, :, -1].astype(np.int64),
        families=shapes_below[-1, :, -1].astype(np.int64),
    )


AnyBoard = Board | ThreeBoard


@kernel
def rank_of(board: AnyBoard, total: Any, codes: Any) -> Any:
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
def rank_with(board: AnyBoard, total: Any, codes: Codes, path: Any, code: Any) -> Any:
    """Return the rank of a position after `code` replaces codes[path]. `total` is the progress after this change."""
    at = np.uint64(path)
    c0 = codes[np.uint64(at <= 0)]
    c1 = codes[np.uint64(1) + np.uint64(at <= 1)]
    c2 = codes[np.uint64(2) + np.uint64(at <= 2)]
    c3 = codes[np.uint64(3) + np.uint64(at <= 3)]
    middle = max(c0, min(c1, code)), max(c1, min(c2, code)), max(c2, min(c3, code))
    return rank_of(board, total, (min(c0, code), *middle, max(c3, code)))


@kernel
def write_multiset(below: Any, progress: Any, total: Any, rank: Any, items: Any) -> None:
    """Write the multiset with this rank in layer `total` to `items`, uint64 (5,), ascending: the inverse of `rank_of`.

    The items are codes if `below` and `progress` are these fields of a board. They are shapes if the arguments are its
    fields `shapes_below` and `shape_progress`.
    """
    left = np.uint64(total)
    for i in range(PATHS):
        row = below[PATHS - 1 - i, left]
        # Binary search for the last item with row[item] <= rank. It is always in [low, high).
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
def sort_codes(board: AnyBoard, codes: Codes) -> Any:
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
def index_of(board: AnyBoard, base: Any, total: Any, codes: Codes) -> Any:
    """Return the index of a position in the array of all values, given its progress `total`, uint64."""
    return base[total] + rank_of(board, total, (codes[0], codes[1], codes[2], codes[3], codes[4]))


@kernel
def write_mirror(board: AnyBoard, codes: Codes, mirror: Codes, partner: Codes) -> None:
    """Write the codes as the next player sees them to `mirror`, ascending.

    Also write, for each entry of `codes`, the index of the same path in `mirror` to `partner`.
    """
    for path in range(PATHS):
        mirror[path] = board.flip[codes[path]]
    sort_codes(board, mirror)
    for path in range(PATHS):
        at = np.uint64(0)
        while mirror[at] != board.flip[codes[path]]:
            at += np.uint64(1)
        partner[path] = at
