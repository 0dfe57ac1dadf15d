"""Sums over the half of Fourier space are those over the whole."""

import numpy as np
import pytest

from orienteer.compare.shells import n_shells, shell_index
from orienteer.errors import OrienteerError
from orienteer.phase.half_grid import (
    density_of,
    edge_of,
    frequencies,
    half_grid_shells,
    shell_sums,
    transform_of,
    voxel_counts,
)


@pytest.mark.parametrize("n", [7, 8])
def test_the_transform_comes_back_as_the_density_in_single_precision(n: int) -> None:
    density = np.random.default_rng(0).normal(size=(2, n, n, n)).astype(np.float32)
    transform = transform_of(density)
    assert transform.shape == (2, n, n, n // 2 + 1)
    assert transform.dtype == np.complex64
    np.testing.assert_allclose(density_of(transform), density, atol=1e-5)


@pytest.mark.parametrize("n", [7, 8])
def test_power_of_the_half_counts_as_that_of_the_whole(n: int) -> None:
    density = np.random.default_rng(1).normal(size=(n, n, n))
    power = (np.abs(transform_of(density)) ** 2 * voxel_counts(n)).sum()
    assert power == pytest.approx(n**3 * (density**2).sum())


@pytest.mark.parametrize("n", [9, 10])
def test_shells_of_the_half_are_those_of_the_whole(n: int) -> None:
    centred = np.fft.ifftshift(shell_index(n))
    np.testing.assert_array_equal(half_grid_shells(n), centred[..., : n // 2 + 1])
    whole, half = frequencies(n)
    assert abs(whole).max() == half.max() == n // 2


@pytest.mark.parametrize("n", [9, 10])
def test_sums_over_shells_are_those_of_the_whole_grid(n: int) -> None:
    rng = np.random.default_rng(2)
    density = rng.normal(size=(2, n, n, n))
    whole = np.fft.fftn(density, axes=(1, 2, 3))
    index = np.fft.ifftshift(shell_index(n))
    expected = [[(abs(one[index == s]) ** 2).sum() for s in range(n_shells(n))] for one in whole]
    everywhere = np.ones((n, n, n // 2 + 1), bool)
    sums = shell_sums(np.abs(transform_of(density)) ** 2, everywhere)
    np.testing.assert_allclose(sums, expected, rtol=1e-10)


def test_what_is_no_half_of_a_cube_is_refused() -> None:
    with pytest.raises(OrienteerError, match="not the half"):
        edge_of(np.zeros((8, 8, 8)))


@pytest.mark.gpu
def test_one_of_several_odd_cubes_is_transformed_on_the_gpu() -> None:
    import cupy

    cubes = np.random.default_rng(4).normal(size=(3, 7, 7, 7)).astype(np.float32)
    for i, one in enumerate(cupy.asarray(cubes)):
        np.testing.assert_allclose(transform_of(one).get(), transform_of(cubes[i]), atol=1e-4)
