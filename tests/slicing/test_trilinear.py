"""Slicing and inserting against slow float64 versions of the formulas, and as each other's adjoint."""

import itertools
from collections.abc import Iterator

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import make_sums
from orienteer.slicing.trilinear import insert_slices, slice_volume


def corners(n: int, position: NDArray[np.float64]) -> Iterator[tuple[tuple[int, ...], float]]:
    """(voxel, trilinear weight) of every voxel of an (n, n, n) cube that a position touches."""
    from_corner = position + n // 2
    if not np.all((from_corner >= 0) & (from_corner <= n - 1)):
        return
    below = np.floor(from_corner).astype(int)
    fraction = from_corner - below
    for step in itertools.product((0, 1), repeat=3):
        weight = np.prod(np.where(step, fraction, 1 - fraction))
        if weight > 0:
            yield tuple(below + step), float(weight)


def slice_slowly(volume, points, matrices) -> NDArray[np.float64]:
    """(K, P) trilinear samples at matrices[k] @ points[p]."""
    result = np.zeros((len(matrices), len(points)))
    for k, p in np.ndindex(result.shape):
        position = matrices[k].astype(float) @ points[p].astype(float)
        result[k, p] = sum(f * float(volume[voxel]) for voxel, f in corners(len(volume), position))
    return result


def insert_slowly(n, points, matrices, values, weights) -> NDArray[np.float64]:
    """(n, n, n, 2) sums of f * values and f * weights, both (K, P)."""
    sums = np.zeros((n, n, n, 2))
    for k, p in np.ndindex(np.shape(values)):
        position = matrices[k].astype(float) @ points[p].astype(float)
        for voxel, f in corners(n, position):
            sums[voxel] += f * float(values[k, p]), f * float(weights[k, p])
    return sums


def test_slices_are_trilinear_samples(problem) -> None:
    slices = slice_volume(problem.volume, problem.points, problem.matrices)
    assert slices.dtype == np.float32
    expected = slice_slowly(problem.volume, problem.points, problem.matrices)
    assert np.count_nonzero(expected == 0) > 10  # the corners of the cap lie outside
    np.testing.assert_allclose(slices, expected, atol=1e-5)


def test_inserting_adds_the_weighted_sums(problem) -> None:
    sums = np.zeros((problem.n,) * 3 + (2,))
    insert_slices(sums, *problem.arguments)
    weights = problem.row_weights[:, None].astype(float) * problem.pixel_weights
    expected = insert_slowly(problem.n, problem.points, problem.matrices, problem.values, weights)
    np.testing.assert_allclose(sums, expected, atol=1e-5 * expected.max())
    insert_slices(sums, *problem.arguments)
    np.testing.assert_allclose(sums, 2 * expected, atol=2e-5 * expected.max())


def test_inserting_is_the_adjoint_of_slicing(problem) -> None:
    """<E x, y> = <x, E* y>, for values and for weights."""
    sums = np.zeros((problem.n,) * 3 + (2,))
    insert_slices(sums, *problem.arguments)
    slices = slice_volume(problem.volume, problem.points, problem.matrices).astype(float)
    outer = problem.row_weights[:, None].astype(float) * problem.pixel_weights
    for channel, y in enumerate((problem.values.astype(float), outer)):
        forward = np.sum(slices * y)
        backward = np.sum(problem.volume.astype(float) * sums[..., channel])
        assert abs(forward - backward) < 1e-6 * forward


def test_layout_by_pixel_is_the_transpose_to_the_bit(problem) -> None:
    slices = slice_volume(problem.volume, problem.points, problem.matrices)
    by_pixel = slice_volume(problem.volume, problem.points, problem.matrices, by_pixel=True)
    np.testing.assert_array_equal(by_pixel, slices.T)
    sums, same = (np.zeros((problem.n,) * 3 + (2,)) for _ in range(2))
    insert_slices(sums, *problem.arguments)
    points, matrices, values, row_weights, pixel_weights = problem.arguments
    insert_slices(same, points, matrices, values.T.copy(), row_weights, pixel_weights, by_pixel=True)
    np.testing.assert_array_equal(same, sums)


@pytest.mark.parametrize("by_pixel", [False, True])
def test_a_full_array_of_weights_replaces_the_outer_product(problem, by_pixel) -> None:
    points, matrices, values, row_weights, pixel_weights = problem.arguments
    outer = row_weights[:, None] * pixel_weights
    sums, same = (np.zeros((problem.n,) * 3 + (2,)) for _ in range(2))
    insert_slices(sums, *problem.arguments)
    if by_pixel:
        values, outer = values.T.copy(), outer.T.copy()
    insert_slices(same, points, matrices, values, None, None, by_pixel=by_pixel, weights=outer)
    np.testing.assert_array_equal(same, sums)


