"""What each of three players can guarantee: kernels that solve the families of a layer.

The *guarantee* of a seat is the expected reward that it can force if the two others play together against it. That is a
game of two sides with a unique value. A position has three values: the guarantees of the player to move, of the next
player and of the one after. In a turn the player to move maximizes its own guarantee, or minimizes that of another seat.

Positions, layers and ranks are those of `positions`, with codes of three pieces. Swaps and passes lead only to positions
over the same five shapes (a *family*). Their values are iterated to convergence; all others come from later layers.
"""

from __future__ import annotations

import functools
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.dice import NUM_KEEPS
from wotd_env.core.rules import DICE, NUMBERED, PATHS
from wotd_env.planning.turn import LANES, NOTHING, Rows, new_rows
from wotd_env.solver import turns
from wotd_env.solver.families import MOST_ROUNDS, Chunk, Work
from wotd_env.solver.positions import (
    NONE,
    Codes,
    Layers,
    index_of,
    multisets,
    rank_of,
    rank_with,
    sort_codes,
    write_multiset,
)
from wotd_env.solver.turns import ENDS, NEVER, PROGRESS, End

SEATS = 3
PAIRS = ((0, 1), (0, 2), (1, 2))
"""The pairs of relative seats whose pieces a swap can exchange (R6)."""
MOST_MEMBERS = 6**PATHS
"""The most positions of a family: three different spaces have six orders."""
FIRST = NUM_KEEPS  # the first of the rows of ends


class ThreeBoard(NamedTuple):
    """The positions of three players for a number of plain spaces, with C codes, H shapes, T layers.

    Codes ascend by progress, then by shape, so those of a shape are consecutive. Seats are relative to the player to move.
    """

    spaces: int
    pieces: NDArray[np.int8]  # (C, 3): the spaces of the pieces of the seats
    progress: NDArray[np.uint16]  # (C,): the sum of the spaces
    code: NDArray[np.uint16]  # (S+6, S+6, S+6): the code of three spaces, or NONE
    turned: NDArray[np.uint16]  # (C,): the code as the next player sees it
    after: NDArray[np.uint16]  # (C, 6): the code after a move by 0 to 5 spaces, or NONE (R3, R4)
    swapped: NDArray[np.uint16]  # (C, 3): the code after the swap of a pair, or NONE (R6)
    standing: NDArray[np.int16]  # (C, 3): points and numbered pieces of the seats, as one number (R10)
    numbered: NDArray[np.uint8]  # (C,): bit k: the piece of seat k is on a numbered space (R9)
    first: NDArray[np.uint16]  # (H + 1,): the first code of each shape, then C
    shape_progress: NDArray[np.uint16]  # (H,)
    below: NDArray[np.uint32]  # (5, T, C + 1): as in `positions.Board`
    shapes_below: NDArray[np.uint32]  # (5, T, H + 1)
    sizes: NDArray[np.int64]  # (T,): the number of positions in each layer
    families: NDArray[np.int64]  # (T,): the number of families in each layer

    @property
    def positions(self) -> int:
        """The number of all positions."""
        return int(self.sizes.sum())


