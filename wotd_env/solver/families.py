"""Values of whole families of positions, sixteen positions and their mirrors (players exchanged) side by side.

Everything that leaves a family makes progress, so it is looked up in later layers once; what stays in the family
(passes and swaps) is iterated to convergence: sixteen positions, then their mirrors, each time with the newest values
of the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from wotd_env.core.compilation import kernel
from wotd_env.core.dice import COUNTS, EQUILIBRIUM, NUM_KEEPS, NUM_ROLLS
from wotd_env.core.dice import rank as rank_dice
from wotd_env.core.rules import DICE, DRAGON, PATHS
from wotd_env.planning.turn import LANES, NOTHING, expect, largest, reroll, row_operation, scratch
from wotd_env.solver.positions import NONE, rank, unrank

__all__ = ["Block", "check_families", "new_block", "solve_families"]

NEVER = -4.0
"""The value of what is not allowed; true values are in [-1, 1]."""

# The rows of a half's options, after the rows of the turn.
MOVE = NUM_KEEPS  # + 5 * path + dice - 1
ADVANCE = MOVE + PATHS * DICE  # equilibrium
PASS = ADVANCE + 1
SWAP = PASS + 1  # + path
OPTIONS = SWAP + PATHS - MOVE  # rows for one half

FOUR_DRAGONS = np.array([rank_dice([element] + [DRAGON] * 4) for element in range(PATHS)], np.uint16)
FIVE_DRAGONS = rank_dice([DRAGON] * 5)


def _choices() -> tuple[np.ndarray, np.ndarray]:
    """Return uint16 (252, 4), the rows of the moves that a roll allows, and uint8 (252,), how many there are."""
    rows = np.zeros((NUM_ROLLS, 4), np.uint16)
    size = np.zeros(NUM_ROLLS, np.uint8)
    for roll in range(NUM_ROLLS):
        moves = [MOVE + DICE * path + int(n) - 1 for path, n in enumerate(COUNTS[roll, :PATHS]) if n]
        if roll == EQUILIBRIUM:
            moves = [ADVANCE]
        rows[roll, : len(moves)] = moves
        size[roll] = len(moves)
    return rows, size


CHOICES, NUM_CHOICES = _choices()


class Block(NamedTuple):
    """What one thread works on: lanes of positions (half 0) and their mirrors (half 1)."""

    work: np.ndarray  # float (rows, LANES): a turn, then the options of each half
    value: np.ndarray  # float (2, LANES)
    codes: np.ndarray  # uint64 (2, LANES, 5), ascending
    partner: np.ndarray  # uint64 (LANES, 5): where in the mirror's codes the path with the i-th code is
    swap: (
        np.ndarray
    )  # uint64 (2, LANES, 5): lane of value.ravel() after a swap, as the other player sees it, or NONE
    over: np.ndarray  # bool (2, LANES): the game has ended
    twin: np.ndarray  # bool (LANES,): the position is its own mirror


def new_block(dtype: Any = np.float32) -> Block:
    """Return a block for one thread."""
    return Block(
        scratch(NUM_KEEPS + 2 * OPTIONS, dtype),
        np.zeros((2, LANES), dtype),
        np.zeros((2, LANES, PATHS), np.uint64),
        np.zeros((LANES, PATHS), np.uint64),
        np.full((2, LANES, PATHS), NONE, np.uint64),
        np.ones((2, LANES), np.bool_),
        np.zeros(LANES, np.bool_),
    )


def _emit_move_or_pass(builder: Any, rows: list[Any]) -> Any:
    """Return the largest of the rows but the first, and the first where none of them is allowed."""
    otherwise, *moves = rows
    while len(moves) > 1:
        a, b = moves.pop(0), moves.pop(0)
        moves.append(builder.select(builder.fcmp_ordered(">", a, b), a, b))
    allowed = builder.fcmp_ordered(">", moves[0], ir.Constant(moves[0].type, [NEVER / 2] * LANES))
    return builder.select(allowed, moves[0], otherwise)


move_or_pass = row_operation(_emit_move_or_pass)


@kernel
def fill(b: Any, block: Any, total: Any, first: Any, last: Any) -> Any:
    """Put families of a layer into the lanes, as many as fit; return the next family and the lanes filled."""
    shapes = np.zeros(PATHS, np.uint64)
    group = np.zeros(PATHS, np.uint64)  # first path of the same shape
    size = np.zeros(PATHS, np.uint64)  # paths of that shape, noted at the first
    stride = np.zeros(PATHS, np.uint64)  # of the number of paths with the second of the shape's codes
    lanes: Any = 0
    family = first
    while family < last:
        unrank(b.shapes_below, b.shape_progress, total, family, shapes)
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
                over = 3
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
                        block.swap[half, lane, path] = NONE if b.swapped[code] == NONE else where
                    else:
                        block.swap[half, lane, path] = NONE
                    block.codes[half, lane, path] = code
                    over &= b.numbered[code]
                block.over[half, lane] = over != 0
        lanes += np.int64(pairs)
        family += 1
    return family, lanes


@kernel
def replaced(b: Any, total: Any, codes: Any, path: Any, code: Any) -> Any:
    """Return the number of the position in which one of the ascending codes has become another one."""
    at = np.uint64(path)
    c0 = codes[np.uint64(at <= 0)]
    c1 = codes[np.uint64(1) + np.uint64(at <= 1)]
    c2 = codes[np.uint64(2) + np.uint64(at <= 2)]
    c3 = codes[np.uint64(3) + np.uint64(at <= 3)]
    return rank(
        b,
        total,
        min(c0, code),
        max(c0, min(c1, code)),
        max(c1, min(c2, code)),
        max(c2, min(c3, code)),
        max(c3, code),
    )


@kernel
def look_up(b: Any, block: Any, total: Any, lanes: Any, values: Any, base: Any) -> None:
    """Fill the rows of the options that make progress; `values[base[t] + i]` is the value of position i of layer t."""
    work = block.work
    sorted_codes = np.zeros(PATHS, np.uint64)
    for half in range(2):
        rows = np.uint64(MOVE + half * OPTIONS)
        for lane in range(lanes):
            if block.over[half, lane]:
                for option in range(OPTIONS):
                    work[rows + np.uint64(option), lane] = NEVER
                continue
            mine, theirs = block.codes[half, lane], block.codes[1 - half, lane]
            advanced: Any = np.uint64(total)
            for path in range(PATHS):
                after = b.after[mine[path]]
                partner = block.partner[lane, path]
                for count in range(1, DICE + 1):
                    row = rows + np.uint64(DICE * path + count - 1)
                    code = np.uint64(after[count])
                    if code == NONE:
                        work[row, lane] = NEVER
                        continue
                    layer = np.uint64(total + count)
                    value = -values[
                        base[layer] + replaced(b, layer, theirs, partner, np.uint64(b.flip[code]))
                    ]
                    if count == DICE:  # R8: an extra turn, if I like
                        value = max(
                            value, values[base[layer] + replaced(b, layer, mine, np.uint64(path), code)]
                        )
                    work[row, lane] = value

                code = np.uint64(after[1])
                if code == NONE:
                    code = mine[path]
                else:
                    advanced += np.uint64(1)
                code = np.uint64(b.flip[code])
                i = path
                while i > 0 and sorted_codes[i - 1] > code:
                    sorted_codes[i] = sorted_codes[i - 1]
                    i -= 1
                sorted_codes[i] = code
            row = rows + np.uint64(ADVANCE - MOVE)
            if advanced == total:
                work[row, lane] = NEVER
            else:
                c = sorted_codes
                work[row, lane] = -values[base[advanced] + rank(b, advanced, c[0], c[1], c[2], c[3], c[4])]


@kernel
def play(block: Any, half: Any) -> None:
    """Work out the turns of one half; their values are in row NOTHING afterwards."""
    work, value = block.work, block.value
    everyone = value.ravel()
    shift = np.uint64(half * OPTIONS)
    for lane in range(LANES):
        work[PASS + shift, lane] = -value[1 - half, lane]
        for path in range(PATHS):
            where = block.swap[half, lane, path]
            work[SWAP + shift + np.uint64(path), lane] = NEVER if where == NONE else -everyone[where]

    work_out(work, shift)


@kernel
def work_out(work: Any, shift: Any) -> None:
    """Work out turns from the rows of their options, from MOVE + shift on; the values are in row NOTHING then."""
    otherwise = PASS + shift
    for roll in range(NUM_ROLLS):
        choices = CHOICES[roll]
        a, b = choices[0] + shift, choices[1] + shift
        if NUM_CHOICES[roll] == 1:
            move_or_pass(work, roll, (otherwise, a))
        elif NUM_CHOICES[roll] == 2:
            move_or_pass(work, roll, (otherwise, a, b))
        elif NUM_CHOICES[roll] == 3:
            move_or_pass(work, roll, (otherwise, a, b, choices[2] + shift))
        elif NUM_CHOICES[roll] == 4:
            move_or_pass(work, roll, (otherwise, a, b, choices[2] + shift, choices[3] + shift))
    for path in range(PATHS):
        largest(work, FOUR_DRAGONS[path], (np.uint64(FOUR_DRAGONS[path]), SWAP + shift + np.uint64(path)))
    swaps = SWAP + shift
    one = np.uint64(1)
    largest(
        work, FIVE_DRAGONS, (otherwise, swaps, swaps + one, swaps + 2 * one, swaps + 3 * one, swaps + 4 * one)
    )

    reroll(work)
    reroll(work)
    expect(work)


@kernel
def result(b: Any, codes: Any) -> Any:
    """Return the result of a finished game for the player to move (R10)."""
    lead = 0
    for path in range(PATHS):
        lead += b.standing[codes[path]]
    return np.sign(lead)


@kernel
def place(b: Any, block: Any, half: Any, lane: Any, total: Any, base: Any) -> Any:
    """Return where the value of a lane's position is kept."""
    c = block.codes[half, lane]
    return base[total] + rank(b, np.uint64(total), c[0], c[1], c[2], c[3], c[4])