@pytest.mark.parametrize("by_pixel", [False, True])
def test_rows_without_weight_are_never_read(problem, by_pixel) -> None:
    points, matrices, values, row_weights, pixel_weights = problem.arguments
    used = np.arange(len(matrices)) % 3 == 0
    expected, sums = (np.zeros((problem.n,) * 3 + (2,)) for _ in range(2))
    insert_slices(expected, points, matrices[used], values[used], row_weights[used], pixel_weights)
    broken = np.where(used[:, None], values, np.float32(np.nan))
    broken = broken.T.copy() if by_pixel else broken
    insert_slices(
        sums, points, matrices, broken, np.where(used, row_weights, 0), pixel_weights, by_pixel=by_pixel
    )
    np.testing.assert_array_equal(sums, expected)


def test_the_number_of_threads_changes_no_bit(make_problem) -> None:
    problem = make_problem(n=33, n_rows=50)
    threads = numba.get_num_threads()
    results = []
    try:
        for count in range(1, threads + 1):
            numba.set_num_threads(count)
            sums = np.zeros((33, 33, 33, 2))
            insert_slices(sums, *problem.arguments)
            results.append((slice_volume(problem.volume, problem.points, problem.matrices), sums))
    finally:
        numba.set_num_threads(threads)
    for slices, sums in results[1:]:
        np.testing.assert_array_equal(slices, results[0][0])
        np.testing.assert_array_equal(sums, results[0][1])


@pytest.mark.parametrize("n_slabs", [1, 2, 7, 33])
def test_the_number_of_slabs_changes_no_bit(make_problem, monkeypatch, n_slabs) -> None:
    """Each voxel belongs to one slab, and takes its points in the same order whatever slab that is."""
    problem = make_problem(n=33, n_rows=50)
    expected, sums = (np.zeros((33, 33, 33, 2)) for _ in range(2))
    insert_slices(expected, *problem.arguments)
    monkeypatch.setattr("orienteer.slicing.trilinear._slab_count", lambda n: n_slabs)
    insert_slices(sums, *problem.arguments)
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize("n", [16, 17])
def test_a_friedel_symmetric_volume_looks_the_same_from_behind(n) -> None:
    rng = np.random.default_rng(3)
    volume = rng.random((n, n, n), dtype=np.float32)
    inner = volume[1:, 1:, 1:] if n % 2 == 0 else volume
    inner += inner[::-1, ::-1, ::-1].copy()
    reach = (n - 1) // 2  # an even cube has no partner for its first layer
    points = rng.uniform(-reach, reach, (500, 3)).astype(np.float32)
    eye = np.eye(3, dtype=np.float32)[None]
    np.testing.assert_allclose(
        slice_volume(volume, points, eye), slice_volume(volume, points, -eye), atol=1e-5
    )