@functools.cache
def three_board_of(spaces: int) -> ThreeBoard:
    """Return the board of three players with this number of plain spaces."""
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

    progress = np.array([sum(pieces) for pieces in codes], np.uint16)
    layers = PATHS * (3 * top - 3) + 1
    shape_progress = np.array([sum(shape) for shape in shapes], np.uint16)
    below, shapes_below = multisets(progress, layers), multisets(shape_progress, layers)
    pieces = np.array(codes)
    # A point counts more than all pieces on numbered spaces (R10).
    standing = (PATHS + 1) * np.maximum(pieces - spaces, 0) + (pieces > spaces)
    return ThreeBoard(
        spaces=spaces,
        pieces=pieces.astype(np.int8),
        progress=progress,
        code=np.array(
            [[[code([a, b, c]) for c in range(top + 1)] for b in range(top + 1)] for a in range(top + 1)],
            np.uint16,
        ),
        turned=np.array([code([*each[1:], each[0]]) for each in codes], np.uint16),
        after=np.array([[moved(each, dice) for dice in range(DICE + 1)] for each in codes], np.uint16),
        swapped=np.array([[exchanged(each, pair) for pair in PAIRS] for each in codes], np.uint16),
        standing=standing.astype(np.int16),
        numbered=((pieces > spaces) << np.arange(SEATS)).sum(1).astype(np.uint8),
        first=np.cumsum([0, *map(len, of_shape)]).astype(np.uint16),
        shape_progress=shape_progress,
        below=below,
        shapes_below=shapes_below,
        sizes=below[-1, :, -1].astype(np.int64),
        families=shapes_below[-1, :, -1].astype(np.int64),
    )


class Family(NamedTuple):
    """The memory of one thread: a family of M positions, in blocks of LANES."""

    rows: Rows  # (462 + 37, LANES): the rows of a turn, then the ends
    codes: Codes  # (MOST_MEMBERS, 5), ascending
    ranks: NDArray[np.int64]  # (MOST_MEMBERS,): their ranks in the layer, ascending
    over: NDArray[np.bool_]  # (MOST_MEMBERS,): whether the game has ended
    passed: NDArray[np.int32]  # (MOST_MEMBERS,): the member after a pass
    swapped: NDArray[np.int32]  # (MOST_MEMBERS, 5, 3): the member after a swap, or -1
    ends: NDArray[np.float32]  # (3, blocks, PROGRESS, LANES): the value of each end to the player to move
    value: NDArray[np.float32]  # (3, MOST_MEMBERS): the guarantees


