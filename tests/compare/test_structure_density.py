"""The density of a structure is that of its electrons, on any grid."""

import numpy as np
import pytest

from orienteer.compare.fsc import half_radius, half_transform
from orienteer.compare.structure_density import density_like, density_of, intensity_of
from orienteer.errors import OrienteerError
from orienteer.particle.structure import blobs
from orienteer.volume.volume import Volume

BODY = blobs([[4, 0, 0], [-6, 10, 3]], [100, 50], [5, 6])


@pytest.mark.parametrize("n", [32, 33])
def test_it_is_in_electrons_per_cubic_angstrom_at_the_right_place(n: int) -> None:
    found = density_of(BODY, n, 2.0)
    assert found.values.sum() * 2.0**3 == pytest.approx(150, rel=1e-4)
    x, y, z = (np.indices((n, n, n)) - n // 2) * 2.0
    wanted = sum(
        weight
        * np.exp(-((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2) / (2 * s**2))
        / (2 * np.pi * s**2) ** 1.5
        for (a, b, c), weight, s in (((4, 0, 0), 100, 5), ((-6, 10, 3), 50, 6))
    )
    np.testing.assert_allclose(found.values, wanted, atol=1e-3 * wanted.max())


def test_nothing_is_finer_than_the_resolution() -> None:
    found = density_of(blobs([[3, 2, 1]], [1], 0.5), 24, 2.0, resolution_A=8.0)
    strength = abs(half_transform(found.values))
    beyond = half_radius(24) > 24 * 2.0 / 8.0
    assert strength[beyond].max() < 1e-5 * strength.max()
    assert strength[~beyond].min() > 0.1 * strength.max()


def test_a_box_too_small_for_the_particle_grows() -> None:
    small = Volume(np.zeros((8, 8, 8)), 2.0)
    found = density_like(BODY, small)
    assert found.voxel_size == (2, 2, 2)
    assert found.shape[0] * 2.0 >= 2 * BODY.radius_A - 2
    large = Volume(np.zeros((80, 60, 50)), 2.0)
    assert density_like(BODY, large).shape == (80, 80, 80)


def test_an_intensity_is_the_square_of_the_amplitude() -> None:
    found = intensity_of(BODY, 21, 0.01)
    assert found.space == "reciprocal"
    assert found.values[10, 10, 10] == pytest.approx(150**2, rel=1e-5)
    q = np.array([0.03, -0.02, 0.05])
    assert found.values[13, 8, 15] == pytest.approx(abs(BODY.amplitude(q)) ** 2, rel=1e-4)


def test_impossible_grids_are_told() -> None:
    with pytest.raises(OrienteerError, match="no grid"):
        density_of(BODY, 0, 1.0)
    with pytest.raises(OrienteerError, match="no grid"):
        intensity_of(BODY, 4, -1.0)
    with pytest.raises(OrienteerError, match="impossible"):
        density_of(BODY, 8, 1.0, resolution_A=0.0)
    with pytest.raises(OrienteerError, match="Check the voxel size"):
        density_like(BODY, Volume(np.zeros((8, 8, 8)), 0.01))
