"""CPU twin of ``insert.cu``: slices added to sums.

The sums are cut into slabs along x.  One thread writes a slab, and takes patches of points in an order that
depends neither on the number of slabs nor on that of threads: every voxel always adds the same numbers in the
same order.

Patches of all rows are added brick by brick of the cube: the voxels of a brick stay in the cache while all
patches that lie there are added.  Row after row, every voxel would be read from memory again for each row.
Rows are added in float32; the caller moves the sums to float64 before they have taken many.

The compiler turns a loop into vector instructions only if it knows that arrays do not overlap.  It knows
this of the arguments of a parallel function, so scratch memory is an argument too.
"""

import numpy as np
from numba import get_num_threads, njit, prange

from orienteer.compute.arrays import Array
from orienteer.slicing._trilinear_numba import FAST, cell_of, is_inside, matrix_of, scratch_memory, turned
from orienteer.slicing._vectors_numba import LANES, add_to_cell, sample_lanes

_ROWS = 16  # rows that are copied together: a cache line of values by pixel
_PATCH = 64  # points of a patch, as in patches.py
_STRIDE = 27  # from one point of a patch (8 x 8 as a rule) to one that is not its neighbour
_BRICK = 24  # voxels along an edge: with the reach of its patches, half of a second-level cache
_ELSEWHERE = np.float32(-1)  # stored as the distance along z of a point in no cell of the slab


def insert_slices(
    sums: Array, coordinates: Array, order: Array, centres: Array, radii: Array, matrices: Array,
    values: Array, row_weights: Array, pixel_weights: Array, weights: Array, model: Array, by_pixel: bool,
    n_slabs: int,
) -> None:  # fmt: skip
    """Add f * values and f * weights (or row_weights * pixel_weights if weights is empty) to the sums.

    model : (n, n, n) float32, whose slices times the weights are subtracted from the values; or empty.
    """
    workers = min(get_num_threads(), n_slabs)
    used = np.flatnonzero(row_weights)
    if not len(used):
        return
    matrices, n = matrices[used], len(sums)
    of_values, of_weights = (
        np.empty((len(used) if table.size else 0, len(order)), np.float32) for table in (values, weights)
    )
    copy_rows(values if by_pixel else values.T, order, used, of_values)
    copy_rows(weights if by_pixel else weights.T, order, used, of_weights)
    turns = np.empty(len(used) * len(radii), np.int64)
    order_by_brick(matrices, centres, n, turns)
    corner, places = scratch_memory(workers, _PATCH)
    pairs = np.empty((workers, _PATCH, 2), np.float32)
    insert_patches(
        sums.reshape(-1), n, coordinates, centres, radii, matrices, of_values, of_weights, row_weights[used],
        pixel_weights[order], model.reshape(-1), turns, n_slabs, corner, places, pairs,
    )  # fmt: skip


