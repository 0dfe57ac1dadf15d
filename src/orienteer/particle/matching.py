"""Match atoms: find which atoms of two structures are the same."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.particle.labels import AtomLabels
from orienteer.particle.structure import Structure
from orienteer.particle.superposing import LikeChains, pair_chains

Indices = NDArray[np.int64]

_POINTS_PER_CHAIN = 64  # atoms of each chain by which chains are paired; enough to show how the chains lie


def match_atoms(first: Structure, second: Structure) -> tuple[Indices, Indices]:
    """Indices of the common atoms in both, (M,) and (M,), in the order of the first.

    Atoms match by chain, residue and atom name.  Depositors number and name chains differently, so residue
    numbers of a chain may differ by a constant, and identical chains are paired by their place in space.
    Structures without labels match in order if they list the same elements in the same order.
    """
    of_first = of_second = np.empty(0, dtype=np.int64)
    if first.labels is not None and second.labels is not None:
        of_first, of_second = _match_by_label(first, second, first.labels, second.labels)
    elif len(first) == len(second) and (_elements(first) == _elements(second)).all():
        of_first = of_second = np.arange(len(first))
    if len(of_first) < max(1, min(len(first), len(second)) / 2):
        raise OrienteerError(
            f"two structures of {len(first)} and {len(second)} atoms have only {len(of_first)} in common.",
            "A path needs two states of one molecule, with the same residues and atom names.",
        )
    return of_first, of_second


def _elements(structure: Structure) -> NDArray[np.str_]:
    return np.array(structure.table.names)[structure.scatterer]


@dataclass(frozen=True)
class _ChainKind:
    """Chains with the same sequence of atoms: their names, and the indices of their atoms.

    members : (n_chains, n_atoms).
    """

    names: list[str]
    members: Indices
    labels: AtomLabels  # of the first chain


def _match_by_label(
    first: Structure, second: Structure, labels_1: AtomLabels, labels_2: AtomLabels
) -> tuple[Indices, Indices]:
    kinds_1, kinds_2 = _chain_kinds(labels_1), _chain_kinds(labels_2)
    shared = [
        (len(common[0]) * min(len(kind_1.names), len(kind_2.names)), i, j, common)
        for i, kind_1 in enumerate(kinds_1)
        for j, kind_2 in enumerate(kinds_2)
        if len((common := _common_atoms(kind_1.labels, kind_2.labels))[0]) > 0
    ]
    matched: list[tuple[Indices, Indices]] = []
    like: list[LikeChains] = []
    used_1: set[int] = set()
    used_2: set[int] = set()
    for _, i, j, (local_1, local_2) in sorted(shared, key=lambda entry: -entry[0]):
        if i in used_1 or j in used_2:
            continue
        used_1.add(i)
        used_2.add(j)
        members_1, members_2 = kinds_1[i].members[:, local_1], kinds_2[j].members[:, local_2]
        sample = np.unique(np.linspace(0, len(local_1) - 1, min(len(local_1), _POINTS_PER_CHAIN)).astype(int))
        names_2 = kinds_2[j].names
        named = [(a, names_2.index(name)) for a, name in enumerate(kinds_1[i].names) if name in names_2]
        matched.append((members_1, members_2))
        like.append(
            LikeChains(
                first.positions_A[members_1[:, sample]], second.positions_A[members_2[:, sample]], named
            )
        )
    if not matched:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    pairings = pair_chains(like)
    of_first, of_second = (
        np.concatenate(
            [
                members[side][pair[side]]
                for members, pairing in zip(matched, pairings, strict=True)
                for pair in pairing
            ]
        )
        for side in (0, 1)
    )
    order = np.argsort(of_first)
    return of_first[order], of_second[order]


def _chain_kinds(labels: AtomLabels) -> list[_ChainKind]:
    """Chains grouped by their sequence of residue and atom names, whatever number they start with."""
    groups: dict[bytes, list[tuple[str, Indices]]] = defaultdict(list)
    for name in dict.fromkeys(labels.chain.tolist()):
        members = np.flatnonzero(labels.chain == name)
        steps = np.diff(labels.residue_number[members])
        sequence = (labels.residue_name[members], labels.atom_name[members], labels.insertion_code[members])
        signature = b"|".join([*(part.tobytes() for part in sequence), steps.tobytes()])
        groups[signature].append((name, members))
    return [
        _ChainKind([name for name, _ in chains], np.stack([m for _, m in chains]), labels[chains[0][1]])
        for chains in groups.values()
    ]


def _common_atoms(first: AtomLabels, second: AtomLabels) -> tuple[Indices, Indices]:
    """Places of the common atoms within two chains, with residue numbers shifted to agree."""
    shift = _numbering_shift(first, second)
    partner = {key: place for place, key in enumerate(_keys(second, 0))}
    common = [
        (place, found)
        for place, key in enumerate(_keys(first, shift))
        if (found := partner.pop(key, None)) is not None
    ]
    places = np.array(common, dtype=np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def _numbering_shift(first: AtomLabels, second: AtomLabels) -> int:
    """Number to add to the residue numbers of the first chain so that most names agree with the second."""
    residues_1 = dict(zip(first.residue_number.tolist(), first.residue_name.tolist(), strict=True))
    residues_2 = dict(zip(second.residue_number.tolist(), second.residue_name.tolist(), strict=True))
    numbers_1, numbers_2 = np.array(list(residues_1)), np.array(list(residues_2))
    same = np.array(list(residues_1.values()))[:, None] == np.array(list(residues_2.values()))[None, :]
    shifts, votes = np.unique((numbers_2[None, :] - numbers_1[:, None])[same], return_counts=True)
    if len(shifts) == 0:
        return 0
    # Of equally good shifts, take the smallest.
    best = shifts[votes == votes.max()]
    return int(best[np.abs(best).argmin()])


def _keys(labels: AtomLabels, shift: int) -> list[tuple[int, str, str, str]]:
    columns = (labels.residue_number + shift, labels.insertion_code, labels.residue_name, labels.atom_name)
    return list(zip(*(column.tolist() for column in columns), strict=True))
