"""New arrays on the device, from shapes and from what lies on the host."""

from types import ModuleType
from typing import Any

import numpy as np

from cupy._array import ndarray
from cupy._strict import inside


def _new(values: Any, order: str = "C") -> ndarray:
    found = ndarray(values.shape, values.dtype, order="F" if order == "F" else "C")
    found._a[...] = values
    return found


def array(
    obj: Any, dtype: Any = None, copy: Any = True, order: str | None = "K", subok: bool = False,
    ndmin: int = 0, *, blocking: bool = False,
) -> ndarray:  # fmt: skip
    """An array on the device: a copy, unless it lies there already and ``copy`` is false."""
    if isinstance(obj, ndarray):
        here = obj._a.astype(dtype or obj.dtype, order=order or "K", copy=False)
        here = np.array(here, copy=None, ndmin=ndmin)
        if copy:
            return _new(here, "F" if here.flags.fnc and order in ("K", "A", "F") else "C")
        return obj if here is obj._a else ndarray._of(here, obj._a)
    if isinstance(obj, list | tuple):  # CuPy joins lists of arrays of the device
        obj = _opened(obj)
    values = np.array(obj, dtype=dtype, order=order, ndmin=ndmin)  # type: ignore[call-overload]
    if values.dtype.kind not in "biufc":
        raise ValueError(f"Unsupported dtype {values.dtype}")
    return _new(values, "F" if values.flags.fnc else "C")


def _opened(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_opened(each) for each in value]
    return value._a if isinstance(value, ndarray) else value


def asarray(
    a: Any, dtype: Any = None, order: str | None = None, *, copy: Any = None, blocking: bool = False
) -> ndarray:
    return array(a, dtype, bool(copy), order or "K")


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    return array(a, dtype, False, "C", ndmin=1)


def asfortranarray(a: Any, dtype: Any = None) -> ndarray:
    return array(a, dtype, False, "F", ndmin=1)


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    return a.get(stream, order, out) if isinstance(a, ndarray) else np.asarray(a, order=order)  # type: ignore[call-overload]


def get_array_module(*arrays: Any) -> ModuleType:
    import cupy

    return cupy if any(isinstance(each, ndarray) for each in arrays) else np


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """What it holds is poison: NaN, or -1."""
    return ndarray(shape, dtype, order=order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, ndarray) else np.asarray(fill_value).dtype
    found = ndarray(shape, dtype, order=order)
    found._a.fill(inside(fill_value, "full"))
    return found


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return full(shape, 0, dtype or float, order)


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return full(shape, 1, dtype or float, order)


def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None
) -> ndarray:
    if not isinstance(prototype, ndarray):
        raise TypeError(f"cupy.empty_like needs an array of the device, not {type(prototype)}")
    like = np.empty_like(prototype._a, order=order, shape=shape)  # type: ignore[call-overload]
    return ndarray(like.shape, dtype or like.dtype, order="F" if like.flags.fnc else "C")


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None
) -> ndarray:
    found = empty_like(a, dtype, order, subok, shape)
    found.fill(fill_value)
    return found


def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    return full_like(a, 0, dtype, order, subok, shape)


def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    return full_like(a, 1, dtype, order, subok, shape)
