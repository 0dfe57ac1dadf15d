"""Products of frames with tiles of rows: as sums in float64, in every storage, same bits on any threads."""

from types import ModuleType

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.compute.arrays import to_numpy
from orienteer.errors import OrienteerError
from orienteer.likelihood._product_numba import pack
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.panels import Panels, aligned_panels
from orienteer.likelihood.product import DenseProduct, SparseProduct, listed_merge, listed_scores, product_of
from orienteer.reconstruction.plan import LARGEST_HALF_SQUARE
from orienteer.source.patterns import Patterns

LAYOUTS = ["dense", "sparse"]


class Problem:
    """Random frames with a mask, an operand and weights, and the exact products in float64."""

    def __init__(
        self, n_frames: int, n_pixels: int, n_rows: int, *, n_scored: int | None = None, mean: float = 0.2,
        largest: int = 0, seed: int = 1, masked: bool = True,
    ) -> None:  # fmt: skip
        rng = np.random.default_rng(seed)
        self.n_scored = n_pixels * 2 // 3 if n_scored is None else n_scored
        frames = rng.poisson(mean * rng.gamma(0.5, 2.0, n_pixels), (n_frames, n_pixels))
        if frames.size:
            frames[n_frames // 2] = 0
            frames[n_frames // 3, rng.integers(0, n_pixels, 3)] = largest
        self.mask = (rng.random(frames.shape) < 0.05).astype(np.uint8) * 2
        columns = {"frame_mask": self.mask} if masked else {}
        self.patterns = Patterns(frames, None, columns)
        self.counts = np.where(self.mask > 0, 0, frames) if masked else frames
        self.operand = rng.normal(size=(n_rows, self.n_scored)).astype(np.float32)
        weights = rng.random((n_rows, n_frames)) * (rng.random((n_rows, n_frames)) < 0.5)
        self.weights = weights.astype(np.float32)

    def batch(self, layout: str, device: str = "cpu") -> FrameBatch:
        n_pixels = self.counts.shape[1]
        return FrameBatch.prepare(self.patterns, np.arange(n_pixels), self.n_scored, device, layout)

    def product(self, layout: str) -> DenseProduct | SparseProduct:
        return product_of(self.batch(layout))

    def check_scores(self, scores: np.ndarray, counts: np.ndarray, tolerance: float = 3e-7) -> None:
        counts = counts[:, : self.n_scored].astype(np.float64)
        exact = self.operand.astype(np.float64) @ counts.T
        size = np.abs(self.operand.astype(np.float64)) @ counts.T
        assert scores.dtype == np.float32
        assert scores.shape == exact.shape
        assert (np.abs(scores - exact) <= tolerance * size + 1e-30).all()

    def check_merge(self, merged: np.ndarray, counts: np.ndarray, tolerance: float = 3e-6) -> None:
        exact = self.weights.astype(np.float64) @ counts
        assert merged.dtype == np.float32
        assert merged.shape == exact.shape
        assert (np.abs(merged - exact) <= tolerance * exact + 1e-30).all()


def by_row(product: DenseProduct | SparseProduct, values: np.ndarray) -> np.ndarray:
    """Operand or merge between the product's layout and (rows, pixels)."""
    return np.ascontiguousarray(values.T) if product.by_pixel else values


SHAPES = [(70, 500, 130), (5, 33, 1), (130, 4500, 17), (64, 64, 64), (3, 2049, 16), (1, 1, 1), (200, 10, 65)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("n_frames", "n_pixels", "n_rows"), SHAPES)
def test_products_equal_sums_in_float64(layout: str, n_frames: int, n_pixels: int, n_rows: int) -> None:
    problem = Problem(n_frames, n_pixels, n_rows)
    product = problem.product(layout)
    operand = by_row(product, problem.operand)
    problem.check_scores(product.scores(operand), problem.counts)
    problem.check_merge(by_row(product, product.merge(problem.weights)), problem.counts)
    problem.check_scores(product.missing_scores(operand), problem.mask > 0)
    problem.check_merge(by_row(product, product.missing_merge(problem.weights)), problem.mask > 0)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(
    n_frames=st.integers(0, 20), n_pixels=st.integers(1, 90), n_rows=st.integers(0, 90),
    seed=st.integers(0, 99), mean=st.sampled_from([0.0, 0.05, 3.0]), share=st.floats(0, 1),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_any_shape_and_any_share_of_scored_pixels(
    layout: str, n_frames: int, n_pixels: int, n_rows: int, seed: int, mean: float, share: float
) -> None:
    problem = Problem(n_frames, n_pixels, n_rows, n_scored=int(share * n_pixels), mean=mean, seed=seed)
    product = problem.product(layout)
    problem.check_scores(product.scores(by_row(product, problem.operand)), problem.counts)
    problem.check_merge(by_row(product, product.merge(problem.weights)), problem.counts)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("largest", [255, 2048, 2049, 65535, 65536, 2**22 + 1, 2**24 + 1, 2**31 - 1])
def test_counts_of_every_size(layout: str, largest: int) -> None:
    problem = Problem(40, 300, 20, largest=largest)
    product = problem.product(layout)
    problem.check_scores(product.scores(by_row(product, problem.operand)), problem.counts)
    problem.check_merge(by_row(product, product.merge(problem.weights)), problem.counts)


def test_signal_that_is_no_count() -> None:
    problem = Problem(40, 300, 20, masked=False)
    problem.counts = np.random.default_rng(5).random(problem.counts.shape)
    problem.patterns = Patterns(problem.counts)
    product = problem.product("dense")
    problem.check_scores(product.scores(problem.operand), problem.counts)
    problem.check_merge(product.merge(problem.weights), problem.counts)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_and_merge_are_adjoint(layout: str) -> None:
    problem = Problem(50, 400, 30, n_scored=400)
    product = problem.product(layout)
    scores = product.scores(by_row(product, problem.operand)).astype(np.float64)
    merged = by_row(product, product.merge(problem.weights)).astype(np.float64)
    assert (scores * problem.weights).sum() == pytest.approx((merged * problem.operand).sum(), rel=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_longer_operand_and_memory_for_the_result_may_be_given(layout: str) -> None:
    problem = Problem(50, 400, 30)
    product = problem.product(layout)
    longer = np.concatenate([problem.operand, np.full((30, 9), np.nan, np.float32)], axis=1)
    out = np.full((30, 50), np.nan, np.float32)
    assert product.scores(by_row(product, longer), out) is out
    problem.check_scores(out, problem.counts)
    merged = np.full(by_row(product, np.empty((30, 400), np.float32)).shape, np.nan, np.float32)
    assert product.merge(problem.weights, merged) is merged
    problem.check_merge(by_row(product, merged), problem.counts)


def test_frames_are_taken_in_bounded_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    from orienteer.likelihood import dense_product

    monkeypatch.setattr(dense_product, "_KEPT", 0)
    monkeypatch.setattr(dense_product, "_CHUNK", {False: 300 * 7})
    problem = Problem(40, 300, 20)
    product = problem.product("dense")
    problem.check_scores(product.scores(problem.operand), problem.counts)
    problem.check_merge(product.merge(problem.weights), problem.counts)


def listed_problem(problem: Problem, seed: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Blocks of 0 to 40 rows, some without pairs, with frames in any order."""
    rng = np.random.default_rng(seed)
    n_rows, n_frames = problem.weights.shape
    inner = np.sort(rng.integers(0, n_rows + 1, 9))
    block_start = np.concatenate([[0], inner, [n_rows]])
    pair_start = np.concatenate([[0], np.cumsum(rng.integers(0, n_frames, 10))])
    pair_start[4] = pair_start[3]
    pair_start = np.maximum.accumulate(pair_start)
    return block_start, pair_start, rng.integers(0, n_frames, pair_start[-1])


def dense_pairs(values: np.ndarray, block_start: np.ndarray, pair_start: np.ndarray) -> list[np.ndarray]:
    """The values of each block as (pairs, rows)."""
    blocks, first = [], 0
    for b in range(len(block_start) - 1):
        shape = pair_start[b + 1] - pair_start[b], block_start[b + 1] - block_start[b]
        blocks.append(values[first : first + shape[0] * shape[1]].reshape(shape))
        first += shape[0] * shape[1]
    assert first == len(values)
    return blocks


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_rows", [5, 130])
def test_listed_pairs_equal_the_whole_product(layout: str, n_rows: int) -> None:
    problem = Problem(40, 700, n_rows)
    product = problem.product(layout)
    operand = by_row(product, problem.operand)
    whole = product.scores(operand)
    block_start, pair_start, frame = listed_problem(problem)
    for frames in (product, product.frames):
        values = listed_scores(frames, operand, block_start, pair_start, frame)
        for b, block in enumerate(dense_pairs(values, block_start, pair_start)):
            rows, pairs = slice(*block_start[b : b + 2]), frame[slice(*pair_start[b : b + 2])]
            np.testing.assert_allclose(block, whole[rows][:, pairs].T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_rows", [5, 16, 130])
def test_listed_pairs_of_panels_equal_those_of_the_whole_operand(n_rows: int) -> None:
    problem = Problem(40, 700, n_rows)
    product = problem.product("sparse")
    operand = by_row(product, problem.operand)
    _, array = aligned_panels(None, len(operand), n_rows)
    pack(np.ascontiguousarray(operand), array)
    blocks = listed_problem(problem)
    values = listed_scores(product, Panels(array, n_rows, np.zeros(n_rows)), *blocks)
    np.testing.assert_allclose(values, listed_scores(product, operand, *blocks), rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_rows", [5, 130])
def test_listed_merge_equals_the_merge_of_the_weights_it_lists(layout: str, n_rows: int) -> None:
    problem = Problem(40, 700, n_rows)
    product = problem.product(layout)
    block_start, pair_start, frame = listed_problem(problem)
    n_values = int((np.diff(block_start) * np.diff(pair_start)).sum())
    values = np.random.default_rng(7).random(n_values).astype(np.float32)
    values[::3] = 0
    problem.weights = np.zeros((n_rows, 40), np.float64)
    for b, block in enumerate(dense_pairs(values, block_start, pair_start)):
        for i, d in enumerate(frame[slice(*pair_start[b : b + 2])]):
            problem.weights[slice(*block_start[b : b + 2]), d] += block[i]
    merged = listed_merge(product, values, block_start, pair_start, frame)
    problem.check_merge(by_row(product, merged), problem.counts)


def all_results(problem: Problem, layout: str) -> list[np.ndarray]:
    product = problem.product(layout)
    operand = by_row(product, problem.operand)
    blocks = listed_problem(problem)
    values = listed_scores(product, operand, *blocks)
    results = [product.scores(operand), product.merge(problem.weights), values]
    results += [listed_merge(product, np.abs(values), *blocks)]
    return [*results, product.missing_scores(operand), product.missing_merge(problem.weights)]


def test_threads_do_not_change_a_bit() -> None:
    problem = Problem(150, 5000, 150)
    many = all_results(problem, "sparse")
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        for one, other in zip(all_results(problem, "sparse"), many, strict=True):
            np.testing.assert_array_equal(one, other)
    finally:
        numba.set_num_threads(before)


def bright_problem(photons: float = 1e5) -> tuple[Problem, np.ndarray]:
    """Frames of many photons on a steep pattern, and log W of 60 views less its mean per pixel."""
    rng = np.random.default_rng(11)
    n_pixels, n_rows, n_frames = 4096, 60, 24
    radius = np.hypot(*np.mgrid[-32:32, -32:32]).ravel() + 3
    speckle = rng.gamma(2.0, 0.5, (n_rows, n_pixels)) + 0.02
    model = speckle * radius**-4.0
    model *= photons / model.sum(axis=1, keepdims=True)
    log_model = np.log(model)
    problem = Problem(n_frames, n_pixels, n_rows, n_scored=n_pixels, masked=False)
    problem.counts = rng.poisson(model[rng.integers(0, n_rows, n_frames)])
    problem.patterns = Patterns(problem.counts)
    problem.operand = (log_model - log_model.mean(axis=0)).astype(np.float32)
    return problem, (log_model - log_model.mean(axis=0)) @ problem.counts.T


def log_likelihood_error(scores: np.ndarray, exact: np.ndarray) -> float:
    """Largest error of the difference between two rows for one frame, in nats."""
    error = scores - exact
    return float(np.ptp(error, axis=0).max())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("photons", [3e3, 1e5])
def test_differences_of_log_likelihoods_hold_at_many_photons(layout: str, photons: float) -> None:
    problem, exact = bright_problem(photons)
    product = problem.product(layout)
    assert log_likelihood_error(product.scores(by_row(product, problem.operand)), exact) < 0.1


@pytest.mark.parametrize(("layout", "tolerance"), [("dense", 2e-6), ("sparse", 2e-7)])
def test_long_lists_are_summed_better_than_in_float32(layout: str, tolerance: float) -> None:
    n_pixels = 60_000
    patterns = Patterns(np.full((2, n_pixels), 3))
    product = product_of(FrameBatch.prepare(patterns, np.arange(n_pixels), n_pixels, "cpu", layout))
    operand = np.full((n_pixels, 20) if product.by_pixel else (20, n_pixels), 0.1, np.float32)
    exact = 3 * n_pixels * float(np.float32(0.1))
    np.testing.assert_allclose(product.scores(operand), exact, rtol=tolerance)
    plain = np.cumsum(np.full(n_pixels, 3 * np.float32(0.1)), dtype=np.float32)[-1]
    assert abs(plain / exact - 1) > 10 * tolerance


def test_wrong_arguments_are_named() -> None:
    problem = Problem(10, 50, 6)
    sparse, dense = problem.product("sparse"), problem.product("dense")
    with pytest.raises(OrienteerError, match="lists of photons"):
        SparseProduct(dense.frames)
    with pytest.raises(OrienteerError, match="dense frames"):
        DenseProduct(sparse.frames)
    with pytest.raises(OrienteerError, match="double"):
        DenseProduct(dense.frames, "double")
    for product in (sparse, dense):
        with pytest.raises(OrienteerError, match="33 scored pixels"):
            product.scores(np.zeros((3, 3), np.float32))
        with pytest.raises(OrienteerError, match="10 frames"):
            product.merge(np.zeros((6, 11), np.float32))
        operand = by_row(product, problem.operand)
        for blocks, words in [
            (([0, 7], [0, 1], [0]), "need 7 rows"),
            (([0, 6], [0, 1], [10]), "not among the 10"),
            (([0, 6], [0, 2], [1]), "1 frame is listed"),
            (([0, 6, 5], [0, 1, 1], [1]), "descend"),
            (([0, 6], [0, 1, 1], [1]), "do not fit"),
        ]:
            with pytest.raises(OrienteerError, match=words):
                listed_scores(product, operand, *(np.array(part) for part in blocks))
        with pytest.raises(OrienteerError, match="have 6"):
            listed_merge(product, np.zeros(5, np.float32), np.array([0, 6]), np.array([0, 1]), np.array([2]))


# Largest error of a score, over the sum of the sizes of its terms.
PRECISIONS = {"half": 6e-4, "split": 1e-6, "two-term": 1e-6, "tf32": 1.1e-3, "single": 1e-6}


def gpu_product(problem: Problem, layout: str, precision: str, *, compact: bool = False):  # type: ignore[no-untyped-def]
    pixels = np.arange(problem.counts.shape[1])
    frames = FrameBatch.prepare(problem.patterns, pixels, problem.n_scored, "cuda", layout, compact=compact)
    return product_of(frames, precision)


def check_on_gpu(problem: Problem, layout: str, precision: str = "split", *, compact: bool = False) -> None:
    import cupy

    product = gpu_product(problem, layout, precision, compact=compact)
    operand, weights = cupy.asarray(by_row(product, problem.operand)), cupy.asarray(problem.weights)
    tolerance = PRECISIONS[precision] if layout == "dense" else 1e-6
    one_term = {"tf32": 1.1e-3, "single": 3e-6}.get(precision, 6e-4)
    merged_tolerance = 3e-6 if layout == "sparse" else one_term
    problem.check_scores(product.scores(operand).get(), problem.counts, tolerance)
    problem.check_merge(by_row(product, product.merge(weights).get()), problem.counts, merged_tolerance)
    problem.check_scores(product.missing_scores(operand).get(), problem.mask > 0, 1e-6)
    problem.check_merge(by_row(product, product.missing_merge(weights).get()), problem.mask > 0)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", list(PRECISIONS))
@pytest.mark.parametrize(("n_frames", "n_pixels", "n_rows"), SHAPES)
def test_gpu_dense_products_hold_their_precision(
    precision: str, n_frames: int, n_pixels: int, n_rows: int
) -> None:
    for compact in (False, True):
        check_on_gpu(Problem(n_frames, n_pixels, n_rows), "dense", precision, compact=compact)


@pytest.mark.gpu
@pytest.mark.parametrize(("n_frames", "n_pixels", "n_rows"), SHAPES)
def test_gpu_sparse_products_equal_sums_in_float64(n_frames: int, n_pixels: int, n_rows: int) -> None:
    check_on_gpu(Problem(n_frames, n_pixels, n_rows), "sparse")


@pytest.mark.gpu
@pytest.mark.parametrize("precision", list(PRECISIONS))
@pytest.mark.parametrize("largest", [255, 2048, 2049, 65535, 65536, 2**22 - 1, 2**22 + 1, 2**24 + 1])
def test_gpu_counts_of_every_size_are_exact_in_every_precision(precision: str, largest: int) -> None:
    check_on_gpu(Problem(40, 304, 20, largest=largest), "dense", precision)
    check_on_gpu(Problem(40, 304, 20, largest=largest), "sparse")


@pytest.mark.gpu
@pytest.mark.parametrize("precision", list(PRECISIONS))
def test_gpu_signal_that_is_no_count_loses_nothing_that_the_operand_keeps(precision: str) -> None:
    problem = Problem(40, 303, 20)
    problem.counts = np.random.default_rng(5).random(problem.counts.shape) * (problem.mask == 0)
    problem.patterns = Patterns(problem.counts, None, {"frame_mask": problem.mask})
    check_on_gpu(problem, "dense", precision)


@pytest.mark.gpu
@pytest.mark.parametrize("factor", [1e-30, 1e-6, 1e6, 1e30])
def test_gpu_operands_and_weights_of_any_size_neither_overflow_nor_vanish(factor: float) -> None:
    problem = Problem(40, 304, 20)
    problem.operand *= np.float32(factor)
    problem.weights *= np.float32(factor)
    for precision in ("half", "split"):
        check_on_gpu(problem, "dense", precision)


@pytest.mark.gpu
@pytest.mark.parametrize("photons", [3e3, 1e5])
@pytest.mark.parametrize("precision", ["split", "single", "sparse"])
def test_gpu_differences_of_log_likelihoods_hold_at_many_photons(precision: str, photons: float) -> None:
    import cupy

    problem, exact = bright_problem(photons)
    layout = "sparse" if precision == "sparse" else "dense"
    product = gpu_product(problem, layout, "split" if layout == "sparse" else precision)
    scores = product.scores(cupy.asarray(by_row(product, problem.operand))).get()
    assert log_likelihood_error(scores, exact) < 0.1


def brightest_problem_of_one_term() -> tuple[Problem, np.ndarray]:
    """Frames as bright as they may be for a plan to take one float16 term for the operand."""
    photons = 3e3
    for _ in range(20):
        problem, exact = bright_problem(photons)
        largest = float((problem.counts.astype(np.float64) ** 2).sum(axis=1).max())
        if 0.7 * LARGEST_HALF_SQUARE < largest <= LARGEST_HALF_SQUARE:
            return problem, exact
        photons *= (0.85 * LARGEST_HALF_SQUARE / largest) ** 0.5
    raise AssertionError("no number of photons gives frames of that brightness")


def test_one_float16_term_tells_log_likelihoods_apart_as_far_as_plans_take_it() -> None:
    problem, exact = brightest_problem_of_one_term()
    rounded = problem.operand.astype(np.float16).astype(np.float64)
    assert 0.005 < log_likelihood_error(rounded @ problem.counts.T, exact) < 0.1
    brighter, exact = bright_problem(1e5)
    rounded = brighter.operand.astype(np.float16).astype(np.float64)
    assert log_likelihood_error(rounded @ brighter.counts.T, exact) > 1.0


@pytest.mark.gpu
def test_gpu_one_float16_term_tells_log_likelihoods_apart_as_far_as_plans_take_it() -> None:
    import cupy

    problem, exact = brightest_problem_of_one_term()
    scores = gpu_product(problem, "dense", "half").scores(cupy.asarray(problem.operand)).get()
    assert log_likelihood_error(scores, exact) < 0.1


@pytest.mark.gpu
def test_gpu_takes_an_operand_that_is_split_already() -> None:
    import cupy

    problem = Problem(40, 304, 24, n_scored=200)
    operand = cupy.asarray(problem.operand)
    high = operand.astype(cupy.float16)
    low = ((operand - high.astype(cupy.float32)) * 2048).astype(cupy.float16)
    for precision, tolerance in PRECISIONS.items():
        product = gpu_product(problem, "dense", precision)
        problem.check_scores(product.scores((high, low)).get(), problem.counts, tolerance)


def check_listed(problem: Problem, product: DenseProduct | SparseProduct, xp: ModuleType = np) -> None:
    """Listed scores and merges of any product are sums in float64, but for the rounding of their terms."""
    blocks = listed_problem(problem)
    block_start, pair_start, frame = blocks
    operand = xp.asarray(by_row(product, problem.operand))
    values = to_numpy(listed_scores(product, operand, *blocks))
    counts = problem.counts[:, : problem.n_scored].astype(np.float64)
    exact = problem.operand.astype(np.float64) @ counts.T
    size = np.abs(problem.operand.astype(np.float64)) @ counts.T
    given = np.random.default_rng(3).random(values.shape).astype(np.float32)
    problem.weights = np.zeros(problem.weights.shape)
    both = zip(*(dense_pairs(each, block_start, pair_start) for each in (values, given)), strict=True)
    for b, (block, weights) in enumerate(both):
        rows, pairs = slice(*block_start[b : b + 2]), frame[slice(*pair_start[b : b + 2])]
        assert (np.abs(block - exact[rows][:, pairs].T) <= 1e-6 * size[rows][:, pairs].T + 1e-30).all()
        for own, d in zip(weights, pairs, strict=True):
            problem.weights[rows, d] += own
    merged = listed_merge(product, xp.asarray(given), *(xp.asarray(part) for part in blocks))
    problem.check_merge(by_row(product, to_numpy(merged)), problem.counts)


COUNTS_OF_LISTS = [5, 255, 2048, 65535, 65536]


@pytest.mark.parametrize("largest", COUNTS_OF_LISTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_rows", [5, 130])
def test_listed_pairs_equal_sums_in_float64(layout: str, n_rows: int, largest: int) -> None:
    problem = Problem(40, 700, n_rows, largest=largest)
    check_listed(problem, problem.product(layout))


@pytest.mark.gpu
@pytest.mark.parametrize("largest", COUNTS_OF_LISTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_rows", [5, 130])
def test_gpu_listed_pairs_equal_sums_in_float64(layout: str, n_rows: int, largest: int) -> None:
    import cupy

    problem = Problem(40, 700, n_rows, largest=largest)
    check_listed(problem, gpu_product(problem, layout, "split"), cupy)


@pytest.mark.gpu
def test_gpu_results_repeat_to_the_bit() -> None:
    import cupy

    problem = Problem(150, 5000, 150)
    for layout in LAYOUTS:
        product = gpu_product(problem, layout, "split")
        operand, weights = cupy.asarray(by_row(product, problem.operand)), cupy.asarray(problem.weights)
        blocks = listed_problem(problem)
        runs = []
        for _ in range(3):
            values = listed_scores(product, operand, *blocks)
            merged = listed_merge(product, values, *blocks)
            runs.append([values, merged, product.scores(operand), product.merge(weights)])
        for first, *others in zip(*runs, strict=True):
            for other in others:
                np.testing.assert_array_equal(first.get(), other.get())
