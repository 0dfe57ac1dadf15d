"""The pixels as a likelihood sees them: floors above zero, sums over scored pixels, and refusals."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.likelihood.pixel_model import PixelModel


def test_the_floor_is_a_fraction_of_the_reference_and_never_zero() -> None:
    pixels = PixelModel(np.ones(4), np.array([2.0, 0.5, 0.0, 0.0]), 3, floor_fraction=1e-2)
    np.testing.assert_allclose(pixels.floor[:2], [2e-2, 5e-3], rtol=1e-6)
    assert (pixels.floor > 0).all()
    assert (replace(pixels, reference=np.zeros(4)).floor > 0).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_signal_of_a_row_counts_scored_pixels_in_both_layouts(make_problem, weighted) -> None:
    problem = make_problem()
    S = problem.pixels.n_scored
    weights = np.linspace(0.0, 1.0, S) if weighted else None
    expected = (problem.slices[:, :S] * problem.pixels.correction[:S].astype(float)) @ (
        weights if weighted else np.ones(S)
    )
    by_row = problem.pixels.scored_signal(problem.slices, weights)
    by_pixel = problem.pixels.scored_signal(np.ascontiguousarray(problem.slices.T), weights, by_pixel=True)
    np.testing.assert_allclose(by_row, expected, rtol=1e-12)
    np.testing.assert_allclose(by_pixel, expected, rtol=1e-12)


def test_pixels_that_make_no_sense_are_refused() -> None:
    ones = np.ones(4, np.float32)
    for n_scored in (0, 5):
        with pytest.raises(OrienteerError, match="of 4 pixels"):
            PixelModel(ones, ones, n_scored)
    for wrong in (-ones, ones * np.nan, ones[:3]):
        with pytest.raises(OrienteerError, match="'reference'"):
            PixelModel(ones, wrong, 2)
        with pytest.raises(OrienteerError, match="'background'"):
            PixelModel(ones, ones, 2, wrong)
