"""What two halves tell about the truth, held against the truth."""

from typing import Any

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from orienteer.reconstruction.model.nearness import Halves, correlation_with_truth, gain_in_nearness
from orienteer.reconstruction.model.relative_intensity import half_correlation

EDGE = 33
SHELLS = slice(4, 15)
EXPOSURE = np.ones((EDGE,) * 3)


def halves_of(models: Any) -> Halves:
    return Halves(models, half_correlation(models[0], models[1], EXPOSURE))


@pytest.mark.parametrize(
    ("blur_voxels", "noise_of_blurred", "noise_of_sharp"),
    [(1.0, 0.1, 0.1), (1.0, 0.1, 1.0), (0.3, 0.1, 1.0), (0.8, 0.3, 0.5), (0.0, 0.5, 0.5)],
)
def test_the_correlation_with_the_truth_is_foretold(
    blur_voxels: float, noise_of_blurred: float, noise_of_sharp: float
) -> None:
    draw = np.random.default_rng(3)

    def halves(model: Any, noise: float) -> Halves:
        return halves_of(np.stack([model + draw.normal(0, noise, model.shape) for _ in range(2)]))

    truth = gaussian_filter(draw.normal(size=(EDGE,) * 3), 1.0)
    truth /= truth.std()
    models = halves(gaussian_filter(truth, blur_voxels), noise_of_blurred), halves(truth, noise_of_sharp)
    told = correlation_with_truth(*models, EXPOSURE)
    found = [half_correlation(each.models.mean(axis=0), truth, EXPOSURE)[SHELLS].mean() for each in models]
    assert [each[SHELLS].mean() for each in told] == pytest.approx(found, abs=0.02)
    if abs(found[1] - found[0]) > 0.02:
        assert gain_in_nearness(*models, EXPOSURE, EDGE) * (found[1] - found[0]) > 0


def test_noise_says_nothing_about_the_truth() -> None:
    first, second = np.random.default_rng(4).normal(size=(2, 2, EDGE, EDGE, EDGE))
    assert gain_in_nearness(halves_of(first), halves_of(second), EXPOSURE, EDGE) == 0


def test_a_model_that_says_nothing_is_further_from_the_truth_than_one_that_does() -> None:
    speckles = np.random.default_rng(4).normal(size=(1, EDGE, EDGE, EDGE)).repeat(2, axis=0)
    known, nothing = halves_of(speckles), halves_of(np.ones_like(speckles))
    assert gain_in_nearness(known, nothing, EXPOSURE, EDGE) == pytest.approx(-1)
    assert gain_in_nearness(nothing, known, EXPOSURE, EDGE) == pytest.approx(1)


def test_shells_beyond_the_pixels_have_no_say() -> None:
    """A few photons are put there beside the outermost pixels, and correlate by chance."""
    draw = np.random.default_rng(5)
    axis = np.arange(EDGE) - EDGE // 2
    radius = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    truth = draw.normal(size=(EDGE,) * 3)
    old = halves_of(np.stack([truth + draw.normal(0, 0.2, truth.shape) for _ in range(2)]))
    worse = np.stack([truth + draw.normal(0, 0.5, truth.shape) for _ in range(2)])
    worse[:, radius > 12.5] = np.where(radius > 12.5, truth, 0)[
        radius > 12.5
    ]  # as if they were known exactly
    new = halves_of(worse)
    assert gain_in_nearness(old, new, EXPOSURE, 12) < -0.03 < gain_in_nearness(old, new, EXPOSURE, EDGE)
