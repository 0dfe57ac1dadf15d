"""Water around the atoms: where it lies, how much it is, and that it turns with them."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.particle.hydration import hydration_layer
from orienteer.particle.scatterers import element_table
from orienteer.particle.structure import Structure


def ball_of_atoms(radius_A: float, hollow_A: float = 0.0) -> Structure:
    """Carbons on a lattice too tight for water, between two radii."""
    n = int(radius_A // 1.5) + 1
    lattice = 1.5 * np.stack(np.meshgrid(*[np.arange(-n, n + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
    distance = np.linalg.norm(lattice, axis=1)
    lattice = lattice[(distance <= radius_A) & (distance >= hollow_A)]
    return Structure(lattice, np.zeros(len(lattice), dtype=int), element_table(["C"]))


def test_the_layer_has_the_volume_of_a_shell_and_lies_on_the_surface() -> None:
    layer = hydration_layer(ball_of_atoms(20.0), thickness_A=4.0, density=0.3, spacing_A=1.0)
    inner, outer = 20 + 1.7, 20 + 1.7 + 4
    shell = 4 / 3 * np.pi * (outer**3 - inner**3)
    assert layer.n_electrons == pytest.approx(0.3 * shell, rel=0.08)
    distance = np.linalg.norm(layer.positions_A, axis=1)
    assert distance.min() > inner - 1.5
    assert distance.max() < outer + 0.1


def test_a_coarser_grid_holds_about_as_much_water() -> None:
    fine, coarse = (
        hydration_layer(ball_of_atoms(20.0), 4.0, spacing_A=spacing).n_electrons for spacing in (1.0, 2.5)
    )
    assert coarse == pytest.approx(fine, rel=0.15)


def test_a_closed_cavity_is_wet_unless_only_the_outside_counts() -> None:
    hollow = ball_of_atoms(24.0, hollow_A=12.0)
    everywhere = np.linalg.norm(hydration_layer(hollow).positions_A, axis=1)
    outside = np.linalg.norm(hydration_layer(hollow, outside_only=True).positions_A, axis=1)
    assert (everywhere < 12).any()
    assert (outside > 24).all()


def test_gaps_too_narrow_for_a_water_stay_dry() -> None:
    plates = np.stack(
        np.meshgrid(1.5 * np.arange(-10, 11), 1.5 * np.arange(-10, 11), [-2.2, 2.2]), -1
    ).reshape(-1, 3)
    structure = Structure(plates, np.zeros(len(plates), dtype=int), element_table(["C"]))
    water = hydration_layer(structure, spacing_A=1.0).positions_A
    between = (np.abs(water[:, 2]) < 2.2) & (np.abs(water[:, :2]) < 11).all(axis=1)
    assert not between.any()


def test_the_layer_turns_with_the_atoms(rng: np.random.Generator) -> None:
    atoms = ball_of_atoms(6.0).translated([5, 0, 0]) + ball_of_atoms(4.0).translated([-6, 3, 1])
    wet = atoms + hydration_layer(atoms)
    q = rng.normal(size=(20, 3)) * 0.05
    quaternion = random_uniform(1, seed=2)[0]
    np.testing.assert_allclose(
        wet.rotated(quaternion).amplitude(q), wet.amplitude(q @ to_matrix(quaternion)), atol=1e-8
    )
    assert wet.n_electrons > atoms.n_electrons + 100


@pytest.mark.parametrize("arguments", [{"thickness_A": 0.0}, {"spacing_A": -1.0}, {"spacing_A": 0.005}])
def test_impossible_layers_are_refused(arguments: dict) -> None:
    with pytest.raises(OrienteerError, match="hydration layer"):
        hydration_layer(ball_of_atoms(10.0), **arguments)
