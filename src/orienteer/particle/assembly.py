"""Biological assemblies: copies of the chains of a file, placed by the operators of the file."""

import os
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.errors import FileError
from orienteer.particle.deposited_atoms import FARTHEST_A, DepositedAtoms
from orienteer.particle.structure import Structure

_MOST_ATOMS = 50_000_000


def build_assembly(
    path: str | os.PathLike[str],
    structure: Structure,
    atoms: DepositedAtoms,
    assemblies: Any,
    name: str,
    remarks: list[str],
) -> Structure:
    """Copies of the chains, placed by the assembly; the unchanged structure if the file describes none."""
    if len(assemblies) == 0:
        return structure
    found = [assembly for assembly in assemblies if assembly.name == name]
    if not found:
        existing = ", ".join(assembly.name for assembly in assemblies)
        raise FileError(
            path,
            f"has no assembly '{name}'; it has {existing}.",
            "Choose one of these, or none for the deposited atoms.",
        )
    parts: list[NDArray[np.int64]] = []
    positions: list[NDArray[np.float64]] = []
    chains: list[NDArray[np.str_]] = []
    copies: dict[str, int] = defaultdict(int)
    n_atoms = 0
    for generator in found[0].generators:
        listed = np.isin(atoms.labels.chain, list(generator.chains)) | np.isin(
            atoms.subchain, list(generator.subchains)
        )
        members = np.flatnonzero(listed)
        n_atoms += len(members) * len(generator.operators)
        if n_atoms > _MOST_ATOMS:
            raise FileError(
                path,
                f"assembly '{name}' would have more than {_MOST_ATOMS} atoms.",
                "Choose another assembly.",
            )
        for operator in generator.operators:
            matrix = np.array(operator.transform.mat.tolist())
            shift = np.array(operator.transform.vec.tolist())
            rigid = np.allclose(matrix @ matrix.T, np.eye(3), atol=0.01) and np.isfinite(shift).all()
            if not (rigid and np.abs(shift).max() < FARTHEST_A):
                raise FileError(
                    path,
                    f"an operator of assembly '{name}' is not a rotation and a shift.",
                    "Build without an assembly, or download the file again.",
                )
            parts.append(members)
            positions.append(structure.positions_A[members] @ matrix.T + shift)
            chains.append(_copied_names(atoms.labels.chain[members], copies))
    if n_atoms == 0:
        raise FileError(path, f"assembly '{name}' names no chain of this file.", "Try without an assembly.")
    built = structure.selected(np.concatenate(parts))
    if len(built) != len(structure):
        remarks.append(
            f"Assembly {name} has {counted(len(built), 'atom')}, from {len(structure)} in the file."
        )
    labels = replace(built.labels, chain=np.concatenate(chains)) if built.labels is not None else None
    return replace(built, positions_A=np.concatenate(positions), labels=labels)


def _copied_names(chains: NDArray[np.str_], copies: dict[str, int]) -> NDArray[np.str_]:
    """Names of one more copy of these chains: "A" at first, then "A-2", "A-3", ..."""
    names, row = np.unique(chains, return_inverse=True)
    renamed = []
    for name in names.tolist():
        copies[name] += 1
        renamed.append(name if copies[name] == 1 else f"{name}-{copies[name]}")
    return np.array(renamed, dtype=np.str_)[row.reshape(-1)]
