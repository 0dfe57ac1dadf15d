"""A flat background is found by dark voxels, and fitted where a density explains the rest."""

import numpy as np
import pytest

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.particle.structure import blobs as gaussian_balls
from orienteer.phase.background import BackgroundFit, dark_level
from orienteer.phase.data import phasing_data
from orienteer.phase.half_grid import density_of
from orienteer.volume.volume import Volume


def mean_intensity(made) -> float:
    return float(np.nanmean(made.intensity.values.astype(np.float64)))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_dark_voxels_tell_the_background(body, noise) -> None:
    flat = 0.05 * mean_intensity(body(hole=1.0))
    level = dark_level(phasing_data(body(hole=1.0, noise=noise, background=0.05).intensity, device="cpu"))
    assert level.estimate == pytest.approx(flat, rel=0.2)
    assert level.most > flat * 0.95


def test_without_a_background_next_to_none_is_found(body) -> None:
    level = dark_level(phasing_data(body(hole=1.0, noise=0.1).intensity, device="cpu"))
    assert level.estimate < 0.001 * mean_intensity(body(hole=1.0))


def test_what_the_true_density_leaves_is_the_background(body) -> None:
    made, without = body(background=0.05, noise=0.05), body()
    data = phasing_data(made.intensity, device="cpu")
    clean = phasing_data(without.intensity, device="cpu")
    right = density_of(clean.amplitudes * 1.0).astype(np.float32)[None]
    flat = 0.05 * mean_intensity(without)
    fit = BackgroundFit.of(data)
    assert fit(right)[0] == pytest.approx(flat, rel=0.05)
    assert fit(0 * right)[0] == pytest.approx(fit.level.most)  # no more than dark voxels have
    assert fit(10 * right)[0] == 0


def test_a_particle_whose_outer_speckles_are_nowhere_dark_is_not_taken_for_a_background() -> None:
    """One small ball outshines all others far out, where its intensity falls, and has no dark places."""
    positions, widths = np.array([[0.0, 0, 0], [30, 0, 0], [0, 25, 0]]), np.array([5.0, 14, 14])
    axis = np.arange(-17, 18) / 240.0
    transform = gaussian_balls(positions, np.array([1e3, 2e4, 2e4]), widths).amplitude_on_grid(axis)
    q = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    values = np.where(q <= 0.07, np.abs(transform) ** 2, np.nan)
    level = dark_level(phasing_data(Volume(values, 1 / 240.0, "reciprocal"), device="cpu"))
    assert level.estimate < 1.1 * np.nanmin(values)


@pytest.mark.gpu
def test_the_gpu_fits_the_same(body) -> None:
    data = phasing_data(body(background=0.05, noise=0.05).intensity, device="cpu")
    density = density_of(data.amplitudes * 1.0).astype(np.float32)[None]
    far = BackgroundFit.of(data.to("cuda"))(to_device(density, "cuda"))
    assert to_numpy(far) == pytest.approx(BackgroundFit.of(data)(density), rel=1e-3)
