"""A turn as arithmetic: what the best holds make of the values of rolls, for LANES positions side by side.

`values` is a C-contiguous float array (462, LANES): a row for each keep of `core.dice`, a column (a lane) for each
position. The caller fills rows 0..251 with what each *roll* is worth if the rolling stops there; the other rows are
scratch. Then

    expect(values)    row of every partial keep: its mean over the dice still to be rolled (W in docs/solution.md)
    best(values)      row of every keep: the best of it and of all it holds (U); of a roll: its value before a hold

`reroll` is both: one re-roll. A turn is `reroll` twice (three times with the tiger) and `expect`, after which row
NOTHING, the keep of no dice, is the value before the first roll. Decisions are read off between `expect` and `best`:
row HOLD_KEEP[roll, hold] is the value of that hold. For maximisers only; the passes allocate nothing.

`scratch` makes such an array where the machine reads it fastest. It may have more rows: `row_operation` makes functions
over them.
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
from wotd_env.core.dice import COUNTS, FACES, KEEPS, NUM_KEEPS, NUM_ROLLS, UNROLLED, rank
from wotd_env.core.rules import DICE

__all__ = ["LANES", "NOTHING", "best", "expect", "largest", "reroll", "row_operation", "scratch"]

LANES = 16
"""Positions side by side: an AVX-512 register of float32 (other machines take two or four); `values` then fits L1."""

NOTHING = NUM_KEEPS - 1


def _more() -> np.ndarray:
    """Return uint16 (210, 6): the row of partial keep 252 + i with one more die that shows a face."""
    table = np.zeros((NUM_KEEPS - NUM_ROLLS, FACES), np.uint16)
    for i, keep in enumerate(KEEPS[NUM_ROLLS:].tolist()):
        for face in range(FACES):
            table[i, face] = rank(sorted([*keep[:-1], face]))
    return table


def _fewer() -> np.ndarray:
    """Return uint16 (462, 5): the rows of a keep with one die less, for each face it shows; the last one repeated."""
    table = np.zeros((NUM_KEEPS, DICE), np.uint16)
    for i, keep in enumerate(KEEPS.tolist()):
        less = {
            rank([*keep[:die], *keep[die + 1 :], UNROLLED]) for die in range(DICE) if keep[die] != UNROLLED
        }
        rows = sorted(less) or [i]
        table[i] = rows + [rows[-1]] * (DICE - len(rows))
    return table


MORE = _more()
FEWER = _fewer()
FACES_SHOWN = (COUNTS > 0).sum(1).astype(np.uint8)


def scratch(rows: int = NUM_KEEPS, dtype: Any = np.float32) -> np.ndarray:
    """Return an uninitialised array (rows, LANES) whose rows begin on cache lines, which halves the time of a pass."""
    itemsize = np.dtype(dtype).itemsize
    memory = np.empty(rows * LANES + 64 // itemsize, dtype)
    skip = -memory.ctypes.data % 64 // itemsize
    return memory[skip : skip + rows * LANES].reshape(rows, LANES)


def row_operation(reduce: Callable[[Any, list[Any]], Any]) -> Any:
    """Return f(values, out, rows), usable in kernels: write to row `out` what `reduce` makes of a tuple of rows.

    `reduce` is given an LLVM builder and the rows as vectors, and returns a vector.

    Written in LLVM's vectors, not as a loop over lanes: before each such loop LLVM checks whether its rows overlap,
    which takes five times as long as the loop.
    """

    @intrinsic
    def operation(typing: Any, values: Any, out: Any, rows: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(values)(context, builder, arguments[0]).data
            vector = ir.VectorType(context.get_data_type(values.dtype), LANES)
            first = builder.bitcast(data, vector.as_pointer())
            align = values.dtype.bitwidth // 8
            sources = cgutils.unpack_tuple(builder, arguments[2])  # type: ignore[no-untyped-call]
            loaded = [builder.load(builder.gep(first, [source]), align=align) for source in sources]
            builder.store(reduce(builder, loaded), builder.gep(first, [arguments[1]]), align=align)
            return context.get_dummy_value()

        row = types.uint64
        return types.void(values, row, types.UniTuple(row, len(rows))), emit  # type: ignore[no-untyped-call]

    return operation


def _emit_mean(builder: Any, rows: list[Any]) -> Any:
    a, b, c, d, e, f = rows
    total = builder.fadd(builder.fadd(builder.fadd(a, b), builder.fadd(c, d)), builder.fadd(e, f))
    sixth = 1 / FACES
    if total.type.element != ir.FloatType():
        return builder.fmul(total, ir.Constant(total.type, [sixth] * LANES))
    # Fifteen means make a turn, and dozens of turns a game: the error of a single-precision sixth would add up. One
    # fused operation (where the machine has it) rounds only once: total * rounded + (total * rest).
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
"""Kernel `largest(values, out, rows)`: write the largest of the given rows, a tuple, to row `out`."""


@kernel
def expect(values: Any) -> None:
    """Fill the rows of the partial keeps with their means over the dice to be rolled, from those of the rolls."""
    for i in range(NUM_KEEPS - NUM_ROLLS):  # a die more lowers the row: the rows needed are there
        more = MORE[i]
        _mean(values, NUM_ROLLS + i, (more[0], more[1], more[2], more[3], more[4], more[5]))


@kernel
def best(values: Any) -> None:
    """Raise the row of every keep to the best among its sub-multisets, after `expect`."""
    for i in range(NUM_KEEPS):
        row = NOTHING - i  # from the fewest dice to the most
        fewer = FEWER[row]
        faces = FACES_SHOWN[row]
        if faces <= 1:
            largest(values, row, (row, fewer[0]))
        elif faces == 2:
            largest(values, row, (row, fewer[0], fewer[1]))
        elif faces == 3:
            largest(values, row, (row, fewer[0], fewer[1], fewer[2]))
        else:
            largest(values, row, (row, fewer[0], fewer[1], fewer[2], fewer[3], fewer[4]))


@kernel
def reroll(values: Any) -> None:
    """Turn the values of rolls into those of rolls with one more re-roll to come."""
    expect(values)
    best(values)
