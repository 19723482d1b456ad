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

Only paths with equal dead pieces (R15) and, with immunity (R14), of equal roles are interchangeable: they have the same
*kind*. With immunity, the two *own paths* have the roles MINE and THEIRS: the color of the player to move and of the
other player. Codes are sorted by kind, so the codes of own paths come last. In the mirror, the two own paths exchange
their roles. Pieces on own paths cannot be swapped, so each code of an own path is its own shape. If the dead pieces of
the two own paths differ, the board also has the positions of the two games in which they are equal.

With three players a code stands for three spaces, and a position has fifteen pieces.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs, config
from wotd_env.core.rules import DICE, NUMBERED, PATHS, Rules
from wotd_env.core.state import STATE, Records

NONE = 65535  # marks a missing code: two pieces would be on one space, or the move or swap is illegal

NEUTRAL, MINE, THEIRS = range(3)  # roles of paths
OWN = PATHS - 2  # with immunity, the index of the first own path

Codes = NDArray[np.uint64]  # the codes of a position, uint64 (5,), ascending


class Kind(NamedTuple):
    """A kind of paths."""

    dead: int  # the dead pieces on such a path; bit t: a dead piece on space t
    role: int
    places: range  # the indices that codes of this kind can have among the five ascending codes of a position


class Board(NamedTuple):
    """A board of S plain spaces for n players, with K kinds, C codes, H shapes and T layers (progress 0 to T - 1).

    Codes are sorted by kind, then by progress, then by shape, so the codes of a shape are consecutive. Seats are
    counted from the player to move.
    """

    immunity: bool
    pieces: NDArray[np.int8]  # (C, n): the space of the piece of each seat
    progress: NDArray[np.uint16]  # (C,): the sum of the n spaces
    code: NDArray[np.uint16]  # (K, S+6, ..., S+6): the code of a kind and n spaces, or NONE
    kind_of: NDArray[np.int8]  # (3, 2 ** (S+1)): the kind of a role and dead pieces, or -1
    span: NDArray[np.uint16]  # (5, 2): the least and the largest code at each place of a position
    flip: NDArray[np.uint16]  # (C,): the code as the next player sees it
    after: NDArray[np.uint16]  # (C, 6): the code after a move by 0 to 5 spaces, or NONE (R3, R4)
    # (C, 6): the code after a jump of 0 to 5 spaces and further, or NONE (R12)
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


def kinds_of(dead: Sequence[int], immunity: bool) -> list[Kind]:
    """Return the kinds of the five paths with the dead pieces `dead` (see `board_of`), in the order of their codes."""
    neutral, own = (dead[:OWN], dead[OWN:]) if immunity else (dead, ())
    kinds = []
    for path in dict.fromkeys(neutral):
        first = neutral.index(path)
        kinds.append(Kind(path, NEUTRAL, range(first, first + neutral.count(path))))
    # In this order, a position with the first and one with the last codes of all own paths belong to the game.
    kinds += [Kind(path, MINE, range(OWN, OWN + 1)) for path in dict.fromkeys(own)]
    kinds += [Kind(path, THEIRS, range(OWN + 1, PATHS)) for path in dict.fromkeys(own[::-1])]
    return kinds


