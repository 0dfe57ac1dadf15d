"""What crosses the border between host and device: nothing by itself, as with CuPy."""

from typing import Any

import numpy as np

IMPLICIT = (
    "Implicit conversion to a NumPy array is not allowed. "
    "Please use `.get()` to construct a NumPy array explicitly."
)
SCALARS = (bool, int, float, complex, np.generic)


def inside(value: Any, where: str) -> Any:
    """The value as the library below takes it: device arrays opened, arrays of the host refused."""
    from cupy._array import ndarray

    if isinstance(value, ndarray):
        return value._a
    if isinstance(value, np.ndarray):
        raise TypeError(f"cupy.{where}: Unsupported type {np.ndarray}")
    if isinstance(value, tuple | list) and value:
        return type(value)(inside(each, where) for each in value)
    return value


def outside(value: Any, *parents: Any) -> Any:
    """What the library below has returned, on the device: also a single number is an array there."""
    from cupy._array import ndarray

    if isinstance(value, np.ndarray):
        return ndarray._of(value, *parents)
    if isinstance(value, SCALARS):
        return ndarray._of(np.asarray(value), *parents)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(outside(each, *parents) for each in value))
    if isinstance(value, tuple | list):
        return type(value)(outside(each, *parents) for each in value)
    return value


# A card does not tell of divisions by 0.
quietly = np.errstate(all="ignore")


def has_device_array(value: Any) -> bool:
    from cupy._array import ndarray

    if isinstance(value, tuple | list):
        return any(has_device_array(each) for each in value)
    return isinstance(value, ndarray)
