"""A density has the unit that is known, and says where that comes from."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.phase.half_grid import density_of, transform_of
from orienteer.phase.scale import ABSOLUTE, ARBITRARY, ELECTRONS_SQUARED_PER_UNIT, find_scale

VOXEL_A = 2.5


def particle() -> np.ndarray:
    """Electrons per cubic angstrom."""
    density = np.zeros((12, 12, 12))
    density[4:8, 3:8, 5:9] = np.random.default_rng(0).uniform(0.2, 0.6, (4, 5, 4))
    return density


def test_the_unit_of_the_intensity_gives_electrons() -> None:
    """An intensity in photons, 0.01 of them for an electron squared, becomes electrons per cubic angstrom."""
    truth = particle()
    amplitude_electrons = transform_of(truth) * VOXEL_A**3
    photons = 0.01 * np.abs(amplitude_electrons) ** 2
    phased = density_of(np.sqrt(photons) * np.exp(1j * np.angle(amplitude_electrons)))
    scale = find_scale(phased, truth > 0, VOXEL_A, {ELECTRONS_SQUARED_PER_UNIT: 100.0})
    assert scale.is_absolute
    np.testing.assert_allclose(phased * scale.factor, truth, atol=1e-9)


def test_the_number_of_electrons_gives_the_scale() -> None:
    truth = particle()
    electrons = truth.sum() * VOXEL_A**3
    scale = find_scale(7 * truth, truth > 0, VOXEL_A, electrons=electrons)
    assert scale.unit == ABSOLUTE
    np.testing.assert_allclose(7 * truth * scale.factor, truth)
    assert "electrons, as given" in scale.source


def test_a_mass_stands_for_its_electrons() -> None:
    by_mass = find_scale(particle(), particle() > 0, VOXEL_A, mass_kDa=100)
    by_number = find_scale(particle(), particle() > 0, VOXEL_A, electrons=53400)
    assert by_mass.factor == pytest.approx(by_number.factor)


def test_electrons_of_a_protein_per_mass_are_those_of_its_elements() -> None:
    """Mass shares of the elements in an average protein; electrons and masses of the elements."""
    shares = {"C": 0.53, "H": 0.07, "N": 0.16, "O": 0.23, "S": 0.01}
    per_dalton = {"C": 6 / 12.011, "H": 1 / 1.008, "N": 7 / 14.007, "O": 8 / 15.999, "S": 16 / 32.06}
    from orienteer.phase.scale import ELECTRONS_PER_KDA

    expected = 1000 * sum(share * per_dalton[element] for element, share in shares.items())
    assert pytest.approx(expected, rel=0.005) == ELECTRONS_PER_KDA


@pytest.mark.parametrize("unit", [None, "photons", 0.0, -1.0, float("nan"), True])
def test_without_a_scale_the_unit_is_said_to_be_arbitrary(unit: object) -> None:
    truth = particle()
    metadata = {} if unit is None else {ELECTRONS_SQUARED_PER_UNIT: unit}
    scale = find_scale(7 * truth, truth > 0, VOXEL_A, metadata)
    assert scale.unit == ARBITRARY
    assert not scale.is_absolute
    assert (7 * truth * scale.factor)[truth > 0].mean() == pytest.approx(1)


@pytest.mark.parametrize("electrons", [0.0, 1e5])
def test_a_density_without_a_sum_has_no_absolute_scale(electrons: float) -> None:
    truth = particle()
    scale = find_scale(-truth, truth > 0, VOXEL_A, electrons=electrons)
    assert not scale.is_absolute
    assert (scale.factor * truth)[truth > 0].mean() == pytest.approx(1)
    assert find_scale(0 * truth, truth > 0, VOXEL_A).factor == 1


def test_two_statements_of_the_scale_are_one_too_many() -> None:
    with pytest.raises(OrienteerError, match="both"):
        find_scale(particle(), particle() > 0, VOXEL_A, electrons=1, mass_kDa=1)
