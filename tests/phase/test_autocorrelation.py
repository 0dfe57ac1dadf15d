"""The autocorrelation tells size and noise, with or without a missing centre."""

import numpy as np
import pytest

from orienteer.particle.bodies import Spheroid
from orienteer.phase.data import phasing_data
from orienteer.volume.volume import Volume


@pytest.mark.parametrize("hole", [0.0, 2.0])
@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("oversampling", [2.4, 3.5])
def test_the_diameter_is_found(body, hole, noise, oversampling) -> None:
    made = body(hole=hole, noise=noise, oversampling=oversampling)
    found = phasing_data(made.intensity, device="cpu").autocorrelation
    assert found.is_found
    assert found.diameter_A == pytest.approx(made.diameter_A, rel=0.2)


@pytest.mark.parametrize(("noise", "least"), [(0.1, 0.4), (0.3, 0.75)])
def test_the_error_is_that_of_the_voxels_or_somewhat_more(body, noise, least) -> None:
    data, truth = (
        phasing_data(body(noise=each, oversampling=3.0).intensity, device="cpu") for each in (noise, 0.0)
    )
    known = data.measured
    difference = data.amplitudes[known] ** 2 - truth.amplitudes[known] ** 2
    assert least < np.sqrt(np.mean(difference**2 / data.sigma[known] ** 2)) < 1.1
    assert data.sigma[known].sum() > truth.sigma[known].sum()


def test_the_error_scales_with_the_intensity(body) -> None:
    made = body(noise=0.2)
    brighter = made.intensity.with_values(made.intensity.values * 1000)
    first, second = (phasing_data(volume, device="cpu") for volume in (made.intensity, brighter))
    assert second.sigma == pytest.approx(1000 * first.sigma, rel=1e-4)
    assert second.diameter_A == first.diameter_A


@pytest.mark.parametrize("across", [0.7, 0.8])
def test_the_axes_are_at_least_as_long_as_the_particles_and_not_much_longer(across) -> None:
    """A first support that is cut too short loses the particle; a ball is always long enough."""
    axis = np.arange(-18, 19) / 240.0
    transform = Spheroid((across * 50, across * 50, 50.0), 0.44).amplitude_on_grid(axis)
    q = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    intensity = Volume(np.where(q <= 0.075, np.abs(transform) ** 2, np.nan), 1 / 240.0, "reciprocal")
    found = phasing_data(intensity, device="cpu").autocorrelation
    long, middle, short = found.semi_axes_A
    assert abs(found.axes[0, 2]) > 0.99
    assert across < short / long <= middle / long < across + 0.17
