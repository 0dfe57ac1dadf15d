"""Densities that follow an autocorrelation."""

from types import SimpleNamespace

import numpy as np
import pytest

from orienteer.mtip.envelope import envelope_of
from orienteer.mtip.loop_phasing import LoopPhasing, coarse_grid
from orienteer.mtip.relative_grid import RelativeGrid
from orienteer.phase.settings import PhaseSettings
from orienteer.reconstruction.model.radial_profile import RadialProfile
from orienteer.reconstruction.model.relative_intensity import half_correlation

DIAMETER_A = 320.0  # with the tails of its blobs


@pytest.fixture(scope="module")
def problem(frames_of_blobs: SimpleNamespace) -> SimpleNamespace:
    """The relative autocorrelation of an object, four speckles to the edge."""
    grid = RelativeGrid(45, 1 / (4 * DIAMETER_A), DIAMETER_A, "cpu")
    intensity = frames_of_blobs.intensity(grid.edge, grid.voxel_inv_A).astype(np.float64)
    axis = np.arange(grid.edge) - grid.edge // 2
    radius = np.sqrt(axis[:, None, None] ** 2.0 + axis[:, None] ** 2 + axis**2)
    shell = np.rint(radius).astype(int)
    mean = np.bincount(shell.ravel(), intensity.ravel()) / np.bincount(shell.ravel())
    envelope = envelope_of(RadialProfile(np.arange(len(mean)) * grid.voxel_inv_A, np.log(mean)), DIAMETER_A)
    z = grid.autocorrelation(intensity / envelope(radius * grid.voxel_inv_A)) * grid.support
    return SimpleNamespace(grid=grid, envelope=envelope, z=z)


def phasing(problem: SimpleNamespace) -> LoopPhasing:
    settings = PhaseSettings(diameter_A=DIAMETER_A, background=False)
    edge = 20 * problem.grid.voxel_inv_A
    return LoopPhasing(problem.grid, problem.envelope, (0.0, edge), settings, seed=1)


def test_densities_explain_the_autocorrelation_that_they_follow(problem: SimpleNamespace) -> None:
    loop, grid = phasing(problem), problem.grid
    loop.follow(problem.z)
    found = loop.follow(problem.z)
    assert found.shape == (len(found), grid.n, grid.n, grid.n)
    true, ones = grid.intensity(problem.z), np.ones((grid.edge,) * 3)
    agreement = [half_correlation(grid.intensity(z), true, ones)[4:18].mean() for z in found]
    assert max(agreement) > 0.9


def test_a_state_goes_on_where_it_was(problem: SimpleNamespace) -> None:
    straight = phasing(problem)
    straight.follow(problem.z)
    stored = {name: np.array(value) for name, value in straight.arrays().items()}
    expected = straight.follow(problem.z)
    resumed = phasing(problem)
    resumed.restore(stored)
    assert np.array_equal(resumed.follow(problem.z), expected)
    # It is carried over: what comes next depends on it.
    anew = phasing(problem)
    assert not np.array_equal(anew.follow(problem.z), expected)


@pytest.mark.parametrize("edge", [31, 37, 45, 61])
def test_the_small_box_has_the_same_voxels_of_the_autocorrelation(edge: int) -> None:
    grid = RelativeGrid(edge, 1 / 400, 100.0, "cpu")
    coarse = coarse_grid(grid)
    assert coarse.voxel_A == pytest.approx(grid.voxel_A)
    assert coarse.n == grid.n
    assert 2.1 * 100 < coarse.box * coarse.voxel_A < 3.2 * 100
    assert coarse.edge % 2 == 1


@pytest.mark.parametrize("oversampling", [1.2, 1.5, 1.9])
def test_a_box_smaller_than_the_autocorrelation_is_phased_as_far_as_it_goes(
    problem: SimpleNamespace, oversampling: float
) -> None:
    """The first stage has fewer voxels across a speckle than the settings say, and these may be few."""
    grid = RelativeGrid(25, 1 / (oversampling * DIAMETER_A), DIAMETER_A, "cpu")
    assert coarse_grid(grid).n == grid.n
    settings = PhaseSettings(diameter_A=DIAMETER_A, background=False)
    loop = LoopPhasing(grid, problem.envelope, (0.0, 10 * grid.voxel_inv_A), settings, seed=1)
    found = loop.follow(grid.round_start())
    assert found.shape[1:] == (grid.n,) * 3
    assert np.isfinite(found).all()
