"""Compute the expected value of every keep in a turn. A *keep* is a set of dice that the player does not re-roll.

The kernels work on LANES positions at once. Their argument `rows` is a C-contiguous float array (462 or more, LANES).
It has one row for each keep of `core.dice`, and one column (a *lane*) for each position. Rows 0 to 251 are for the
rolls, which are keeps of five dice. The caller first sets the row of each roll to the value of stopping with this roll.

For a whole turn, call `reroll` twice (three times with the tiger) and then `expect` once. Then row NOTHING has the
value before the first roll. After `expect` and before `best`, row HOLD_KEEP[roll, hold] has the value of playing `hold`
after `roll`. In docs/explanation/solver.md, `expect` is called W, and `best` is called U.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from wotd_env.core import dice
from wotd_env.core.actions import Action
from wotd_env.core.compilation import kernel
from wotd_env.core.dice import FACES, KEEPS, NUM_KEEPS, NUM_ROLLS
from wotd_env.core.rules import DICE

LANES = 16  # positions per call; 16 float32 fill an AVX-512 register, and 462 rows fit into the L1 cache
NOTHING = NUM_KEEPS - 1  # the row of the keep without dice
STOPS = NUM_KEEPS  # the first row with a value of stopping

TIE = np.float32(1e-6)
"""Tolerance for ties, in equity. Actions within TIE of the best one are equally good, and the lowest of them is played.

