"""Whatever a caller can get wrong is one sentence with the values, never a traceback of NumPy."""

from collections.abc import Callable

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.particle.base import grid_spacing, scattering_vectors
from orienteer.particle.bodies import Part, Spheroid, Sum, core_shell, sphere
from orienteer.particle.conformations import Ensemble
from orienteer.particle.hydration import hydration_layer
from orienteer.particle.named_bodies import named_body, random_blobs, virus
from orienteer.particle.opening import open_structure
from orienteer.particle.polyhedron import convex_polyhedron, icosahedron
from orienteer.particle.scatterers import element_table, gaussian_table
from orienteer.particle.structure import Structure, blobs

PAIR = blobs([[0, 0, 0], [1, 2, 3]], [1, 2], 3)
CARBON = Structure(np.zeros((1, 3)), np.array([0]), element_table(["C"]))

WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "q of two numbers": (lambda: scattering_vectors([0.1, 0.2]), r"q_inv_A .*\(\.\.\., 3\).*\(2,\)"),
    "q of words": (lambda: sphere(10).amplitude("abc"), "q_inv_A must be numbers.*'abc'"),
    "q in unequal rows": (lambda: sphere(10).amplitude([[1, 2, 3], [1]]), "q_inv_A must be numbers"),
    "a grid axis that is no list": (lambda: Sum((Part(sphere(9)),)).amplitude_on_grid(3.0), r"shape \(\)"),
    "an uneven axis": (lambda: grid_spacing([-0.1, 0.0, 0.3]), "from -0.1 to 0.3 in 3 points"),
    "an axis off centre": (lambda: sphere(9).amplitude_on_grid([0.0, 0.1, 0.2]), "zero at index 1"),
    "a tolerance above 0.1": (lambda: PAIR.amplitude_on_grid([-0.1, 0, 0.1], eps=2), "eps .* got 2"),
    "a negative photon energy": (lambda: CARBON.amplitude([0, 0, 0], -5.0), "photon_energy_eV .* got -5"),
    "a photon energy of 0": (lambda: CARBON.amplitude([0, 0, 0], 0.0), "photon_energy_eV .* got 0"),
    "a photon energy of NaN": (lambda: CARBON.amplitude([0, 0, 0], np.nan), "photon_energy_eV"),
    "a shift of two numbers": (lambda: PAIR.translated([1, 2]), r"shift_A .* \(2,\)"),
    "a centre of two numbers": (lambda: PAIR.centred([1, 2]), r"centre_A .* \(2,\)"),
    "a rotation of length 0": (lambda: PAIR.rotated([0, 0, 0, 0]), "is not a rotation"),
    "several rotations": (lambda: PAIR.rotated(np.ones((2, 4))), r"one quaternion, got shape \(2, 4\)"),
    "an atom that is not there": (lambda: PAIR.selected([7]), "2 atoms"),
    "a mask of another length": (lambda: PAIR.selected(np.array([True])), "2 atoms"),
    "no atom at all": (lambda: PAIR.selected(np.array([False, False])), "N > 0"),
    "atoms in unequal rows": (
        lambda: Structure([[0, 0, 0], [1]], [0, 0], CARBON.table),  # type: ignore[arg-type]
        "positions_A must be numbers",
    ),
    "one kind for a list": (lambda: Structure([[0, 0, 0]], 0, CARBON.table), "scatterer has shape"),  # type: ignore[arg-type]
    "kinds in words": (lambda: Structure([[0, 0, 0]], ["C"], CARBON.table), "scatterer must be num"),  # type: ignore[arg-type]
    "kinds between two": (lambda: Structure([[0, 0, 0]], [0.5], CARBON.table), "scatterer.* whole"),  # type: ignore[arg-type]
    "too many weights": (lambda: blobs([[0, 0, 0]], [1, 2], 3), r"weights has shape \(2,\).* 1 positions"),
    "too many sigmas": (lambda: blobs([[0, 0, 0]], [1], [1, 2]), r"sigmas_A has shape \(2,\).* 1 positions"),
    "a sigma below 0": (lambda: blobs([[0, 0, 0]], [1], -3), "got -3"),
    "a weight of NaN": (lambda: blobs([[0, 0, 0]], [np.nan], 3), "weights holds 1 values"),
    "a table of unequal lengths": (lambda: gaussian_table([1, 2], [1, 2, 3]), "sigmas_A has shape"),
    "semi-axes below 0": (lambda: sphere(-1), "semi-axes"),
    "two semi-axes": (lambda: Spheroid((1, 2)), "semi-axes"),  # type: ignore[arg-type]
    "a density of NaN": (lambda: sphere(10, np.nan), "density"),
    "layers of no density": (lambda: core_shell([1, 2], [0, 0]), r"densities \[0, 0\]"),
    "an offset of two numbers": (lambda: Part(sphere(1), 1, (1, 2)), r"offset_A .* \(2,\)"),  # type: ignore[arg-type]
    "a scale of infinity": (lambda: Part(sphere(1), np.inf), "scale"),
    "corners in unequal rows": (lambda: convex_polyhedron([[1, 2, 3], [1]]), "points_A must be"),
    "a polyhedron of density NaN": (lambda: icosahedron(100, np.nan), "density"),
    "weights that are words": (lambda: Ensemble((sphere(1),), ["a"]), "weights must be numbers"),  # type: ignore[arg-type]
    "water of density NaN": (lambda: hydration_layer(CARBON, 3, np.nan), "density of a hydration layer"),
    "a virus of negative size": (lambda: virus(-3), "got -3"),
    "a seed below 0": (lambda: random_blobs(100, 3, -1), "seed .* -1"),
    "no blobs": (lambda: random_blobs(100, 0, 1), "n_blobs .* 0"),
    "an unknown body": (lambda: named_body("cube", 1, 1, 1, 1, 1), "'cube'"),
    "a word for alternate locations": (lambda: open_structure("a.pdb", altloc="higest"), "'higest'"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_argument_is_named_with_its_value(what: str) -> None:
    make, words = WRONG[what]
    with pytest.raises(OrienteerError, match=words):
        make()
