"""Matrix products on the GPU in a stated precision, with float32 sums and results."""

from importlib import import_module
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, import_cupy
from orienteer.likelihood.photon_lists import launch

# Constants from the CUDA headers (library_types.h, cublas_api.h).
_TYPES = {np.dtype(np.float32): 0, np.dtype(np.float16): 2}
_SUM_SINGLE, _SUM_TF32 = 68, 77
_DEFAULT_ALGORITHM = -1

# A second float16 term holds the remainder of the first, times this.
LOW_SCALE = 2048.0
# Rows begin at multiples of this many numbers: 16 bytes of float16, which the tensor cores need.
ALIGNED = 8


def multiply(
    a: Array, b: Array, out: Array, *, b_transposed: bool, factor: float, add: bool, tf32: bool
) -> None:
    """out = factor * a @ b, or a @ b.T; added to what ``out`` holds when ``add``.

    a : (M, K); b : (K, N), or (N, K) when b_transposed; both float16 or both float32.
    out : (M, N) float32.  All may be column ranges of wider arrays: rows are contiguous, strides free.
    """
    cupy: Any = import_cupy()
    cublas: Any = import_module("cupy_backends.cuda.libs.cublas")

    (m, k), n = a.shape, b.shape[0 if b_transposed else 1]
    if m == 0 or n == 0 or (k == 0 and add):
        return
    if k == 0:
        out[...] = 0
        return
    alpha, beta = np.float32(factor).reshape(1), np.float32(add).reshape(1)
    handle = cupy.cuda.device.get_cublas_handle()
    before = cublas.getPointerMode(handle)
    cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)
    try:
        # cuBLAS counts columns first: it sees the transposes, and out.T = b.T @ a.T.
        cublas.gemmEx(
            handle, cublas.CUBLAS_OP_T if b_transposed else cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_N, n, m, k,
            alpha.ctypes.data, b.data.ptr, _TYPES[b.dtype], _row_stride(b),
            a.data.ptr, _TYPES[a.dtype], _row_stride(a),
            beta.ctypes.data, out.data.ptr, _TYPES[out.dtype], _row_stride(out),
            _SUM_TF32 if tf32 else _SUM_SINGLE, _DEFAULT_ALGORITHM,
        )  # fmt: skip
    finally:
        cublas.setPointerMode(handle, before)


def half_terms(values: Array, n_terms: int, largest: float | None = None) -> list[tuple[Array, float]]:
    """Float16 arrays (N, M) with aligned rows, and factors, whose weighted sum is ``values`` (N, M) float32.

    The values are scaled by a power of two such that the largest is near 2^14: nothing overflows, and what
    lies 2^28 below the largest is still a normal number.

    largest : upper bound of the absolute values; None: it is searched for, which waits for the GPU.
    """
    cupy: Any = import_cupy()
    values = cupy.ascontiguousarray(values, dtype=np.float32)
    if largest is None:
        largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    scale = half_scale(largest)
    stride = padded(values.shape[1])
    terms = [cupy.empty((len(values), stride), dtype=np.float16) for _ in range(n_terms)]
    n_vectors = len(values) * stride // ALIGNED
    low = terms[1] if n_terms > 1 else np.uintp(0)
    sizes = np.int64(n_vectors), np.int32(values.shape[1]), np.int32(stride), np.float32(scale)
    launch("split_halves", min(-(-n_vectors // 256), 1 << 16), (values, *sizes, terms[0], low))
    return [(term[:, : values.shape[1]], 1 / (scale * LOW_SCALE**i)) for i, term in enumerate(terms)]


def half_scale(largest: float) -> float:
    """The power of two that brings numbers up to ``largest`` near 2^14.

    >>> half_scale(1.0)
    8192.0
    """
    scale = 2.0 ** (14 - int(np.frexp(largest)[1])) if 0 < largest < np.inf else 1.0
    return float(np.clip(scale, 2.0**-100, 2.0**100))


def padded(n: int) -> int:
    """The next multiple of ALIGNED.

    >>> padded(9)
    16
    """
    return -(-n // ALIGNED) * ALIGNED


def aligned_rows(values: Array) -> Array:
    """The (N, M) values with aligned rows; a copy only if they are not aligned yet."""
    if values.strides[1] == values.itemsize and _row_stride(values) % ALIGNED == 0:
        return values
    cupy: Any = import_cupy()
    whole = cupy.zeros((len(values), padded(values.shape[1])), dtype=values.dtype)
    whole[:, : values.shape[1]] = values
    return whole[:, : values.shape[1]]


def _row_stride(array: Array) -> int:
    return max(int(array.strides[0]) // int(array.itemsize), int(array.shape[1]), 1)
