"""Operations that process several bytes in one instruction, to speed up batches.

numba neither vectorizes nor unrolls loops over fields of a record or blocks of an observation, because their lengths
are unknown at compile time. The operations in this module treat bytes of a record as lanes of one 64-bit word, and
write 16 or 32 entries of an observation at once.

    word & FIVE                          the five lowest bytes: the pieces of a seat, the dice, or the colors
    (word + EACH * (MOST - m)) & HIGH    byte i is 128 if byte i of `word` exceeds m, else 0 (for bytes below 128)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.cpython.unsafe import numbers
from numba.extending import intrinsic

from wotd_env.core.actions import Bits
from wotd_env.core.compilation import inlined
from wotd_env.core.rules import NUMBERED, PATHS, Rules
from wotd_env.core.state import STATE

_FIELDS: Any = STATE.fields
PIECES_AT, DICE_AT, DEAD_AT, COLOR_AT = (_FIELDS[name][1] for name in ("pieces", "dice", "dead", "color"))
"""Offsets of fields in a record, in bytes."""

FIVE = np.uint64(0xFFFFFFFFFF)
EACH = np.uint64(0x0101010101)
HIGH = np.uint64(0x8080808080)
MOST = np.uint64(127)

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)

trailing_zeros: Any = numbers.trailing_zeros  # the index of the lowest set bit of a number other than 0


LLVM = Any  # objects of llvmlite and of numba's compiler, which have no types
Typed = Any  # an argument of an intrinsic: a type of numba in the body, a value where a kernel calls the intrinsic


def _emitted(function: Callable[..., Any]) -> Any:
    """Make `function` an intrinsic of numba, which kernels call without the argument `typing`."""
    return intrinsic(function)


def _at(builder: LLVM, record: LLVM, offset: LLVM, kind: LLVM) -> LLVM:
    first = builder.gep(builder.bitcast(record, _I8.as_pointer()), [offset])
    return builder.bitcast(first, kind.as_pointer())


@_emitted
def word_at(typing: Typed, record: Typed, offset: Typed) -> Typed:
    """Return eight bytes of a record, from byte `offset` on, as one uint64."""

    def emit(context: LLVM, builder: LLVM, signature: LLVM, arguments: LLVM) -> LLVM:
        record, offset = arguments
        return builder.load(_at(builder, record, offset, _I64), align=1)

    return types.uint64(record, types.int64), emit


@_emitted
def set_five(typing: Typed, record: Typed, offset: Typed, word: Typed) -> Typed:
    """Write the five lowest bytes of `word` to a record, from byte `offset` on."""

    def emit(context: LLVM, builder: LLVM, signature: LLVM, arguments: LLVM) -> LLVM:
        record, offset, word = arguments
        builder.store(builder.trunc(word, _I32), _at(builder, record, offset, _I32), align=1)
        fifth = builder.trunc(builder.lshr(word, ir.Constant(_I64, 32)), _I8)
        builder.store(fifth, _at(builder, record, builder.add(offset, ir.Constant(_I64, 4)), _I8))
        return context.get_dummy_value()

    return types.void(record, types.int64, types.uint64), emit


@_emitted
def copy_game(typing: Typed, target: Typed, source: Typed) -> Typed:
    """Copy the record `source` to the record `target`.

    The assignment `states[i] = source` would be slower, because numba counts the references to the array `states`.
    """

    def emit(context: LLVM, builder: LLVM, signature: LLVM, arguments: LLVM) -> LLVM:
        lanes = ir.VectorType(_I8, STATE.itemsize).as_pointer()
        target, source = (builder.bitcast(record, lanes) for record in arguments)
        builder.store(builder.load(source, align=1), target, align=1)
        return context.get_dummy_value()

    return types.void(target, source), emit


@_emitted
def above(typing: Typed, record: Typed, limits: Typed, offset: Typed) -> Typed:
    """Return whether any byte of `record` exceeds its limit. Byte `offset + i` of `limits` is the limit of byte i."""

    def emit(context: LLVM, builder: LLVM, signature: LLVM, arguments: LLVM) -> LLVM:
        record, limits, offset = arguments
        lanes = ir.VectorType(_I8, 32)
        wrong = []
        for half in (ir.Constant(_I64, 0), ir.Constant(_I64, 32)):
            found = builder.load(_at(builder, record, half, lanes), align=1)
            limit = builder.load(_at(builder, limits, builder.add(offset, half), lanes), align=1)
            wrong.append(builder.icmp_unsigned(">", found, limit))
        return builder.icmp_unsigned("!=", builder.bitcast(builder.or_(*wrong), _I32), ir.Constant(_I32, 0))

    return types.boolean(record, limits, types.int64), emit


@_emitted
def put_bits(typing: Typed, row: Typed, at: Typed, bits: Typed) -> Typed:
    """Write the bits of `bits` to `row[at:]` as zeros and ones, the lowest bit first.

    The type of `bits` sets the number of written entries: 16 for uint16, and 32 for uint32. All written entries must
    lie in the row.
    """

    def emit(context: LLVM, builder: LLVM, signature: LLVM, arguments: LLVM) -> LLVM:
        lanes = ir.VectorType(ir.IntType(1), bits.bitwidth)
        _store(context, builder, row, arguments, builder.bitcast(arguments[2], lanes), signed=False)
        return context.get_dummy_value()

    return types.void(row, types.int64, bits), emit


@_emitted
def copy_16(typing: Typed, row: Typed, at: Typed, table: Typed, index: Typed) -> Typed:
    """Copy row `index` of `table`, int8 (k, 16), to `row[at : at + 16]`."""

    def emit(context: LLVM, builder: LLVM, signature: LLVM, arguments: LLVM) -> LLVM:
        data = context.make_array(table)(context, builder, arguments[2]).data
        first = builder.mul(arguments[3], ir.Constant(_I64, 16))
        loaded = builder.load(_at(builder, data, first, ir.VectorType(_I8, 16)), align=1)
        _store(context, builder, row, arguments, loaded, signed=True)
        return context.get_dummy_value()

    return types.void(row, types.int64, table, types.int64), emit


DEFAULT_SPACES = Rules().spaces  # the number of plain spaces for which `put_pieces` is compiled


@_emitted
def put_pieces(typing: Typed, row: Typed, at: Typed, pieces: Typed) -> Typed:
    """Write the one-hot spaces of five pieces to `row[at:]`. Byte p of `pieces` is the space of the piece on path p."""
    block = DEFAULT_SPACES + NUMBERED + 1

    def emit(context: LLVM, builder: LLVM, signature: LLVM, arguments: LLVM) -> LLVM:
        eight, positions = ir.VectorType(_I8, 8), ir.VectorType(_I32, 32)
        pieces = builder.bitcast(arguments[2], eight)
        for first in (0, 32, PATHS * block - 32):
            columns = range(first, first + 32)
            path = ir.Constant(positions, [column // block for column in columns])
            spaces = builder.shuffle_vector(pieces, ir.Constant(eight, ir.Undefined), path)
            wanted = ir.Constant(spaces.type, [column % block for column in columns])
            at = builder.add(arguments[1], ir.Constant(_I64, first))
            here = builder.icmp_unsigned("==", spaces, wanted)
            _store(context, builder, row, (arguments[0], at), here, signed=False)
        return context.get_dummy_value()

    return types.void(row, types.int64, types.uint64), emit


def _store(context: LLVM, builder: LLVM, row: Typed, arguments: LLVM, lanes: LLVM, signed: bool) -> None:
    """Emit code that casts the integers `lanes` to `row.dtype` and writes them to `arguments[0][arguments[1]:]`."""
    data = context.make_array(row)(context, builder, arguments[0]).data
    entry = context.get_data_type(row.dtype)
    vector = ir.VectorType(entry, lanes.type.count)
    if isinstance(row.dtype, types.Float):
        lanes = (builder.sitofp if signed else builder.uitofp)(lanes, vector)
    elif lanes.type != vector:
        lanes = (builder.sext if signed else builder.zext)(lanes, vector)
    first = builder.gep(data, [arguments[1]])
    builder.store(lanes, builder.bitcast(first, vector.as_pointer()), align=1)


@inlined
def gather(high: Bits) -> Bits:
    """Return the high bits of the five lowest bytes as bits 0 to 4. All other bits of `high` must be 0."""
    # bit i of the result is bit 28 + i of the product; the terms of the product do not overlap
    return (high >> np.uint64(7)) * np.uint64(0x10204081) >> np.uint64(28) & np.uint64(31)
