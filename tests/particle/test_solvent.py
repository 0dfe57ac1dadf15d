"""Atoms in bulk solvent scatter by their contrast."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.particle.scatterers import element_table
from orienteer.particle.solvent import DISPLACED_VOLUME_A3, displaced_volumes_A3, in_solvent
from orienteer.particle.structure import Structure, blobs

ENERGY_EV = 7000.0


def molecule() -> Structure:
    positions = [[0, 0, 0], [3, 0, 0], [0, 4, 1], [2, 2, 2]]
    return Structure(positions, np.array([0, 1, 2, 0]), element_table(["C", "N", "Se"]), [1, 1, 0.5, 1])


def test_the_contrast_at_zero_is_electrons_less_displaced_water() -> None:
    structure = molecule()
    selenium = displaced_volumes_A3(structure.table)[2]
    water = 0.334 * (2 * DISPLACED_VOLUME_A3["C"] + DISPLACED_VOLUME_A3["N"] + 0.5 * selenium)
    assert in_solvent(structure).amplitude([0, 0, 0]) == pytest.approx(structure.n_electrons - water)
    assert in_solvent(structure).n_electrons == pytest.approx(structure.n_electrons - water)


def test_displaced_water_is_a_gaussian_of_the_volume_of_the_atom() -> None:
    carbon = Structure(np.zeros((1, 3)), np.array([0]), element_table(["C"]))
    q = 0.2
    displaced = carbon.amplitude([q, 0, 0]) - in_solvent(carbon, 0.4).amplitude([q, 0, 0])
    volume = DISPLACED_VOLUME_A3["C"]
    assert displaced == pytest.approx(0.4 * volume * np.exp(-np.pi * volume ** (2 / 3) * q**2))


def test_the_contrast_keeps_anomalous_terms_and_grids(rng: np.random.Generator) -> None:
    structure = molecule()
    q = rng.normal(size=(10, 3)) * 0.1
    anomalous = structure.amplitude(q, ENERGY_EV) - structure.amplitude(q)
    contrast = in_solvent(structure)
    np.testing.assert_allclose(
        contrast.amplitude(q, ENERGY_EV) - contrast.amplitude(q), anomalous, atol=1e-12
    )
    axis = (np.arange(10) - 5) * 0.03
    grid = contrast.amplitude_on_grid(axis, ENERGY_EV)
    assert grid[2, 7, 4] == pytest.approx(contrast.amplitude(axis[[2, 7, 4]], ENERGY_EV), abs=1e-6)


def test_no_solvent_changes_nothing_and_blobs_displace_nothing(rng: np.random.Generator) -> None:
    q = rng.normal(size=(10, 3)) * 0.1
    np.testing.assert_allclose(in_solvent(molecule(), 0.0).amplitude(q), molecule().amplitude(q))
    ball = blobs([[1, 2, 3]], [50], 4)
    np.testing.assert_allclose(in_solvent(ball).amplitude(q), ball.amplitude(q))


def test_a_scale_widens_every_volume() -> None:
    lost = [molecule().n_electrons - in_solvent(molecule(), volume_scale=s).n_electrons for s in (1.0, 1.4)]
    assert lost[1] == pytest.approx(1.4 * lost[0])


def test_the_volumes_are_those_of_the_published_tables() -> None:
    """Fraser et al. (1978) for H, C, N, O; CRYSOL (1995) gives the radii of the others, as spheres."""
    published = {"H": 5.15, "C": 16.44, "N": 2.49, "O": 9.13}
    radii_A = {"S": 1.68, "P": 1.11, "Mg": 1.60, "Ca": 1.97, "Mn": 1.30, "Fe": 1.24, "Cu": 1.28, "Zn": 1.33}
    published |= {element: 4 / 3 * np.pi * radius**3 for element, radius in radii_A.items()}
    assert set(DISPLACED_VOLUME_A3) == {*published, "D"}
    for element, volume in published.items():
        assert DISPLACED_VOLUME_A3[element] == pytest.approx(volume, rel=0.005)


def test_an_alanine_residue_displaces_its_partial_volume() -> None:
    """C3 H5 N O occupies 0.74 cm³/g of water, which no table of ours enters."""
    residue = element_table(["C", "H", "N", "O"])
    volume = displaced_volumes_A3(residue) @ [3, 5, 1, 1]
    assert volume == pytest.approx(71.08 / 6.02214e23 * 0.74e24, rel=0.05)


def test_negative_densities_are_refused() -> None:
    with pytest.raises(OrienteerError, match="solvent density"):
        in_solvent(molecule(), -0.1)
