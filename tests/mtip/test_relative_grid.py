"""Relative intensities on a grid against explicit Fourier sums, and equations that stay put."""

from typing import Any

import numpy as np
import pytest

from orienteer.mtip.merging import merge
from orienteer.mtip.relative_grid import RelativeGrid, slicing_error
from orienteer.mtip.slices import slice_exactly
from orienteer.slicing.trilinear import slice_volume

DIAMETER_A = 100.0


def grid_of(edge: int = 25, oversampling: float = 4.0) -> RelativeGrid:
    return RelativeGrid(edge, 1 / (oversampling * DIAMETER_A), DIAMETER_A, "cpu")


def random_autocorrelation(grid: RelativeGrid, seed: int = 0) -> np.ndarray:
    """Even, within the support, as large as voxels are before any frame was seen."""
    z = np.random.default_rng(seed).normal(size=(grid.n,) * 3) * grid.spread
    z = (z + z[::-1, ::-1, ::-1]) / np.sqrt((grid.spread**2).sum())
    return np.asarray(z + grid.round_start())


@pytest.mark.parametrize("edge", [13, 15])  # in a larger box, and in one of its own
def test_intensities_are_the_fourier_sums_of_autocorrelations(edge: int, dense: Any) -> None:
    grid = grid_of(edge)
    z = random_autocorrelation(grid)
    q = dense.voxels(edge) * grid.voxel_inv_A
    expected = (dense.intensity_matrix(grid.n, grid.voxel_A, q) @ z.ravel()).real.reshape((edge,) * 3)
    assert np.allclose(grid.intensity(z), expected, atol=1e-9)


def test_what_is_known_on_the_whole_grid_gives_the_autocorrelation_back() -> None:
    grid = grid_of(25)
    assert grid.box == 25
    z = random_autocorrelation(grid)
    assert np.allclose(grid.autocorrelation(grid.intensity(z)), z, atol=1e-12)
    half = np.fft.ifftshift(grid.intensity(z))[..., : 25 // 2 + 1]
    assert np.allclose(grid.autocorrelation_of_half(half), z, atol=1e-12)


def test_nothing_known_is_round() -> None:
    grid = grid_of(21)
    assert np.allclose(grid.autocorrelation(np.ones((21,) * 3)), grid.round_start(), atol=1e-12)
    assert np.allclose(grid.intensity(grid.round_start()), 1.0)


@pytest.mark.parametrize("oversampling", [3.0, 4.0, 8.0])
def test_slices_of_a_sharpened_grid_have_the_stated_error(oversampling: float, dense: Any) -> None:
    """What a triangle blurs is put back; its aliases fall with the square of the oversampling."""
    grid = grid_of(2 * int(3 * oversampling) + 9, oversampling)
    z = random_autocorrelation(grid)
    points, matrices = dense.ewald_points(9, 3 / DIAMETER_A), dense.random_turns(20)
    exact = slice_exactly(z, grid.voxel_A, points, matrices)
    in_voxels = (points / grid.voxel_inv_A).astype(np.float32)

    def off(cube: np.ndarray) -> float:
        slices = slice_volume(cube.astype(np.float32), in_voxels, matrices.astype(np.float32))
        return float(np.sqrt(((slices - exact) ** 2).mean() / exact.var()))

    sharpened = off(grid.intensity(z * grid.sharpening))
    assert 0.5 * slicing_error(oversampling) < sharpened < slicing_error(oversampling)
    assert off(grid.intensity(z)) > 1.5 * sharpened


def test_equations_are_those_of_pixels_on_the_grid(dense: Any) -> None:
    """Kernel, right side and the sum of squares against explicit matrices."""
    grid = grid_of(9)
    rng = np.random.default_rng(1)
    cubes = (rng.random((9,) * 3) for _ in range(3))
    model, exposure, excess = (cube + cube[::-1, ::-1, ::-1] for cube in cubes)  # as Friedel mates are
    exposure[[0, -1], [0, -1], [0, -1]] = excess[[0, -1], [0, -1], [0, -1]] = 0.0
    equations = grid.equations(model, excess, exposure, 0.01)
    A = dense.intensity_matrix(grid.n, grid.voxel_A, dense.voxels(9) * grid.voxel_inv_A)
    normal = (A.conj().T @ (exposure.ravel()[:, None] * A)).real
    shape = (grid.n,) * 3
    middle = (slice(grid.n // 2, grid.n // 2 + grid.n),) * 3
    assert np.allclose(equations.kernel[middle], normal[:, grid.n**3 // 2].reshape(shape))
    right = (A.conj().T @ (exposure * model).ravel()).real.reshape(shape)
    right += grid.sharpening * (A.conj().T @ excess.ravel()).real.reshape(shape)
    assert np.allclose(equations.right_side, right)
    photons = (exposure * model + excess)[exposure > 0]
    assert np.isclose(equations.data_square, (photons**2 / exposure[exposure > 0]).sum())
    assert np.isclose(equations.total_weight, exposure.sum())


def test_where_slices_are_right_the_solution_stays_put() -> None:
    grid = grid_of(21)
    z = random_autocorrelation(grid) * grid.support
    exposure = np.random.default_rng(2).uniform(1, 10, (21,) * 3)
    exposure += exposure[::-1, ::-1, ::-1]
    equations = grid.equations(grid.intensity(z), np.zeros((21,) * 3), exposure, 0.02)
    merged = merge(equations, [1e-9], support=grid.spread, start=grid.round_start(), tolerance=1e-9,
                   max_iterations=2000)  # fmt: skip
    assert np.allclose(merged.autocorrelation, z, atol=1e-5 * np.abs(z).max())


def test_far_distances_are_rare_and_those_beyond_the_diameter_impossible() -> None:
    grid = grid_of(25)
    assert grid.spread[(grid.n // 2,) * 3] == 1
    along = grid.spread[grid.n // 2 :, grid.n // 2, grid.n // 2]
    assert (np.diff(along) < 0).all()
    assert along[-1] < 0.2
    assert not grid.spread[0, 0, 0]


def test_half_of_the_grid_holds_the_same_intensity() -> None:
    grid = grid_of(25)
    z = random_autocorrelation(grid)
    whole = np.fft.ifftshift(grid.intensity(z))
    assert np.allclose(grid.intensity_of_half(z), whole[..., :13], atol=1e-9)
