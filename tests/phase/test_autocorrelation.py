"""The autocorrelation tells size and noise, with or without a missing centre."""

import numpy as np
import pytest

from orienteer.phase.data import phasing_data


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
