"""Cubic splines at turned points on the CPU; on the GPU ``cupyx.scipy.ndimage`` does the same."""

import numpy as np
from numba import njit, prange

from orienteer.compute.arrays import Array


def sample_cubic(coefficients: Array, points: Array, matrices: Array, out: Array) -> None:
    """out[k, p] = the spline of the coefficients at matrices[k] @ points[p], mirrored at the edges.

    coefficients : (n, n, n); points : (P, 3) float64 from the centre voxel; matrices : (K, 3, 3) float64.
    """
    flat = np.ascontiguousarray(coefficients).reshape(-1)
    _sample(flat, len(coefficients), np.ascontiguousarray(points), np.ascontiguousarray(matrices), out)


def sample_moved(
    coefficients: Array, points: Array, matrix: Array, shift: Array, finer: int, reach: float, out: Array
) -> None:
    """out[p] = the spline at matrix @ (points[p] - shift), and 0 farther than ``reach`` along any axis.

    One pass over the points finds their places, whether they are inside the box, and their values.

    coefficients : (n, n, n), on voxels that are ``finer`` times as fine as the unit of all lengths.
    points : (P, 3) float64; matrix : (3, 3) float64; shift : (3,) float64; out : (P,).
    """
    flat = np.ascontiguousarray(coefficients).reshape(-1)
    arguments = (np.ascontiguousarray(matrix), np.asarray(shift, np.float64), finer, float(reach), out)
    _sample_moved(flat, len(coefficients), np.ascontiguousarray(points), *arguments)


@njit(nogil=True, inline="always")
def _weights(f):  # type: ignore[no-untyped-def]
    """Weights of the cubic B-spline for the four voxels around a place at f beyond the second of them."""
    g = 1.0 - f
    return (
        g * g * g / 6,
        (4.0 - 3.0 * f * f * (2.0 - f)) / 6,
        (4.0 - 3.0 * g * g * (2.0 - g)) / 6,
        f * f * f / 6,
    )


@njit(nogil=True, inline="always")
def _mirrored(i, n):  # type: ignore[no-untyped-def]
    """Voxel i, mirrored into 0 .. n - 1 about the first and the last voxel."""
    if 0 <= i < n:
        return i
    if n == 1:
        return 0
    i = abs(i) % (2 * n - 2)
    return i if i < n else 2 * n - 2 - i


@njit(nogil=True, inline="always")
def _spline(flat, n, x, y, z):  # type: ignore[no-untyped-def]
    """The spline of the coefficients (n^3,) at a place in voxels from the first one."""
    ix, iy, iz = int(np.floor(x)), int(np.floor(y)), int(np.floor(z))
    wx, wy, wz = _weights(x - ix), _weights(y - iy), _weights(z - iz)
    z0, z1 = _mirrored(iz - 1, n), _mirrored(iz, n)
    z2, z3 = _mirrored(iz + 1, n), _mirrored(iz + 2, n)
    total = 0.0
    for a in range(4):
        plane = _mirrored(ix - 1 + a, n) * n
        over = 0.0
        for b in range(4):
            line = (plane + _mirrored(iy - 1 + b, n)) * n
            over += wy[b] * (
                wz[0] * flat[line + z0]
                + wz[1] * flat[line + z1]
                + wz[2] * flat[line + z2]
                + wz[3] * flat[line + z3]
            )
        total += wx[a] * over
    return total


@njit(nogil=True, parallel=True, cache=True)
def _sample(flat, n, points, matrices, out):  # type: ignore[no-untyped-def]
    K, P = out.shape
    for job in prange(K * P):
        k, p = job // P, job % P
        m = matrices[k]
        u, v, w = points[p, 0], points[p, 1], points[p, 2]
        x = m[0, 0] * u + m[0, 1] * v + m[0, 2] * w + n // 2
        y = m[1, 0] * u + m[1, 1] * v + m[1, 2] * w + n // 2
        z = m[2, 0] * u + m[2, 1] * v + m[2, 2] * w + n // 2
        out[k, p] = _spline(flat, n, x, y, z)


@njit(nogil=True, parallel=True, cache=True)
def _sample_moved(flat, n, points, m, shift, finer, reach, out):  # type: ignore[no-untyped-def]
    for p in prange(len(out)):
        u, v, w = points[p, 0] - shift[0], points[p, 1] - shift[1], points[p, 2] - shift[2]
        x = m[0, 0] * u + m[0, 1] * v + m[0, 2] * w
        y = m[1, 0] * u + m[1, 1] * v + m[1, 2] * w
        z = m[2, 0] * u + m[2, 1] * v + m[2, 2] * w
        if abs(x) <= reach and abs(y) <= reach and abs(z) <= reach:
            out[p] = _spline(flat, n, finer * x + n // 2, finer * y + n // 2, finer * z + n // 2)
        else:
            out[p] = 0.0