def test_the_centre_of_the_cube_is_voxel_half_n() -> None:
    for n in (2, 3, 8, 9):
        volume = np.zeros((n, n, n), np.float32)
        volume[n // 2, n // 2, n // 2] = 7
        sample = slice_volume(volume, np.zeros((1, 3), np.float32), np.eye(3, dtype=np.float32)[None])
        assert sample[0, 0] == 7


def test_the_surface_of_the_cube_belongs_to_it_and_nothing_beyond_does() -> None:
    n = 6
    volume = np.ones((n, n, n), np.float32)
    beyond = np.float32(1e-3)
    inside = [(-3, 0, 0), (2, 0, 0), (0, -3, 2), (2, 2, 2), (-3, -3, -3)]
    outside = [(-3 - beyond, 0, 0), (2 + beyond, 0, 0), (0, -3 - beyond, 0), (0, 0, 2 + beyond)]
    outside += [(np.nan, 0, 0), (0, np.inf, 0), (0, 0, -np.inf), (1e30, 0, 0), (-3e9, 0, 0)]
    points = np.array(inside + outside, np.float32)
    eye = np.eye(3, dtype=np.float32)[None]
    expected = np.array([[1] * len(inside) + [0] * len(outside)], np.float32)
    np.testing.assert_array_equal(slice_volume(volume, points, eye), expected)
    sums = np.zeros((n, n, n, 2))
    one = np.ones((1, len(points)), np.float32)
    insert_slices(sums, points, eye, one, one[:, 0], one[0])
    assert np.all(np.isfinite(sums))
    assert sums[..., 0].sum() == len(inside)
    # Of the two that lie in corners, all goes to the corner voxel.
    assert sums[5, 5, 5, 0] == sums[0, 0, 0, 1] == 1


# Eighths and halves are exact in float32, so that the reference agrees on what lies outside.
eighths = st.integers(-40, 40).map(lambda i: i / 8)
halves = st.integers(-3, 3).map(lambda i: i / 2)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 9),
    points=st.lists(st.tuples(eighths, eighths, eighths), min_size=0, max_size=8),
    matrices=st.lists(st.lists(halves, min_size=9, max_size=9), min_size=0, max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_points_and_matrices(n, points, matrices, seed) -> None:
    rng = np.random.default_rng(seed)
    volume = rng.standard_normal((n, n, n), dtype=np.float32)
    points = np.array(points, np.float32).reshape(-1, 3)
    matrices = np.array(matrices, np.float32).reshape(-1, 3, 3)
    values = rng.standard_normal((len(matrices), len(points)), dtype=np.float32)
    np.testing.assert_allclose(
        slice_volume(volume, points, matrices), slice_slowly(volume, points, matrices), atol=1e-5
    )
    sums = np.zeros((n, n, n, 2))
    insert_slices(sums, points, matrices, values, None, None, weights=np.abs(values))
    expected = insert_slowly(n, points, matrices, values, np.abs(values))
    np.testing.assert_allclose(sums, expected, atol=1e-5)


def test_prepared_points_change_nothing(problem) -> None:
    expected_slices = slice_volume(problem.volume, problem.points, problem.matrices)
    expected_sums = np.zeros((problem.n,) * 3 + (2,))
    insert_slices(expected_sums, *problem.arguments)
    for prepare in (PointPatches.of, PointPatches.as_given):
        patches = prepare(problem.points)
        np.testing.assert_array_equal(
            slice_volume(problem.volume, patches, problem.matrices), expected_slices
        )
        sums = np.zeros_like(expected_sums)
        insert_slices(sums, patches, *problem.arguments[1:])
        np.testing.assert_array_equal(sums, expected_sums)


def test_a_given_array_takes_the_result(problem) -> None:
    out = np.full((len(problem.matrices), len(problem.points)), np.nan, np.float32)
    assert slice_volume(problem.volume, problem.points, problem.matrices, out=out) is out
    assert np.all(np.isfinite(out))


def test_sums_of_the_cpu_finish_as_they_are(problem) -> None:
    sums = make_sums(problem.n, "cpu")
    insert_slices(sums, *problem.arguments)
    expected = np.zeros((problem.n,) * 3 + (2,))
    insert_slices(expected, *problem.arguments)
    np.testing.assert_array_equal(sums.finish(), expected)


def test_what_does_not_fit_is_told() -> None:
    cube, points, eye = np.zeros((4, 4, 4), np.float32), np.zeros((5, 3), np.float32), np.eye(3)[None]
    sums, values = np.zeros((4, 4, 4, 2)), np.zeros((1, 5), np.float32)
    with pytest.raises(OrienteerError, match=r"cube.*\(4, 4, 3\)"):
        slice_volume(cube[:, :, :3], points, eye)
    with pytest.raises(OrienteerError, match=r"points.*\(5, 2\)"):
        slice_volume(cube, points[:, :2], eye)
    with pytest.raises(OrienteerError, match=r"matrices.*\(3, 3\)"):
        slice_volume(cube, points, eye[0])
    with pytest.raises(OrienteerError, match=r"out.*\(1, 5\)"):
        slice_volume(cube, points, eye, out=np.zeros((5, 1), np.float32))
    with pytest.raises(OrienteerError, match=r"values.*\(5, 1\)"):
        insert_slices(sums, points, eye, values.T, np.ones(1), np.ones(5))
    with pytest.raises(OrienteerError, match="row_weights"):
        insert_slices(sums, points, eye, values, np.ones(2), np.ones(5))
    with pytest.raises(OrienteerError, match="pixel_weights"):
        insert_slices(sums, points, eye, values, np.ones(1), None)
    with pytest.raises(OrienteerError, match="float64"):
        insert_slices(sums.astype(np.float32), points, eye, values, np.ones(1), np.ones(5))
