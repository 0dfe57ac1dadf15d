"""Seconds to merge oriented frames into an autocorrelation by normal equations, and what they are spent on.

    python bench/merging.py [--device cuda] [--frames K] [--side PIXELS] [--voxels N ...] [--keep]

Asked of one H200: 10 000 frames of 128 x 128 pixels into 81^3 and 151^3 voxels, 10 regularisations, 100
iterations, in 2 s.  One non-uniform transform gives kernel and right side; it is timed beside the two that it
replaces.  CPU: 100 frames of 32 x 32 pixels into 41^3 voxels.

Frames are random numbers, which no search explains soon: all iterations that are allowed are made.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from machine import describe_machine, report
from orienteer.compute.arrays import namespace_of_device
from orienteer.fourier.nonuniform import NonuniformTransform, Precision
from orienteer.mtip.conjugate_gradients import solve_shifted
from orienteer.mtip.normal_equations import NormalEquations
from orienteer.mtip.slices import IntensitySlicer
from orienteer.mtip.support import autocorrelation_support
from orienteer.mtip.toeplitz import ToeplitzProduct
from orienteer.orientation.quaternion import random_uniform, to_matrix

VOXEL_A = 5.0
TOLERANCE = 2e-6  # of the search: the smallest that single precision reaches by itself
SIZES = {"cpu": (100, 32, [41]), "cuda": (10_000, 128, [81, 151])}
POINTS_AT_ONCE = {"cpu": 2**23, "cuda": 2**26}


def make_points(side: int) -> np.ndarray:
    """Scattering vectors (P, 3) of a square detector whose corners reach the last frequency of the voxels."""
    axis = np.linspace(-0.4, 0.4, side)
    x, y = (a.ravel() for a in np.meshgrid(axis, axis, indexing="ij"))
    directions = np.stack([x, y, np.ones_like(x)], 1) / np.sqrt(1 + x**2 + y**2)[:, None]
    q = directions - [0, 0, 1]
    return np.asarray(q * 0.5 / VOXEL_A / np.linalg.norm(q, axis=1).max())


def timed(work: Callable[[], Any], device: str, repeats: int) -> tuple[float, Any]:
    """Least seconds of several runs after a first, which compiles and plans; and the last result."""
    seconds, result = [], None
    for _ in range(repeats + 1):
        result = None  # memory of the run before
        wait(device)
        begin = time.perf_counter()
        result = work()
        wait(device)
        seconds.append(time.perf_counter() - begin)
    return min(seconds[1:] or seconds), result


def wait(device: str) -> None:
    if device == "cuda":
        import cupy

        cupy.cuda.get_current_stream().synchronize()


def measure(n: int, frames: Any, points: Any, matrices: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of every part for one size of the cube."""
    device, repeats, precision = options.device, options.repeats, options.precision
    empty = NormalEquations.empty(n, VOXEL_A, device)

    def sums() -> NormalEquations:
        return empty.with_frames(
            frames, points, matrices, tolerance=options.tolerance, precision=precision,
            points_at_once=POINTS_AT_ONCE[device],
        )  # fmt: skip

    of_sums, equations = timed(sums, device, repeats)
    regularisations = np.geomspace(1e-8, 1e-2, options.regularisations) * equations.total_weight
    support = autocorrelation_support(n)

    def setup() -> list[ToeplitzProduct]:
        kinds: tuple[Precision, ...] = ("double", "single")
        return [ToeplitzProduct(equations.kernel, support=support, precision=kind) for kind in kinds]

    of_setup, products = timed(setup, device, repeats)
    right = equations.right_side * products[0].support
    searches: dict[str, float] = {}
    iterations: dict[str, int] = {}
    for effort in ("double", "mixed"):
        quick = products[1] if effort == "mixed" else None

        def search(quick: Any = quick) -> Any:
            return solve_shifted(
                products[0], right, regularisations, tolerance=TOLERANCE,
                max_iterations=options.iterations, quick_product=quick,
            )  # fmt: skip

        searches[effort], found = timed(search, device, repeats)
        iterations[f"iterations_{effort}"] = found.iterations
    seconds = {
        "sums": of_sums,
        "product_setup": of_setup,
        "search_double": searches["double"],
        "search_mixed": searches["mixed"],
        "merge_double": of_sums + of_setup + searches["double"],
        "merge_mixed": of_sums + of_setup + searches["mixed"],
    }
    if options.parts:
        seconds |= parts(n, frames, points, matrices, options)
    seconds |= slicing(equations, points, matrices, options)
    return {name: float(f"{value:.4g}") for name, value in seconds.items()} | iterations


def parts(n: int, frames: Any, points: Any, matrices: Any, options: argparse.Namespace) -> dict[str, float]:
    """The two transforms apart."""
    xp = namespace_of_device(options.device)
    rows = max(1, POINTS_AT_ONCE[options.device] // len(points))

    def transform(edge: int, is_kernel: bool) -> Any:
        result = 0.0
        for first in range(0, len(frames), rows):
            part = slice(first, first + rows)
            q = (points[None] @ xp.swapaxes(matrices[part], 1, 2)).reshape(-1, 3) * VOXEL_A
            values = frames[part].ravel()
            made = NonuniformTransform(edge, q, tolerance=options.tolerance, precision=options.precision)
            result = result + made.to_grid(xp.ones_like(values) if is_kernel else values)
        return result

    return {
        "kernel_alone": timed(lambda: transform(2 * n - 1, True), options.device, options.repeats)[0],
        "right_side_alone": timed(lambda: transform(n, False), options.device, options.repeats)[0],
    }


def slicing(
    equations: NormalEquations, points: Any, matrices: Any, options: argparse.Namespace
) -> dict[str, float]:
    """Quick slices of the same orientations, and the grid that they come from."""
    of_grid, slicer = timed(
        lambda: IntensitySlicer.of(equations.right_side, VOXEL_A, error=1e-3), options.device, options.repeats
    )
    some = matrices[: max(1, 2**24 // len(points))]
    of_slices, _ = timed(lambda: slicer(points, some), options.device, options.repeats)
    return {"slicing_grid": of_grid, "slices_per_second": len(some) / of_slices}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--frames", type=int, help="100 on the CPU, 10 000 on the GPU")
    parser.add_argument("--side", type=int, help="pixels along an edge (32 on the CPU, 128 on the GPU)")
    parser.add_argument("--voxels", type=int, nargs="+", help="edges of the cubes (41; 81 and 151)")
    parser.add_argument("--regularisations", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the sums")
    parser.add_argument("--precision", choices=["single", "double"], default="single", help="of the sums")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--parts", action="store_true", help="also time kernel and right side apart")
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    few, side, voxels = SIZES[options.device]
    n_frames, side = options.frames or few, options.side or side
    xp = namespace_of_device(options.device)
    points = xp.asarray(make_points(side))
    rotations = to_matrix(random_uniform(n_frames, 1))
    matrices = xp.asarray(np.ascontiguousarray(np.swapaxes(rotations, 1, 2)))
    frames = xp.asarray(np.random.default_rng(1).random((n_frames, side * side), dtype=np.float32))
    result: dict[str, Any] = {
        "problem": f"{n_frames} frames of {side * side} pixels, {options.regularisations} regularisations, "
        f"{options.iterations} iterations; sums in {options.precision} precision to {options.tolerance:g}",
        "machine": describe_machine(options.device),
        "asked_seconds": 2.0,
    }
    for n in options.voxels or voxels:
        result[f"{n}^3"] = measure(n, frames, points, matrices, options)
    report(f"merging_{options.device}", result, options.keep)


if __name__ == "__main__":
    main()
