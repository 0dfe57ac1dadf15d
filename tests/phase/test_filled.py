"""What a particle fills is the same for densities of any scale, place and finer detail."""

import numpy as np
import pytest

from orienteer.phase.alignment import shifted
from orienteer.phase.filled import filled_voxels, typical_density
from orienteer.phase.half_grid import density_of, radii, transform_of

N = 32


def ball(radius: float) -> np.ndarray:
    axis = np.arange(N) - N // 2
    return 1.0 * (axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2 <= radius**2)


def test_scale_place_and_finer_waves_do_not_matter(blobs) -> None:
    measured = radii(N) <= 12
    density = blobs(N)
    volume = filled_voxels(density, measured).sum()
    moved = density_of(shifted(transform_of(density), (3.0, -2.0, 7.0)))
    fine = density_of(np.where(measured, 0, transform_of(np.random.default_rng(0).normal(size=(N, N, N)))))
    assert filled_voxels(1e6 * density, measured).sum() == volume
    assert filled_voxels(moved, measured).sum() == pytest.approx(volume, abs=2)
    assert filled_voxels(density + fine, measured).sum() == volume


def test_a_hard_body_fills_its_voxels_and_a_rim_that_the_edge_of_the_data_blurs() -> None:
    measured = radii(N) <= 15
    hard = filled_voxels(ball(8), measured).sum()
    assert ball(8).sum() < hard < ball(9).sum()
    # A shell around it counts where it is not faint.
    assert filled_voxels(ball(8) + 0.03 * (ball(12) - ball(8)), measured).sum() < 1.1 * hard
    assert filled_voxels(ball(8) + 0.3 * (ball(12) - ball(8)), measured).sum() > ball(12).sum()


def test_an_empty_density_fills_nothing() -> None:
    assert typical_density(np.zeros((4, 4, 4))) == 0
    assert not filled_voxels(np.zeros((N, N, N)), radii(N) <= 12).any()
