"""Solve games of three players: kernels that compute the guarantees of all seats, layer by layer.

The *guarantee* of a seat is the expected reward that this seat can force if the two other seats cooperate against it.
The seat and the coalition of the two others play a zero-sum game of two sides, so the guarantee is unique. A position
has three values: the guarantees of the player to move, of the next player and of the third player. The player to move
maximizes its own guarantee. It minimizes the guarantees of the two other seats, because it belongs to the coalitions
against them.

`positions` defines codes, layers, ranks and families.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.dice import NUM_KEEPS
from wotd_env.core.rules import PATHS
from wotd_env.planning.ends import Ends
from wotd_env.planning.turn import LANES, NOTHING, Rows, new_rows
from wotd_env.solver import positions, turns
from wotd_env.solver.families import Chunk
from wotd_env.solver.iteration import MOST_ROUNDS
from wotd_env.solver.positions import NONE, Board, Codes
from wotd_env.solver.turns import AGAIN, NEVER, OTHER, PROGRESS, End

MOST_MEMBERS = 6**PATHS
"""The largest number of positions in a family: on each of the five paths, three pieces can have six orders."""
SEATS = PAIRS = 3  # three players make three pairs; a swap exchanges the pieces of one pair
ENDS = End.SWAP_ON + PATHS * PAIRS
FIRST = NUM_KEEPS  # the first row in `Family.rows` that has the value of an end


class Guarantees(NamedTuple):
    """The guarantees of the three seats in every position of a board. Seats are counted from the player to move."""

    board: Board
    ends: Ends
    base: NDArray[np.int64]  # (T,): the index of the first value of each layer
    values: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]  # by seat


class Family(NamedTuple):
    """The working memory of one thread, for one family at a time.

    A *member* is a position of the family; a block has LANES members.
    """

    rows: Rows  # (462 + 43, LANES): a row for each keep (see `planning.turn`), then a row for each end
    codes: Codes  # (MOST_MEMBERS, 5): the codes of each member, ascending
    ranks: NDArray[np.int64]  # (MOST_MEMBERS,): the members' ranks in the layer, ascending
    over: NDArray[np.bool_]
    passed: NDArray[np.int32]  # (MOST_MEMBERS,): the index of the member after a pass
    swapped: NDArray[np.int32]  # (MOST_MEMBERS, 5, 3): the index of the member after each swap, or -1
    ends: NDArray[np.float32]  # (3, blocks, PROGRESS, LANES): values after ends, negated for seats 1 and 2
    value: NDArray[np.float32]  # (3, MOST_MEMBERS)


def new_family() -> Family:
    """Return an empty `Family`."""
    rows = new_rows(NUM_KEEPS + ENDS)
    rows[FIRST:] = NEVER
    return Family(
        rows=rows,
        codes=np.zeros((MOST_MEMBERS, PATHS), np.uint64),
        ranks=np.zeros(MOST_MEMBERS, np.int64),
        over=np.zeros(MOST_MEMBERS, np.bool_),
        passed=np.zeros(MOST_MEMBERS, np.int32),
        swapped=np.zeros((MOST_MEMBERS, PATHS, PAIRS), np.int32),
        ends=np.zeros((SEATS, MOST_MEMBERS // LANES, PROGRESS, LANES), np.float32),
        value=np.zeros((SEATS, MOST_MEMBERS), np.float32),
    )


@inlined
def seen_next(seat: Any) -> Any:
    """Renumber a seat so that the next player becomes seat 0: 0 -> 2, 1 -> 0, 2 -> 1."""
    return seat - 1 if seat else SEATS - 1


@kernel
def write_members(board: Board, total: Any, number: Any, family: Family) -> Any:
    """Write the codes and ranks of all members of family `number` of layer `total`; return the number of members."""
    shapes = np.zeros(PATHS, np.uint64)
    positions.write_multiset(board.shapes_below, board.shape_progress, total, number, shapes)
    codes = np.zeros(PATHS, np.uint64)
    for path in range(PATHS):
        codes[path] = board.first[shapes[path]]
    count: Any = np.int64(0)
    path = 0
    while path < PATHS:
        family.codes[count] = codes
        ordered = codes[0], codes[1], codes[2], codes[3], codes[4]
        family.ranks[count] = positions.rank_of(board, np.uint64(total), ordered)
        family.over[count] = turns.is_over(board, codes)
        count += 1
        # Advance `codes` to the next member, like an odometer.
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
    """Return the index of the member with this rank."""
    low, high = np.int64(0), np.int64(members)
    while high - low > 1:
        middle = (low + high) >> 1
        if family.ranks[middle] <= rank:
            low = middle
        else:
            high = middle
    return low


@kernel
def fill_family(layers: Guarantees, total: Any, family: Family, members: Any) -> None:
    """Fill `ends`, `passed` and `swapped` of a family. Set `value` to the rewards in ended games, otherwise to 0."""
    board, base, values = layers.board, layers.base, layers.values
    layer = np.uint64(total)
    mirrors, partners = np.zeros((1, PATHS), np.uint64), np.zeros((1, PATHS), np.uint64)
    turned, partner = mirrors[0], partners[0]
    after = np.zeros((2, PROGRESS, 1), np.int64)
    for member in range(members):
        block, lane = member // LANES, member % LANES
        codes = family.codes[member]
        if family.over[member]:
            for seat in range(SEATS):
                family.value[seat, member] = reward(board, codes, seat)
            continue
        positions.write_mirror(board, codes, turned, partner)
        one = family.codes[member : member + 1], mirrors, partners, family.over[member : member + 1]
        turns.write_indices(board, layers.ends, base, layer, turns.Positions(*one), after)
        for end in range(PROGRESS):
            for seat in range(SEATS):
                most = np.float32(NEVER)
                if after[OTHER, end, 0] >= 0:
                    value = values[seen_next(seat)][after[OTHER, end, 0]]
                    most = -value if seat else value
                if after[AGAIN, end, 0] >= 0:
                    value = values[seat][after[AGAIN, end, 0]]
                    most = max(most, -value if seat else value)
                family.ends[seat, block, end, lane] = most
        ordered = turned[0], turned[1], turned[2], turned[3], turned[4]
        family.passed[member] = find_member(family, members, positions.rank_of(board, layer, ordered))
        for path in range(PATHS):
            for pair in range(PAIRS):
                code = np.uint64(board.swapped[codes[path], pair])
                where = np.int64(-1)
                if code != NONE:
                    flipped = np.uint64(board.flip[code])
                    rank = positions.rank_with(board, layer, turned, partner[path], flipped)
                    where = find_member(family, members, rank)
                family.swapped[member, path, pair] = where
        for seat in range(SEATS):
            family.value[seat, member] = 0


@kernel
def reward(board: Board, codes: Codes, seat: Any) -> Any:
    """Return the reward of a seat in an ended game (R10)."""
    own, best, winners = -1, -1, 0
    for other in range(SEATS):
        standing = 0
        for path in range(PATHS):
            standing += board.standing[codes[path], other]
        if other == seat:
            own = standing
        if standing > best:
            best, winners = standing, 0
        winners += standing == best
    return (SEATS / winners - 1) / (SEATS - 1) if own == best else -1 / (SEATS - 1)


@kernel
def value_block(offers: Any, family: Family, seat: Any, first: Any) -> None:
    """Write the guarantee of a seat to row NOTHING, for the members `first` to `first + LANES - 1`.

    `turns.value_turns` maximizes, so the row has the negated guarantees for seats 1 and 2.
    """
    rows = family.rows
    after = family.value[seen_next(seat)]
    for end in range(PROGRESS):
        rows[FIRST + end] = family.ends[seat, first // LANES, end]
    for lane in range(LANES):
        member = first + lane
        value = after[family.passed[member]]
        rows[FIRST + End.PASS, lane] = -value if seat else value
        for path in range(PATHS):
            for pair in range(PAIRS):
                swapped = family.swapped[member, path, pair]
                value = np.float32(NEVER)
                if swapped >= 0:
                    value = -after[swapped] if seat else after[swapped]
                rows[FIRST + End.SWAP_ON + PAIRS * path + pair, lane] = value
    turns.value_turns(offers, rows, FIRST)


@kernel
def iterate(offers: Any, family: Family, members: Any) -> Any:
    """Update the values of all members once. Return the largest change, or inf if a value is NaN."""
    change = np.float32(0)
    for seat in range(SEATS):
        for first in range(0, members, LANES):
            value_block(offers, family, seat, first)
            for lane in range(min(LANES, members - first)):
                if not family.over[first + lane]:
                    new = family.rows[NOTHING, lane]
                    new = -new if seat else new
                    changed = abs(new - family.value[seat, first + lane])
                    change = max(change, changed if changed == changed else np.float32(np.inf))
                    family.value[seat, first + lane] = new
    return change


@kernel
def solve_guarantees(layers: Guarantees, family: Family, chunk: Chunk, tolerance: Any) -> None:
    """Solve the families of a chunk and write their values. All layers with more progress must be solved already."""
    for number in range(chunk.first, chunk.last):
        members = write_members(layers.board, chunk.total, number, family)
        fill_family(layers, chunk.total, family, members)
        rounds = 0
        change = np.float32(np.inf)
        while change > tolerance and rounds < MOST_ROUNDS:
            change = iterate(layers.ends.offers, family, members)
            rounds += 1
        for seat in range(SEATS):
            for member in range(members):
                index = layers.base[chunk.total] + family.ranks[member]
                layers.values[seat][index] = family.value[seat, member]


@kernel
def check_guarantees(layers: Guarantees, family: Family, chunk: Chunk) -> Any:
    """Return the largest Bellman error in the families of a chunk, or inf if a value is NaN."""
    residual = np.float32(0)
    for number in range(chunk.first, chunk.last):
        members = write_members(layers.board, chunk.total, number, family)
        fill_family(layers, chunk.total, family, members)
        for seat in range(SEATS):
            for member in range(members):
                stored = layers.values[seat][layers.base[chunk.total] + family.ranks[member]]
                if family.over[member]:
                    residual = max(residual, abs(stored - family.value[seat, member]))
                family.value[seat, member] = stored
        residual = max(residual, iterate(layers.ends.offers, family, members))
    return residual
