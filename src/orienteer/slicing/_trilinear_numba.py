"""CPU twin of ``trilinear.cu``: slices of a volume, and slices added to sums.

Inserting cuts the sums into slabs along x.  A slab is written by one thread only, and takes its points block
of rows by block, patch by patch, row by row: every voxel adds the same numbers in the same order for any
number of slabs and threads, straight into float64.

The compiler turns a loop into vector instructions only where it knows that arrays do not overlap.  It knows
that of the arguments of a parallel function, so scratch memory is an argument too.
"""

import numpy as np
from numba import get_num_threads, njit, prange

from orienteer.compute.arrays import Array
from orienteer.slicing._vectors_numba import add_four, load_pair

# No "nnan": a point that is not a number must fail the range test, not pass it.
_FAST = {"contract", "reassoc", "nsz", "arcp"}
_ROWS = 16  # rows of a block
_PATCH = 64  # points of a patch, as in patches.py
_ROWS_TO_TAKE = 512  # rows that are read by pixel before they are inserted; whole blocks
_TILE = 16


def slice_volume(volume: Array, points: Array, matrices: Array, by_pixel: bool, out: Array) -> None:
    """out[k, p] (or [p, k]) = the volume at matrices[k] @ points[:, p]; points (3, P)."""
    flat, n = volume.reshape(-1), len(volume)
    if by_pixel:
        rows = np.empty((get_num_threads() * _ROWS, points.shape[1]), np.float32)
        slice_by_pixel(flat, n, points, matrices, rows, out)
    else:
        slice_by_row(flat, n, points, matrices, out)


