"""Matrix products by addresses, as cuBLAS takes them: columns first, float32 sums."""

import ctypes
from typing import Any

import numpy as np

CUBLAS_OP_N, CUBLAS_OP_T = 0, 1
CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE = 0, 1
_TYPES = {0: np.float32, 2: np.float16, 1: np.float64}
_mode = CUBLAS_POINTER_MODE_HOST


def getPointerMode(handle: int) -> int:
    return _mode


def setPointerMode(handle: int, mode: int) -> None:
    global _mode
    _mode = mode


def gemmEx(
    handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, a: int, a_type: int, lda: int,
    b: int, b_type: int, ldb: int, beta: int, c: int, c_type: int, ldc: int, compute_type: int, algo: int,
) -> None:  # fmt: skip
    """C = alpha op(A) op(B) + beta C."""
    left = _matrix(a, a_type, lda, *((m, k) if transa == CUBLAS_OP_N else (k, m)))
    right = _matrix(b, b_type, ldb, *((k, n) if transb == CUBLAS_OP_N else (n, k)))
    left = left if transa == CUBLAS_OP_N else left.T
    right = right if transb == CUBLAS_OP_N else right.T
    out = _matrix(c, c_type, ldc, m, n)
    product = np.float32(_number(alpha)) * (left.astype(np.float32) @ right.astype(np.float32))
    factor = np.float32(_number(beta))
    out[...] = product + factor * out if factor else product


def _number(address: int) -> float:
    return ctypes.c_float.from_address(address).value


def _matrix(address: int, kind: int, leading: int, rows: int, columns: int) -> np.ndarray[Any, Any]:
    if leading < max(1, rows):
        raise ValueError("CUBLAS_STATUS_INVALID_VALUE: the leading dimension is too small")
    dtype = np.dtype(_TYPES[kind])
    nbytes = ((columns - 1) * leading + rows) * dtype.itemsize
    memory = (ctypes.c_uint8 * nbytes).from_address(address)
    strides = (dtype.itemsize, leading * dtype.itemsize)
    return np.ndarray((rows, columns), dtype, memory, strides=strides)
