"""Two vector instructions that Numba does not find by itself, in the language below it."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

_FLOAT = ir.FloatType()
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, kind: Any) -> Any:
    """Address of element ``at`` of an array, as that of a ``kind``."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), kind.as_pointer())


def _load_pair(typing_context, flat, at):  # type: ignore[no-untyped-def]
    """(flat[at], flat[at + 1]) of a float32 array, by one load: half as many as otherwise."""
    signature = types.UniTuple(types.float32, 2)(flat, types.uint64)  # type: ignore[no-untyped-call]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], _INT64)
        both = builder.load(place)
        both.align = 4
        # Little-endian: the first number is the low half.
        halves = builder.trunc(both, _INT32), builder.trunc(builder.lshr(both, _INT64(32)), _INT32)
        pair = [builder.bitcast(half, _FLOAT) for half in halves]
        return context.make_tuple(builder, signature.return_type, pair)

    return signature, generate


def _add_four(typing_context, flat, at, f, a, b, c, d):  # type: ignore[no-untyped-def]
    """flat[at : at + 4] += f * (a, b, c, d) of a float32 array, as one vector; rounded once."""
    number = types.float32
    signature = types.void(flat, types.uint64, number, number, number, number, number)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        four = ir.VectorType(_FLOAT, 4)
        values, factors = ir.Constant(four, ir.Undefined), ir.Constant(four, ir.Undefined)
        for lane, value in enumerate(arguments[3:]):
            values = builder.insert_element(values, value, _INT32(lane))
            factors = builder.insert_element(factors, arguments[2], _INT32(lane))
        place = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], four)
        old = builder.load(place)
        old.align = 4
        terms = builder.fmul(values, factors, flags=("contract",))
        builder.store(builder.fadd(old, terms, flags=("contract",)), place).align = 4
        return context.get_dummy_value()

    return signature, generate


load_pair: Any = intrinsic(_load_pair)
add_four: Any = intrinsic(_add_four)