@njit(nogil=True, fastmath=_FAST, inline="always")
def is_inside(x, y, z, n):  # type: ignore[no-untyped-def]
    """Whether a position from the centre lies in the cube; no for what is not a number."""
    low, high = np.float32(-(n // 2)), np.float32(n - 1 - n // 2)
    return (x >= low) & (x <= high) & (y >= low) & (y <= high) & (z >= low) & (z <= high)


@njit(nogil=True, fastmath=_FAST, inline="always")
def cell_of(x, n):  # type: ignore[no-untyped-def]
    """The voxel below x, from the centre; on the last voxel the one before, whose neighbour exists."""
    return min(np.floor(x), np.float32(n - 2 - n // 2))


@njit(nogil=True, fastmath=_FAST, inline="always")
def sample_at(flat, n, x, y, z):  # type: ignore[no-untyped-def]
    """Trilinear sample of the volume (n^3,) at a position from the centre; 0 outside."""
    inside = is_inside(x, y, z, n)
    x = x if inside else np.float32(0)
    y = y if inside else np.float32(0)
    z = z if inside else np.float32(0)
    bx, by, bz = cell_of(x, n), cell_of(y, n), cell_of(z, n)
    ix, iy, iz = np.int32(bx) + n // 2, np.int32(by) + n // 2, np.int32(bz) + n // 2
    fx, fy, fz = x - bx, y - by, z - bz
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


@njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
def slice_by_row(flat, n, points, matrices, out):  # type: ignore[no-untyped-def]
    """out[k, p] = the volume (n^3,) at matrices[k] @ points[:, p]."""
    K, P = out.shape
    for k in prange(K):
        m00, m01, m02 = matrices[k, 0, 0], matrices[k, 0, 1], matrices[k, 0, 2]
        m10, m11, m12 = matrices[k, 1, 0], matrices[k, 1, 1], matrices[k, 1, 2]
        m20, m21, m22 = matrices[k, 2, 0], matrices[k, 2, 1], matrices[k, 2, 2]
        for p in range(P):
            x = m00 * points[0, p] + m01 * points[1, p] + m02 * points[2, p]
            y = m10 * points[0, p] + m11 * points[1, p] + m12 * points[2, p]
            z = m20 * points[0, p] + m21 * points[1, p] + m22 * points[2, p]
            out[k, p] = sample_at(flat, n, x, y, z)


@njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
def slice_by_pixel(flat, n, points, matrices, rows, out):  # type: ignore[no-untyped-def]
    """The same into out[p, k]: each worker makes a block of rows in its part of ``rows`` and turns it."""
    P, K = out.shape
    workers = len(rows) // _ROWS
    for worker in prange(workers):
        mine = worker * _ROWS
        for first in range(mine, K, workers * _ROWS):
            count = min(_ROWS, K - first)
            for r in range(count):
                k = first + r
                m00, m01, m02 = matrices[k, 0, 0], matrices[k, 0, 1], matrices[k, 0, 2]
                m10, m11, m12 = matrices[k, 1, 0], matrices[k, 1, 1], matrices[k, 1, 2]
                m20, m21, m22 = matrices[k, 2, 0], matrices[k, 2, 1], matrices[k, 2, 2]
                for p in range(P):
                    x = m00 * points[0, p] + m01 * points[1, p] + m02 * points[2, p]
                    y = m10 * points[0, p] + m11 * points[1, p] + m12 * points[2, p]
                    z = m20 * points[0, p] + m21 * points[1, p] + m22 * points[2, p]
                    rows[mine + r, p] = sample_at(flat, n, x, y, z)
            if count == _ROWS:  # a loop of known length
                for p in range(P):
                    for r in range(_ROWS):
                        out[np.uint64(p), np.uint64(first + r)] = rows[np.uint64(mine + r), np.uint64(p)]
            else:
                for p in range(P):
                    for r in range(count):
                        out[p, first + r] = rows[mine + r, p]


@njit(nogil=True, parallel=True, cache=True)
def take_rows(by_pixel, used, rows):  # type: ignore[no-untyped-def]
    """rows[k, p] = by_pixel[p, used[k]], in tiles of known size where they are whole."""
    K, P = rows.shape
    for tile in prange((P + _TILE - 1) // _TILE):
        p0 = tile * _TILE
        for k0 in range(0, K, _TILE):
            for k in range(k0, min(K, k0 + _TILE)):
                column = np.uint64(used[k])
                if p0 + _TILE <= P:
                    for p in range(_TILE):
                        rows[np.uint64(k), np.uint64(p0 + p)] = by_pixel[np.uint64(p0 + p), column]
                else:
                    for p in range(p0, P):
                        rows[k, p] = by_pixel[p, column]


def insert_slices(
    sums: Array, coordinates: Array, order: Array, centres: Array, radii: Array, matrices: Array,
    values: Array, row_weights: Array, pixel_weights: Array, weights: Array, by_pixel: bool, n_slabs: int,
) -> None:  # fmt: skip
    """Add f * values and f * weights (or row_weights * pixel_weights where weights is empty) to the sums."""
    workers = get_num_threads()
    corner, cell_x = np.empty((workers, _PATCH), np.int32), np.empty((workers, _PATCH), np.int32)
    fraction = np.empty((workers, 3, _PATCH), np.float32)
    used = np.flatnonzero(row_weights)
    step = _ROWS_TO_TAKE if by_pixel else max(1, len(used))
    taken = np.empty((2 if weights.size else 1, step if by_pixel else 0, len(order)), np.float32)
    for first in range(0, len(used), step):
        rows = used[first : first + step]
        source, row_values, full_weights = rows, values, weights
        if by_pixel:
            source, row_values = np.arange(len(rows)), taken[0]
            take_rows(values, rows, row_values[: len(rows)])
            if weights.size:
                full_weights = taken[1]
                take_rows(weights, rows, full_weights[: len(rows)])
        insert_rows(
            sums.reshape(-1), len(sums), coordinates, order, centres, radii, matrices[rows], row_values,
            row_weights[rows], pixel_weights, full_weights, source, n_slabs, corner, cell_x, fraction,
        )  # fmt: skip


@njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
def insert_rows(  # type: ignore[no-untyped-def]
    flat, n, coordinates, order, centres, radii, matrices, values, row_weights, pixel_weights, weights,
    source, n_slabs, corner, cell_x, fraction,
):  # fmt: skip
    """Add rows to the sums (2 n^3,): row k has its values in values[source[k]].

    corner, cell_x, fraction : scratch memory of each worker.
    """
    K, P = len(matrices), len(order)
    workers = len(corner)
    has_weights = weights.size > 0
    one = np.float32(1)
    row, plane = np.uint64(2 * n), np.uint64(2 * n * n)
    for worker in prange(workers):
        for slab in range(worker, n_slabs, workers):
            low_x, high_x = slab * n // n_slabs, (slab + 1) * n // n_slabs
            lowest, highest = np.float32(low_x - n // 2 - 1), np.float32(high_x - n // 2)
            for first_row in range(0, K, _ROWS):
                last_row = min(K, first_row + _ROWS)
                for patch in range(len(radii)):
                    first = patch * _PATCH
                    count = min(_PATCH, P - first)
                    for k in range(first_row, last_row):
                        # Does the ball around the patch touch the slab?
                        m00, m01, m02 = matrices[k, 0, 0], matrices[k, 0, 1], matrices[k, 0, 2]
                        x = m00 * centres[patch, 0] + m01 * centres[patch, 1] + m02 * centres[patch, 2]
                        stretch = np.float32(1.0001) * np.sqrt(m00 * m00 + m01 * m01 + m02 * m02)
                        reach = stretch * radii[patch] + np.float32(0.01)
                        if x + reach < lowest or x - reach > highest:
                            continue

                        # Where each point goes, in vector instructions.
                        m10, m11, m12 = matrices[k, 1, 0], matrices[k, 1, 1], matrices[k, 1, 2]
                        m20, m21, m22 = matrices[k, 2, 0], matrices[k, 2, 1], matrices[k, 2, 2]
                        for t in range(count):
                            p = first + t
                            x = m00 * coordinates[0, p] + m01 * coordinates[1, p] + m02 * coordinates[2, p]
                            y = m10 * coordinates[0, p] + m11 * coordinates[1, p] + m12 * coordinates[2, p]
                            z = m20 * coordinates[0, p] + m21 * coordinates[1, p] + m22 * coordinates[2, p]
                            inside = is_inside(x, y, z, n)
                            x = x if inside else np.float32(0)
                            y = y if inside else np.float32(0)
                            z = z if inside else np.float32(0)
                            bx, by, bz = cell_of(x, n), cell_of(y, n), cell_of(z, n)
                            ix, iy, iz = np.int32(bx) + n // 2, np.int32(by) + n // 2, np.int32(bz) + n // 2
                            inside = inside & (ix >= low_x - 1) & (ix < high_x)
                            corner[worker, t] = np.int32((ix * n + iy) * n + iz) if inside else np.int32(-1)
                            cell_x[worker, t] = np.int32(ix)
                            fraction[worker, 0, t] = x - bx
                            fraction[worker, 1, t] = y - by
                            fraction[worker, 2, t] = z - bz

                        # One point after the other, four vectors each.
                        line = np.uint64(source[k])
                        for t in range(count):
                            if corner[worker, t] < 0:
                                continue
                            pixel = np.uint64(order[first + t])
                            a = values[line, pixel]
                            w = weights[line, pixel] if has_weights else row_weights[k] * pixel_weights[pixel]
                            fx, fy, fz = (
                                fraction[worker, 0, t],
                                fraction[worker, 1, t],
                                fraction[worker, 2, t],
                            )
                            az, wz = fz * a, fz * w
                            a, w = a - az, w - wz
                            at = np.uint64(2) * np.uint64(corner[worker, t])
                            if cell_x[worker, t] >= low_x:
                                add_four(flat, at, (one - fx) * (one - fy), a, w, az, wz)
                                add_four(flat, at + row, (one - fx) * fy, a, w, az, wz)
                            if cell_x[worker, t] + 1 < high_x:
                                add_four(flat, at + plane, fx * (one - fy), a, w, az, wz)
                                add_four(flat, at + plane + row, fx * fy, a, w, az, wz)
