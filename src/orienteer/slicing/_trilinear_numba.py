"""CPU twin of the slicing kernels of ``trilinear.cu``.

The compiler turns a loop into vector instructions only where it knows that arrays do not overlap.  It knows
that of the arguments of a parallel function, so scratch memory is an argument too.
"""

import numpy as np
from numba import get_num_threads, njit, prange

from orienteer.compute.arrays import Array
from orienteer.slicing._vectors_numba import load_pair

# No "nnan": a point that is not a number must fail the range test, not pass it.
FAST = {"contract", "reassoc", "nsz", "arcp"}
_ROWS = 16  # rows of a block


def slice_volume(volume: Array, points: Array, matrices: Array, by_pixel: bool, out: Array) -> None:
    """out[k, p] (or [p, k]) = the volume at matrices[k] @ points[:, p]; points (3, P)."""
    flat, n = volume.reshape(-1), len(volume)
    if by_pixel:
        rows = np.empty((get_num_threads() * _ROWS, points.shape[1]), np.float32)
        slice_by_pixel(flat, n, points, matrices, rows, out)
    else:
        slice_by_row(flat, n, points, matrices, out)


@njit(nogil=True, fastmath=FAST, inline="always")
def matrix_of(matrices, k):  # type: ignore[no-untyped-def]
    """The nine numbers of a matrix, row after row: read once, they stay in registers for all points."""
    return (
        matrices[k, 0, 0], matrices[k, 0, 1], matrices[k, 0, 2],
        matrices[k, 1, 0], matrices[k, 1, 1], matrices[k, 1, 2],
        matrices[k, 2, 0], matrices[k, 2, 1], matrices[k, 2, 2],
    )  # fmt: skip


@njit(nogil=True, fastmath=FAST, inline="always")
def turned(matrix, points, p):  # type: ignore[no-untyped-def]
    """x, y, z of matrix @ points[:, p]; matrix from :func:`matrix_of`."""
    a, b, c = points[0, p], points[1, p], points[2, p]
    x = matrix[0] * a + matrix[1] * b + matrix[2] * c
    y = matrix[3] * a + matrix[4] * b + matrix[5] * c
    z = matrix[6] * a + matrix[7] * b + matrix[8] * c
    return x, y, z


@njit(nogil=True, fastmath=FAST, inline="always")
def is_inside(x, y, z, n):  # type: ignore[no-untyped-def]
    """Whether a position from the centre lies in the cube; no for what is not a number."""
    low, high = np.float32(-(n // 2)), np.float32(n - 1 - n // 2)
    return (x >= low) & (x <= high) & (y >= low) & (y <= high) & (z >= low) & (z <= high)


@njit(nogil=True, fastmath=FAST, inline="always")
def cell_of(inside, x, y, z, n):  # type: ignore[no-untyped-def]
    """The voxel (ix, iy, iz) of a position, the centre if it is not inside, and how far it lies beyond.

    On the last voxel of an edge it is the voxel before, whose neighbour exists.
    """
    last = np.float32(n - 2 - n // 2)
    x = x if inside else np.float32(0)
    y = y if inside else np.float32(0)
    z = z if inside else np.float32(0)
    bx, by, bz = min(np.floor(x), last), min(np.floor(y), last), min(np.floor(z), last)
    ix, iy, iz = np.int32(bx) + n // 2, np.int32(by) + n // 2, np.int32(bz) + n // 2
    return ix, iy, iz, x - bx, y - by, z - bz


@njit(nogil=True, fastmath=FAST, inline="always")
def sample_at(flat, n, x, y, z):  # type: ignore[no-untyped-def]
    """Trilinear sample of the volume (n^3,) at a position from the centre; 0 outside."""
    inside = is_inside(x, y, z, n)
    ix, iy, iz, fx, fy, fz = cell_of(inside, x, y, z, n)
    at = np.uint64((ix * n + iy) * n + iz)
    a0, a1 = load_pair(flat, at)
    b0, b1 = load_pair(flat, at + np.uint64(n))
    c0, c1 = load_pair(flat, at + np.uint64(n * n))
    d0, d1 = load_pair(flat, at + np.uint64(n * n + n))
    a = a0 + fz * (a1 - a0)
    b = b0 + fz * (b1 - b0)
    c = c0 + fz * (c1 - c0)
    d = d0 + fz * (d1 - d0)
    near = a + fy * (b - a)
    far = c + fy * (d - c)
    return near + fx * (far - near) if inside else np.float32(0)


@njit(nogil=True, parallel=True, cache=True, fastmath=FAST)
def slice_by_row(flat, n, points, matrices, out):  # type: ignore[no-untyped-def]
    """out[k, p] = the volume (n^3,) at matrices[k] @ points[:, p]."""
    K, P = out.shape
    for k in prange(K):
        matrix = matrix_of(matrices, k)
        for p in range(P):
            x, y, z = turned(matrix, points, p)
            out[k, p] = sample_at(flat, n, x, y, z)


@njit(nogil=True, parallel=True, cache=True, fastmath=FAST)
def slice_by_pixel(flat, n, points, matrices, rows, out):  # type: ignore[no-untyped-def]
    """The same into out[p, k]: each worker makes a block of rows in its part of ``rows`` and turns it."""
    P, K = out.shape
    workers = len(rows) // _ROWS
    for worker in prange(workers):
        mine = worker * _ROWS
        for first in range(mine, K, workers * _ROWS):
            count = min(_ROWS, K - first)
            for r in range(count):
                matrix = matrix_of(matrices, first + r)
                for p in range(P):
                    x, y, z = turned(matrix, points, p)
                    rows[mine + r, p] = sample_at(flat, n, x, y, z)
            if count == _ROWS:  # a loop of known length
                for p in range(P):
                    for r in range(_ROWS):
                        out[np.uint64(p), np.uint64(first + r)] = rows[np.uint64(mine + r), np.uint64(p)]
            else:
                for p in range(P):
                    for r in range(count):
                        out[p, first + r] = rows[mine + r, p]
