"""Where CuPy is narrower than NumPy: arguments that a function of the same name refuses there."""

from typing import Any

import numpy as np

# Types for which atomic operations exist.
_ADDED = frozenset("iIlLqQefdFD")
_COMPARED = frozenset("iIlLqQfd")


def check(name: str, given: tuple[Any, ...]) -> None:
    """Refuse what CuPy refuses."""
    from cupy._array import ndarray

    if name == "lexsort" and not (isinstance(given[0], ndarray) and given[0].ndim <= 2):
        raise TypeError("cupy.lexsort needs keys as one array of the device, with two axes at most")
    if name == "repeat" and isinstance(given[1], ndarray):
        raise ValueError("cupy.repeat does not support an array of the device as repeats")
    if name == "interp":
        _expect_arrays(name, given[:3])
        if not given[0].flags.c_contiguous:
            raise NotImplementedError("Non-C-contiguous x is currently not supported")
    if name == "bincount" and given[0].dtype.kind == "f":
        raise TypeError("x must be int array")
    if name in ("searchsorted", "isin", "take_along_axis", "digitize"):
        _expect_arrays(name, given[:1] if name == "searchsorted" else given[:2])
    if name in ("sort", "argsort") and len(given) > 2 and given[2] not in (None, "stable"):
        raise ValueError("cupy sorts stably, and in no other way")


def check_atomic(name: str, dtype: np.dtype[Any]) -> None:
    """Refuse types for which CUDA and CuPy have no atomic operation."""
    known = _ADDED if name in ("add", "subtract") else _COMPARED
    if dtype.char not in known:
        raise TypeError(f"cupy.{name}.at: there is no atomic operation for {dtype}")


def _expect_arrays(name: str, given: tuple[Any, ...]) -> None:
    from cupy._array import ndarray

    for each in given:
        if not isinstance(each, ndarray):
            raise NotImplementedError(f"cupy.{name} takes arrays of the device only, not {type(each)}")
