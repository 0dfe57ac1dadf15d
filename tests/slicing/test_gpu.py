"""The GPU twin: the numbers of the CPU, and the same bits every time where that is asked for."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import orienteer.slicing
from orienteer.errors import OrienteerError
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import GpuSums, make_sums
from orienteer.slicing.trilinear import insert_slices, slice_volume

SOURCE = Path(orienteer.slicing.__file__).with_name("insert.cu")


def on_gpu(problem):
    import cupy

    return tuple(cupy.asarray(a) for a in problem.arguments)


def cpu_sums(problem):
    sums = np.zeros((problem.n,) * 3 + (2,))
    insert_slices(sums, *problem.arguments)
    return sums


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize(
    "options", ["-DFORM=2 -DQUADS=1 -DROWS=1", "-DFORM=64 -DROWS=4", "-DFORM=8 -DQUADS=1 -DROWS=16"]
)
def test_every_form_compiles_without_warnings(options, tmp_path) -> None:
    command = ["nvcc", "-arch=sm_90", "--std=c++17", "-Werror", "all-warnings", "-cubin", *options.split()]
    result = subprocess.run([*command, "-o", tmp_path / "out", SOURCE], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("by_pixel", [False, True])
@pytest.mark.parametrize("quads", [False, True])
@pytest.mark.parametrize("n_rows", [5, 37, 64])
@pytest.mark.parametrize("n", [2, 16, 17])
def test_slices_are_those_of_the_cpu(make_problem, by_pixel, quads, n_rows, n) -> None:
    import cupy

    from orienteer.slicing import gpu

    problem = make_problem(n, n_rows)
    expected = slice_volume(problem.volume, problem.points, problem.matrices, by_pixel=by_pixel)
    out = cupy.full(expected.shape, np.nan, np.float32)
    volume, patches = cupy.asarray(problem.volume), PointPatches.of(problem.points, "cuda")
    gpu.slice_volume(volume, patches, cupy.asarray(problem.matrices), by_pixel, out, quads=quads)
    # A point on the surface may fall to either side; nothing else may differ.
    different = np.abs(out.get() - expected) > 1e-5
    assert np.mean(different) < 1e-3


@pytest.mark.gpu
def test_cupy_in_cupy_out(problem) -> None:
    import cupy

    slices = slice_volume(
        cupy.asarray(problem.volume), cupy.asarray(problem.points), cupy.asarray(problem.matrices)
    )
    assert isinstance(slices, cupy.ndarray)
    np.testing.assert_allclose(
        slices.get(), slice_volume(problem.volume, problem.points, problem.matrices), atol=1e-5
    )


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["quads", "pairs", "fixed"])
@pytest.mark.parametrize("by_pixel", [False, True])
@pytest.mark.parametrize("full_weights", [False, True])
def test_sums_are_those_of_the_cpu(problem, form, by_pixel, full_weights) -> None:
    import cupy

    points, matrices, values, row_weights, pixel_weights = on_gpu(problem)
    weights = row_weights[:, None] * pixel_weights if full_weights else None
    if by_pixel:
        values = cupy.ascontiguousarray(values.T)
        weights = None if weights is None else cupy.ascontiguousarray(weights.T)
    sums = (
        cupy.zeros((problem.n,) * 3 + (2,), np.float32)
        if form == "pairs"
        else make_sums(problem.n, "cuda", deterministic=form == "fixed")
    )
    insert_slices(
        sums, points, matrices, values, row_weights, pixel_weights, by_pixel=by_pixel, weights=weights
    )
    found = (sums if form == "pairs" else sums.finish()).get()
    expected = cpu_sums(problem)
    np.testing.assert_allclose(found, expected, atol=2e-5 * expected.max())


@pytest.mark.gpu
def test_inserting_is_the_adjoint_of_slicing_on_the_gpu(problem) -> None:
    import cupy

    arguments = on_gpu(problem)
    volume = cupy.asarray(problem.volume)
    for deterministic in (False, True):
        sums = GpuSums(problem.n, deterministic)
        insert_slices(sums, *arguments)
        slices = slice_volume(volume, *arguments[:2])
        forward = float(cupy.sum(slices.astype(np.float64) * arguments[2]))
        backward = float(cupy.sum(volume * sums.finish()[..., 0]))
        assert abs(forward - backward) < 1e-5 * forward


@pytest.mark.gpu
def test_rows_without_weight_are_never_read_on_the_gpu(problem) -> None:
    points, matrices, values, row_weights, pixel_weights = on_gpu(problem)
    for deterministic in (False, True):
        expected, sums = GpuSums(problem.n, deterministic), GpuSums(problem.n, deterministic)
        insert_slices(expected, points, matrices[1:], values[1:], row_weights[1:], pixel_weights)
        values[0], row_weights[0] = np.nan, 0
        insert_slices(sums, points, matrices, values, row_weights, pixel_weights)
        np.testing.assert_allclose(sums.finish().get(), expected.finish().get(), atol=1e-4)


@pytest.mark.gpu
def test_the_deterministic_sums_have_the_same_bits_in_any_order_of_rows(make_problem) -> None:
    problem = make_problem(n=33, n_rows=200)
    points, matrices, values, row_weights, pixel_weights = on_gpu(problem)
    order = np.random.default_rng(1).permutation(200)
    results = []
    for rows in (np.arange(200), np.arange(200), order):
        sums = GpuSums(33, deterministic=True)
        insert_slices(sums, points, matrices[rows], values[rows], row_weights[rows], pixel_weights)
        results.append(sums.finish().get())
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


@pytest.mark.gpu
def test_the_unit_of_deterministic_sums_grows_with_later_values(problem) -> None:
    points, matrices, values, row_weights, pixel_weights = on_gpu(problem)
    sums = GpuSums(problem.n, deterministic=True)
    insert_slices(sums, points, matrices, values, row_weights, pixel_weights)
    first = sums.exponents
    insert_slices(sums, points, matrices, values * 1e9, row_weights * 1e3, pixel_weights)
    assert sums.exponents < first
    expected = cpu_sums(problem) * [1 + 1e9, 1 + 1e3]
    np.testing.assert_allclose(sums.finish().get(), expected, rtol=1e-4, atol=1e-5 * expected.max())


@pytest.mark.gpu
def test_float32_sums_of_many_calls_go_to_float64(problem, monkeypatch) -> None:
    monkeypatch.setattr("orienteer.slicing.sums._ROWS_IN_SINGLE", 2 * len(problem.matrices))
    arguments = on_gpu(problem)
    sums = GpuSums(problem.n)
    for _ in range(7):
        insert_slices(sums, *arguments)
    expected = 7 * cpu_sums(problem)
    np.testing.assert_allclose(sums.finish().get(), expected, atol=2e-5 * expected.max())


@pytest.mark.gpu
def test_what_is_not_finite_is_refused_by_the_deterministic_sums(problem) -> None:
    points, matrices, values, row_weights, pixel_weights = on_gpu(problem)
    values[0, 0] = np.inf
    with pytest.raises(OrienteerError, match="not finite"):
        insert_slices(GpuSums(problem.n, True), points, matrices, values, row_weights, pixel_weights)


@pytest.mark.gpu
@pytest.mark.parametrize("by_pixel", [False, True])
@pytest.mark.parametrize("full_weights", [False, True])
@pytest.mark.parametrize("deterministic", [False, True])
def test_what_slices_of_a_model_have_is_taken_from_the_values_on_the_way(
    problem, by_pixel, full_weights, deterministic
) -> None:
    import cupy

    points, matrices, values, row_weights, pixel_weights = on_gpu(problem)
    row_weights[1] = 0
    model, weights = cupy.asarray(problem.volume), row_weights[:, None] * pixel_weights
    expected, sums = GpuSums(problem.n, deterministic), GpuSums(problem.n, deterministic)
    excess = values - weights * slice_volume(model, points, matrices)
    insert_slices(expected, points, matrices, excess, row_weights, pixel_weights)
    if by_pixel:
        values, weights = cupy.ascontiguousarray(values.T), cupy.ascontiguousarray(weights.T)
    insert_slices(
        sums, points, matrices, values, row_weights, pixel_weights, by_pixel,
        weights if full_weights else None, model,
    )  # fmt: skip
    found, wanted = sums.finish().get(), expected.finish().get()
    np.testing.assert_allclose(found, wanted, atol=2e-5 * np.abs(wanted).max())
