"""CPU twin of ``trilinear.cu``: slices of a volume, and slices added to sums.

Points come in patches (``patches.py``), rows in blocks of 16: a block and a patch are small enough to stay in
the first cache, in either layout of the result.

Inserting cuts the sums into slabs along x.  A slab is written by one thread only, and takes its points block
by block, patch by patch, row by row: every voxel adds the same numbers in the same order for any number of
slabs and threads, straight into float64.
"""

import numpy as np
from numba import njit, prange

# No "nnan": a point that is not a number must fail the range test, not pass it.
_FAST = {"contract", "reassoc", "nsz", "arcp"}
_ROWS = 16
_PATCH = 64
_PATCHES_PER_TASK = 16


@njit(nogil=True, fastmath=_FAST, inline="always")
def cell_of(x, low, high, last):  # type: ignore[no-untyped-def]
    """(is inside, first voxel from the centre as a float, fraction) along one axis; the cell exists."""
    inside = (x >= low) & (x <= high)
    x = x if inside else np.float32(0)
    below = min(np.floor(x), last)
    return inside, below, x - below


@njit(nogil=True, fastmath=_FAST)
def gather_patch(flat, n, coordinates, first, count, m, sample):  # type: ignore[no-untyped-def]
    """Trilinear samples of the volume (n^3,) at m @ points first, ..., first + count - 1."""
    centre = np.int32(n // 2)
    low, high = np.float32(-(n // 2)), np.float32(n - 1 - n // 2)
    last = high - np.float32(1)
    row = np.int32(n)
    plane = np.int64(n) * n
    qx, qy, qz = coordinates[0], coordinates[1], coordinates[2]
    m00, m01, m02 = m[0, 0], m[0, 1], m[0, 2]
    m10, m11, m12 = m[1, 0], m[1, 1], m[1, 2]
    m20, m21, m22 = m[2, 0], m[2, 1], m[2, 2]
    for t in range(count):
        p = first + t
        in_x, bx, fx = cell_of(m00 * qx[p] + m01 * qy[p] + m02 * qz[p], low, high, last)
        in_y, by, fy = cell_of(m10 * qx[p] + m11 * qy[p] + m12 * qz[p], low, high, last)
        in_z, bz, fz = cell_of(m20 * qx[p] + m21 * qy[p] + m22 * qz[p], low, high, last)
        ix, iy, iz = np.int32(bx) + centre, np.int32(by) + centre, np.int32(bz) + centre
        corner = np.int64((ix * row + iy) * row + iz)
        v00 = flat[corner] + fz * (flat[corner + 1] - flat[corner])
        v01 = flat[corner + row] + fz * (flat[corner + row + 1] - flat[corner + row])
        corner += plane
        v10 = flat[corner] + fz * (flat[corner + 1] - flat[corner])
        v11 = flat[corner + row] + fz * (flat[corner + row + 1] - flat[corner + row])
        v0 = v00 + fy * (v01 - v00)
        v1 = v10 + fy * (v11 - v10)
        sample[t] = v0 + fx * (v1 - v0) if in_x & in_y & in_z else np.float32(0)


@njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
def slice_volume(volume, coordinates, order, matrices, by_pixel, out):  # type: ignore[no-untyped-def]
    """out[k, order[p]] (or [order[p], k]) = the volume at matrices[k] @ coordinates[:, p]."""
    K, P = len(matrices), len(order)
    n = len(volume)
    flat = volume.reshape(-1)
    blocks = (K + _ROWS - 1) // _ROWS
    groups = (P + _PATCH * _PATCHES_PER_TASK - 1) // (_PATCH * _PATCHES_PER_TASK)
    for task in prange(blocks * groups):
        first_row, group = (task // groups) * _ROWS, task % groups
        last_row = min(K, first_row + _ROWS)
        begin = group * _PATCH * _PATCHES_PER_TASK
        samples = np.empty((_ROWS, _PATCH), np.float32)
        for first in range(begin, min(P, begin + _PATCH * _PATCHES_PER_TASK), _PATCH):
            count = min(_PATCH, P - first)
            for k in range(first_row, last_row):
                sample = samples[k - first_row]
                gather_patch(flat, n, coordinates, first, count, matrices[k], sample)
                if not by_pixel:
                    for t in range(count):
                        out[k, order[first + t]] = sample[t]
            if by_pixel:
                for t in range(count):
                    p = order[first + t]
                    for k in range(first_row, last_row):
                        out[p, k] = samples[k - first_row, t]


@njit(nogil=True, fastmath=_FAST)
def locate_patch(n, coordinates, first, count, m, low_x, high_x, corner, cell_x, fraction):  # type: ignore[no-untyped-def]
    """Where the points of a patch go: first voxel (-1: not into the slab), its x, and three fractions."""
    centre = np.int32(n // 2)
    low, high = np.float32(-(n // 2)), np.float32(n - 1 - n // 2)
    last = high - np.float32(1)
    row = np.int32(n)
    qx, qy, qz = coordinates[0], coordinates[1], coordinates[2]
    m00, m01, m02 = m[0, 0], m[0, 1], m[0, 2]
    m10, m11, m12 = m[1, 0], m[1, 1], m[1, 2]
    m20, m21, m22 = m[2, 0], m[2, 1], m[2, 2]
    fraction_x, fraction_y, fraction_z = fraction[0], fraction[1], fraction[2]
    for t in range(count):
        p = first + t
        in_x, bx, fx = cell_of(m00 * qx[p] + m01 * qy[p] + m02 * qz[p], low, high, last)
        in_y, by, fy = cell_of(m10 * qx[p] + m11 * qy[p] + m12 * qz[p], low, high, last)
        in_z, bz, fz = cell_of(m20 * qx[p] + m21 * qy[p] + m22 * qz[p], low, high, last)
        ix, iy, iz = np.int32(bx) + centre, np.int32(by) + centre, np.int32(bz) + centre
        inside = in_x & in_y & in_z & (ix >= low_x - 1) & (ix < high_x)
        corner[t] = (ix * row + iy) * row + iz if inside else np.int32(-1)
        cell_x[t] = ix
        fraction_x[t], fraction_y[t], fraction_z[t] = fx, fy, fz


@njit(nogil=True, fastmath=_FAST, inline="always")
def add_pair(flat, at, f, a, w, az, wz):  # type: ignore[no-untyped-def]
    """Add f * (value, weight) to a voxel and its neighbour along z: one vector of four numbers."""
    flat[at] += np.float64(f * a)
    flat[at + 1] += np.float64(f * w)
    flat[at + 2] += np.float64(f * az)
    flat[at + 3] += np.float64(f * wz)


@njit(nogil=True, fastmath=_FAST)
def scatter_patch(flat, n, count, low_x, high_x, corner, cell_x, fraction, value, weight):  # type: ignore[no-untyped-def]
    """Add the located points of a patch to the planes low_x, ..., high_x - 1 of the sums (2 n^3,)."""
    row = 2 * np.int64(n)
    plane = row * n
    one = np.float32(1)
    for t in range(count):
        if corner[t] < 0:
            continue
        at = 2 * np.int64(corner[t])
        fx, fy, fz = fraction[0, t], fraction[1, t], fraction[2, t]
        az, wz = fz * value[t], fz * weight[t]
        a, w = value[t] - az, weight[t] - wz
        if cell_x[t] >= low_x:
            add_pair(flat, at, (one - fx) * (one - fy), a, w, az, wz)
            add_pair(flat, at + row, (one - fx) * fy, a, w, az, wz)
        if cell_x[t] + 1 < high_x:
            add_pair(flat, at + plane, fx * (one - fy), a, w, az, wz)
            add_pair(flat, at + plane + row, fx * fy, a, w, az, wz)


@njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
def insert_slices(  # type: ignore[no-untyped-def]
    sums, coordinates, order, centres, radii, matrices, values, row_weights, pixel_weights, weights, by_pixel,
    n_slabs, workers,
):  # fmt: skip
    """Add f * values and f * weights (or row_weights * pixel_weights where weights is empty) to the sums."""
    K, P = len(matrices), len(order)
    n = len(sums)
    flat = sums.reshape(-1)
    has_weights = weights.size > 0
    for worker in prange(workers):
        corner, cell_x = np.empty(_PATCH, np.int32), np.empty(_PATCH, np.int32)
        fraction = np.empty((3, _PATCH), np.float32)
        value, weight = np.empty((_ROWS, _PATCH), np.float32), np.empty((_ROWS, _PATCH), np.float32)
        for slab in range(worker, n_slabs, workers):
            low_x, high_x = np.int32(slab * n // n_slabs), np.int32((slab + 1) * n // n_slabs)
            lowest, highest = np.float32(low_x - n // 2 - 1), np.float32(high_x - n // 2)
            for first_row in range(0, K, _ROWS):
                last_row = min(K, first_row + _ROWS)
                for patch in range(len(radii)):
                    first = patch * _PATCH
                    count = min(_PATCH, P - first)
                    read = False
                    for k in range(first_row, last_row):
                        if row_weights[k] == 0:
                            continue
                        m = matrices[k]
                        x = (
                            m[0, 0] * centres[patch, 0]
                            + m[0, 1] * centres[patch, 1]
                            + m[0, 2] * centres[patch, 2]
                        )
                        stretch = np.sqrt(m[0, 0] * m[0, 0] + m[0, 1] * m[0, 1] + m[0, 2] * m[0, 2])
                        reach = np.float32(1.0001) * radii[patch] * stretch + np.float32(0.01)
                        if x + reach < lowest or x - reach > highest:
                            continue
                        b = k - first_row
                        if by_pixel:
                            if not read:
                                read = True
                                for t in range(count):
                                    p = order[first + t]
                                    for row in range(first_row, last_row):
                                        value[row - first_row, t] = values[p, row]
                                        if has_weights:
                                            weight[row - first_row, t] = weights[p, row]
                        else:
                            for t in range(count):
                                p = order[first + t]
                                value[b, t] = values[k, p]
                                if has_weights:
                                    weight[b, t] = weights[k, p]
                        if not has_weights:
                            for t in range(count):
                                weight[b, t] = row_weights[k] * pixel_weights[order[first + t]]
                        locate_patch(n, coordinates, first, count, m, low_x, high_x, corner, cell_x, fraction)
                        scatter_patch(
                            flat, n, count, low_x, high_x, corner, cell_x, fraction, value[b], weight[b]
                        )