@njit(nogil=True, parallel=True, cache=True)
def copy_rows(table, order, source, rows):  # type: ignore[no-untyped-def]
    """rows[k, p] = table[order[p], source[k]]."""
    K, P = rows.shape
    for patch in prange((P + _PATCH - 1) // _PATCH):
        first, last = patch * _PATCH, min(P, (patch + 1) * _PATCH)
        for first_row in range(0, K, _ROWS):
            last_row = min(K, first_row + _ROWS)
            for p in range(first, last):
                pixel = np.uint64(order[p])
                for k in range(first_row, last_row):
                    rows[np.uint64(k), np.uint64(p)] = table[pixel, np.uint64(source[k])]


@njit(nogil=True, cache=True)
def order_by_brick(matrices, centres, n, turns):  # type: ignore[no-untyped-def]
    """turns (K H,): patches of rows, row * H + patch, in the order of the bricks that hold their centres."""
    K, H = len(matrices), len(centres)
    along = (n + _BRICK - 1) // _BRICK
    brick = np.empty(K * H, np.int32)
    start = np.zeros(along**3 + 1, np.int64)
    for turn in range(K * H):
        k, h = turn // H, turn % H
        number = 0
        for axis in range(3):
            x = np.float64(n // 2)
            for i in range(3):
                x += matrices[k, axis, i] * centres[h, i]
            inside = min(max(x, 0.0), n - 1.0) if x == x else 0.0  # NaN goes to the first brick
            number = number * along + np.int64(inside) // _BRICK
        brick[turn] = number
        start[number + 1] += 1
    for number in range(along**3):
        start[number + 1] += start[number]
    for turn in range(K * H):
        number = brick[turn]
        turns[start[number]] = turn
        start[number] += 1


@njit(nogil=True, parallel=True, cache=True, fastmath=FAST)
def insert_patches(  # type: ignore[no-untyped-def]
    flat, n, coordinates, centres, radii, matrices, values, weights, row_weights, pixel_weights, model,
    turns, n_slabs, corner, places, pairs,
):  # fmt: skip
    """Add rows to the sums (2 n^3,) float32.

    values, weights, pixel_weights : in the order of the patches, (K, P) and (P,).
    turns : patches of rows in the order in which they are added, row * patches + patch.
    corner, places, pairs : scratch memory of each worker.
    """
    H, P = len(radii), len(pixel_weights)
    workers = len(corner)
    has_weights, has_model = weights.size > 0, model.size > 0
    row, plane = np.uint64(2 * n), np.uint64(2 * n * n)
    for worker in prange(workers):
        for slab in range(worker, n_slabs, workers):
            low_x, high_x = slab * n // n_slabs, (slab + 1) * n // n_slabs
            lowest, highest = np.float32(low_x - n // 2 - 1), np.float32(high_x - n // 2)
            low_corner, high_corner = low_x * n * n, (high_x - 1) * n * n
            for turn in turns:
                k, patch = np.uint64(turn // H), turn % H
                first = patch * _PATCH
                count = min(_PATCH, P - first)
                # Does the ball around the patch touch the slab?
                matrix = matrix_of(matrices, k)
                m0, m1, m2 = matrix[0], matrix[1], matrix[2]
                x = m0 * centres[patch, 0] + m1 * centres[patch, 1] + m2 * centres[patch, 2]
                stretch = np.float32(1.0001) * np.sqrt(m0 * m0 + m1 * m1 + m2 * m2)
                reach = stretch * radii[patch] + np.float32(0.01)
                if x + reach < lowest or x - reach > highest:
                    continue

                # The cell of each point, in vector instructions, and the model's sample there.
                for t in range(count):
                    x, y, z = turned(matrix, coordinates, np.uint64(first + t))
                    inside = is_inside(x, y, z, n)
                    ix, iy, iz, fx, fy, fz = cell_of(inside, x, y, z, n)
                    inside = inside & (ix >= low_x - 1) & (ix < high_x)
                    corner[worker, t] = np.int32((ix * n + iy) * n + iz)
                    places[worker, 0, t] = fx
                    places[worker, 1, t] = fy
                    places[worker, 2, t] = fz if inside else _ELSEWHERE
                if has_model:
                    for t in range(0, count, LANES):
                        sample_lanes(model, np.uint64(n), corner[worker], places[worker], np.uint64(t))
                weight = row_weights[k]
                for t in range(count):
                    p = np.uint64(first + t)
                    w = weights[k, p] if has_weights else weight * pixel_weights[p]
                    expected = w * places[worker, 3, t] if has_model else np.float32(0)
                    pairs[worker, t, 0] = values[k, p] - expected
                    pairs[worker, t, 1] = w

                # One point after another, but not in the order of the patch: a vector that overlaps one just
                # written would have to wait for it.
                for i in range(_PATCH):
                    point = np.uint64((i * _STRIDE) % _PATCH)
                    if point >= count or places[worker, 2, point] < 0:
                        continue
                    cell = corner[worker, point]
                    add_to_cell(
                        flat, np.uint64(2) * np.uint64(cell), row, plane, pairs[worker], places[worker],
                        point, cell >= low_corner, cell < high_corner,
                    )  # fmt: skip


@njit(nogil=True, parallel=True, cache=True)
def move_sums(single, double):  # type: ignore[no-untyped-def]
    """Add float32 sums to float64 sums, and clear them; both (planes, numbers)."""
    for i in prange(len(single)):
        for j in range(single.shape[1]):
            double[i, j] += np.float64(single[i, j])
            single[i, j] = np.float32(0)


@njit(nogil=True, parallel=True, cache=True)
def largest_sums(single, largest):  # type: ignore[no-untyped-def]
    """The largest magnitudes (planes, 2) of float32 sums (planes, n, 2), infinite if one is not finite."""
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
