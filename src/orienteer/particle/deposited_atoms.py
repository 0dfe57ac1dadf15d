"""The atoms of one model of a structure file, in columns, and the choice among alternate locations."""

import os
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.errors import FileError
from orienteer.particle.labels import AtomLabels

FARTHEST_A = 1e6


@dataclass(frozen=True)
class DepositedAtoms:
    """The columns of a file, one row per atom."""

    positions_A: NDArray[np.float64]
    elements: NDArray[np.str_]
    occupancy: NDArray[np.float64]
    b_factor_A2: NDArray[np.float64]
    altloc: NDArray[np.str_]
    subchain: NDArray[np.str_]
    is_water: NDArray[np.bool_]
    is_hetero: NDArray[np.bool_]
    labels: AtomLabels

    def __len__(self) -> int:
        return len(self.positions_A)

    @staticmethod
    def of_model(path: str | os.PathLike[str], model: Any) -> "DepositedAtoms":
        numbers, names, flags = [], [], []
        for chain in model:
            for residue in chain:
                of_residue = (
                    chain.name,
                    residue.seqid.icode.strip(),
                    residue.name,
                    residue.subchain,
                )
                water = residue.is_water()
                hetero = residue.het_flag == "H"
                number = residue.seqid.num or 0
                for atom in residue:
                    numbers.append((*atom.pos.tolist(), atom.occ, atom.b_iso, number))
                    names.append((*of_residue, atom.name, atom.element.name, atom.altloc.strip("\0")))
                    flags.append((water, hetero))
        number_columns = np.array(numbers, dtype=np.float64)
        chain, insertion, residue_name, subchain, atom_name, element, altloc = (
            np.array(c) for c in zip(*names, strict=True)
        )
        positions = number_columns[:, :3]
        misplaced = ~(np.abs(positions) < FARTHEST_A).all(axis=1)
        labels = AtomLabels(chain, number_columns[:, 5].astype(np.int64), insertion, residue_name, atom_name)
        if misplaced.any():
            raise FileError(
                path,
                f"{counted(misplaced.sum(), 'atom lacks', 'atoms lack')} valid coordinates, such as "
                f"{name_atoms(labels, misplaced)}.",
                "Correct or remove these lines of the file.",
            )
        water_column, hetero_column = np.array(flags, dtype=bool).T
        return DepositedAtoms(
            positions, element, number_columns[:, 3], number_columns[:, 4], altloc, subchain,
            water_column, hetero_column, labels,
        )  # fmt: skip

    def selected(self, chosen: NDArray[Any]) -> "DepositedAtoms":
        return DepositedAtoms(**{name: getattr(self, name)[chosen] for name in self.__dataclass_fields__})


def choose_alternates(atoms: DepositedAtoms, altloc: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Indices of the atoms to keep, and occupancies in which each kept conformer replaces its alternates.

    The share of a conformer is the mean occupancy of its atoms, so that their number does not matter; of
    conformers with equal shares the first letter is kept.  Every atom of the kept conformer gets the sum of
    the shares of all letters, at most 1, even if the other conformers lack that atom.
    """
    occupancy = atoms.occupancy.copy()
    keep = atoms.altloc == ""
    by_residue: dict[tuple[str, int, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    labels = atoms.labels
    for j in np.flatnonzero(~keep).tolist():
        residue = labels.chain[j], int(labels.residue_number[j]), labels.insertion_code[j]
        by_residue[residue][str(atoms.altloc[j])].append(j)
    for conformers in by_residue.values():
        # Rounded, because the means of 0.33 over six and over seven atoms may differ in the last digit.
        share = {
            letter: round(float(atoms.occupancy[members].mean()), 6) for letter, members in conformers.items()
        }
        best = altloc if altloc in share else min(share, key=lambda letter: (-share[letter], letter))
        kept = list({str(labels.atom_name[j]): j for j in conformers[best]}.values())
        keep[kept] = True
        if len(conformers) > 1:
            occupancy[kept] = min(1.0, sum(share.values()))
    return np.flatnonzero(keep), occupancy


def name_atoms(labels: AtomLabels, chosen: Any) -> str:
    """The first three of the chosen atoms, named so that a reader finds them in the file."""
    first = np.flatnonzero(chosen)[:3]
    return ", ".join(
        f"'{labels.atom_name[j]}' of {labels.residue_name[j]} {labels.residue_number[j]} ({labels.chain[j]})"
        for j in first
    )