@functools.cache
def board_of(
    spaces: int, immunity: bool = False, players: int = 2, dead: tuple[int, ...] = (0,) * PATHS
) -> Board:
    """Return the board with `spaces` plain spaces, 0 to 10.

    `dead` has the dead pieces of the five paths, as in the field `dead` of `STATE`. Equal paths must be neighbors. With
    immunity, the last two paths are the own paths.

    Raises:
        ValueError: for another number of spaces, or a board with too many positions.
    """
    rules, top = Rules(players, spaces), spaces + NUMBERED

    def order(pieces: tuple[int, ...]) -> tuple[int, ...]:
        return pieces if players > 2 else tuple(-space for space in pieces)

    orders = {
        tuple(sorted(each)): set(permutations(each)) for each in product(range(top + 1), repeat=players)
    }
    apart = [shape for shape in orders if len({*shape} - {0}) == sum(space > 0 for space in shape)]
    shapes = sorted(apart, key=lambda shape: (sum(shape), order(shape)))
    kinds = kinds_of(dead, immunity)
    numbers: list[tuple[int, ...]] = []  # the spaces and the kind of each code
    sizes = [0]  # the number of codes of each shape
    for k, kind in enumerate(kinds):
        for shape in shapes:
            if not any(kind.dead >> space & 1 for space in shape):
                codes = [(*each, k) for each in sorted(orders[shape], key=order)]
                numbers += codes
                sizes += [len(codes)] if kind.role == NEUTRAL else [1] * len(codes)
    pieces, of_kind = np.array(numbers)[:, :players], np.array(numbers)[:, players]
    first = np.cumsum(sizes).astype(np.uint16)
    code = np.full((len(kinds), *[top + 1] * players), NONE, np.uint16)
    code[of_kind, *pieces.T] = np.arange(len(pieces))
    stones, role = np.array([kind[:2] for kind in kinds]).T
    kind_of = np.full((3, 2 << spaces), -1, np.int8)
    kind_of[role, stones] = np.arange(len(kinds))
    mirrored = kind_of[-role % 3, stones]

    state = np.zeros(len(pieces), STATE)
    state["pieces"][:, :players, 0], state["dead"][:, 0] = pieces, stones[of_kind]
    goals = np.empty((2, len(pieces), DICE + 1), np.int64)
    write_goals(state, config(rules, skip_forced=True), goals)
    goals[goals > top] = 0  # only on the shorter paths of tests
    after, jumped = np.where(goals, code[of_kind[:, None], goals, *pieces.T[1:, :, None]], np.uint16(NONE))
    after[:, 0] = np.arange(len(pieces))

    swapped = np.full((len(pieces), players * (players - 1) // 2), NONE, np.uint16)
    for column, pair in enumerate(combinations(range(players), 2)):
        possible = (pieces[:, pair] > 0).all(1) & (role[of_kind] == NEUTRAL)  # R6, R14
        turned = np.arange(players)
        turned[[*pair]] = pair[::-1]
        swapped[possible, column] = code[of_kind, *pieces.T[turned]][possible]

    progress = pieces.sum(1).astype(np.uint16)
    shape_progress, places = progress[first[:-1]], [kind.places for kind in kinds]
    below = multisets(progress, [places[k] for k in of_kind])
    shapes_below = multisets(shape_progress, [places[k] for k in of_kind[first[:-1]]])
    at = [np.flatnonzero([place in places[k] for k in of_kind]) for place in range(PATHS)]
    return Board(
        immunity=immunity,
        pieces=pieces.astype(np.int8),
        progress=progress,
        code=code,
        kind_of=kind_of,
        span=np.array([(codes[0], codes[-1]) for codes in at], np.uint16),
        flip=code[mirrored[of_kind], *np.roll(pieces, -1, 1).T],
        after=after,
        jumped=jumped,
        swapped=swapped,
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


@kernel
def write_goals(states: Records, rules: Configs, goals: Any) -> None:
    """Write the spaces to which 0 to 5 dice move the acting seat's piece on path 0, or 0 if there is no such space.

    `goals` is int64 (2, N, 6): the spaces after moves, and after jumps (power anxiety).
    """
    for i in range(states.shape[0]):
        for dice in range(DICE + 1):
            goals[0, i, dice] = engine.destination(states[i], rules[0], 0, dice)
            goals[1, i, dice] = engine.jump(states[i], rules[0], 0, dice)


def multisets(progress: NDArray[np.uint16], places: list[range]) -> NDArray[np.uint32]:
    """Count the multisets of 1 to 5 elements from n items, which are codes or shapes.

    The result is uint32 (5, T, n + 1), indexed like `Board.below`. `places[c]` has the indices that item c can have
    among the five ascending items of a position.
    """
    layers = PATHS * int(progress.max()) + 1
    count = np.zeros((PATHS + 1, layers, len(progress) + 1), np.uint64)
    count[0, 0] = 1
    for c, p in enumerate(progress.tolist()):
        count[:, :, c + 1] = count[:, :, c]
        # Item c is the largest item so far, and can occur more than once.
        for place in places[c]:
            count[place + 1, p:, c + 1] += count[place, : layers - p, c + 1]
    if count.max() >= 1 << 32:
        raise ValueError(
            f"the board has {count[-1, :, -1].sum():,} positions, too many to number them with 32 bits"
        )
    return count[1:].astype(np.uint32)


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