@kernel
def solve_families(
    b: Any,
    block: Any,
    total: Any,
    first: Any,
    last: Any,
    values: Any,
    base: Any,
    tolerance: Any,
    most: Any,
    rounds: Any,
) -> None:
    """Solve families `first` to `last` - 1 of a layer, all later layers being solved.

    Args:
        b: the board.
        block: the calling thread's own.
        total: the layer.
        first: families from,
        last: and up to.
        values: float (...): read and filled.
        base: int64 (T,): where in `values` the layers begin.
        tolerance: iterate until no value changes by more.
        most: rounds after which to give up; the changes left then show in the residual.
        rounds: int64 (most + 1,): counts blocks by the number of rounds they took.
    """
    work, value = block.work, block.value
    family = first
    while family < last:
        family, lanes = fill(b, block, total, family, last)
        look_up(b, block, total, lanes, values, base)
        for half in range(2):
            for lane in range(lanes):
                if block.over[half, lane]:
                    value[half, lane] = result(b, block.codes[half, lane])
                else:  # a guess: a middling move, as if it were the turn
                    guess = value.dtype.type(NEVER)
                    for path in range(PATHS):
                        guess = max(guess, work[np.uint64(MOVE + half * OPTIONS + DICE * path + 2), lane])
                    value[half, lane] = max(guess, value.dtype.type(-1))
        count = 0
        change = tolerance + 1
        while change > tolerance and count < most:
            change = tolerance * 0
            for half in range(2):
                play(block, half)
                for lane in range(lanes):
                    if not block.over[half, lane]:
                        new = work[NOTHING, lane]
                        change = max(change, abs(new - value[half, lane]))
                        value[half, lane] = new
            count += 1
        rounds[count] += 1
        for half in range(1, -1, -1):  # a position that is its own mirror is kept once
            for lane in range(lanes):
                if half == 0 or not block.twin[lane]:
                    values[place(b, block, half, lane, total, base)] = value[half, lane]


@kernel
def check_families(b: Any, block: Any, total: Any, first: Any, last: Any, values: Any, base: Any) -> Any:
    """Return the largest Bellman error over families `first` to `last` - 1 of a layer, from the values alone."""
    work, value = block.work, block.value
    residual = 0.0
    family = first
    while family < last:
        family, lanes = fill(b, block, total, family, last)
        look_up(b, block, total, lanes, values, base)
        for half in range(2):
            for lane in range(lanes):
                value[half, lane] = values[place(b, block, half, lane, total, base)]
        for half in range(2):
            play(block, half)
            for lane in range(lanes):
                if block.over[half, lane]:
                    new = np.float64(result(b, block.codes[half, lane]))
                else:
                    new = np.float64(work[NOTHING, lane])
                error = abs(new - value[half, lane])
                residual = max(residual, error if error == error else np.inf)
    return residual
