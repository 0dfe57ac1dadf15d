"""The geometry of light against plain formulas, for any leading axes."""

import numpy as np
import pytest

from orienteer.detector.scattering_geometry import ewald_vectors, polarisation_factor, solid_angle_sr
from orienteer.errors import OrienteerError

RNG = np.random.default_rng(3)
POSITIONS_M = RNG.normal(0, 1, (5, 40, 3))
AREAS_M2 = RNG.normal(0, 1e-6, (40, 3))
DIRECTIONS = POSITIONS_M / np.linalg.norm(POSITIONS_M, axis=-1, keepdims=True)


def test_ewald_vectors_are_directions_less_that_of_the_beam() -> None:
    np.testing.assert_allclose(ewald_vectors(POSITIONS_M), DIRECTIONS - [0, 0, 1], atol=1e-15)


def test_the_bend_is_exact_at_angles_where_a_difference_of_cosines_has_no_digits_left() -> None:
    bend = ewald_vectors(np.array([[1e-9, 0.0, 1.0]]))[0, 2]
    assert bend == pytest.approx(-0.5e-18, rel=1e-12)


def test_the_solid_angle_is_the_facing_area_over_the_distance_squared() -> None:
    facing = np.abs((AREAS_M2 * DIRECTIONS).sum(-1))
    found = solid_angle_sr(POSITIONS_M, AREAS_M2)
    np.testing.assert_allclose(found, facing / (POSITIONS_M**2).sum(-1), rtol=1e-12)


def test_polarised_light_does_not_scatter_along_its_field() -> None:
    x, y = DIRECTIONS[..., 0], DIRECTIONS[..., 1]
    for vectors in (DIRECTIONS, ewald_vectors(POSITIONS_M)):
        np.testing.assert_allclose(polarisation_factor(vectors, "x"), 1 - x**2, atol=1e-15)
        np.testing.assert_allclose(polarisation_factor(vectors, "y"), 1 - y**2, atol=1e-15)
        np.testing.assert_allclose(polarisation_factor(vectors, "none"), 1 - (x**2 + y**2) / 2, atol=1e-15)
    with pytest.raises(OrienteerError, match="'z'"):
        polarisation_factor(DIRECTIONS, "z")  # type: ignore[arg-type]


@pytest.mark.gpu
def test_the_gpu_gives_the_same_numbers() -> None:
    import cupy

    positions, areas = cupy.asarray(POSITIONS_M), cupy.asarray(AREAS_M2)
    np.testing.assert_allclose(ewald_vectors(positions).get(), ewald_vectors(POSITIONS_M), atol=1e-14)
    np.testing.assert_allclose(
        solid_angle_sr(positions, areas).get(), solid_angle_sr(POSITIONS_M, AREAS_M2), rtol=1e-12
    )
    np.testing.assert_allclose(
        polarisation_factor(positions, "none").get(), polarisation_factor(POSITIONS_M, "none"), rtol=1e-12
    )
