"""The three operations of a small network, for use in kernels.

The operations work on C-contiguous float32 arrays, BLOCK entries at a time. They use LLVM's vector type,
because LLVM would keep the sums of plain loops in memory instead of registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BLOCK = 32
ABREAST = 2  # vectors per call of `relu_of_products`; the CPU overlaps the additions of different vectors

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, BLOCK)
_ZERO = ir.Constant(_VECTOR, [0.0] * BLOCK)
_FUSED = ("contract",)  # allow a fused multiply-add, which rounds only once


class _Array:
    """An array argument of a kernel, as LLVM values."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.data = builder, array.data
        self.shape = cgutils.unpack_tuple(builder, array.shape)  # type: ignore[no-untyped-call]

    def pointer(self, *index: Any) -> Any:
        offset = index[0]
        for size, i in zip(self.shape[1:], index[1:], strict=True):
            offset = self.builder.add(self.builder.mul(offset, size), i)
        return self.builder.gep(self.data, [offset])

    def block(self, *index: Any) -> Any:
        """Return a pointer to the block that starts at an element."""
        return self.builder.bitcast(self.pointer(*index), _VECTOR.as_pointer())

    def load(self, *index: Any) -> Any:
        return self.builder.load(self.block(*index), align=4)


def _compiled(define: Callable[..., Any]) -> Any:
    """Return `define` as a numba intrinsic. Its static type is Any, because callers omit the argument `typing`."""
    return intrinsic(define)


def _arrays(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    return [
        _Array(context, builder, kind, value) if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _store_relu(builder: Any, vector: Any, block: Any) -> None:
    positive = builder.select(builder.fcmp_ordered(">", vector, _ZERO), vector, _ZERO)
    builder.store(positive, block, align=4)


@_compiled
def relu_of_rows(typing: Any, rows: Any, active: Any, first: Any, out: Any, i: Any) -> Any:
    """Set out[i, first:first + BLOCK] to relu(rows[active].sum(0))[first:first + BLOCK]."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, chosen, at, target, line = _arrays(context, builder, signature, arguments)
        total = cgutils.alloca_once_value(builder, _ZERO)  # type: ignore[no-untyped-call]
        builder.store(_ZERO, total)
        with cgutils.for_range(builder, chosen.shape[0]) as loop:
            row = builder.load(chosen.pointer(loop.index))
            builder.store(builder.fadd(builder.load(total), table.load(row, at)), total)
        _store_relu(builder, builder.load(total), target.block(line, at))
        return context.get_dummy_value()

    return types.void(rows, active, types.int64, out, types.int64), emit


@_compiled
def relu_of_products(typing: Any, bias: Any, vectors: Any, matrix: Any, out: Any) -> Any:
    """Set out, (ABREAST, BLOCK), to relu(bias + vectors @ matrix)."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, factors, table, target = _arrays(context, builder, signature, arguments)
        zero = ir.Constant(ir.IntType(64), 0)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)
        indices = [ir.Constant(ir.IntType(64), i) for i in range(ABREAST)]
        totals = [cgutils.alloca_once_value(builder, _ZERO) for _ in indices]  # type: ignore[no-untyped-call]
        for total in totals:
            builder.store(start.load(zero), total)
        with cgutils.for_range(builder, factors.shape[1]) as loop:
            row = table.load(loop.index, zero)
            for i, total in zip(indices, totals, strict=True):
                factor = builder.load(factors.pointer(i, loop.index))
                factor = builder.insert_element(_ZERO, factor, ir.Constant(ir.IntType(32), 0))
                factor = builder.shuffle_vector(factor, _ZERO, lanes)
                product = builder.fmul(factor, row, flags=_FUSED)
                builder.store(builder.fadd(builder.load(total), product, flags=_FUSED), total)
        for i, total in zip(indices, totals, strict=True):
            _store_relu(builder, builder.load(total), target.block(i, zero))
        return context.get_dummy_value()

    return types.void(bias, vectors, matrix, out), emit


@_compiled
def dot(typing: Any, matrix: Any, row: Any, first: Any, vectors: Any, i: Any, at: Any) -> Any:
    """Return the dot product of matrix[row, first:first + BLOCK] and vectors[i, at:at + BLOCK]."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, table_row, column, factors, vector, offset = _arrays(context, builder, signature, arguments)
        products = builder.fmul(table.load(table_row, column), factors.load(vector, offset))
        kind = ir.FunctionType(_FLOAT, [_FLOAT, _VECTOR])
        name = f"llvm.vector.reduce.fadd.v{BLOCK}f32"
        add_up = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        return builder.call(add_up, [ir.Constant(_FLOAT, 0.0), products], fastmath=("reassoc",))

    index = types.int64
    return types.float32(matrix, index, index, vectors, index, index), emit
