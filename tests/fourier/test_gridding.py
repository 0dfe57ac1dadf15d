"""Gridding: the tapered density and the corrected grid."""

import numpy as np
import pytest

from orienteer.fourier.gridding import CoarseGrid, coarse_density, fine_grid
from orienteer.fourier.interpolation_kernel import best_kernel
from orienteer.particle.bodies import sphere


def test_the_tapered_density_holds_all_electrons_within_the_box() -> None:
    body = sphere(40)
    for error in (1e-3, 1e-5):
        density, voxel_A = coarse_density(body, None, 0.1, CoarseGrid.chosen(40, 0.1, error))
        n = len(density)
        assert density.sum() == pytest.approx(body.amplitude(np.zeros(3)), rel=1e-9)
        r = (np.arange(n) - n // 2) * voxel_A
        faces = np.abs(density[0]).max() / np.abs(density).max()
        assert faces < error
        inside = np.abs(r) < 30
        middle = density.real[n // 2, n // 2, inside] / voxel_A**3
        assert middle.mean() == pytest.approx(0.43, rel=0.05)


def test_the_taper_leaves_the_transform_below_its_limit() -> None:
    body = sphere(40)
    density, voxel_A = coarse_density(body, None, 0.1, CoarseGrid.chosen(40, 0.1, 1e-5))
    n = len(density)
    r = (np.arange(n) - n // 2) * voxel_A
    q = np.random.default_rng(1).uniform(-0.057, 0.057, (60, 3))
    x, y, z = (np.exp(2j * np.pi * np.outer(q[:, axis], r)) for axis in range(3))
    found = np.einsum("xyz,px,py,pz->p", density, x, y, z, optimize=True)
    exact = body.amplitude(q)
    assert np.linalg.norm(found - exact) < 1e-5 * np.linalg.norm(exact)


def test_the_grid_reaches_every_tap_of_every_point_within_the_limit() -> None:
    kernel = best_kernel(5, 2.0)
    grid = fine_grid(np.ones((16, 16, 16)), 2.0, 32.0, kernel, 0.2)
    m = grid.values.shape[0]
    assert m == 2 * grid.centre + 1
    assert grid.values.shape == (m, m, m)
    edge = 0.2 / grid.spacing_inv_A
    assert grid.centre - edge - kernel.width / 2 >= 0
    assert grid.centre + edge + kernel.width / 2 <= m - 1
    assert 1 / (grid.spacing_inv_A * 2.0) == pytest.approx(32, abs=2)
