"""A flat background is found by dark voxels, and fitted where a density explains the rest."""

import numpy as np
import pytest

from orienteer.phase.background import dark_level, fit_background
from orienteer.phase.data import phasing_data
from orienteer.phase.half_grid import density_of


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
    assert fit_background(right, data, dark_level(data))[0] == pytest.approx(flat, rel=0.05)
    assert fit_background(0 * right, data, dark_level(data))[0] <= dark_level(data).most
