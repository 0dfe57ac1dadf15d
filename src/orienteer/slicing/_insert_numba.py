"""CPU twin of the inserting kernels of ``trilinear.cu``: slices added to sums.

The sums are cut into slabs along x.  A slab is written by one thread only, and takes its points patch by
patch, row by row: every voxel adds the same numbers in the same order for any number of slabs and threads.

A patch of points moves little from one row to the next, so that its voxels stay in the cache while all rows
pass.  Rows are added in float32; the caller moves the sums on to float64 before they have taken many.

The compiler turns a loop into vector instructions only where it knows that arrays do not overlap.  It knows
that of the arguments of a parallel function, so scratch memory is an argument too.
"""

import numpy as np
from numba import get_num_threads, njit, prange

from orienteer.compute.arrays import Array
from orienteer.slicing._trilinear_numba import FAST, cell_of, is_inside, matrix_of, turned
from orienteer.slicing._vectors_numba import add_four

_ROWS = 16  # rows of a block: a cache line of values by pixel
_PATCH = 64  # points of a patch, as in patches.py
_STRIDE = 27  # from one point of a patch (8 x 8 as a rule) to one that is not its neighbour
_SCRATCH = 9  # lines of scratch memory: values, four corners, value and weight at z and z + 1


def insert_slices(
    sums: Array, coordinates: Array, order: Array, centres: Array, radii: Array, matrices: Array,
    values: Array, row_weights: Array, pixel_weights: Array, weights: Array, by_pixel: bool, n_slabs: int,
) -> None:  # fmt: skip
    """Add f * values and f * weights (or row_weights * pixel_weights where weights is empty) to the sums."""
    workers = min(get_num_threads(), n_slabs)
    used = np.flatnonzero(row_weights)
    if not len(used):
        return
    corner = np.empty((workers, _PATCH), np.int32)
    lines = np.empty((workers, _SCRATCH, _PATCH), np.float32)
    block = np.empty((workers, 2, _ROWS, _PATCH), np.float32)
    insert_rows(
        sums.reshape(-1), len(sums), coordinates, order, centres, radii, matrices[used], values,
        row_weights[used], pixel_weights[order], weights, used, by_pixel, n_slabs, corner, lines, block,
    )  # fmt: skip


