"""CPU twin of the slicing kernels of ``trilinear.cu``.

Points are taken in blocks: first the cells of all points of a block, then their samples.  The compiler turns
a loop into vector instructions only if it knows that arrays do not overlap.  It knows this of the arguments
of a parallel function, so scratch memory is an argument too.
"""

import numpy as np
from numba import get_num_threads, njit, prange

from orienteer.compute.arrays import Array
from orienteer.slicing._vectors_numba import LANES, sample_lanes

# No "nnan": a point that is not a number must fail the range test, not pass it.
FAST = {"contract", "reassoc", "nsz", "arcp"}
_ROWS = 16  # rows of a block
_POINTS = 256  # points of a block: their cells and samples stay in the first-level cache
_NOWHERE = np.float32(-1)  # stored as the distance along z of a point outside: not sampled


def slice_volume(volume: Array, points: Array, matrices: Array, by_pixel: bool, out: Array) -> None:
    """out[k, p] (or [p, k]) = the volume at matrices[k] @ points[:, p]; points (3, P)."""
    flat, n = volume.reshape(-1), len(volume)
    corner, places = scratch_memory(get_num_threads(), _POINTS)
    if by_pixel:
        block = np.empty((len(corner), _ROWS, _POINTS), np.float32)
        slice_by_pixel(flat, n, points, matrices, corner, places, block, out)
    else:
        slice_by_row(flat, n, points, matrices, corner, places, out)


def scratch_memory(workers: int, n_points: int) -> tuple[Array, Array]:
    """Cells (workers, n_points) int32 and places (workers, 4, n_points) float32 of a block of points."""
    return np.zeros((workers, n_points), np.int32), np.zeros((workers, 4, n_points), np.float32)


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
    """Whether a position from the centre lies in the cube; false for NaN."""
    low, high = np.float32(-(n // 2)), np.float32(n - 1 - n // 2)
    return (x >= low) & (x <= high) & (y >= low) & (y <= high) & (z >= low) & (z <= high)


@njit(nogil=True, fastmath=FAST, inline="always")
def cell_of(inside, x, y, z, n):  # type: ignore[no-untyped-def]
    """The voxel (ix, iy, iz) below a position (the centre if not inside), and the distances beyond it.

    For a position on the last voxel of an edge it is the voxel before, which has a neighbour.
    """
    last = np.float32(n - 2 - n // 2)
    x = x if inside else np.float32(0)
    y = y if inside else np.float32(0)
    z = z if inside else np.float32(0)
    bx, by, bz = min(np.floor(x), last), min(np.floor(y), last), min(np.floor(z), last)
    ix, iy, iz = np.int32(bx) + n // 2, np.int32(by) + n // 2, np.int32(bz) + n // 2
    return ix, iy, iz, x - bx, y - by, z - bz


@njit(nogil=True, fastmath=FAST, inline="always")
def sample_block(flat, n, matrix, points, first, count, worker, corner, places):  # type: ignore[no-untyped-def]
    """places[worker, 3, :count] = the volume (n^3,) at matrix @ points[:, first : first + count]; 0 outside.

    corner, places : from :func:`scratch_memory`, with room for count points and some more, LANES in all.
    """
    for i in range(count):
        x, y, z = turned(matrix, points, np.uint64(first + i))
        inside = is_inside(x, y, z, n)
        ix, iy, iz, fx, fy, fz = cell_of(inside, x, y, z, n)
        corner[worker, i] = np.int32((ix * n + iy) * n + iz)
        places[worker, 0, i] = fx
        places[worker, 1, i] = fy
        places[worker, 2, i] = fz if inside else _NOWHERE
    # Places beyond the last point hold cells of earlier points; their samples are not used.
    for i in range(0, count, LANES):
        sample_lanes(flat, np.uint64(n), corner[worker], places[worker], np.uint64(i))


@njit(nogil=True, parallel=True, cache=True, fastmath=FAST)
def slice_by_row(flat, n, points, matrices, corner, places, out):  # type: ignore[no-untyped-def]
    """out[k, p] = the volume (n^3,) at matrices[k] @ points[:, p]."""
    K, P = out.shape
    workers = len(corner)
    for worker in prange(workers):
        for k in range(worker, K, workers):
            matrix = matrix_of(matrices, k)
            for first in range(0, P, _POINTS):
                count = min(_POINTS, P - first)
                sample_block(flat, n, matrix, points, first, count, worker, corner, places)
                for i in range(count):
                    out[k, np.uint64(first + i)] = places[worker, 3, i]


@njit(nogil=True, parallel=True, cache=True, fastmath=FAST)
def slice_by_pixel(flat, n, points, matrices, corner, places, block, out):  # type: ignore[no-untyped-def]
    """The same into out[p, k]: each worker makes blocks (_ROWS, _POINTS) and transposes them."""
    P, K = out.shape
    workers = len(corner)
    for worker in prange(workers):
        for first_row in range(worker * _ROWS, K, workers * _ROWS):
            n_rows = min(_ROWS, K - first_row)
            for first in range(0, P, _POINTS):
                count = min(_POINTS, P - first)
                for r in range(n_rows):
                    matrix = matrix_of(matrices, first_row + r)
                    sample_block(flat, n, matrix, points, first, count, worker, corner, places)
                    for i in range(count):
                        block[worker, r, i] = places[worker, 3, i]
                if n_rows == _ROWS:  # a loop of known length
                    for i in range(count):
                        for r in range(_ROWS):
                            out[np.uint64(first + i), np.uint64(first_row + r)] = block[worker, r, i]
                else:
                    for i in range(count):
                        for r in range(n_rows):
                            out[first + i, first_row + r] = block[worker, r, i]