def new_family() -> Family:
    """Return the memory of one thread."""
    return Family(
        rows=new_rows(NUM_KEEPS + ENDS),
        codes=np.zeros((MOST_MEMBERS, PATHS), np.uint64),
        ranks=np.zeros(MOST_MEMBERS, np.int64),
        over=np.zeros(MOST_MEMBERS, np.bool_),
        passed=np.zeros(MOST_MEMBERS, np.int32),
        swapped=np.zeros((MOST_MEMBERS, PATHS, len(PAIRS)), np.int32),
        ends=np.zeros((SEATS, MOST_MEMBERS // LANES, PROGRESS, LANES), np.float32),
        value=np.zeros((SEATS, MOST_MEMBERS), np.float32),
    )


@inlined
def seen_next(seat: Any) -> Any:
    """Return the relative seat, as the next player sees it."""
    return seat - 1 if seat else SEATS - 1


@kernel
def write_members(board: ThreeBoard, total: Any, number: Any, family: Family) -> Any:
    """Write the codes and ranks of the members of a family of layer `total`; return their number."""
    shapes = np.zeros(PATHS, np.uint64)
    write_multiset(board.shapes_below, board.shape_progress, total, number, shapes)
    codes = np.zeros(PATHS, np.uint64)
    for path in range(PATHS):
        codes[path] = board.first[shapes[path]]
    count: Any = np.int64(0)
    path = 0
    while path < PATHS:
        family.codes[count] = codes
        ordered = codes[0], codes[1], codes[2], codes[3], codes[4]
        family.ranks[count] = rank_of(board, np.uint64(total), ordered)
        numbered = 7
        for each in range(PATHS):
            numbered &= board.numbered[codes[each]]
        family.over[count] = numbered != 0  # R9
        count += 1
        # The next member: the first path whose code can grow grows, and all paths before it get their first codes.
        path = 0
        while path < PATHS:
            last = np.uint64(board.first[shapes[path] + np.uint64(1)]) - np.uint64(1)
            if path < PATHS - 1 and shapes[path + 1] == shapes[path]:
                last = codes[path + 1]
            if codes[path] < last:
                codes[path] += np.uint64(1)
                for before in range(path):
                    codes[before] = board.first[shapes[before]]
                break
            path += 1
    return count


@kernel
def find_member(family: Family, members: Any, rank: Any) -> Any:
    """Return the member with a rank, by binary search."""
    low, high = np.int64(0), np.int64(members)
    while high - low > 1:
        middle = (low + high) >> 1
        if family.ranks[middle] <= rank:
            low = middle
        else:
            high = middle
    return low


@kernel
def fill_family(layers: Layers, total: Any, family: Family, members: Any) -> None:
    """Fill the values of ends that make progress, the members after passes and swaps, and the first values."""
    board: Any = layers.board
    base, values = layers.base, layers.values
    layer = np.uint64(total)
    turned, partner = np.zeros(PATHS, np.uint64), np.zeros(PATHS, np.uint64)
    indices = np.zeros(PROGRESS, np.int64)
    rewards = np.zeros(SEATS, np.float32)
    for member in range(members):
        block, lane = member // LANES, member % LANES
        codes = family.codes[member]
        if family.over[member]:
            write_rewards(board, codes, rewards)
            for seat in range(SEATS):
                family.value[seat, member] = rewards[seat]
            continue
        for path in range(PATHS):
            turned[path] = board.turned[codes[path]]
        sort_codes(board, turned)
        for path in range(PATHS):
            at = np.uint64(0)
            while turned[at] != board.turned[codes[path]]:
                at += np.uint64(1)
            partner[path] = at
        write_indices(board, base, layer, (codes, turned, partner), indices)
        for end in range(PROGRESS):
            index = indices[end]
            for seat in range(SEATS):
                value = np.float32(NEVER)
                if index >= 0:
                    value = values[seat if turns.AGAIN[end] else seen_next(seat), index]
                    value = -value if seat else value
                family.ends[seat, block, end, lane] = value
        ordered = turned[0], turned[1], turned[2], turned[3], turned[4]
        family.passed[member] = find_member(family, members, rank_of(board, layer, ordered))
        for path in range(PATHS):
            for pair in range(len(PAIRS)):
                code = np.uint64(board.swapped[codes[path], pair])
                after = np.int64(-1)
                if code != NONE:
                    rank = rank_with(board, layer, turned, partner[path], np.uint64(board.turned[code]))
                    after = find_member(family, members, rank)
                family.swapped[member, path, pair] = after
        for seat in range(SEATS):
            family.value[seat, member] = 0


@kernel
def write_rewards(board: ThreeBoard, codes: Codes, rewards: Any) -> None:
    """Write the rewards of an ended game, (3,) (R10)."""
    best, winners = -1, 0
    for seat in range(SEATS):
        standing = 0
        for path in range(PATHS):
            standing += board.standing[codes[path], seat]
        rewards[seat] = standing
        if standing > best:
            best, winners = standing, 0
        winners += standing == best
    for seat in range(SEATS):
        wins = rewards[seat] == best
        rewards[seat] = (SEATS / winners - 1) / (SEATS - 1) if wins else -1 / (SEATS - 1)


@inlined
def write_indices(board: ThreeBoard, base: Any, total: Any, position: Any, indices: Any) -> None:
    """Write the index of the position after each end that makes progress, -1 if it is impossible.

    `position` has the codes, the codes as the next player sees them, and for each path its place among these.
    """
    codes, turned, partner = position
    advanced = np.empty(PATHS, np.uint64)
    indices[:] = -1
    advanced_total = total
    for path in range(PATHS):
        own = codes[path]
        for dice in range(1, DICE + 1):  # R3
            code = np.uint64(board.after[own, dice])
            if code != NONE:
                layer = total + np.uint64(dice)
                rank = rank_with(board, layer, turned, partner[path], np.uint64(board.turned[code]))
                indices[np.uint64(End.MOVE_ON + DICE * path + dice - 1)] = base[layer] + rank
        code = np.uint64(board.after[own, DICE])
        if code != NONE:  # R8
            layer = total + np.uint64(DICE)
            indices[np.uint64(End.PERFECTION_ON + path)] = base[layer] + rank_with(board, layer, codes, path, code)
        code = np.uint64(board.after[own, 1])  # R7
        if code == NONE:
            code = own
        else:
            advanced_total += np.uint64(1)
        advanced[path] = board.turned[code]
    if advanced_total != total:
        sort_codes(board, advanced)
        indices[np.uint64(End.EQUILIBRIUM)] = index_of(board, base, advanced_total, advanced)


@kernel
def value_block(family: Family, seat: Any, first: Any) -> None:
    """Write the guarantees of a seat for the LANES members from `first` on to row NOTHING.

    They have the sign of the player to move: it maximizes its own guarantee, and minus that of another seat.
    """
    rows = family.rows
    after = family.value[seen_next(seat)]
    for end in range(PROGRESS):
        rows[FIRST + end] = family.ends[seat, first // LANES, end]
    for lane in range(LANES):
        member = first + lane
        value = after[family.passed[member]]  # R5
        rows[FIRST + End.PASS, lane] = -value if seat else value
        for path in range(PATHS):  # R6
            most = np.float32(NEVER)
            for pair in range(len(PAIRS)):
                swapped = family.swapped[member, path, pair]
                if swapped >= 0:
                    value = after[swapped]
                    most = max(most, -value if seat else value)
            rows[FIRST + End.SWAP_ON + path, lane] = most
    turns.value_turns(rows, np.uint64(FIRST))


@kernel
def iterate(family: Family, members: Any) -> Any:
    """Update the values of all members once; return the largest change, inf if a value is not a number."""
    change = np.float32(0)
    for seat in range(SEATS):
        for first in range(0, members, LANES):
            value_block(family, seat, first)
            for lane in range(min(LANES, members - first)):
                if not family.over[first + lane]:
                    new = family.rows[NOTHING, lane]
                    new = -new if seat else new
                    changed = abs(new - family.value[seat, first + lane])
                    change = max(change, changed if changed == changed else np.float32(np.inf))
                    family.value[seat, first + lane] = new
    return change


@kernel
def solve_guarantees(layers: Layers, family: Family, chunk: Chunk, tolerance: Any) -> Work:
    """Solve families of a layer and write their values. All later layers must be solved.

    `tolerance` is the largest change of a value in the last iteration. `layers.values` is float32 (3, positions).
    """
    all_rounds, most = 0, 0
    for number in range(chunk.first, chunk.last):
        members = write_members(layers.board, chunk.total, number, family)
        fill_family(layers, chunk.total, family, members)
        rounds = 0
        change = np.float32(np.inf)
        while change > tolerance and rounds < MOST_ROUNDS:
            change = iterate(family, members)
            rounds += 1
        all_rounds += rounds
        most = max(most, rounds)
        for seat in range(SEATS):
            for member in range(members):
                index = layers.base[chunk.total] + family.ranks[member]
                layers.values[seat, index] = family.value[seat, member]
    return Work(chunk.last - chunk.first, all_rounds, most)


@kernel
def check_guarantees(layers: Layers, family: Family, chunk: Chunk) -> Any:
    """Return the largest Bellman error over families of a layer; inf if a value is not a number."""
    residual = np.float32(0)
    for number in range(chunk.first, chunk.last):
        members = write_members(layers.board, chunk.total, number, family)
        fill_family(layers, chunk.total, family, members)
        for seat in range(SEATS):
            for member in range(members):
                stored = layers.values[seat, layers.base[chunk.total] + family.ranks[member]]
                if family.over[member]:
                    residual = max(residual, abs(stored - family.value[seat, member]))
                family.value[seat, member] = stored
        residual = max(residual, iterate(family, members))
    return residual
