"""A turn as arithmetic: what the best holds make of the values of rolls, for LANES positions side by side.

`rows` is a C-contiguous float array (462, LANES): a row for each keep of `core.dice`, a column (a lane) for each
position. The caller fills rows 0..251 with what each *roll* is worth if the rolling stops there. The other rows need
not be filled. Then

- `expect(rows)` gives the row of every partial keep its mean over the dice still to be rolled (W in docs/solution.md);
- `best(rows)` gives the row of every keep the best of itself and of all keeps that it contains (U in the same place).
  For a roll that is its value before a hold.

`reroll` does both, which is one re-roll. A turn is `reroll` twice (three times with the tiger) and `expect`; then row
NOTHING, that of the keep without dice, is the value before the first roll. The values of decisions can be read between
`expect` and `best`: row HOLD_KEEP[roll, hold] is the value of that hold. All this is for players who maximise the
values. Nothing is allocated on the way.

`new_rows` makes such an array where the machine reads it fastest. It may have more rows: `row_operation` makes
functions over them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from wotd_env.core.compilation import kernel
from wotd_env.core.dice import COUNTS, FACES, KEEPS, NUM_KEEPS, NUM_ROLLS, UNROLLED, keep_number
from wotd_env.core.rules import DICE

__all__ = ["LANES", "NOTHING", "Rows", "best", "expect", "largest", "new_rows", "reroll", "row_operation"]

LANES = 16
"""Positions side by side: one AVX-512 register of float32 holds them (other machines take two or four).

The rows of a turn then fit into the L1 cache.
"""

NOTHING = NUM_KEEPS - 1
"""The row of the keep without dice."""

Rows = Any
"""The values of a turn in compiled code: float (rows, LANES), at least a row for each keep."""


def _more() -> np.ndarray:
    """Return uint16 (210, 6), [i, face] -> row: partial keep 252 + i with one more die, which shows that face."""
    table = np.zeros((NUM_KEEPS - NUM_ROLLS, FACES), np.uint16)
    for i, keep in enumerate(KEEPS[NUM_ROLLS:].tolist()):
        for face in range(FACES):
            table[i, face] = keep_number(sorted([*keep[:-1], face]))
    return table


def _fewer() -> np.ndarray:
    """Return uint16 (462, 5): the rows of every keep with one die less.

    There is one for each face that the keep shows; the last one is repeated.
    """
    table = np.zeros((NUM_KEEPS, DICE), np.uint16)
    for i, keep in enumerate(KEEPS.tolist()):
        less = {
            keep_number([*keep[:die], *keep[die + 1 :], UNROLLED])
            for die in range(DICE)
            if keep[die] != UNROLLED
        }
        rows = sorted(less) or [i]
        table[i] = rows + [rows[-1]] * (DICE - len(rows))
    return table


MORE = _more()
FEWER = _fewer()
FACES_SHOWN = (COUNTS > 0).sum(1).astype(np.uint8)


def new_rows(count: int = NUM_KEEPS, dtype: Any = np.float32) -> np.ndarray:
    """Return rows (count, LANES), not filled.

    They begin on cache lines, which halves the time of `expect` and `best`.
    """
    itemsize = np.dtype(dtype).itemsize
    memory = np.empty(count * LANES + 64 // itemsize, dtype)
    skip = -memory.ctypes.data % 64 // itemsize
    return memory[skip : skip + count * LANES].reshape(count, LANES)


def row_operation(reduce: Callable[[Any, list[Any]], Any]) -> Any:
    """Return `f(rows, out, sources)` for kernels: write to row `out` what `reduce` makes of the rows in a tuple.

    `reduce` is given an LLVM builder and the rows as vectors, and returns a vector.

    It is written in LLVM's vectors and not as a loop over lanes, because LLVM checks before each such loop whether the
    rows overlap, and that takes five times as long as the loop.
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
    # A turn takes fifteen means after one another, and a game dozens of turns, so the error of a sixth in single
    # precision would add up. Therefore this is total * rounded + (total * rest), with one rounding where the machine
    # has a fused operation.
    rounded = float(np.float32(sixth))
    rest = builder.fmul(total, ir.Constant(total.type, [float(np.float32(sixth - rounded))] * LANES))
    main = builder.fmul(total, ir.Constant(total.type, [rounded] * LANES), flags=("contract",))
    return builder.fadd(main, rest, flags=("contract",))


def _emit_largest(builder: Any, rows: list[Any]) -> Any:
    while len(rows) > 1:
        a, b = rows.pop(0), rows.pop(0)
        rows.append(builder.select(builder.fcmp_ordered(">", a, b), a, b))
    return rows[0]


_mean = row_operation(_emit_mean)
largest = row_operation(_emit_largest)
"""Kernel `largest(rows, out, sources)`: write the largest of the rows in a tuple to row `out`."""


@kernel
def expect(rows: Rows) -> None:
    """Fill the rows of the partial keeps with their means over the dice to be rolled, from the rows of the rolls."""
    # A keep with one more die has a lower number, so the rows that are needed are filled before.
    for i in range(NUM_KEEPS - NUM_ROLLS):
        more = MORE[i]
        _mean(rows, NUM_ROLLS + i, (more[0], more[1], more[2], more[3], more[4], more[5]))


@kernel
def best(rows: Rows) -> None:
    """Raise the row of every keep to the best of all keeps that it contains, after `expect`."""
    # From the fewest dice to the most.
    for i in range(NUM_KEEPS):
        row = NOTHING - i
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
    """Make the values of rolls before a re-roll out of their values after it."""
    expect(rows)
    best(rows)
