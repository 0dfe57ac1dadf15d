"""Operand and offsets of a tile: our own logarithm, both layouts, all forms, threads, and the GPU twin."""

import numpy as np
import pytest
from numba import njit

from orienteer.errors import OrienteerError
from orienteer.likelihood import _expected_numba as twin
from orienteer.likelihood.expected import SplitOperand, expand_slices, gaussian_scores, linear_scores

KINDS = ["poisson", "negative_binomial", "gaussian"]


@njit
def all_of(function, x, out):
    for i in range(x.size):
        out[i] = function(x[i])


def relative_error(function, exact, x):
    out = np.empty_like(x)
    all_of(function, x, out)
    reference = exact(x.astype(float))
    return np.max(np.abs(out - reference) / np.where(reference == 0, 1, np.abs(reference)))


def test_the_logarithm_is_good_to_2e_7_over_all_normal_numbers() -> None:
    bits = np.arange(0x00800000, 0x7F800000, 97, dtype=np.int64).astype(np.int32)
    near_one = np.float32(1) + np.arange(-20000, 20000, dtype=np.float32) * np.float32(2**-23)
    for x in (bits.view(np.float32), near_one):
        assert relative_error(twin.log_, np.log, x) < 2e-7


def test_the_logarithm_of_one_plus_y_keeps_its_digits_down_to_the_smallest_y() -> None:
    x = np.arange(0x00800000, 0x7F000000, 97, dtype=np.int64).astype(np.int32).view(np.float32)
    assert relative_error(twin.log1p_, np.log1p, x) < 3e-7


def reference_terms(kind, problem, centre, dispersion, fluence):
    """The formulas in float64, (T, S) each."""
    S = problem.pixels.n_scored
    lam = problem.expected(fluence)
    if kind == "gaussian":
        return problem.expected(1.0) * fluence, problem.expected(1.0) ** 2
    operand = np.log(lam) - centre[:S]
    if kind == "poisson":
        return operand, lam
    e = np.maximum(dispersion[:S].astype(float), 1e-300)
    return operand - np.log1p(e * lam), np.log1p(e * lam) / e


def constants(problem, seed=4):
    rng = np.random.default_rng(seed)
    P = problem.pixels.n_pixels
    dispersion = 10 ** rng.uniform(-9, 1, P)
    dispersion[::7] = 0.0
    return rng.normal(size=P).astype(np.float32), dispersion.astype(np.float32)


