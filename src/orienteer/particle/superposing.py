"""Superpose one set of points on another, and pair the identical chains of two structures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Pairing = list[tuple[int, int]]

_MOST_ROUNDS = 20


def superposition(moving: Points, fixed: Points) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rotation R and shift t for which R r + t brings ``moving`` nearest to ``fixed``, (N, 3) each.

    R is never a reflection: a mirror image might fit better, but is a different molecule.
    """
    moving_centre, fixed_centre = moving.mean(axis=0), fixed.mean(axis=0)
    u, _, vt = np.linalg.svd((moving - moving_centre).T @ (fixed - fixed_centre))
    sign = np.sign(np.linalg.det(u) * np.linalg.det(vt))
    rotation = ((u * [1, 1, sign]) @ vt).T
    return rotation, fixed_centre - rotation @ moving_centre


@dataclass(frozen=True)
class LikeChains:
    """Chains of the same sequence in two structures, with corresponding atoms.

    first, second : (n_chains, n_atoms, 3) positions; named : pairs of chains that have the same name.
    """

    first: Points
    second: Points
    named: Pairing


def pair_chains(kinds: Sequence[LikeChains]) -> list[Pairing]:
    """For each kind of chain, the pairs (first, second) of chains that bring the structures nearest together.

    Depositors name the identical chains of an assembly in different orders, so each chain of the second is
    tried as the partner of chain 0 of the first.  From each of these starts, chains are assigned and
    superposed in turn until nothing changes.  The pairing by names is kept unless another one is nearer by
    more than 1 %.
    """
    if all(len(kind.first) == len(kind.second) == 1 for kind in kinds):
        return [[(0, 0)] for _ in kinds]
    most = max(kinds, key=lambda kind: len(kind.second))
    starts = [superposition(chain, most.first[0]) for chain in most.second]
    candidates = [_settled(kinds, rotation, shift) for rotation, shift in starts]
    if all(len(kind.named) == min(len(kind.first), len(kind.second)) for kind in kinds):
        named = [kind.named for kind in kinds]
        candidates.append((_distance(kinds, named) / 1.01, named))
    return min(candidates, key=lambda candidate: candidate[0])[1]


def _settled(
    kinds: Sequence[LikeChains], rotation: NDArray[np.float64], shift: NDArray[np.float64]
) -> tuple[float, list[Pairing]]:
    pairings: list[Pairing] = []
    for _ in range(_MOST_ROUNDS):
        assigned = [_assign(kind, rotation, shift) for kind in kinds]
        if assigned == pairings:
            break
        pairings = assigned
        rotation, shift = superposition(*_paired_points(kinds, pairings))
    return _distance(kinds, pairings), pairings


def _assign(kind: LikeChains, rotation: NDArray[np.float64], shift: NDArray[np.float64]) -> Pairing:
    """The pairs of chains with the least total squared distance under a superposition."""
    from scipy.optimize import linear_sum_assignment

    moved = kind.second @ rotation.T + shift
    a, b = (points.reshape(len(points), -1) for points in (kind.first, moved))
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * a @ b.T
    rows, columns = linear_sum_assignment(squared)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _paired_points(kinds: Sequence[LikeChains], pairings: list[Pairing]) -> tuple[Points, Points]:
    """All paired points, the second structure first (it is the one that moves)."""
    second = [kind.second[j] for kind, pairing in zip(kinds, pairings, strict=True) for _, j in pairing]
    first = [kind.first[i] for kind, pairing in zip(kinds, pairings, strict=True) for i, _ in pairing]
    return np.concatenate(second), np.concatenate(first)


def _distance(kinds: Sequence[LikeChains], pairings: list[Pairing]) -> float:
    """Root mean square distance of the paired points after superposition."""
    moving, fixed = _paired_points(kinds, pairings)
    rotation, shift = superposition(moving, fixed)
    return float(np.sqrt(((moving @ rotation.T + shift - fixed) ** 2).sum(axis=1).mean()))
