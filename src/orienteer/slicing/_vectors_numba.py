"""Vector instructions that Numba does not generate by itself, written in the language of LLVM."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

LANES = 8  # points that are sampled together
_FLOAT = ir.FloatType()
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
# A product and the sum it goes into may be rounded once (a fused multiply-add).
_FUSED = ("contract",)


def _sample_lanes(typing_context, flat, n, corner, places, at):  # type: ignore[no-untyped-def]
    """places[3, at + i] = trilinear sample of the volume (n^3,) in its cell corner[at + i], i < LANES.

    corner : int32 numbers of the first voxels of cells; places : (4 or more, points) float32, of which
    [0..2] are the distances beyond this voxel along x, y and z; if that along z is negative, the sample is
    0.

    The voxels z and z + 1 are loaded together, and interpolation along x and y works on such pairs: gather
    instructions for each of the eight voxels take three times as long.
    """
    signature = types.void(flat, types.uint64, corner, places, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, (flat, n, corner, places, at) = signature.args, arguments
        volume = context.make_array(kinds[0])(context, builder, flat).data
        cells = [
            builder.zext(
                builder.load(
                    _pointer(context, builder, kinds[2], corner, builder.add(at, _INT64(i)), _INT32)
                ),
                _INT64,
            )
            for i in range(LANES)
        ]

        def pairs(offset: Any) -> Any:
            """Voxels z and z + 1 of all cells, side by side."""
            pointers = [builder.gep(volume, [builder.add(cell, offset)]) for cell in cells]
            pair = _vector(2).as_pointer()
            return _joined(builder, [builder.load(builder.bitcast(p, pair), align=4) for p in pointers])

        stride = _stride(context, builder, kinds[3], places)

        def line(number: int) -> Any:
            """Address of the numbers of these points in a line of the places."""
            first = builder.add(builder.mul(stride, _INT64(number)), at)
            return _pointer(context, builder, kinds[3], places, first, _vector(LANES))

        x, y, z = (builder.load(line(axis), align=4) for axis in range(3))
        twice = [i // 2 for i in range(2 * LANES)]
        x_pairs, y_pairs = _shuffled(builder, x, x, twice), _shuffled(builder, y, y, twice)
        plane = builder.mul(n, n)
        near = _between(builder, pairs(_INT64(0)), pairs(n), y_pairs)
        far = _between(builder, pairs(plane), pairs(builder.add(plane, n)), y_pairs)
        both = _between(builder, near, far, x_pairs)
        low, high = (_shuffled(builder, both, both, range(first, 2 * LANES, 2)) for first in (0, 1))
        zero = ir.Constant(_vector(LANES), [0.0] * LANES)
        is_sampled = builder.fcmp_ordered(">=", z, zero)
        builder.store(builder.select(is_sampled, _between(builder, low, high, z), zero), line(3), align=4)
        return context.get_dummy_value()

    return signature, generate


def _add_to_cell(typing_context, flat, at, row, plane, pairs, places, t, is_near, is_far):  # type: ignore[no-untyped-def]
    """Add the value and weight of point t to the voxels of its cell, by their trilinear shares.

    flat : float32 sums of values and weights of voxels; at : index of the sums of the cell's first voxel;
    row, plane : steps from there to its neighbours along y and x.   pairs : (points, 2) float32, value and
    weight.   places : as in ``sample_lanes``.   is_near, is_far : whether the voxels at x, and those at
    x + 1, are to be added to.

    Value and weight of the voxels z and z + 1 form one vector.
    """
    number, flag = types.uint64, types.boolean
    signature = types.void(flat, number, number, number, pairs, places, number, flag, flag)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, (flat, at, row, plane, pairs, places, t, is_near, is_far) = signature.args, arguments
        four = _vector(4)
        place = _pointer(context, builder, kinds[4], pairs, builder.mul(t, _INT64(2)), _vector(2))
        pair = builder.load(place, align=4)
        stride = _stride(context, builder, kinds[5], places)

        def distance(axis: int) -> Any:
            """How far the point lies beyond the voxel, in all lanes."""
            first = builder.add(builder.mul(stride, _INT64(axis)), t)
            value = builder.load(_pointer(context, builder, kinds[5], places, first, _FLOAT))
            lane = builder.insert_element(ir.Constant(four, ir.Undefined), value, _INT32(0))
            return _shuffled(builder, lane, lane, [0] * 4)

        def parted(terms: Any, share: Any) -> tuple[Any, Any]:
            """terms * (1 - share) and terms * share."""
            far = builder.fmul(terms, share, flags=_FUSED)
            return builder.fsub(terms, far, flags=_FUSED), far

        def add(where: Any, terms: Any) -> None:
            target = _pointer(context, builder, kinds[0], flat, where, four)
            builder.store(builder.fadd(builder.load(target, align=4), terms), target, align=4)

        x, y, z = (distance(axis) for axis in range(3))
        ones, signs = ir.Constant(four, [1.0, 1.0, 0.0, 0.0]), ir.Constant(four, [-1.0, -1.0, 1.0, 1.0])
        shares = builder.fadd(ones, builder.fmul(z, signs, flags=_FUSED), flags=_FUSED)
        terms = builder.fmul(_shuffled(builder, pair, pair, [0, 1, 0, 1]), shares)
        for plane_terms, first, is_wanted in zip(
            parted(terms, x), (at, builder.add(at, plane)), (is_near, is_far), strict=True
        ):
            with builder.if_then(is_wanted):
                low, high = parted(plane_terms, y)
                add(first, low)
                add(builder.add(first, row), high)
        return context.get_dummy_value()

    return signature, generate


# Called in compiled code with all arguments but the first; nothing is checked.
sample_lanes: Any = intrinsic(_sample_lanes)
add_to_cell: Any = intrinsic(_add_to_cell)


def _vector(n: int) -> Any:
    return ir.VectorType(_FLOAT, n)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, kind: Any) -> Any:
    """Address of element ``at`` of a contiguous array, as a pointer to ``kind``."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), kind.as_pointer())


def _stride(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """Elements of a line of a contiguous array of lines."""
    shape = context.make_array(array_type)(context, builder, array).shape
    return builder.extract_value(shape, 1)


def _shuffled(builder: Any, first: Any, second: Any, lanes: Sequence[int]) -> Any:
    mask = ir.Constant(ir.VectorType(_INT32, len(lanes)), list(lanes))
    return builder.shuffle_vector(first, second, mask)


def _joined(builder: Any, parts: list[Any]) -> Any:
    """Vectors of one length, a power of two of them, one after the other."""
    while len(parts) > 1:
        lanes = range(2 * parts[0].type.count)
        parts = [_shuffled(builder, parts[i], parts[i + 1], lanes) for i in range(0, len(parts), 2)]
    return parts[0]


def _between(builder: Any, low: Any, high: Any, share: Any) -> Any:
    """low + share * (high - low)."""
    rise = builder.fmul(share, builder.fsub(high, low, flags=_FUSED), flags=_FUSED)
    return builder.fadd(low, rise, flags=_FUSED)