@pytest.mark.parametrize("by_pixel", [False, True])
@pytest.mark.parametrize(
    ("kind", "background"), [(k, b) for k in KINDS for b in (0.0, 0.4) if b == 0 or k != "gaussian"]
)
def test_operand_and_offsets_follow_the_formulas(make_problem, kind, by_pixel, background) -> None:
    problem = make_problem(background=background)
    centre, dispersion = constants(problem)
    slices = np.ascontiguousarray(problem.slices.T) if by_pixel else problem.slices
    arguments = (problem.pixels, centre, dispersion, 1.7, by_pixel)
    operand, offsets = expand_slices(kind, slices, *arguments)
    each, offsets_again = expand_slices(kind, slices, *arguments, form="offset")
    expected_operand, expected_offset = reference_terms(kind, problem, centre, dispersion, np.float32(1.7))
    assert operand.dtype == each.dtype == np.float32
    assert offsets.dtype == np.float64
    if by_pixel:
        operand, each = operand.T, each.T
    np.testing.assert_allclose(operand, expected_operand, rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(each, expected_offset, rtol=1e-6)
    np.testing.assert_allclose(offsets, expected_offset.sum(1), rtol=2e-7)
    np.testing.assert_array_equal(offsets, offsets_again)


def test_empty_negative_and_unknown_samples_count_as_the_floor(make_problem) -> None:
    problem = make_problem()
    slices = problem.slices.copy()
    slices[0], slices[1], slices[2] = 0.0, -5.0, np.nan
    centre = np.zeros(problem.pixels.n_pixels, np.float32)
    for kind in KINDS:
        for by_pixel in (False, True):
            given = np.ascontiguousarray(slices.T) if by_pixel else slices
            operand, offsets = expand_slices(kind, given, problem.pixels, centre, centre, 1.0, by_pixel)
            operand = operand.T if by_pixel else operand
            assert np.isfinite(operand).all()
            assert np.isfinite(offsets).all()
            np.testing.assert_array_equal(operand[0], operand[1])
            np.testing.assert_array_equal(operand[0], operand[2])


@pytest.mark.parametrize("kind", KINDS)
def test_two_float16_terms_hold_22_bits(make_problem, kind) -> None:
    problem = make_problem()
    arguments = (kind, problem.slices, problem.pixels, *constants(problem), 1.0, False)
    operand, _ = expand_slices(*arguments)
    split, offsets = expand_slices(*arguments, form="split")
    half, _ = expand_slices(*arguments, form="half")
    assert isinstance(split, SplitOperand)
    assert split.high.dtype == split.low.dtype == half.dtype == np.float16
    joined = split.high.astype(float) + split.low.astype(float) / 2048
    assert np.abs(joined - operand).max() < 2.0**-21 * np.abs(operand).max()
    np.testing.assert_array_equal(half, split.high)
    assert offsets.shape == (len(problem.slices),)


@pytest.mark.parametrize("by_pixel", [False, True])
def test_any_number_of_threads_gives_the_same_bits(make_problem, by_pixel) -> None:
    import numba

    problem = make_problem(T=70, P=900, S=871)
    slices = np.ascontiguousarray(problem.slices.T) if by_pixel else problem.slices
    arguments = (slices, problem.pixels, *constants(problem), 1.3, by_pixel)
    whole = [expand_slices(kind, *arguments) for kind in KINDS]
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        for kind, (operand, offsets) in zip(KINDS, whole, strict=True):
            again = expand_slices(kind, *arguments)
            np.testing.assert_array_equal(operand, again[0])
            np.testing.assert_array_equal(offsets, again[1])
    finally:
        numba.set_num_threads(before)


def test_slices_that_do_not_fit_are_refused(make_problem) -> None:
    problem = make_problem()
    centre = np.zeros(problem.pixels.n_pixels, np.float32)
    for slices in (problem.slices[:, :-1], problem.slices.astype(float), problem.slices[0]):
        with pytest.raises(OrienteerError, match="slices are"):
            expand_slices("poisson", slices, problem.pixels, centre, centre, 1.0, False)
    with pytest.raises(OrienteerError, match="does not fit"):
        linear_scores(np.zeros((3, 4), np.float32), np.zeros(4), np.ones(4), np.zeros((3, 4), np.float32))


@pytest.mark.parametrize("missing", [False, True])
def test_scores_are_rounded_once(missing) -> None:
    rng = np.random.default_rng(2)
    product = (1e4 * rng.normal(size=(40, 300))).astype(np.float32)
    offsets, factor = 1e6 + rng.normal(size=40), rng.uniform(0, 2, 300)
    less = rng.uniform(0, 9, (40, 300)).astype(np.float32) if missing else None
    norm = offsets[:, None] - (less if missing else 0.0)
    scores = linear_scores(product, offsets, factor, np.empty_like(product), less)
    np.testing.assert_allclose(scores, product - factor * norm, rtol=6.1e-8)
    slopes, steps = 1e3 * rng.normal(size=40), rng.normal(size=300)
    scores = linear_scores(product, offsets, factor, np.empty_like(product), less, slopes, steps)
    expected = product - factor * norm - slopes[:, None] * steps
    np.testing.assert_allclose(scores, expected, rtol=6.1e-8, atol=1e-6)
    factor[7] = 0.0
    scores = gaussian_scores(product, offsets, factor, less, 3.0, np.empty_like(product))
    expected = -(norm - product.astype(float) ** 2 * factor) / 18
    expected[:, 7] = 0.0
    np.testing.assert_allclose(scores, expected, rtol=6.1e-8, atol=1e-9)
    in_place = product.copy()
    linear_scores(in_place, offsets, factor, in_place, less)
    np.testing.assert_array_equal(
        in_place, linear_scores(product, offsets, factor, np.empty_like(product), less)
    )


@pytest.mark.gpu
@pytest.mark.parametrize("by_pixel", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(33, 413, 350), (130, 5000, 4999), (1, 3, 1), (515, 1030, 1024)])
def test_both_twins_agree(make_problem, kind, by_pixel, shape) -> None:
    import cupy

    T, P, S = shape
    problem = make_problem(T=max(T, 4), P=P, S=S, background=0.0 if kind == "gaussian" else 0.2)
    rows = problem.slices[:T]
    slices = np.ascontiguousarray(rows.T) if by_pixel else rows
    centre, dispersion = constants(problem)
    there = (problem.pixels_on_gpu(), cupy.asarray(centre), cupy.asarray(dispersion), 1.7, by_pixel)
    for form in ("single", "offset", "half", "split"):
        cpu, cpu_offsets = expand_slices(
            kind, slices, problem.pixels, centre, dispersion, 1.7, by_pixel, form
        )
        gpu, gpu_offsets = expand_slices(kind, cupy.asarray(slices), *there, form)
        np.testing.assert_allclose(gpu_offsets.get(), cpu_offsets, rtol=1e-7)
        if form == "split":
            cpu = cpu.high.astype(float) + cpu.low.astype(float) / 2048
            gpu = gpu.high.get().astype(float) + gpu.low.get().astype(float) / 2048
        else:
            assert gpu.dtype == cpu.dtype
            gpu = gpu.get().astype(float)
        tolerance = 1e-3 if form == "half" else 2e-6
        np.testing.assert_allclose(gpu, cpu, rtol=tolerance, atol=tolerance)


@pytest.mark.gpu
@pytest.mark.parametrize("missing", [False, True])
def test_scores_of_both_twins_agree(missing) -> None:
    import cupy

    rng = np.random.default_rng(3)
    product = (100 * rng.normal(size=(77, 301))).astype(np.float32)
    offsets, factor = rng.normal(size=77), rng.uniform(0, 2, 301)
    factor[5] = 0.0
    less = rng.uniform(0, 9, (77, 301)).astype(np.float32) if missing else None
    slopes, steps = rng.normal(size=77), rng.normal(size=301)
    here = [product, offsets, factor, less, slopes, steps]
    there = [None if array is None else cupy.asarray(array) for array in here]
    out = cupy.empty_like(there[0])
    cpu = linear_scores(*here[:3], np.empty_like(product), *here[3:])
    np.testing.assert_allclose(linear_scores(*there[:3], out, *there[3:]).get(), cpu, rtol=2e-7, atol=1e-5)
    cpu = gaussian_scores(product, offsets, factor, less, 2.0, np.empty_like(product))
    np.testing.assert_allclose(gaussian_scores(*there[:4], 2.0, out).get(), cpu, rtol=2e-7)
