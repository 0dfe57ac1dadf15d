"""CPU twin of ``interpolate.cu``: a function at any points from w x w x w values of a corrected grid.

Width and degree are compile-time constants, so that the loops over taps unroll into vector instructions;
each pair is compiled on first use and cached on disk.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit, prange

# No "nnan": a point that is not a number must fail the range test below, not pass it.
_FAST = {"contract", "reassoc", "nsz", "arcp"}
_PIXELS_PER_TASK = 1024


@njit(nogil=True, fastmath=_FAST, inline="always")
def gather(grid, coefficients, x, y, z, W, D, tap_x, tap_y, tap_z, total):  # type: ignore[no-untyped-def]
    """Value at (x, y, z) in cells; W, D are width and degree, and ``tap_*`` and ``total`` scratch."""
    ix, iy, iz = int(x), int(y), int(z)
    fx = np.float32(x - ix) - np.float32(0.5)
    fy = np.float32(y - iy) - np.float32(0.5)
    fz = np.float32(z - iz) - np.float32(0.5)
    for t in range(W):
        wx = wy = wz = coefficients[0, t]
        for d in range(1, D + 1):
            wx = wx * fx + coefficients[d, t]
            wy = wy * fy + coefficients[d, t]
            wz = wz * fz + coefficients[d, t]
        tap_x[t], tap_y[t], tap_z[t] = wx, wy, wz
    for t in range(2 * W):
        total[t] = np.float32(0)
    # Real and imaginary parts lie side by side along z, so one row of taps is one vector.
    for i in range(W):
        for j in range(W):
            weight = tap_x[i] * tap_y[j]
            row = grid[ix + i, iy + j]
            for t in range(2 * W):
                total[t] += weight * row[2 * iz + t]
    real = imag = np.float32(0)
    for t in range(W):
        real += tap_z[t] * total[2 * t]
        imag += tap_z[t] * total[2 * t + 1]
    return real, imag


@njit(nogil=True, fastmath=_FAST, inline="always")
def value_at(grid, coefficients, points, kp, p, m, origin, limit, W, D, tap_x, tap_y, tap_z, total):  # type: ignore[no-untyped-def]
    """Value at ``m @ points[kp, p]``; NaN beyond the limit and for points that are not numbers."""
    qx, qy, qz = points[kp, p, 0], points[kp, p, 1], points[kp, p, 2]
    x = m[0, 0] * qx + m[0, 1] * qy + m[0, 2] * qz
    y = m[1, 0] * qx + m[1, 1] * qy + m[1, 2] * qz
    z = m[2, 0] * qx + m[2, 1] * qy + m[2, 2] * qz
    real = imag = np.float32(np.nan)
    if x * x + y * y + z * z <= limit:
        x, y, z = x + origin, y + origin, z + origin
        real, imag = gather(grid, coefficients, x, y, z, W, D, tap_x, tap_y, tap_z, total)
    return real, imag


@cache
def compiled_kernels(width: int, degree: int) -> tuple[Any, Any]:
    """(field, intensity): the two kernels for this width and degree."""
    W, D = width, degree

    @njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
    def field(grid, coefficients, points, matrices, origin, limit, out):  # type: ignore[no-untyped-def]
        K, P = out.shape
        tasks = (P + _PIXELS_PER_TASK - 1) // _PIXELS_PER_TASK
        for task in prange(K * tasks):
            k, first = task // tasks, (task % tasks) * _PIXELS_PER_TASK
            kp = k if points.shape[0] > 1 else 0
            m = matrices[k]
            tap_x, tap_y = np.empty(W, np.float32), np.empty(W, np.float32)
            tap_z, total = np.empty(W, np.float32), np.empty(2 * W, np.float32)
            for p in range(first, min(P, first + _PIXELS_PER_TASK)):
                real, imag = value_at(
                    grid, coefficients, points, kp, p, m, origin, limit, W, D, tap_x, tap_y, tap_z, total
                )
                out[k, p] = complex(real, imag)

    @njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
    def intensity(grid, coefficients, points, matrices, origin, limit, scale, weights, add, out):  # type: ignore[no-untyped-def]
        K, P = out.shape
        tasks = (P + _PIXELS_PER_TASK - 1) // _PIXELS_PER_TASK
        for task in prange(K * tasks):
            k, first = task // tasks, (task % tasks) * _PIXELS_PER_TASK
            kp = k if points.shape[0] > 1 else 0
            ks = k if scale.shape[0] > 1 else 0
            m, weight = matrices[k], weights[k]
            tap_x, tap_y = np.empty(W, np.float32), np.empty(W, np.float32)
            tap_z, total = np.empty(W, np.float32), np.empty(2 * W, np.float32)
            for p in range(first, min(P, first + _PIXELS_PER_TASK)):
                real, imag = value_at(
                    grid, coefficients, points, kp, p, m, origin, limit, W, D, tap_x, tap_y, tap_z, total
                )
                value = (real * real + imag * imag) * scale[ks, p] * weight
                out[k, p] = out[k, p] + value if add else value

    return field, intensity
