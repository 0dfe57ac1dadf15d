"""Points per second of slicing a volume and of putting slices back, beside the floors they must beat.

    python bench/slicing.py [--device cuda] [--rotations K] [--side PIXELS] [--keep]

CPU: 101 x 101 pixels in a cube of 143^3 voxels.  Other work on the machine spoils seconds more than processor
time, so both are given, and plain loops are measured beside.
GPU: 64 x 64 pixels, 86 520 rotations, all variants, by CUDA events.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit, prange

from machine import describe_machine, report
from orienteer.compute.arrays import to_device
from orienteer.orientation.quaternion import to_matrix
from orienteer.orientation.six_hundred_cell import six_hundred_cell
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import GpuSums, make_sums
from orienteer.slicing.trilinear import insert_slices, slice_volume

# Points per second of throw-away code: two cores with nothing else to do, and one H200.
FLOORS = {"cpu": {"slice": 84e6 / 0.4, "insert": 84e6 / 1.1}, "cuda": {"slice": 74e9, "insert": 15e9}}


def make_points(side: int) -> np.ndarray:
    """The disc of a square detector (P, 3) on an Ewald sphere, one voxel per pixel, beam stop left out."""
    axis = np.arange(side) - side // 2
    x, y = (a.ravel().astype(float) for a in np.meshgrid(axis, axis, indexing="ij"))
    radius = 1.5 * side
    points = np.stack([x, y, np.sqrt(radius**2 - x**2 - y**2) - radius], axis=1)
    return points[np.hypot(x, y) > 3].astype(np.float32)


def make_matrices(n_rotations: int) -> np.ndarray:
    """Transposes of the first rotations of a grid that has enough."""
    n = next(n for n in range(1, 100) if 10 * (5 * n**3 + n) >= n_rotations)
    rotations = to_matrix(six_hundred_cell(n).quaternions[:n_rotations])
    return np.ascontiguousarray(np.swapaxes(rotations, 1, 2), dtype=np.float32)


def seconds_of(work: Callable[[], Any], device: str, repeats: int) -> tuple[float, float]:
    """Least seconds, and least processor seconds (on the GPU: the same) of several runs after a first."""
    work()
    wall, processor = [], []
    for _ in range(repeats):
        if device == "cuda":
            import cupy

            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            work()
            stop.record()
            stop.synchronize()
            wall.append(cupy.cuda.get_elapsed_time(start, stop) / 1000)
            processor.append(wall[-1])
        else:
            begin, used = time.perf_counter(), time.process_time()
            work()
            wall.append(time.perf_counter() - begin)
            processor.append(time.process_time() - used)
    return min(wall), min(processor)


@njit(nogil=True, inline="always")
def plain_cell(m, q, n):
    """First voxel and fractions as one would write them first."""
    x = m[0, 0] * q[0] + m[0, 1] * q[1] + m[0, 2] * q[2] + np.float32(n // 2)
    y = m[1, 0] * q[0] + m[1, 1] * q[1] + m[1, 2] * q[2] + np.float32(n // 2)
    z = m[2, 0] * q[0] + m[2, 1] * q[1] + m[2, 2] * q[2] + np.float32(n // 2)
    i, j, t = int(np.floor(x)), int(np.floor(y)), int(np.floor(z))
    inside = 0 <= i < n - 1 and 0 <= j < n - 1 and 0 <= t < n - 1
    return inside, i, j, t, x - np.float32(i), y - np.float32(j), z - np.float32(t)


@njit(nogil=True, parallel=True)
def plain_slice(volume, points, matrices, out):
    """Plain loops, against which all care is measured whatever else the machine does."""
    n = len(volume)
    for k in prange(len(matrices)):
        for p in range(len(points)):
            inside, i, j, t, fx, fy, fz = plain_cell(matrices[k], points[p], n)
            value = np.float32(0)
            if inside:
                for a in range(2):
                    for b in range(2):
                        f = (fx if a else np.float32(1) - fx) * (fy if b else np.float32(1) - fy)
                        low, high = volume[i + a, j + b, t], volume[i + a, j + b, t + 1]
                        value += f * (low + fz * (high - low))
            out[k, p] = value


@njit(nogil=True, parallel=True)
def plain_insert(parts, points, matrices, values, row_weights, pixel_weights):
    """Plain loops into four private float32 volumes, joined into the first of them."""
    n, K = parts.shape[1], len(matrices)
    parts[:] = 0
    for part in prange(len(parts)):
        sums = parts[part]
        for k in range(part * K // len(parts), (part + 1) * K // len(parts)):
            for p in range(len(points)):
                inside, i, j, t, fx, fy, fz = plain_cell(matrices[k], points[p], n)
                if inside:
                    value, weight = values[k, p], row_weights[k] * pixel_weights[p]
                    for a in range(2):
                        for b in range(2):
                            f = (fx if a else np.float32(1) - fx) * (fy if b else np.float32(1) - fy)
                            for c in range(2):
                                g = f * (fz if c else np.float32(1) - fz)
                                sums[i + a, j + b, t + c, 0] += g * value
                                sums[i + a, j + b, t + c, 1] += g * weight
    for i in prange(n):
        for part in range(1, len(parts)):
            parts[0, i] += parts[part, i]


def variants(
    device: str, volume: Any, points: Any, matrices: Any, values: Any
) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """(what, variant, work) of everything that is timed."""
    n, (K, P) = len(volume), values.shape
    patches = PointPatches.of(points)
    row_weights, pixel_weights = values[:, 0] + 1, values[0] + 1
    by_pixel = values.reshape(P, K)  # any values will do
    yield "slice", "by row", lambda: slice_volume(volume, patches, matrices, out=values)
    yield "slice", "by pixel", lambda: slice_volume(volume, patches, matrices, True, out=by_pixel)
    yield "slice", "by row, points as given", lambda: slice_volume(volume, points, matrices, out=values)
    if device == "cuda":
        yield from gpu_variants(volume, points, matrices, values, row_weights, pixel_weights)
    else:
        parts, arguments = np.zeros((4, n, n, n, 2), np.float32), (points, matrices, values)
        yield "slice", "plain loops", lambda: plain_slice(volume, *arguments)
        yield "insert", "plain loops", lambda: plain_insert(parts, *arguments, row_weights, pixel_weights)
    sums = make_sums(n, device)
    rest = (row_weights, pixel_weights)
    yield "insert", "by row", lambda: insert_slices(sums, patches, matrices, values, *rest)
    yield "insert", "by pixel", lambda: insert_slices(sums, patches, matrices, by_pixel, *rest, by_pixel=True)
    few = 0 * row_weights
    few[::10] = row_weights[::10]
    yield (
        "insert",
        "one row in ten",
        lambda: insert_slices(sums, patches, matrices, values, few, pixel_weights),
    )


def gpu_variants(
    volume: Any, points: Any, matrices: Any, values: Any, row_weights: Any, pixel_weights: Any
) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    import cupy

    from orienteer.slicing import gpu

    n, (K, P) = len(volume), values.shape
    by_pixel = values.reshape(P, K)
    orders = {"patches": PointPatches.of(points), "as given": PointPatches.as_given(points)}
    forms = {
        "two float4 copies": GpuSums(n),
        "float2": cupy.zeros((n, n, n, 2), np.float32),
        "int64": GpuSums(n, deterministic=True),
    }
    for order, patches in orders.items():
        for rows in (1, 4, 8, 16):
            for quads in (False, True):
                for out, layout in ((values, "by row"), (by_pixel, "by pixel")):

                    def slice_it(patches=patches, rows=rows, quads=quads, out=out, layout=layout) -> None:
                        gpu.slice_volume(
                            volume, patches, matrices, layout == "by pixel", out, quads=quads, rows=rows
                        )

                    yield (
                        "slice",
                        f"{layout}, {order}, {rows} rows, {'quads' if quads else 'plain'}",
                        slice_it,
                    )
            for form, sums in forms.items():

                def insert_it(patches=patches, rows=rows, sums=sums) -> None:
                    arguments = (patches, matrices, values, row_weights, pixel_weights, None, False)
                    gpu.insert_slices(sums, n, *arguments, rows=rows)

                yield "insert", f"{form}, {order}, {rows} rows", insert_it


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rotations", type=int, default=None, help="2 000 on the CPU, 86 520 on the GPU")
    parser.add_argument("--side", type=int, default=None, help="pixels (101 on the CPU, 64 on the GPU)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    side = options.side or (101 if options.device == "cpu" else 64)
    n = int(np.ceil(side * np.sqrt(2))) | 1
    points, matrices = (
        to_device(a, options.device)
        for a in (
            make_points(side),
            make_matrices(options.rotations or (2000 if options.device == "cpu" else 86520)),
        )
    )
    rng = np.random.default_rng(1)
    volume = to_device(rng.random((n, n, n), dtype=np.float32), options.device)
    values = slice_volume(volume, points, matrices)
    result: dict[str, Any] = {
        "problem": f"{len(matrices)} rotations of {len(points)} points in {n}^3 voxels, points per second",
        "machine": describe_machine(options.device),
        "floors": FLOORS[options.device],
        "slice": {},
        "insert": {},
    }
    for what, variant, work in variants(options.device, volume, points, matrices, values):
        wall, processor = seconds_of(work, options.device, options.repeats)
        rate = {"seconds": wall, "points_per_second": values.size / wall}
        rate["of_the_floor"] = rate["points_per_second"] / FLOORS[options.device][what]
        if options.device == "cpu":
            rate["points_per_processor_second"] = values.size / processor
        result[what][variant] = {name: float(f"{value:.4g}") for name, value in rate.items()}
    report(f"slicing_{options.device}", result, options.keep)


if __name__ == "__main__":
    main()
