"""Weighted sums of table rows in vector registers, for loops that the compiler would not keep there.

A row segment of ``width`` numbers (a constant, a multiple of 16) stays in registers over a whole list of
entries.  A compiled Python loop would write it back after every entry, since arrays might overlap.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
_INDEX = ir.IntType(64)
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_unpack_tuple: Any = cgutils.unpack_tuple
# A product and the sum it goes into may be rounded once (a fused multiply-add).
_FUSED = ("contract",)


def _sum_rows(context, total, table, column, index, count, first, last, width):  # type: ignore[no-untyped-def]
    """total[:width] = sum of count[e] * table[index[e], column : column + width] over e of first..last.

    total (width,) float32, table (N, M) float32, index and count (L,) int32; nothing is checked.
    """
    if not isinstance(width, types.IntegerLiteral):
        return None
    n_vectors = width.literal_value // LANES

    def codegen(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(target, builder, signature.args[1:5], arguments[1:5])
        total_at = _array(target, builder, signature.args[0], arguments[0]).data
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        before, head, body, after = _loop_blocks(builder)
        entry, sums = builder.phi(_INDEX), [builder.phi(_VECTOR) for _ in range(n_vectors)]
        bounds = [_as_index(target, builder, signature.args[i], arguments[i]) for i in (5, 6)]
        _leave_or_go_on(builder, entry, bounds, (before, body, after))
        for value in sums:
            value.add_incoming(zero, before)
        row, weight = rows.at(entry), rows.weight(entry)
        for v, value in enumerate(sums):
            term = builder.fmul(_load(builder, row, v), weight, flags=_FUSED)
            value.add_incoming(builder.fadd(value, term, flags=_FUSED), body)
        _next(builder, entry, head, body)
        builder.position_at_end(after)
        for v, value in enumerate(sums):
            _store(builder, value, total_at, v)
        return target.get_dummy_value()

    return types.void(total, table, column, index, count, first, last, width), codegen


def _spread_row(context, row, table, column, index, count, first, last, width):  # type: ignore[no-untyped-def]
    """table[index[e], column : column + width] += count[e] * row[:width] for entries e in first..last.

    The counterpart of ``sum_rows``, with the same arguments.
    """
    if not isinstance(width, types.IntegerLiteral):
        return None
    n_vectors = width.literal_value // LANES

    def codegen(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(target, builder, signature.args[1:5], arguments[1:5])
        row_at = _array(target, builder, signature.args[0], arguments[0]).data
        values = [_load(builder, row_at, v) for v in range(n_vectors)]
        bounds = [_as_index(target, builder, signature.args[i], arguments[i]) for i in (5, 6)]
        before, head, body, after = _loop_blocks(builder)
        entry = builder.phi(_INDEX)
        _leave_or_go_on(builder, entry, bounds, (before, body, after))
        place, weight = rows.at(entry), rows.weight(entry)
        for v, value in enumerate(values):
            term = builder.fmul(value, weight, flags=_FUSED)
            _store(builder, builder.fadd(_load(builder, place, v), term, flags=_FUSED), place, v)
        _next(builder, entry, head, body)
        builder.position_at_end(after)
        return target.get_dummy_value()

    return types.void(row, table, column, index, count, first, last, width), codegen


# Called in compiled code with all arguments but the first; ``width`` must be a constant there.
sum_rows: Any = intrinsic(prefer_literal=True)(_sum_rows)
spread_row: Any = intrinsic(prefer_literal=True)(_spread_row)


class _Rows:
    """The rows of a table that a list of entries names: ``table[index[e], column:]`` and ``count[e]``."""

    def __init__(self, target: Any, builder: Any, kinds: Any, arguments: Any) -> None:
        self.builder = builder
        table = _array(target, builder, kinds[0], arguments[0])
        column = _as_index(target, builder, kinds[1], arguments[1])
        self.table = builder.gep(table.data, [column])
        self.stride = _unpack_tuple(builder, table.shape, 2)[1]
        self.index = _array(target, builder, kinds[2], arguments[2]).data
        self.count = _array(target, builder, kinds[3], arguments[3]).data

    def at(self, entry: Any) -> Any:
        """Where the row of the entry begins."""
        index = self.builder.sext(self.builder.load(self.builder.gep(self.index, [entry])), _INDEX)
        return self.builder.gep(self.table, [self.builder.mul(index, self.stride)])

    def weight(self, entry: Any) -> Any:
        """The count of the entry in every lane."""
        builder = self.builder
        count = builder.sitofp(builder.load(builder.gep(self.count, [entry])), ir.FloatType())
        undefined, first = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(builder.insert_element(undefined, count, first), undefined, lanes)


def _array(target: Any, builder: Any, kind: Any, value: Any) -> Any:
    return target.make_array(kind)(target, builder, value)


def _as_index(target: Any, builder: Any, kind: Any, value: Any) -> Any:
    return target.cast(builder, value, kind, types.int64)


def _loop_blocks(builder: Any) -> tuple[Any, Any, Any, Any]:
    before = builder.block
    head, body, after = (builder.append_basic_block(name) for name in ("entries", "entry", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    return before, head, body, after


def _leave_or_go_on(builder: Any, entry: Any, bounds: list[Any], blocks: tuple[Any, Any, Any]) -> None:
    before, body, after = blocks
    entry.add_incoming(bounds[0], before)
    builder.cbranch(builder.icmp_signed("<", entry, bounds[1]), body, after)
    builder.position_at_end(body)


def _next(builder: Any, entry: Any, head: Any, body: Any) -> None:
    entry.add_incoming(builder.add(entry, ir.Constant(_INDEX, 1)), body)
    builder.branch(head)


def _load(builder: Any, pointer: Any, v: int) -> Any:
    place = builder.gep(pointer, [ir.Constant(_INDEX, v * LANES)])
    return builder.load(builder.bitcast(place, _VECTOR.as_pointer()), align=4)


def _store(builder: Any, value: Any, pointer: Any, v: int) -> None:
    place = builder.gep(pointer, [ir.Constant(_INDEX, v * LANES)])
    builder.store(value, builder.bitcast(place, _VECTOR.as_pointer()), align=4)
