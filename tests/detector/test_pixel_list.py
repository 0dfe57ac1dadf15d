"""Pixels one by one, and the panel through a regular grid of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.detector.panel import Panel
from orienteer.detector.pixel_list import PixelList, panel_through, pixel_list
from orienteer.errors import OrienteerError


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 9), st.integers(2, 9), st.floats(-1, 1), st.floats(-1, 1))
def test_the_panel_through_the_centres_of_a_panel_is_that_panel(
    n_slow: int, n_fast: int, tilt: float, turn: float
) -> None:
    fast = 1e-3 * np.array([np.cos(turn), np.sin(turn), 0])
    slow = 1e-3 * np.array([-np.sin(turn) * np.cos(tilt), np.cos(turn) * np.cos(tilt), np.sin(tilt)])
    panel = Panel("p", (0.01, -0.02, 0.3), fast, slow, (n_slow, n_fast))
    found = panel_through(panel.pixel_centres_m(), "p", tolerance=1e-9)
    assert found is not None
    assert np.allclose(found.corners_m(), panel.corners_m(), rtol=0, atol=1e-15)


def test_a_bent_grid_is_no_panel() -> None:
    centres = Panel("p", (0, 0, 0.3), (1e-3, 0, 0), (0, 1e-3, 0), (5, 5)).pixel_centres_m()
    centres[2, 2, 2] += 1e-5
    assert panel_through(centres, "p", tolerance=1e-6) is None
    assert panel_through(centres[:1], "p") is None


@pytest.mark.parametrize(
    ("positions", "areas"),
    [
        ([[0.0, 0, 0]], [[0, 0, 1e-8]]),
        ([[0.0, 0, np.nan]], [[0, 0, 1e-8]]),
        ([[0.0, 0, 1.0]], [[0, 0, np.inf]]),
        ([[0.0, 0, 1.0]], [[0, 1e-8]]),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_impossible_pixels_are_refused(positions: object, areas: object) -> None:
    with pytest.raises(OrienteerError):
        PixelList(positions, areas)  # type: ignore[arg-type]


def test_pixels_of_their_own_area() -> None:
    pixels = pixel_list([[0, 0, 1.0], [0.1, 0, 1.0]], [1e-8, 2e-8])
    assert pixels.area_vectors_m2.tolist() == [[0, 0, 1e-8], [0, 0, 2e-8]]
