"""Directions come back from scattering vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.detector.ewald import distance_from_sphere, fit_ewald_radius, positions_on_plane
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError


@settings(max_examples=30, deadline=None)
@given(st.floats(0.02, 1.0), st.floats(1e-12, 1e12))
def test_the_radius_is_found_at_any_angle_and_in_any_unit(distance_m: float, radius: float) -> None:
    q = radius * square_detector(8, 2e-3, distance_m).ewald_vectors
    assert fit_ewald_radius(q) == pytest.approx(radius, rel=1e-9)
    assert distance_from_sphere(q, radius) < 1e-14


def test_positions_come_back_from_their_scattering_vectors() -> None:
    detector = square_detector(16, 1e-3, 0.03)
    q = 7.0 * detector.ewald_vectors
    assert np.allclose(positions_on_plane(q, 7.0, 0.03), detector.positions_m, rtol=0, atol=1e-16)


def test_flat_vectors_have_no_radius_and_are_taken_as_sideways_parts() -> None:
    detector = square_detector(6, 1e-3, 0.03)
    flat = detector.ewald_vectors * [1, 1, 0]
    assert fit_ewald_radius(flat) is None
    assert fit_ewald_radius(np.zeros((3, 3))) is None
    assert np.allclose(positions_on_plane(flat, 1.0, 0.03), detector.positions_m)


def test_a_plane_cannot_hold_what_scatters_backwards() -> None:
    with pytest.raises(OrienteerError, match="90 degrees"):
        positions_on_plane(np.array([[0, 0, -1.5]]), 1.0, 0.1)
