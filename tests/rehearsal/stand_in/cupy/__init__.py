# ruff: noqa: F401
"""A stand-in for CuPy on machines without a card: as strict as CuPy 14, and as slow as one core.

Arrays are NumPy's, hidden where NumPy cannot reach them.  What is not here, CuPy may have all the same:
add it, but read first what CuPy does.
"""

from typing import Any

import numpy as np
from numpy import (
    bool_,
    complex64,
    complex128,
    complexfloating,
    dtype,
    e,
    finfo,
    float16,
    float32,
    float64,
    floating,
    generic,
    iinfo,
    inexact,
    inf,
    int8,
    int16,
    int32,
    int64,
    int_,
    integer,
    intp,
    nan,
    newaxis,
    number,
    pi,
    signedinteger,
    uint8,
    uint16,
    uint32,
    uint64,
    uintp,
    unsignedinteger,
)  # fmt: skip

from cupy import cuda, fft, linalg, random
from cupy._array import ndarray
from cupy._creation import (
    array,
    asanyarray,
    asarray,
    ascontiguousarray,
    asfortranarray,
    asnumpy,
    empty,
    empty_like,
    full,
    full_like,
    get_array_module,
    ones,
    ones_like,
    zeros,
    zeros_like,
)  # fmt: skip
from cupy._elementwise import ElementwiseKernel
from cupy._memory import POOL
from cupy._names import functions
from cupy._raw import RawModule
from cupy._ufunc import ufunc, ufuncs

__version__ = "14.2.0"
globals().update(functions("functions", np))
globals().update(ufuncs("ufuncs", np))
matmul = ufunc("matmul", 2, np.matmul)
bool = np.bool_


def get_default_memory_pool() -> Any:
    return POOL


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Choose by an array of the device; the choices may be numbers."""
    from cupy._strict import SCALARS, inside, outside

    if not isinstance(condition, (ndarray, *SCALARS)):
        raise TypeError(f"cupy.where: Unsupported type {type(condition)}")
    here = [inside(each, "where") for each in (condition, x, y) if each is not None]
    return outside(np.where(*here))


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: Any = False) -> Any:
    from cupy._strict import inside, outside

    return outside(np.isclose(inside(a, "isclose"), inside(b, "isclose"), rtol, atol, equal_nan))


__all__ = [name for name in globals() if name not in ("Any", "np", "functions", "ufuncs") and name[0] != "_"]
