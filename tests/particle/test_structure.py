"""Atoms in space: the direct sum against an obvious loop, and everything that may be done to a structure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import to_matrix
from orienteer.particle.base import Particle
from orienteer.particle.scatterers import element_table
from orienteer.particle.structure import Structure, blobs

ENERGY_EV = 7200.0


def random_structure(rng: np.random.Generator, n: int = 60, spread_A: float = 20.0) -> Structure:
    table = element_table(["C", "N", "O", "S", "Zn"])
    return Structure(
        rng.normal(size=(n, 3)) * spread_A,
        rng.integers(0, len(table), n),
        table,
        rng.uniform(0.2, 1, n),
        rng.uniform(0, 80, n),
    )


def three_blobs() -> Structure:
    """No symmetry at all: unequal weights, unequal widths, and no two distances alike."""
    return blobs([[0, 0, 0], [40, 0, 0], [0, 25, -15]], [100, 60, 30], [6, 8, 5])


def slow_amplitude(structure: Structure, q_inv_A: np.ndarray, photon_energy_eV: float | None) -> np.ndarray:
    anomalous = structure.table.anomalous_terms(photon_energy_eV)
    total = np.zeros(len(q_inv_A), dtype=complex)
    for j in range(len(structure)):
        kind = structure.scatterer[j]
        for p, q in enumerate(q_inv_A):
            squared = q @ q
            f = sum(
                a * np.exp(-b * squared / 4)
                for a, b in zip(
                    structure.table.amplitudes[kind], structure.table.widths_A2[kind], strict=True
                )
            )
            damping = structure.occupancy[j] * np.exp(-structure.b_factor_A2[j] * squared / 4)
            total[p] += (f + anomalous[kind]) * damping * np.exp(2j * np.pi * q @ structure.positions_A[j])
    return total


def random_quaternions(rng: np.random.Generator, n: int) -> np.ndarray:
    quaternions = rng.normal(size=(n, 4))
    return quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)


def test_a_structure_is_a_particle(rng: np.random.Generator) -> None:
    assert isinstance(random_structure(rng), Particle)


@pytest.mark.parametrize("photon_energy_eV", [None, ENERGY_EV])
def test_the_direct_sum_is_the_formula(photon_energy_eV: float | None, rng: np.random.Generator) -> None:
    structure = random_structure(rng, 37)
    q = rng.normal(size=(20, 3)) * 0.1
    expected = slow_amplitude(structure, q, photon_energy_eV)
    np.testing.assert_allclose(structure.amplitude(q, photon_energy_eV), expected, rtol=1e-12, atol=1e-11)


def test_more_atoms_than_one_block_of_the_kernel_and_any_shape_of_q(rng: np.random.Generator) -> None:
    structure = random_structure(rng, 1500, 60)
    q = rng.normal(size=(2, 3, 3)) * 0.05
    amplitude = structure.amplitude(q, ENERGY_EV)
    assert amplitude.shape == (2, 3)
    np.testing.assert_allclose(
        amplitude.ravel(), slow_amplitude(structure, q.reshape(-1, 3), ENERGY_EV), rtol=1e-11
    )


def test_the_amplitude_at_zero_is_the_electron_count(rng: np.random.Generator) -> None:
    structure = random_structure(rng)
    expected = (structure.occupancy * np.array([6, 7, 8, 16, 30])[structure.scatterer]).sum()
    assert structure.n_electrons == pytest.approx(expected, rel=1e-12)
    assert structure.amplitude([0.0, 0, 0]) == pytest.approx(expected, rel=1e-12)


def test_friedels_law_holds_without_anomalous_terms_and_breaks_with_them(rng: np.random.Generator) -> None:
    structure = random_structure(rng)
    q = rng.normal(size=(50, 3)) * 0.1
    plain, mirrored = structure.amplitude(q), structure.amplitude(-q)
    np.testing.assert_allclose(mirrored, plain.conj(), atol=1e-11)
    at_energy = np.abs(structure.amplitude(q, ENERGY_EV)), np.abs(structure.amplitude(-q, ENERGY_EV))
    assert np.abs(at_energy[0] - at_energy[1]).max() > 0.1
    switched_off = structure.without_anomalous_terms()
    np.testing.assert_allclose(switched_off.amplitude(q, ENERGY_EV), plain, rtol=1e-13)


def test_turned_atoms_scatter_like_the_unturned_ones_at_the_transposed_q(rng: np.random.Generator) -> None:
    structure = three_blobs()
    q = rng.normal(size=(100, 3)) * 0.03
    differences = []
    for quaternion in random_quaternions(rng, 20):
        matrix = to_matrix(quaternion)
        turned = structure.rotated(quaternion)
        np.testing.assert_allclose(
            turned.positions_A, [matrix @ r for r in structure.positions_A], atol=1e-12
        )
        np.testing.assert_allclose(
            turned.amplitude(q), structure.amplitude([matrix.T @ v for v in q]), atol=1e-10
        )
        wrong = structure.amplitude([matrix @ v for v in q])
        differences.append(np.linalg.norm(turned.amplitude(q) - wrong) / np.linalg.norm(wrong))
    assert np.median(differences) > 0.3, "the object is asymmetric enough to tell R from its transpose"


def test_a_quarter_turn_about_z_takes_x_to_y() -> None:
    atom = blobs([[10, 0, 0]], [1], 1).rotated([np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    np.testing.assert_allclose(atom.positions_A, [[0, 10, 0]], atol=1e-12)


@given(arrays(float, 3, elements=st.floats(-300, 300)))
@settings(max_examples=25, deadline=None)
def test_a_shift_is_a_phase(shift_A: np.ndarray) -> None:
    structure = three_blobs()
    q = np.array([[0.01, -0.02, 0.03], [0.0, 0.04, 0.001]])
    expected = structure.amplitude(q) * np.exp(2j * np.pi * q @ shift_A)
    np.testing.assert_allclose(structure.translated(shift_A).amplitude(q), expected, atol=1e-9)


def test_centring_is_right_wherever_the_atoms_are(rng: np.random.Generator) -> None:
    structure = random_structure(rng)
    for shift in ([0, 0, 0], [200, 200, 200], [-5000, 3, 1e4]):
        centred = structure.translated(shift).centred()
        np.testing.assert_allclose(centred.centre_A, 0, atol=1e-9)
        np.testing.assert_allclose(centred.positions_A, structure.centred().positions_A, atol=1e-8)


def test_a_sum_of_structures_adds_amplitudes(rng: np.random.Generator) -> None:
    first, second = random_structure(rng, 10), three_blobs()
    q = rng.normal(size=(30, 3)) * 0.05
    both = first + second
    assert len(both) == 13
    expected = first.amplitude(q, ENERGY_EV) + second.amplitude(q, ENERGY_EV)
    np.testing.assert_allclose(both.amplitude(q, ENERGY_EV), expected, atol=1e-11)


def test_blobs_have_the_transform_of_a_gaussian() -> None:
    q = np.array([0.01, 0.02, -0.03])
    expected = 50 * np.exp(-2 * np.pi**2 * 8**2 * q @ q) * np.exp(2j * np.pi * q @ [5, 6, 7])
    assert blobs([[5, 6, 7]], [50], 8).amplitude(q) == pytest.approx(expected, rel=1e-12)


def test_the_radius_holds_the_tails() -> None:
    assert blobs([[30, 40, 0]], [1], 5).radius_A == pytest.approx(50 + 6 * 5)


def test_a_selection_keeps_its_columns(rng: np.random.Generator) -> None:
    structure = random_structure(rng, 20)
    chosen = structure.selected(structure.scatterer == 2)
    assert (chosen.scatterer == 2).all()
    assert set(chosen.b_factor_A2) <= set(structure.b_factor_A2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"positions_A": np.zeros((0, 3))}, "N > 0"),
        ({"positions_A": np.full((3, 3), np.nan)}, "not finite"),
        ({"occupancy": np.ones(2)}, "occupancy has shape"),
        ({"scatterer": np.array([0, 1, 9])}, "0..2"),
        ({"b_factor_A2": np.array([1, np.inf, 2])}, "b_factor_A2 holds 1 value"),
    ],
)
def test_columns_that_do_not_fit_are_refused(change: dict, words: str) -> None:
    good = {
        "positions_A": np.zeros((3, 3)),
        "scatterer": np.arange(3),
        "table": element_table(["C", "N", "O"]),
    }
    Structure(**good)
    with pytest.raises(OrienteerError, match=words.replace(".", r"\.")):
        Structure(**{**good, **change})
