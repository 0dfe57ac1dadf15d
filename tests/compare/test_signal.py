"""The criterion of signal foretells how well a perfect merge agrees with the truth."""

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compare.shells import n_shells, radial_mean, shell_correlation, shell_index
from orienteer.compare.signal import (
    expected_correlation,
    merged_signal_to_noise,
    photons_in_shells,
    shells_with_signal,
)
from orienteer.errors import OrienteerError
from orienteer.volume.friedel import friedel_symmetrise

N = 41


def speckles() -> NDArray[np.float64]:
    """A steep intensity whose speckles, of one voxel, are exponential as those of a real one, (N, N, N)."""
    intensity = np.random.default_rng(1).exponential(size=(N, N, N))
    return friedel_symmetrise(intensity) / (1.0 + np.maximum(shell_index(N), 0)) ** 3


@pytest.mark.parametrize("friedel", [False, True])
def test_a_perfect_merge_correlates_as_foretold(friedel: bool) -> None:
    """Voxels are Shannon voxels here, and every voxel of a shell gets Poisson photons of its own."""
    truth = speckles()
    photons = truth / truth.max() * 3e4
    counts = np.random.default_rng(2).poisson(photons).astype(np.float64)
    merged = friedel_symmetrise(counts) if friedel else counts
    index = shell_index(N)
    in_shells = np.bincount(index[index >= 0], weights=photons[index >= 0])
    ratio = merged_signal_to_noise(truth, in_shells, 1.0, friedel=friedel)
    found = shell_correlation(truth, merged).correlation
    assert ratio[6] > 5
    assert ratio[-1] < 1
    np.testing.assert_allclose(found[6:], expected_correlation(ratio)[6:], atol=0.04)


def test_a_larger_shannon_voxel_has_as_many_more_photons_and_the_scale_of_the_truth_does_not_matter() -> None:
    truth, photons = speckles(), np.full(n_shells(N), 1e5)
    ratio = merged_signal_to_noise(truth, photons, 1.0)
    np.testing.assert_allclose(merged_signal_to_noise(truth, photons, 2.0), 8 * ratio)
    np.testing.assert_allclose(merged_signal_to_noise(7 * truth, photons, 1.0), ratio)
    np.testing.assert_allclose(merged_signal_to_noise(truth, 3 * photons, 1.0), 3 * ratio)


def test_only_shells_with_photons_and_contrast_carry_signal() -> None:
    truth, photons = speckles(), np.full(n_shells(N), 1e7)
    truth[shell_index(N) == 5] = radial_mean(truth)[5]
    photons[8] = 0
    carries = shells_with_signal(truth, photons, 3.0)
    np.testing.assert_array_equal(np.flatnonzero(~carries), [0, 5, 8])
    ratio = merged_signal_to_noise(truth, photons, 3.0)
    assert shells_with_signal(truth, photons, 3.0, limit=ratio[10]).sum() == (ratio[1:] >= ratio[10]).sum()


def test_photons_are_counted_in_the_shell_nearest_to_their_pixel() -> None:
    counted = photons_in_shells([1.0, 2, 4, 8], [0.4, 0.6, 2.4, 2.6], 5)
    np.testing.assert_array_equal(counted, [1, 2, 4])


def test_wrong_arguments_are_told() -> None:
    truth = speckles()
    with pytest.raises(OrienteerError, match="21 shells"):
        merged_signal_to_noise(truth, np.ones(4), 1.0)
    with pytest.raises(OrienteerError, match="has no size"):
        merged_signal_to_noise(truth, np.ones(n_shells(N)), 0.0)
    with pytest.raises(OrienteerError, match="one length"):
        photons_in_shells([1.0], [1.0, 2.0], 5)
