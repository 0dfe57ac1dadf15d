"""Functions of one element at a time: arrays of the device and numbers, never arrays of the host."""

from typing import Any

import numpy as np

from cupy._limits import check_atomic
from cupy._names import sections
from cupy._strict import SCALARS, outside, quietly

# CuPy has atomic operations for these only, and sums for few.
_AT = frozenset(["add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"])
_REDUCE = frozenset(
    [
        "add",
        "multiply",
        "maximum",
        "minimum",
        "logical_and",
        "logical_or",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
    ]
)
_ACCUMULATE = frozenset(["add", "multiply"])


class ufunc:  # noqa: N801
    """A function ``name`` with ``nin`` arguments."""

    def __init__(self, name: str, nin: int, function: Any) -> None:
        self.name, self.nin, self._function = name, nin, function
        self.__name__, self.__doc__ = name, function.__doc__

    @quietly
    def __call__(self, *given: Any, out: Any = None, casting: str = "same_kind", dtype: Any = None) -> Any:
        if len(given) > self.nin:
            *given, out = given  # type: ignore[assignment]
        if len(given) != self.nin:
            raise TypeError(f"cupy.{self.name} takes {self.nin} arguments, not {len(given)}")
        here = [self._opened(each) for each in given]
        options: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
        if isinstance(self._function, np.ufunc):
            options["casting"] = casting
        if out is None:
            return outside(self._function(*here, **options), *here)
        out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        self._function(*here, out=self._written(out), **options)
        return out

    def reduce(
        self, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        self._expect(_REDUCE, "reduce")
        result = self._function.reduce(self._opened(a), axis=axis, dtype=dtype, keepdims=keepdims)
        if out is None:
            return outside(result)
        out._a[...] = result
        return out

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        self._expect(_ACCUMULATE, "accumulate")
        return outside(self._function.accumulate(self._opened(a), axis=axis, dtype=dtype))

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        self._expect(frozenset(["add"]), "reduceat")
        return outside(
            self._function.reduceat(self._opened(a), self._opened(indices), axis=axis, dtype=dtype)
        )

    def outer(self, a: Any, b: Any) -> Any:
        return outside(self._function.outer(self._opened(a), self._opened(b)))

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        self._expect(_AT, "at")
        from cupy._array import place

        check_atomic(self.name, a.dtype)
        self._function.at(self._written(a), place(indices), *([] if b is None else [self._opened(b)]))

    def _expect(self, known: frozenset[str], method: str) -> None:
        if self.name not in known:
            raise NotImplementedError(f"`{self.name}.{method}` is not supported by CuPy")

    def _opened(self, value: Any) -> Any:
        from cupy._array import ndarray

        if isinstance(value, ndarray):
            return value._a
        if isinstance(value, SCALARS):
            return value
        raise TypeError(f"cupy.{self.name}: Unsupported type {type(value)}")

    def _written(self, out: Any) -> Any:
        from cupy._array import ndarray

        if isinstance(out, ndarray):
            return out._a
        if isinstance(out, tuple):
            return tuple(None if each is None else self._written(each) for each in out)
        raise TypeError(f"cupy.{self.name}: return arrays must be arrays of the device, not {type(out)}")

    def __repr__(self) -> str:
        return f"<ufunc 'cupy_{self.name}'>"


def ufuncs(section: str, library: Any) -> dict[str, ufunc]:
    """All functions of a section, done by those of ``library``."""
    found = {}
    for each in " ".join(sections()[section]).split():
        name, _, nin = each.partition("/")
        if hasattr(library, name):
            found[name] = ufunc(name, int(nin), getattr(library, name))
    return found
