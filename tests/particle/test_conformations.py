"""Mixtures of particles and paths between two states of a molecule."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import random_uniform
from orienteer.particle.bodies import Part, Sum, sphere
from orienteer.particle.conformations import Ensemble, ensemble_on_path
from orienteer.particle.labels import AtomLabels
from orienteer.particle.matching import match_atoms
from orienteer.particle.opening import open_structure
from orienteer.particle.scatterers import element_table
from orienteer.particle.structure import Structure, blobs

SEQUENCE = ["MET", "ALA", "GLY", "LYS", "TRP", "SER", "ALA", "VAL"]


def peptide(rng: np.random.Generator, chains: str = "A", first_number: int = 1) -> Structure:
    """Residues of four atoms each, at random places."""
    n = len(chains) * len(SEQUENCE)
    names = np.tile(["N", "CA", "C", "O"], n)
    labels = AtomLabels(
        np.repeat(list(chains), 4 * len(SEQUENCE)),
        np.tile(np.repeat(np.arange(len(SEQUENCE)) + first_number, 4), len(chains)),
        np.full(4 * n, ""),
        np.tile(np.repeat(SEQUENCE, 4), len(chains)),
        names,
    )
    kinds = np.tile([1, 0, 0, 2], n)
    return Structure(rng.normal(size=(4 * n, 3)) * 15, kinds, element_table(["C", "N", "O"]), labels=labels)


def test_weights_of_an_ensemble_sum_to_one() -> None:
    ensemble = Ensemble((sphere(10), sphere(20)), np.array([1.0, 3.0]))
    np.testing.assert_allclose(ensemble.weights, [0.25, 0.75])
    assert ensemble.radius_A == 20
    np.testing.assert_allclose(Ensemble((sphere(10), sphere(20))).weights, 0.5)


@pytest.mark.parametrize("weights", [[1.0], [-1.0, 2.0], [0.0, 0.0], [np.nan, 1.0]])
def test_weights_that_make_no_mixture_are_refused(weights: list[float]) -> None:
    with pytest.raises(OrienteerError, match="weights"):
        Ensemble((sphere(10), sphere(20)), np.array(weights))


def test_an_ensemble_tells_what_was_decided_for_which_particle(rng: np.random.Generator) -> None:
    first = replace(peptide(rng), remarks=("3 water atoms were left out.",))
    second = replace(peptide(rng), remarks=("3 water atoms were left out.", "Model 1 of 2 was taken."))
    ensemble = Ensemble((first, sphere(10), second), names=("a.pdb", "sphere", "b.pdb"))
    assert ensemble.remarks == (
        "a.pdb, b.pdb: 3 water atoms were left out.",
        "b.pdb: Model 1 of 2 was taken.",
    )
    assert Ensemble((sphere(10),)).remarks == ()


def test_a_sum_of_particles_tells_the_remarks_of_its_parts(rng: np.random.Generator) -> None:
    told = replace(peptide(rng), remarks=("1 hydrogen atom was left out.",))
    assert Sum((Part(sphere(20)), Part(told), Part(told))).remarks == ("1 hydrogen atom was left out.",)


def test_remarks_on_a_path_say_which_end_they_speak_of(rng: np.random.Generator) -> None:
    first = peptide(rng)
    second = replace(first, remarks=("Occupancies average 0.51.",))
    remarks = ensemble_on_path(first, second, [0.0, 1.0]).remarks
    assert remarks[0] == "0, 1: Second end of the path: Occupancies average 0.51."
    assert "32 atoms are common" in remarks[1]


def test_the_ends_of_a_path_are_its_structures_and_the_middle_lies_between(rng: np.random.Generator) -> None:
    first = peptide(rng)
    moved = first.positions_A + rng.normal(size=first.positions_A.shape)
    second = Structure(moved, first.scatterer, first.table, labels=first.labels)
    turned = second.rotated(random_uniform(1, seed=7)[0]).translated([40, 50, 60])
    states = ensemble_on_path(first, turned, [0.0, 0.5, 1.0])
    start, middle, end = (state for state in states.particles if isinstance(state, Structure))

    def distances(structure: Structure) -> np.ndarray:
        return np.linalg.norm(structure.positions_A[:, None] - structure.positions_A[None], axis=-1)

    np.testing.assert_allclose(distances(start), distances(first), atol=1e-9)
    np.testing.assert_allclose(distances(end), distances(second), atol=1e-9)
    halfway = (start.positions_A + end.positions_A) / 2
    np.testing.assert_allclose(
        middle.positions_A, halfway - (halfway - middle.positions_A).mean(axis=0), atol=1e-9
    )
    assert any("32 atoms are common" in remark for remark in middle.remarks)


def test_atoms_match_by_label_in_any_order_and_with_shifted_numbers(rng: np.random.Generator) -> None:
    first = peptide(rng, first_number=7)
    shuffled = peptide(rng, first_number=101).selected(rng.permutation(32)[:25])
    of_first, of_second = match_atoms(first, shuffled)
    assert len(of_first) == 25
    assert (first.labels.atom_name[of_first] == shuffled.labels.atom_name[of_second]).all()
    assert (first.labels.residue_number[of_first] + 94 == shuffled.labels.residue_number[of_second]).all()


def test_like_chains_in_another_order_match_by_place(rng: np.random.Generator) -> None:
    first = peptide(rng, "ABCD")
    names = {"A": "B", "B": "D", "C": "A", "D": "C"}
    renamed = AtomLabels(
        np.array([names[name] for name in first.labels.chain]), first.labels.residue_number,
        first.labels.insertion_code, first.labels.residue_name, first.labels.atom_name,
    )  # fmt: skip
    second = Structure(first.positions_A, first.scatterer, first.table, labels=renamed).rotated(
        [0.5, 0.5, 0.5, 0.5]
    )
    of_first, of_second = match_atoms(first, second)
    np.testing.assert_array_equal(of_first, of_second)


def test_structures_without_labels_match_in_order_only_when_alike(rng: np.random.Generator) -> None:
    first = blobs(rng.normal(size=(5, 3)), np.ones(5), 1)
    middle = ensemble_on_path(first, first.translated([9, 9, 9]), [0.5]).particles[0]
    assert isinstance(middle, Structure)
    np.testing.assert_allclose(middle.positions_A, first.centred().positions_A, atol=1e-12)
    with pytest.raises(OrienteerError, match="5 and 4 atoms have only 0 in common"):
        match_atoms(first, first.selected([0, 1, 2, 3]))


def test_different_molecules_have_no_path(rng: np.random.Generator) -> None:
    first = peptide(rng)
    labels = first.labels
    other = AtomLabels(
        labels.chain,
        labels.residue_number,
        labels.insertion_code,
        labels.residue_name[::-1],
        labels.atom_name,
    )
    second = Structure(first.positions_A, first.scatterer, first.table, labels=other)
    with pytest.raises(OrienteerError, match="have only"):
        ensemble_on_path(first, second, [0.5])


def test_a_fraction_outside_the_path_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(OrienteerError, match=r"between 0 and 1, got 1\.5"):
        ensemble_on_path(peptide(rng), peptide(rng), [1.5])


def test_the_open_and_the_closed_chaperonin_have_a_path(chaperonins: tuple[Path, Path]) -> None:
    """The depositors number residues differently and name the second ring in opposite order."""
    first, second = (open_structure(path) for path in chaperonins)
    states = ensemble_on_path(first, second, [0.0, 0.5, 1.0], [1, 2, 1])
    np.testing.assert_allclose(states.weights, [0.25, 0.5, 0.25])
    middle = states.particles[1]
    assert isinstance(middle, Structure)
    assert len(middle) == 58_624
    assert any("58624 atoms are common" in remark for remark in middle.remarks)
    travelled = states.particles[2].positions_A - states.particles[0].positions_A
    assert np.sqrt((travelled**2).sum(axis=1).mean()) < 20
