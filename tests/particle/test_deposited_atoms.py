"""Alternate locations: which conformer stands for a residue, and with what occupancy."""

from pathlib import Path

import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.particle.opening import open_structure
from orienteer.particle.structure import Structure


def line(
    name: str, residue: str, altloc: str, occupancy: float, number: int = 1, x: float = 0.0
) -> str:  # fmt: skip
    return (
        f"ATOM  {1:>5}  {name:<3}{altloc}{residue:>3} A{number:>4}    "
        f"{x:8.3f}{0:8.3f}{0:8.3f}{occupancy:6.2f}{20:6.2f}          {name[0]:>2}\n"
    )


def opened(folder: Path, lines: list[str], **arguments: object) -> Structure:
    path = folder / "model.pdb"
    path.write_text("".join(lines) + "END\n")
    return open_structure(path, centre=False, **arguments)  # type: ignore[arg-type]


SERINE = ["N", "CA", "C", "O", "CB", "OG"]
THREONINE = ["N", "CA", "C", "O", "CB", "OG1", "CG2"]


def two_residues(share_of_serine: float) -> list[str]:
    """One place in the chain that is a serine in some particles and a threonine, one atom more, in others."""
    return [line(name, "SER", "A", share_of_serine) for name in SERINE] + [
        line(name, "THR", "B", 1 - share_of_serine) for name in THREONINE
    ]


@pytest.mark.parametrize(
    ("share_of_serine", "kept"), [(0.5, "SER"), (0.52, "SER"), (0.6, "SER"), (0.48, "THR")]
)
def test_the_likelier_residue_stays_however_many_atoms_it_has(
    tmp_path: Path, share_of_serine: float, kept: str
) -> None:
    structure = opened(tmp_path, two_residues(share_of_serine))
    assert set(structure.labels.residue_name) == {kept}
    assert len(structure) == len(SERINE if kept == "SER" else THREONINE)


def test_every_atom_of_the_kept_conformer_gets_the_occupancy_of_all(tmp_path: Path) -> None:
    for altloc in ("highest", "B"):
        structure = opened(tmp_path, two_residues(0.6), altloc=altloc)
        np.testing.assert_allclose(structure.occupancy, 1.0)
    # Of a ligand that is bound in 0.7 of the particles, 0.7 stay whatever its conformer.
    loose = [line("C1", "LIG", "A", 0.3), line("C2", "LIG", "A", 0.3), line("C1", "LIG", "B", 0.4)]
    np.testing.assert_allclose(opened(tmp_path, loose, altloc="A").occupancy, [0.7, 0.7])
    np.testing.assert_allclose(opened(tmp_path, loose).occupancy, [0.7])


def test_occupancies_that_add_up_to_more_than_one_are_one(tmp_path: Path) -> None:
    rounded = [line("CB", "SER", letter, 0.34) for letter in "ABC"]
    np.testing.assert_allclose(opened(tmp_path, rounded).occupancy, [1.0])


def test_a_letter_without_another_changes_nothing(tmp_path: Path) -> None:
    alone = [line("CB", "SER", "A", 0.3), line("OG", "SER", "A", 0.5), line("CA", "SER", " ", 0.9)]
    np.testing.assert_allclose(opened(tmp_path, alone).occupancy, [0.3, 0.5, 0.9])


def test_an_impossible_occupancy_does_not_hide_behind_its_alternate(tmp_path: Path) -> None:
    wrong = [line("CB", "SER", "A", 7.0), line("CB", "SER", "B", 0.5)]
    with pytest.raises(FileError, match="no valid occupancy, such as 'CB' of SER 1"):
        opened(tmp_path, wrong)
    assert len(opened(tmp_path, wrong, occupancies=False)) == 1
