"""Milliseconds, bandwidth and error of single kernels, in all their variants: which is the fastest here?

    python bench/kernels.py --device cuda [--rows T] [--frames D] [--pixels P] [--only scores] [--keep]

Every row of the table: kernel, variant, milliseconds (least of several), GB/s or TFLOP/s by what has to be
read, written or multiplied at least, and the largest difference from a float64 reference, relative to its
largest number (of probabilities: to each of them).  On the CPU the twins are timed, at sizes that it can do.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from machine import report_runs
from orienteer.compute.arrays import namespace_of_device, to_numpy
from orienteer.likelihood.expected import SplitOperand, gaussian_numerators
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.poisson import Poisson
from orienteer.likelihood.product import DenseProduct
from orienteer.posterior.scores import ScoreStore
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import make_sums
from orienteer.slicing.trilinear import insert_slices, slice_volume
from orienteer.source.patterns import Patterns
from slicing import make_matrices, make_points, seconds_of

TILES = 4  # of the scores of a store


class Case(NamedTuple):
    """A kernel in a variant: its work, bytes moved or operations done at least, and its error."""

    kernel: str
    variant: str
    work: Callable[[], Any]
    gigabytes: float = 0.0
    teraflop: float = 0.0
    error: Callable[[], float] = lambda: np.nan


def relative(found: Any, expected: Any) -> float:
    """Largest difference over the largest number."""
    found, expected = to_numpy(found).astype(np.float64), np.asarray(expected, np.float64)
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-300))


def score_cases(device: Any, T: int, D: int) -> Iterator[Case]:
    """Kernels of the posterior over a store of TILES tiles."""
    xp, rng = namespace_of_device(device), np.random.default_rng(1)
    # Whole eighths of a nat within 16 of the best: float16 holds them, so only the exponential is wrong.
    host = (-rng.integers(0, 128, (T, D)) / 8).astype(np.float32)
    scores, prior = xp.asarray(host), xp.zeros(T, dtype=np.float32)
    p = np.exp(host[: min(T, 64)].astype(np.float64))
    p_sum = TILES * np.exp(host, dtype=np.float64).sum(axis=0)
    for vector in (1, 2, 4) if device == "cuda" else (0,):
        variant = f"{vector} frames a thread" if vector else "numba"

        def use(vector: int = vector) -> None:
            if vector:
                from orienteer.posterior import _scores_cuda

                _scores_cuda.VECTOR = vector

        use()

        def filled(use: Callable[[], None] = use) -> ScoreStore:
            use()
            store = ScoreStore(TILES * T, D, device, 1.0)
            for tile in range(TILES):
                store.add(tile * T, scores, prior, np.float32(1))
            return store

        store = filled()
        posterior = store.finish()
        known = store._below, store._tiles, store._offset
        stored = 2 if device == "cuda" else 4
        bins, sums = xp.zeros((129, D), dtype=np.int32), xp.empty((-(-TILES * T // 256), D))
        size, kernels, lowest = T * D / 1e9, store._kernels, store._lowest

        def run(name: str, *arguments: Any, use: Any = use, kernels: Any = kernels) -> Callable[[], Any]:
            def work() -> None:
                use()
                getattr(kernels, name)(*arguments)

            return work

        # A tile is read twice, for its maximum and for its sums, and kept.
        yield Case(
            "add_tile", variant, filled, TILES * size * (8 + stored),
            error=lambda found=posterior: relative(found.log_evidence, np.log(p_sum)),
        )  # fmt: skip
        counting = run("count_distances", *known, bins)
        yield Case("count_distances", variant, counting, TILES * size * stored)
        yield Case(
            "kept_sums", variant, run("kept_sums", *known, lowest, sums), TILES * size * stored,
            error=lambda sums=sums: relative(sums.sum(axis=0), p_sum / np.exp(host.max(axis=0))),
        )  # fmt: skip
        out = xp.empty((T, D), dtype=np.float32)

        def worst(out: Any = out) -> float:
            return float(np.abs(to_numpy(out[: len(p)]) * p_sum / p - 1).max())

        mass, factor = xp.empty(TILES * T), store._factor
        making = run("responsibilities", *known, lowest, factor, 0, out)
        yield Case("responsibilities", variant, making, size * (stored + 4), error=worst)
        yield Case(
            "row_mass", variant, run("row_mass", *known, lowest, factor, mass), TILES * size * stored,
            error=lambda mass=mass: relative(mass[:T], (np.exp(host, dtype=np.float64) / p_sum).sum(axis=1)),
        )  # fmt: skip
        again = lambda store=store, use=use: (use(), store.scores(0, T))  # noqa: E731
        yield Case(
            "untempered", variant, again, size * (stored + 4),
            error=lambda store=store: relative(store.scores(0, T), host),
        )  # fmt: skip


def slicing_cases(device: Any, T: int, P: int) -> Iterator[Case]:
    """Slices of a volume, and slices put back, in all forms of the sums."""
    xp = namespace_of_device(device)
    side = int(np.sqrt(P))
    n = int(np.ceil(side * np.sqrt(2))) | 1
    points, matrices = xp.asarray(make_points(side)), xp.asarray(make_matrices(T))
    volume = xp.asarray(np.random.default_rng(2).random((n, n, n), dtype=np.float32))
    patches = PointPatches.of(points)
    values = slice_volume(volume, patches, matrices)
    rows, pixels = xp.ones(T, dtype=np.float32), xp.ones(len(points), dtype=np.float32)
    samples = values.size / 1e9
    # The adjoint: inserted slices weigh as much as the volume that is sliced at the same places.
    expected = float((values.astype(np.float64) ** 2).sum())

    def adjoint(sums: Any) -> float:
        finished = sums.finish() if hasattr(sums, "finish") else sums
        return abs(float((finished[..., 0] * volume).sum(dtype=np.float64)) / expected - 1)

    if device == "cpu":
        yield Case("slice_volume", "numba", lambda: slice_volume(volume, patches, matrices), 4 * samples)
        sums = make_sums(n, device)
        insert = lambda: insert_slices(sums, patches, matrices, values, rows, pixels)  # noqa: E731
        yield Case("insert_slices", "numba", insert, 4 * samples)
        return
    from orienteer.slicing import gpu
    from orienteer.slicing.sums import GpuSums

    for n_rows in (4, 8, 16, 32):
        for quads in (False, True):
            out = xp.empty_like(values)

            def slice_it(n_rows: int = n_rows, quads: bool = quads, out: Any = out) -> None:
                gpu.slice_volume(volume, patches, matrices, False, out, quads=quads, rows=n_rows)

            variant = f"{n_rows} rows a thread, {'quads' if quads else 'plain'}"
            error = lambda out=out: relative(out, to_numpy(values))  # noqa: E731
            yield Case("slice_volume", variant, slice_it, 4 * samples, error=error)
        forms = {
            "vectors of four": lambda: GpuSums(n),
            "vectors of two": lambda: xp.zeros((n, n, n, 2), dtype=np.float32),
            "whole numbers": lambda: GpuSums(n, deterministic=True),
        }
        for form, make in forms.items():

            def insert_it(sums: Any, n_rows: int = n_rows) -> None:
                gpu.insert_slices(sums, n, patches, matrices, values, rows, pixels, None, False, rows=n_rows)

            def once(make: Any = make, insert_it: Any = insert_it) -> float:
                sums = make()
                insert_it(sums)
                return adjoint(sums)

            sums = make()
            insert = lambda sums=sums, insert_it=insert_it: insert_it(sums)  # noqa: E731
            yield Case("insert_slices", f"{form}, {n_rows} rows a thread", insert, 4 * samples, error=once)


def product_cases(device: Any, T: int, D: int, P: int) -> Iterator[Case]:
    """Operands and matrix products in every precision, and the weights of the Gaussian merge."""
    xp, rng = namespace_of_device(device), np.random.default_rng(3)
    host = rng.gamma(4.0, 0.25, (T, P)).astype(np.float32)
    slices, weights = xp.asarray(host), xp.full(P, 0.5, dtype=np.float32)
    likelihood = Poisson(PixelModel(weights, weights, P))
    counts = rng.poisson(0.5, (D, P)).astype(np.uint8)
    frames = FrameBatch.prepare(Patterns(counts), np.arange(P), P, device, "dense")
    few = slice(0, min(T, 32))
    exact = np.log(np.maximum(host[few].astype(np.float64), 1e-3))
    scored = exact @ counts[: min(D, 64)].T.astype(np.float64)
    bytes_of = {"single": 4, "half": 2, "split": 4}
    for precision in ("half", "split", "tf32", "single") if device == "cuda" else ("single",):
        product = DenseProduct(frames, precision)  # type: ignore[arg-type]
        form = product.operand_form
        operand, _ = likelihood.expand(slices, 1.0, False, form)

        def error_of(operand: Any = operand) -> float:
            if not isinstance(operand, SplitOperand):
                return relative(operand[few].astype(np.float32), exact)
            both = operand.high[few].astype(np.float32) + operand.low[few].astype(np.float32) / 2048
            return relative(both, exact)

        expand = lambda form=form: likelihood.expand(slices, 1.0, False, form)  # noqa: E731
        moved = T * P * (4 + bytes_of[form]) / 1e9
        yield Case("expand", f"Poisson, {precision}", expand, moved, error=error_of)
        score = lambda product=product, operand=operand: product.scores(operand)  # noqa: E731

        def wrong(score: Callable[[], Any] = score) -> float:
            return relative(score()[few][:, : scored.shape[1]], scored)

        yield Case("scores", precision, score, teraflop=2 * T * D * P / 1e12, error=wrong)
        p = xp.full((T, D), np.float32(1 / T))
        merge = lambda product=product, p=p: product.merge(p, largest=1.0)  # noqa: E731
        merged = counts.sum(axis=0, dtype=np.float64) / T

        def wrong_merge(merge: Callable[[], Any] = merge, merged: Any = merged) -> float:
            return relative(merge()[0], merged)

        yield Case("merge", precision, merge, teraflop=2 * T * D * P / 1e12, error=wrong_merge)
    p, scores = xp.full((T, D), np.float32(0.5)), xp.full((T, D), np.float32(-1.0))
    offsets, inverse = xp.full(T, 5.0), xp.full(D, 0.25)
    work = lambda: gaussian_numerators(p, scores, offsets, inverse, 1.0)  # noqa: E731
    yield Case(
        "gaussian_numerators", "", work, T * D * 12 / 1e9,
        error=lambda: relative(work()[0], np.full(D, 0.5 * np.sqrt((5.0 - 2.0) * 0.25))),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rows", type=int, help="of a tile; default: 4096 on the GPU, 256 on the CPU")
    parser.add_argument("--frames", type=int, help="of a batch; default: 10 000 on the GPU, 500 on the CPU")
    parser.add_argument("--pixels", type=int, help="default: 4096 on the GPU, 1024 on the CPU")
    parser.add_argument("--only", choices=["scores", "slicing", "product"], help="one family of kernels")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    T = options.rows or (4096 if on_gpu else 256)
    D = options.frames or (10_000 if on_gpu else 500)
    P = options.pixels or (4096 if on_gpu else 1024)
    families: dict[str, Callable[[], Iterator[Case]]] = {
        "scores": lambda: score_cases(options.device, T, D),
        "slicing": lambda: slicing_cases(options.device, T, P),
        "product": lambda: product_cases(options.device, T, D, P),
    }
    began = time.perf_counter()
    table = []
    for family, cases in families.items():
        if options.only not in (None, family):
            continue
        for case in cases():
            seconds, _ = seconds_of(case.work, options.device, options.repeats)
            row: dict[str, Any] = {"kernel": case.kernel, "variant": case.variant, "ms": 1000 * seconds}
            if case.gigabytes:
                row["GB_per_s"] = case.gigabytes / seconds
            if case.teraflop:
                row["TFLOP_per_s"] = case.teraflop / seconds
            row["difference"] = case.error()
            row = {key: float(f"{v:.4g}") if isinstance(v, float) else v for key, v in row.items()}
            table.append({key: v for key, v in row.items() if v == v})
    problem = f"{T} rows, {D} frames and {P} pixels; stores of {TILES} tiles"
    report_runs(f"kernels_{options.device}", problem, began, options, table=table)


if __name__ == "__main__":
    main()
