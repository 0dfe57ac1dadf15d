"""Products of frames with tiles of rows: multiply-adds per second of photon lists and of matrix products.

    python bench/product.py [--device cuda] [--frames D] [--rows T] [--keep]

The frames are those of a weak single-particle experiment: 7 776 pixels, 600 photons, some 300 lit pixels.  On
the CPU the rate of one core is by its own clock, so that other programs hardly count.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from machine import describe_machine, report
from orienteer.compute.arrays import namespace_of_device
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.product import DenseProduct, SparseProduct, listed_merge, listed_scores
from orienteer.source.patterns import Patterns

PIXELS, PHOTONS = 7776, 600.0
ROWS_PER_BLOCK, PAIRS_PER_BLOCK = 8, 22


def weak_frames(n_frames: int, photons: float, seed: int = 1) -> np.ndarray:
    """Counts (D, PIXELS) whose mean falls off with the square of the radius, pixels in any order."""
    rng = np.random.default_rng(seed)
    mean = 1.0 / (1 + np.arange(PIXELS))
    mean *= photons / mean.sum()
    return rng.poisson(rng.permutation(mean * rng.gamma(1.0, 1.0, PIXELS)), (n_frames, PIXELS))


def least(work: Callable[[], Any], clock: Callable[[], float], repeats: int = 9) -> float:
    """Least time of several runs by a clock, after one that compiles."""
    work()
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def device_clock() -> float:
    """Seconds after all work on the GPU is done."""
    import cupy

    cupy.cuda.Device().synchronize()
    return time.perf_counter()


def rate(work: Callable[[], Any], multiply_adds: float, device: str) -> dict[str, float]:
    """1e9 multiply-adds per second: of the GPU, or of one core and of all cores."""
    if device == "cuda":
        return {"giga_per_second": round(multiply_adds / least(work, device_clock) / 1e9, 1)}
    import numba

    all_cores = least(work, time.perf_counter)
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    one_core = least(work, time.process_time)
    numba.set_num_threads(before)
    return {
        "giga_per_second_one_core": round(multiply_adds / one_core / 1e9, 2),
        "giga_per_second_all_cores": round(multiply_adds / all_cores / 1e9, 2),
    }


def sparse_rates(frames: np.ndarray, n_rows: int, device: str) -> dict[str, Any]:
    """Photon lists: whole tile, merges with all and with few weights, and listed pairs."""
    xp = namespace_of_device(device)
    batch = FrameBatch.prepare(Patterns(frames), np.arange(PIXELS), PIXELS, device, "sparse")
    product = SparseProduct(batch)
    rng = np.random.default_rng(2)
    operand = xp.asarray(rng.normal(size=(PIXELS, n_rows)).astype(np.float32))
    weights = rng.random((n_rows, len(frames))).astype(np.float32)
    few = xp.asarray(weights * (rng.random((n_rows // 8, len(frames))) < 0.02).repeat(8, axis=0))
    weights = xp.asarray(weights)
    n_blocks = n_rows // ROWS_PER_BLOCK
    blocks = (
        xp.arange(n_blocks + 1) * ROWS_PER_BLOCK,
        xp.arange(n_blocks + 1) * PAIRS_PER_BLOCK,
        xp.asarray(rng.integers(0, len(frames), n_blocks * PAIRS_PER_BLOCK)),
    )
    values = listed_scores(product, operand, *blocks)
    lit = int((frames > 0).sum())
    listed = float(lit / len(frames)) * len(values)
    out = product.scores(operand)
    merged = product.merge(weights)
    return {
        "lit_pixels_per_frame": round(lit / len(frames), 1),
        "scores": rate(lambda: product.scores(operand, out), lit * n_rows, device),
        "merge": rate(lambda: product.merge(weights, merged), lit * n_rows, device),
        "merge_with_2_percent_of_the_weights": rate(lambda: product.merge(few, merged), lit * n_rows, device),
        "listed_scores": rate(lambda: listed_scores(product, operand, *blocks), listed, device),
        "listed_merge": rate(lambda: listed_merge(product, values, *blocks), listed, device),
    }


def dense_rates(frames: np.ndarray, n_rows: int, device: str) -> dict[str, Any]:
    """Matrix products over all pixels; every multiply-add counts, also those with 0 photons."""
    xp = namespace_of_device(device)
    rng = np.random.default_rng(3)
    operand = xp.asarray(rng.normal(size=(n_rows, PIXELS)).astype(np.float32))
    weights = xp.asarray(rng.random((n_rows, len(frames))).astype(np.float32))
    batch = FrameBatch.prepare(Patterns(frames), np.arange(PIXELS), PIXELS, device, "dense")
    rates = {}
    for precision in ("half", "split", "tf32", "single") if device == "cuda" else ("single",):
        product = DenseProduct(batch, precision)
        out, merged = product.scores(operand), product.merge(weights)
        rates[precision] = {
            "scores": rate(lambda p=product, o=out: p.scores(operand, o), frames.size * n_rows, device),
            "merge": rate(lambda p=product, o=merged: p.merge(weights, o), frames.size * n_rows, device),
        }
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--frames", type=int, default=3000)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--keep", action="store_true", help="write bench/results/product_DEVICE.json")
    options = parser.parse_args()
    n_rows = options.rows or (4096 if options.device == "cuda" else 256)
    frames = weak_frames(options.frames, PHOTONS)
    result = {
        "problem": f"{options.frames} frames x {PIXELS} pixels, {n_rows} rows; 1e9 multiply-adds per second",
        "machine": describe_machine(options.device),
        "sparse": sparse_rates(frames, n_rows, options.device),
        "dense": dense_rates(frames, n_rows, options.device),
    }
    report(f"product_{options.device}", result, options.keep)


if __name__ == "__main__":
    main()
