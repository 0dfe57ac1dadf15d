"""Open a structure: choose which atoms of a PDB or mmCIF file scatter, and where they are."""

import os
from dataclasses import replace

import numpy as np

from orienteer.compute.words import counted
from orienteer.errors import FileError, OrienteerError
from orienteer.particle.assembly import build_assembly
from orienteer.particle.deposited_atoms import DepositedAtoms, choose_alternates, name_atoms
from orienteer.particle.scatterers import element_table
from orienteer.particle.structure import Structure
from orienteer.particle.structure_file import read_structure_file, recognise_structure

__all__ = ["open_structure", "recognise_structure"]


def open_structure(
    path: str | os.PathLike[str],
    *,
    assembly: str | None = "1",
    altloc: str = "highest",
    model: int = 1,
    waters: bool = False,
    hydrogens: bool = True,
    hetero_atoms: bool = True,
    occupancies: bool = True,
    b_factors: bool = True,
    centre: bool = True,
) -> Structure:
    """The atoms of a PDB or mmCIF file (gzipped or not), ready to scatter.

    assembly : name of the biological assembly to build; a file that describes no assembly is used as it is.
        None: the deposited coordinates.
    altloc : "highest" keeps, in each residue, the alternate conformation of highest occupancy (the first of
        equal ones) and gives it the occupancy of all together, since each particle has just one of them;
        "all" keeps every one with its own occupancy; a letter keeps that one if it exists, else the highest.
    model : number of the model, from 1.
    waters, hydrogens, hetero_atoms : whether to keep these; deuterium counts as hydrogen, and waters do not
        count as hetero atoms.
    occupancies, b_factors : whether to use those of the file; else 1 and 0.
    centre : whether to move the centre of the electrons to the origin.

    ``Structure.remarks`` says what was left out or decided.

    >>> from pathlib import Path
    >>> line = "ATOM      {0}  {1}   GLY A   1      {0}.000   0.000   0.000  1.00 20.00           {1}"
    >>> n_characters = Path("three.pdb").write_text("\\n".join(map(line.format, (1, 2, 3), "CNO")))
    >>> open_structure("three.pdb")
    Structure(3 atoms, 21 electrons, radius 6.8 Å)
    """
    if altloc not in ("highest", "all") and len(altloc) != 1:
        raise OrienteerError(
            f"altloc '{altloc}' does not name a choice of alternate locations.",
            'Give "highest", "all" or one letter.',
        )
    deposited = read_structure_file(path)
    if not 1 <= model <= len(deposited):
        raise FileError(
            path,
            f"has no model {model}; its models are numbered 1 to {len(deposited)}.",
            "Give one of these numbers.",
        )
    remarks: list[str] = []
    if len(deposited) > 1:
        remarks.append(f"Model {model} of {len(deposited)} was taken.")
    atoms = DepositedAtoms.of_model(path, deposited[model - 1])

    is_water = atoms.is_water
    keep = np.ones(len(atoms), dtype=bool)
    for unwanted, what in (
        (is_water & (not waters), "water"),
        (np.isin(atoms.elements, ("H", "D")) & (not hydrogens), "hydrogen"),
        (atoms.is_hetero & ~is_water & (not hetero_atoms), "hetero"),
    ):
        if count := np.count_nonzero(unwanted & keep):
            remarks.append(f"{count} {what} atom{'s were' if count > 1 else ' was'} left out.")
            keep &= ~unwanted
    if not keep.any():
        raise FileError(
            path,
            "has no atoms left without the waters, hydrogens and hetero atoms that were excluded.",
            "Keep some of them: see [particle] in orienteer settings.",
        )
    atoms = _checked(path, atoms.selected(keep), occupancies, b_factors, remarks)
    if altloc != "all":
        chosen, merged_occupancy = choose_alternates(atoms, altloc)
        if dropped := len(atoms) - len(chosen):
            remarks.append(
                f"{counted(dropped, 'alternate location was', 'alternate locations were')} left out."
            )
        atoms = replace(atoms, occupancy=merged_occupancy).selected(chosen)
    if not occupancies:
        atoms = replace(atoms, occupancy=np.ones(len(atoms)))

    structure = _as_structure(path, atoms)
    if assembly is not None:
        structure = build_assembly(path, structure, atoms, deposited.assemblies, assembly, remarks)
    if occupancies and (mean := float(structure.occupancy.mean())) < 0.9:
        remarks.append(f"Occupancies average {mean:.2f}; turn them off to count every atom fully.")
    structure = replace(structure, remarks=tuple(remarks))
    return structure.centred() if centre else structure


def _checked(
    path: str | os.PathLike[str],
    atoms: DepositedAtoms,
    occupancies: bool,
    b_factors: bool,
    remarks: list[str],
) -> DepositedAtoms:
    """The atoms with the B factors to use, after a check of all numbers that will be used."""
    b_factor = atoms.b_factor_A2 if b_factors else np.zeros(len(atoms))
    for column, what, lowest, highest, used in (
        (atoms.occupancy, "occupancy", 0.0, 1.05, occupancies),
        (b_factor, "B factor", -1e5, 1e5, b_factors),
    ):
        wrong = ~((column >= lowest) & (column <= highest))
        if used and wrong.any():
            raise FileError(
                path,
                f"{counted(wrong.sum(), 'atom has', 'atoms have')} no valid {what}, such as "
                f"{name_atoms(atoms.labels, wrong)}.",
                "Turn occupancies or B factors off to open the file without them.",
            )
    if negative := int(np.count_nonzero(b_factor < 0)):
        remarks.append(f"{counted(negative, 'negative B factor was', 'negative B factors were')} taken as 0.")
    return replace(atoms, b_factor_A2=np.maximum(b_factor, 0))


def _as_structure(path: str | os.PathLike[str], atoms: DepositedAtoms) -> Structure:
    unknown = atoms.elements == "X"
    if unknown.any():
        raise FileError(
            path,
            f"{counted(unknown.sum(), 'atom is', 'atoms are')} of no known element, such as "
            f"{name_atoms(atoms.labels, unknown)}.",
            "Write the elements into columns 77-78 (PDB) or _atom_site.type_symbol (mmCIF).",
        )
    elements, kind = np.unique(atoms.elements, return_inverse=True)
    try:
        table = element_table(elements.tolist())
    except OrienteerError as error:
        raise FileError(path, error.message, error.hint) from error
    return Structure(
        atoms.positions_A, kind.reshape(-1), table, atoms.occupancy, atoms.b_factor_A2, atoms.labels
    )
