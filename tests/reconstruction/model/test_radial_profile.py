"""The radial mean: as fine as the photons allow, and never 0."""

import numpy as np
import pytest

from orienteer.reconstruction.model.radial_profile import RadialProfile, at_voxels, estimate_profile


def test_a_steep_profile_is_followed_where_photons_allow() -> None:
    rng = np.random.default_rng(1)
    length = np.sqrt(rng.uniform(0, 1, 20_000)) * 0.05
    truth = 50 * np.exp(-length / 0.004) + 1e-4
    correction = rng.uniform(0.5, 1.5, len(length))
    photons = rng.poisson(1000 * correction * truth)
    profile = estimate_profile(length, photons, 1000 * correction, voxel_inv_A=0.001)
    bright = truth > 0.01
    assert np.abs(profile(length[bright]) / truth[bright] - 1).max() < 0.15
    assert np.mean(profile(length) * correction) * 1000 == pytest.approx(photons.mean(), rel=0.02)


def test_a_profile_is_positive_even_where_nothing_was_counted() -> None:
    length = np.linspace(0.001, 0.05, 500)
    photons = np.where(length < 0.02, 100.0, 0.0)
    profile = estimate_profile(length, photons, np.ones(500), 0.001)
    assert (profile(np.linspace(0, 0.1, 50)) > 0).all()
    assert profile(0.045) < 1e-3 * profile(0.01)


@pytest.mark.parametrize("n", [8, 9])
def test_the_mean_at_voxels_is_that_at_their_distances(n: int) -> None:
    profile = RadialProfile(np.array([0.0, 0.004, 0.02]), np.array([3.0, -1.0, 0.5]))
    axis = np.arange(n) - n // 2
    distance = np.sqrt(axis[:, None, None] ** 2.0 + axis[:, None] ** 2 + axis**2)
    assert np.array_equal(profile.at_voxels(n, 0.002), profile(distance * 0.002))
    several = np.stack([np.arange(3 * (n // 2) ** 2 + 1.0)] * 2)
    assert np.allclose(at_voxels(several, n, np), distance**2)
