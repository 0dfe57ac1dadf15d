"""Slices against direct sums, and quick ones against exact ones."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.errors import OrienteerError
from orienteer.mtip.normal_equations import NormalEquations
from orienteer.mtip.slices import IntensitySlicer, slice_exactly

VOXEL_A = 7.0
Q_MAX = 0.5 / VOXEL_A


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("n", [8, 9])
def test_exact_slices_are_direct_sums_over_turned_points(n: int, dense: SimpleNamespace) -> None:
    A = np.random.default_rng(1).random((n, n, n))
    points, matrices = dense.ewald_points(6, Q_MAX), dense.random_turns(5)
    wanted = (dense.intensity_matrix(n, VOXEL_A, dense.turned(points, matrices)) @ A.ravel()).real
    for at_once in (0, 50):
        found = slice_exactly(A, VOXEL_A, points, matrices, tolerance=1e-9, points_at_once=at_once)
        assert found.shape == (5, 36)
        assert relative_error(found.ravel(), wanted) < 1e-9
    single = slice_exactly(A, VOXEL_A, points, matrices, tolerance=1e-4, precision="single")
    assert single.dtype == np.float32
    assert relative_error(single.ravel(), wanted) < 1e-4


def test_a_turned_particle_shows_its_transform_at_the_turned_back_points(dense: SimpleNamespace) -> None:
    """A rod along x, turned by a quarter about z, lies along y: its pattern is narrow along y."""
    A = np.zeros((9, 9, 9))
    A[:, 4, 4] = 1.0
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # takes x to y
    points = np.array([[Q_MAX / 2, 0, 0], [0, Q_MAX / 2, 0]])
    across, along = slice_exactly(A, VOXEL_A, points, quarter.T[None])[0]
    assert across == pytest.approx(9.0)
    assert along == pytest.approx(1.0)


def test_friedel_mates_are_the_same_whatever_the_volume(dense: SimpleNamespace) -> None:
    A = np.random.default_rng(1).random((8, 8, 8))
    points, matrices = dense.ewald_points(6, Q_MAX), dense.random_turns(5)
    exact, opposite = (slice_exactly(A, VOXEL_A, p, matrices) for p in (points, -points))
    assert opposite == pytest.approx(exact, rel=1e-6, abs=1e-6)
    slicer = IntensitySlicer.of(A, VOXEL_A, error=1e-4)
    quick, opposite = (slicer(p, matrices) for p in (points, -points))
    assert opposite == pytest.approx(quick, rel=1e-4, abs=1e-3)
    assert relative_error(quick, exact) < 1e-4


@pytest.mark.parametrize("error", [1e-2, 1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("n", [40, 41])
def test_quick_slices_keep_the_error_also_where_there_is_little(
    n: int, error: float, dense: SimpleNamespace
) -> None:
    """A smooth particle, whose intensity falls by four decades from the centre to the edge."""
    axis = np.arange(n) - n // 2
    near = np.exp(-(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2) / (2 * 2.0**2))
    A = dense.small_autocorrelation(n, radius=8) + 30 * near
    points, matrices = dense.ewald_points(40, Q_MAX), dense.random_turns(6)
    wanted = slice_exactly(A, VOXEL_A, points, matrices, tolerance=1e-12)
    found = IntensitySlicer.of(A, VOXEL_A, error=error)(points, matrices)
    assert found.dtype == np.float32
    assert relative_error(found, wanted) < error
    shell = np.minimum((np.linalg.norm(points, axis=1) / Q_MAX * 6).astype(int), 5)
    for s in range(6):
        assert relative_error(found[:, shell == s], wanted[:, shell == s]) < 2 * error
    mean = [np.abs(wanted[:, shell == s]).mean() for s in range(6)]
    assert mean[0] > 5e3 * mean[5]


def test_a_smaller_error_is_really_smaller(dense: SimpleNamespace) -> None:
    A = dense.small_autocorrelation(17, radius=4)
    points, matrices = dense.ewald_points(30, Q_MAX), dense.random_turns(4)
    wanted = slice_exactly(A, VOXEL_A, points, matrices)
    errors = [
        relative_error(IntensitySlicer.of(A, VOXEL_A, error=error)(points, matrices), wanted)
        for error in (3e-2, 1e-5)
    ]
    assert errors[0] > 1e-4 > 1e-5 > errors[1]


def test_two_models_are_sliced_at_the_price_of_one(dense: SimpleNamespace) -> None:
    pair = np.stack([dense.small_autocorrelation(16, 4, seed) for seed in (1, 2)])
    points, matrices = dense.ewald_points(10, Q_MAX), dense.random_turns(4)
    both = IntensitySlicer.of(pair, VOXEL_A, error=1e-4)(points, matrices)
    assert both.shape == (2, 4, 100)
    for found, A in zip(both, pair, strict=True):
        assert relative_error(found, slice_exactly(A, VOXEL_A, points, matrices)) < 1e-4


@settings(max_examples=15, deadline=None)
@given(n=st.integers(2, 10), voxel_A=st.floats(0.5, 20), seed=st.integers(0, 1000))
def test_the_right_side_of_a_merge_is_the_adjoint_of_slicing(
    n: int, voxel_A: float, seed: int, dense: SimpleNamespace
) -> None:
    """Whatever the voxels: slicing and merging must never disagree about where a point lies."""
    rng = np.random.default_rng(seed)
    A, frames = rng.standard_normal((n, n, n)), rng.standard_normal((3, 16))
    points, matrices = dense.ewald_points(4, 0.5 / voxel_A), dense.random_turns(3, seed)
    slices = slice_exactly(A, voxel_A, points, matrices, tolerance=1e-10)
    equations = NormalEquations.empty(n, voxel_A).with_frames(frames, points, matrices, tolerance=1e-10)
    scale = np.linalg.norm(A) * np.linalg.norm(frames) * np.sqrt(n**3)
    assert abs((slices * frames).sum() - (A * equations.right_side).sum()) < 1e-9 * scale


def test_points_beyond_the_stated_q_are_not_numbers(dense: SimpleNamespace) -> None:
    slicer = IntensitySlicer.of(dense.small_autocorrelation(9), VOXEL_A, 0.5 * Q_MAX)
    values = slicer(np.array([[0.4 * Q_MAX, 0, 0], [0.6 * Q_MAX, 0, 0]]), np.eye(3)[None])
    assert np.isnan(values[0]).tolist() == [False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"autocorrelations": np.zeros((4, 5, 5))}, "expected a cube"),
        ({"autocorrelations": np.zeros((3, 5, 5, 5))}, "expected a cube"),
        ({"autocorrelations": np.zeros((5, 5, 5), complex)}, "must be real"),
        ({"autocorrelations": np.full((5, 5, 5), np.nan)}, "not finite"),
        ({"voxel_A": -1.0}, "positive"),
        ({"q_max_inv_A": 0.6}, "cannot be sliced"),
        ({"error": 1e-9}, "must lie between 1e-6 and 0.1"),
        ({"width": 99}, "must be one of"),
        ({"width": 3, "error": 1e-6}, "Give a larger width"),
    ],
)
def test_wrong_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"autocorrelations": np.zeros((5, 5, 5)), "voxel_A": 1.0, **change}
    with pytest.raises(OrienteerError, match=message):
        IntensitySlicer.of(**arguments)


def test_points_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(OrienteerError, match="are not"):
        slice_exactly(np.zeros((5, 5, 5)), 1.0, np.zeros((4, 2)), np.eye(3)[None])
    with pytest.raises(OrienteerError, match="are not"):
        slice_exactly(np.zeros((5, 5, 5)), 1.0, np.zeros((4, 3)), np.eye(3))


@pytest.mark.gpu
def test_the_gpu_slices_the_same(dense: SimpleNamespace) -> None:
    pair = np.stack([dense.small_autocorrelation(16, 4, seed) for seed in (1, 2)])
    points, matrices = dense.ewald_points(10, Q_MAX), dense.random_turns(4)
    there = IntensitySlicer.of(to_device(pair, "cuda"), VOXEL_A, error=1e-4)(points, matrices)
    here = np.stack([slice_exactly(A, VOXEL_A, points, matrices) for A in pair])
    assert relative_error(to_numpy(there), here) < 1e-4
    pytest.importorskip("cufinufft")
    exact = slice_exactly(to_device(pair[0], "cuda"), VOXEL_A, points, matrices)
    assert relative_error(to_numpy(exact), here[0]) < 1e-8
