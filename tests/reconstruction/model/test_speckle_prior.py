"""What a model of faint frames may be, before they say anything."""

import numpy as np
import pytest

from orienteer.compute.fast_length import fast_length
from orienteer.reconstruction.model.autocorrelation import numbers_at_distances
from orienteer.reconstruction.model.relative_intensity import shells_of
from orienteer.reconstruction.model.speckle_prior import SpecklePrior, power_of_ball

N = 33


def intensity_of_ball(n: int, speckle_voxels: float, seed: int) -> np.ndarray:
    """The intensity (n, n, n) of random density in a ball, its speckles so many voxels across."""
    box = fast_length(n)
    axis = np.minimum(np.arange(box), box - np.arange(box)) * speckle_voxels / box
    inside = np.sqrt(sum(np.square(x) for x in np.meshgrid(axis, axis, axis, sparse=True))) < 0.5
    density = np.random.default_rng(seed).normal(size=(box,) * 3) * inside
    values = np.abs(np.fft.fftshift(np.fft.fftn(density))) ** 2
    low = box // 2 - n // 2
    return values[(slice(low, low + n),) * 3] / values.mean()


@pytest.mark.parametrize("speckle_voxels", [2.5, 4.0])
def test_its_power_is_that_of_random_density_in_a_ball(speckle_voxels: float) -> None:
    box = fast_length(N)
    axis = np.minimum(np.arange(box), box - np.arange(box))
    square = axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2
    distance = np.minimum(np.rint(np.sqrt(square)).astype(int), box // 2 + 1)
    sums = np.zeros(box // 2 + 2)
    for seed in range(8):
        deviation = np.zeros((box,) * 3)
        deviation[:N, :N, :N] = intensity_of_ball(N, speckle_voxels / 1.1, seed) - 1  # it has that much room
        sums += np.bincount(distance.ravel(), (np.abs(np.fft.fftn(deviation)) ** 2).ravel())
    measured = sums / np.bincount(distance.ravel())
    measured *= numbers_at_distances(box).sum() / (measured * numbers_at_distances(box)).sum()
    power = power_of_ball(N, speckle_voxels)
    # The mean of a shell is no deviation, and the first distances are of it.
    reach = int(0.8 * box / speckle_voxels)
    np.testing.assert_allclose(power[2:reach], measured[2:reach], atol=0.15 * measured[2])


def test_the_size_of_a_box_is_the_size_of_its_numbers() -> None:
    for n in (21, 32, 45):
        number = numbers_at_distances(fast_length(n))
        assert number.sum() == fast_length(n) ** 3
        np.testing.assert_allclose((power_of_ball(n, 3.0) * number).sum(), number.sum())


def test_many_photons_are_believed_and_few_are_not() -> None:
    truth = intensity_of_ball(N, 3.0, 1).astype(np.float32)
    rng = np.random.default_rng(2)
    errors = {}
    for photons in (0.003, 0.3, 300.0):
        exposure = np.full((N,) * 3, photons)
        counted = (rng.poisson(truth * photons) / photons).astype(np.float32)
        counted = (counted + counted[::-1, ::-1, ::-1]) / 2
        kept = SpecklePrior(exposure, 3.0).filtered([(counted, exposure, True)])[0]
        inner = (shells_of(truth) > 3) & (shells_of(truth) < N // 2 - 2)
        errors[photons] = [float(np.std((x - truth)[inner])) for x in (kept, counted, np.ones_like(truth))]
    for kept, counted, _ in errors.values():
        assert kept < 1.02 * counted
    # Of speckles with a tenth of a photon nothing is known, and nothing is made up.
    assert errors[0.003][0] < 1.15 * errors[0.003][2]
    assert errors[0.3][0] < 0.6 * min(errors[0.3][1:])
    assert errors[300.0][0] < 0.15
