"""Shells hold each voxel once, and correlations see speckles only."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from orienteer.compare.shells import (
    OUTSIDE,
    n_shells,
    radial_mean,
    radial_variance,
    shell_correlation,
    shell_index,
    without_profile,
)
from orienteer.compute.arrays import import_cupy
from orienteer.errors import OrienteerError


def speckles(n: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).random((n, n, n))


def without_parabola(values: NDArray[np.float64], shell: int) -> NDArray[np.float64]:
    """The values of a shell less the parabola in the radius that fits them best."""
    places = np.argwhere(shell_index(len(values)) == shell)
    radius = np.linalg.norm(places - len(values) // 2, axis=1)
    terms = np.stack([np.ones_like(radius), radius - shell, (radius - shell) ** 2], axis=1)
    inside = values[tuple(places.T)]
    return np.asarray(inside - terms @ np.linalg.lstsq(terms, inside)[0])


def test_a_volume_without_speckles_agrees_with_nothing() -> None:
    """A steep profile varies within each shell, alike in all volumes; that is no agreement."""
    n = 33
    radius = np.linalg.norm(np.indices((n, n, n)) - n // 2, axis=0)
    steep = 1 / (1 + radius / 4) ** 4
    a, b = (steep * (1 + 0.05 * speckles(n, seed)) for seed in (1, 2))
    assert abs(shell_correlation(a, b).mean()) < 0.1
    assert np.all(radial_variance(steep)[4:] < 0.01 * radial_variance(a)[4:])


@settings(deadline=None)
@given(st.integers(1, 16), st.floats(1, 4))
def test_whole_shells_are_those_that_no_larger_cube_would_add_to(n: int, width: float) -> None:
    index = shell_index(n, width)
    m = n + 12  # the same centre when both lengths are even or both odd
    larger = shell_index(m, width)
    shells = n_shells(n, width)
    assert index.max() == shells - 1
    np.testing.assert_array_equal(
        np.bincount(index[index != OUTSIDE], minlength=shells),
        np.bincount(larger[larger != OUTSIDE], minlength=shells)[:shells],
    )


@pytest.mark.parametrize("n", [8, 9])
def test_a_voxel_belongs_to_the_shell_nearest_to_its_distance(n: int) -> None:
    index = shell_index(n)
    for place in np.ndindex(n, n, n):
        distance = np.linalg.norm(np.array(place) - n // 2)
        shell = int(np.floor(distance + 0.5))
        assert index[place] == (shell if shell <= (n - 1) // 2 else OUTSIDE)


def test_means_and_variances_are_those_of_the_voxels_of_a_shell() -> None:
    values = speckles(11, 1)
    index = shell_index(11)
    for shell in range(6):
        inside = values[index == shell]
        assert radial_mean(values)[shell] == pytest.approx(inside.mean(), rel=1e-12)
        assert radial_variance(values)[shell] == pytest.approx(
            np.square(without_parabola(values, shell)).mean(), rel=1e-9, abs=1e-15
        )


def test_correlation_is_that_of_numpy_shell_by_shell() -> None:
    a, b = speckles(12, 1), speckles(12, 2)
    found = shell_correlation(a, b)
    index = shell_index(12)
    for shell in range(1, 6):
        wanted = np.corrcoef(without_parabola(a, shell), without_parabola(b, shell))[0, 1]
        assert found.correlation[shell] == pytest.approx(wanted, abs=1e-12)
        assert found.n_voxels[shell] == (index == shell).sum()
    np.testing.assert_array_equal(found.radius, np.arange(6))


def test_steep_and_positive_volumes_that_share_only_their_profile_do_not_correlate() -> None:
    n = 33
    profile = 1 / (1.0 + np.maximum(shell_index(n), 0)) ** 4
    a, b = profile * (1 + speckles(n, 1)), profile * (1 + speckles(n, 2))
    assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.8
    assert abs(shell_correlation(a, b).mean()) < 0.1
    assert shell_correlation(a, 3 * a + profile).mean() == pytest.approx(1)


def test_what_was_never_measured_in_one_of_them_counts_in_neither() -> None:
    a, b = speckles(10, 1), speckles(10, 2)
    holes = np.random.default_rng(3).random(a.shape) < 0.3
    with_nan, with_junk = np.where(holes, np.nan, a), np.where(holes, np.nan, b)
    found, other = shell_correlation(with_nan, b), shell_correlation(a, with_junk)
    np.testing.assert_allclose(found.correlation[1:], other.correlation[1:], atol=1e-12)
    np.testing.assert_array_equal(found.n_voxels, np.bincount(shell_index(10)[~holes] + 1)[1:])
    assert np.isnan(without_profile(with_nan)[holes]).all()


def test_where_only_the_reference_varies_the_correlation_is_zero() -> None:
    a, b = speckles(9, 1), speckles(9, 2)
    b[shell_index(9) == 2] = 0.1
    found = shell_correlation(a, b)
    assert found.correlation[2] == 0
    others = found.correlation[[1, 3]]
    assert found.mean([1, 2, 3]) == pytest.approx(others.sum() / 3)
    assert found.mean(np.array([False, True, False, True, False])) == pytest.approx(others.mean())
    assert found.mean() == pytest.approx(found.correlation[[1, 2, 3, 4]].mean())


def test_where_the_reference_is_constant_nothing_can_agree() -> None:
    a = speckles(9, 1)
    b = a + 1e-5 * speckles(9, 2)  # as interpolation leaves it
    a[shell_index(9) == 2] = 0.1
    found = shell_correlation(a, b)
    assert np.isnan(found.correlation[2])
    assert found.mean([1, 2, 3]) == pytest.approx(1, abs=1e-6)
    assert found.mean([2]) == 0


def test_a_shell_that_was_not_measured_counts_as_zero_when_asked_for() -> None:
    a, b = speckles(9, 1), speckles(9, 1)
    b[shell_index(9) == 2] = np.nan
    found = shell_correlation(a, b)
    assert np.isnan(found.correlation[2])
    assert found.mean([1, 2, 3]) == pytest.approx(2 / 3)
    assert found.mean() == pytest.approx(1)


def test_wrong_shapes_are_told() -> None:
    with pytest.raises(OrienteerError, match="cannot be compared"):
        shell_correlation(np.zeros((4, 4, 4)), np.zeros((5, 5, 5)))
    with pytest.raises(OrienteerError, match="cube"):
        radial_mean(np.zeros((4, 4, 5)))
    with pytest.raises(OrienteerError, match="at least 1"):
        shell_index(8, 0.5)


@pytest.mark.gpu
def test_the_gpu_gives_the_same_shells() -> None:
    cupy = import_cupy()
    assert cupy is not None
    a, b = speckles(12, 1), speckles(12, 2)
    a[3, 4, 5] = np.nan
    here, there = shell_correlation(a, b), shell_correlation(cupy.asarray(a), cupy.asarray(b))
    np.testing.assert_allclose(there.correlation, here.correlation, atol=1e-12)
    np.testing.assert_array_equal(there.n_voxels, here.n_voxels)
    np.testing.assert_allclose(radial_mean(cupy.asarray(a)), radial_mean(a), rtol=1e-12)