Without the tolerance, rounding would decide ties, such as those between symmetric paths. On another kind of processor,
rounding changes values by up to 4e-7. All values are compared with the largest one, not with each other, so the order
of the comparisons does not matter.
"""

Rows = Any


def _more() -> np.ndarray:
    """Return a table M, uint16 (210, 6): adding a die with the face f to keep 252 + i gives keep M[i, f]."""
    partial = KEEPS[NUM_ROLLS:].tolist()
    rows = [[dice.keep_index(sorted([*keep[:-1], face])) for face in range(FACES)] for keep in partial]
    return np.array(rows, np.uint16)


def _fewer() -> np.ndarray:
    """Return a table, uint16 (462, 5). Row k lists the keeps that remain if one die is removed from keep k."""
    table = np.zeros((NUM_KEEPS, DICE), np.uint16)
    for i, keep in enumerate(KEEPS.tolist()):
        less = {
            dice.keep_index([*keep[:die], *keep[die + 1 :], dice.UNROLLED])
            for die in range(DICE)
            if keep[die] != dice.UNROLLED
        }
        rows = sorted(less) or [i]
        table[i] = rows + [rows[-1]] * (DICE - len(rows))
    return table


MORE = _more()
FEWER = _fewer()
FACES_SHOWN = (dice.COUNTS > 0).sum(1).astype(np.uint8)


def new_rows(count: int = NUM_KEEPS, dtype: Any = np.float32) -> np.ndarray:
    """Return an uninitialized array (count, LANES), aligned to cache lines for speed."""
    itemsize = np.dtype(dtype).itemsize
    memory = np.empty(count * LANES + 64 // itemsize, dtype)
    skip = -memory.ctypes.data % 64 // itemsize
    return memory[skip : skip + count * LANES].reshape(count, LANES)


def row_operation(reduce: Callable[[Any, list[Any]], Any]) -> Any:
    """Return a kernel `f(rows, out, sources)`. The kernel reduces the rows in the tuple `sources` to the row `out`.

    `reduce` takes an LLVM builder and the source rows as LLVM vectors, and returns an LLVM vector. A loop over lanes
    would be slower, because LLVM checks before each loop whether the rows overlap.
    """

    @intrinsic
    def operation(typing: Any, rows: Any, out: Any, sources: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(rows)(context, builder, arguments[0]).data
            vector = ir.VectorType(context.get_data_type(rows.dtype), LANES)
            first = builder.bitcast(data, vector.as_pointer())
            align = rows.dtype.bitwidth // 8
            numbers = cgutils.unpack_tuple(builder, arguments[2])  # type: ignore[no-untyped-call]
            loaded = [builder.load(builder.gep(first, [number]), align=align) for number in numbers]
            builder.store(reduce(builder, loaded), builder.gep(first, [arguments[1]]), align=align)
            return context.get_dummy_value()

        row = types.uint64
        return types.void(rows, row, types.UniTuple(row, len(sources))), emit  # type: ignore[no-untyped-call]

    return operation


def _emit_mean(builder: Any, rows: list[Any]) -> Any:
    a, b, c, d, e, f = rows
    total = builder.fadd(builder.fadd(builder.fadd(a, b), builder.fadd(c, d)), builder.fadd(e, f))
    sixth = 1 / FACES
    if total.type.element != ir.FloatType():
        return builder.fmul(total, ir.Constant(total.type, [sixth] * LANES))
    # The rounding error of 1/6 in single precision would accumulate over the many means of a game. Therefore 1/6 is
    # split into its rounded value and a remainder.
    rounded = float(np.float32(sixth))
    rest = builder.fmul(total, ir.Constant(total.type, [float(np.float32(sixth - rounded))] * LANES))
    main = builder.fmul(total, ir.Constant(total.type, [rounded] * LANES), flags=("contract",))
    return builder.fadd(main, rest, flags=("contract",))


def emit_largest(builder: Any, rows: list[Any]) -> Any:
    """Return the elementwise maximum of the rows."""
    while len(rows) > 1:
        a, b = rows.pop(0), rows.pop(0)
        rows.append(builder.select(builder.fcmp_ordered(">", a, b), a, b))
    return rows[0]


_mean = row_operation(_emit_mean)
largest = row_operation(emit_largest)
"""Kernel `largest(rows, out, sources)`: set row `out` to the elementwise maximum of the rows in the tuple `sources`."""


@kernel
def expect(rows: Rows) -> None:
    """Set the row of every keep with fewer than five dice to the mean value over the rolls of the other dice."""
    # A keep with one more die has a lower index, so its row is already set.
    for i in range(NUM_KEEPS - NUM_ROLLS):
        more = MORE[i]
        _mean(rows, NUM_ROLLS + i, (more[0], more[1], more[2], more[3], more[4], more[5]))


@kernel
def best(rows: Rows) -> None:
    """Set the row of every keep to the elementwise maximum of its row and the rows of all keeps that it contains.

    Call `expect` first.
    """
    for i in range(NUM_KEEPS):
        row = NOTHING - i  # small keeps first, because larger keeps read their rows
        fewer = FEWER[row]
        faces = FACES_SHOWN[row]
        if faces <= 1:
            largest(rows, row, (row, fewer[0]))
        elif faces == 2:
            largest(rows, row, (row, fewer[0], fewer[1]))
        elif faces == 3:
            largest(rows, row, (row, fewer[0], fewer[1], fewer[2]))
        else:
            largest(rows, row, (row, fewer[0], fewer[1], fewer[2], fewer[3], fewer[4]))


@kernel
def reroll(rows: Rows) -> None:
    """Allow one more re-roll: set the row of every roll to the value of its best keep."""
    expect(rows)
    best(rows)


@kernel
def best_keep(rows: Rows, expected: Any, roll: Any, lane: Any) -> Any:
    """Return the best keep of a roll, or the roll itself if stopping is best. In a tie, the lowest action number wins.

    Row STOPS + r of `rows` has the value of stopping with roll r. `expected`, float (462 or more, LANES), is the result
    of `expect`.
    """
    most = rows[STOPS + roll, lane]
    for hold in range(Action.STOP_ROLLING):
        if dice.LEGAL_HOLDS[roll] >> np.uint64(hold) & np.uint64(1):
            most = max(most, expected[dice.HOLD_KEEP[roll, hold], lane])
    for hold in range(Action.STOP_ROLLING):
        if dice.LEGAL_HOLDS[roll] >> np.uint64(hold) & np.uint64(1):
            keep = np.int64(dice.HOLD_KEEP[roll, hold])
            if expected[keep, lane] >= most - TIE:
                return keep
    return np.int64(roll)