@njit(nogil=True, parallel=True, cache=True, fastmath=FAST)
def insert_rows(  # type: ignore[no-untyped-def]
    flat, n, coordinates, order, centres, radii, matrices, values, row_weights, pixel_weights, weights,
    source, by_pixel, n_slabs, corner, lines, block,
):  # fmt: skip
    """Add rows to the sums (2 n^3,) float32: row k has its values in values[source[k]], or [:, source[k]].

    pixel_weights : in the order of the patches.   corner, lines, block : scratch memory of each worker.
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
            low_corner, high_corner = low_x * n * n, (high_x - 1) * n * n
            for patch in range(len(radii)):
                first = patch * _PATCH
                count = min(_PATCH, P - first)
                for first_row in range(0, K, _ROWS):
                    n_rows = min(_ROWS, K - first_row)
                    is_taken = False
                    for r in range(n_rows):
                        k = first_row + r
                        # Does the ball around the patch touch the slab?
                        matrix = matrix_of(matrices, k)
                        m0, m1, m2 = matrix[0], matrix[1], matrix[2]
                        x = m0 * centres[patch, 0] + m1 * centres[patch, 1] + m2 * centres[patch, 2]
                        stretch = np.float32(1.0001) * np.sqrt(m0 * m0 + m1 * m1 + m2 * m2)
                        reach = stretch * radii[patch] + np.float32(0.01)
                        if x + reach < lowest or x - reach > highest:
                            continue
                        if not is_taken:
                            is_taken = True
                            for c in range(2 if has_weights else 1):
                                table = weights if c else values
                                if by_pixel:
                                    for t in range(count):
                                        pixel = np.uint64(order[first + t])
                                        for i in range(n_rows):
                                            column = np.uint64(source[first_row + i])
                                            block[worker, c, i, t] = table[pixel, column]
                                else:
                                    for i in range(n_rows):
                                        line = np.uint64(source[first_row + i])
                                        for t in range(count):
                                            block[worker, c, i, t] = table[line, np.uint64(order[first + t])]

                        # Where each point goes, in vector instructions.
                        weight = row_weights[k]
                        for t in range(count):
                            p = np.uint64(first + t)
                            x, y, z = turned(matrix, coordinates, p)
                            inside = is_inside(x, y, z, n)
                            ix, iy, iz, fx, fy, fz = cell_of(inside, x, y, z, n)
                            inside = inside & (ix >= low_x - 1) & (ix < high_x)
                            corner[worker, t] = np.int32((ix * n + iy) * n + iz) if inside else np.int32(-1)
                            gx, gy = one - fx, one - fy
                            lines[worker, 1, t] = gx * gy
                            lines[worker, 2, t] = gx * fy
                            lines[worker, 3, t] = fx * gy
                            lines[worker, 4, t] = fx * fy
                            a = block[worker, 0, r, t]
                            w = block[worker, 1, r, t] if has_weights else weight * pixel_weights[p]
                            az, wz = fz * a, fz * w
                            lines[worker, 5, t] = a - az
                            lines[worker, 6, t] = w - wz
                            lines[worker, 7, t] = az
                            lines[worker, 8, t] = wz

                        # One point after the other, four vectors each.  Not in the order of the patch: a
                        # vector that overlaps one just written would have to wait for it.
                        for i in range(_PATCH):
                            t = (i * _STRIDE) % _PATCH
                            if t >= count:
                                continue
                            cell = corner[worker, t]
                            if cell < 0:
                                continue
                            a, w = lines[worker, 5, t], lines[worker, 6, t]
                            az, wz = lines[worker, 7, t], lines[worker, 8, t]
                            at = np.uint64(2) * np.uint64(cell)
                            if cell >= low_corner:
                                add_four(flat, at, lines[worker, 1, t], a, w, az, wz)
                                add_four(flat, at + row, lines[worker, 2, t], a, w, az, wz)
                            if cell < high_corner:
                                add_four(flat, at + plane, lines[worker, 3, t], a, w, az, wz)
                                add_four(flat, at + plane + row, lines[worker, 4, t], a, w, az, wz)


@njit(nogil=True, parallel=True, cache=True)
def move_sums(single, double):  # type: ignore[no-untyped-def]
    """Add float32 sums to float64 sums, and clear them; both (planes, numbers)."""
    for i in prange(len(single)):
        for j in range(single.shape[1]):
            double[i, j] += np.float64(single[i, j])
            single[i, j] = np.float32(0)


@njit(nogil=True, parallel=True, cache=True)
def largest_sums(single, largest):  # type: ignore[no-untyped-def]
    """The largest magnitudes (planes, 2) of float32 sums (planes, n, 2), infinite where one is no number."""
    for i in prange(len(single)):
        value, weight, is_finite = np.float32(0), np.float32(0), True
        for j in range(single.shape[1]):
            v, w = abs(single[i, j, 0]), abs(single[i, j, 1])
            value = v if v > value else value
            weight = w if w > weight else weight
            is_finite = is_finite & (v < np.inf) & (w < np.inf)
        largest[i, 0] = value if is_finite else np.inf
        largest[i, 1] = weight if is_finite else np.inf


@njit(nogil=True, parallel=True, cache=True)
def move_to_fixed(single, fixed, scales):  # type: ignore[no-untyped-def]
    """Add float32 sums to whole numbers, scales (2,) times as large, and clear them; both (planes, n, 2)."""
    value_scale, weight_scale = scales[0], scales[1]
    for i in prange(len(single)):
        for j in range(single.shape[1]):
            fixed[i, j, 0] += np.int64(np.rint(np.float64(single[i, j, 0]) * value_scale))
            fixed[i, j, 1] += np.int64(np.rint(np.float64(single[i, j, 1]) * weight_scale))
            single[i, j, 0] = np.float32(0)
            single[i, j, 1] = np.float32(0)
