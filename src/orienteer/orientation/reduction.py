"""Refine a grid (children of every pose), or reduce it by symmetry (one pose of each set of equivalents)."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.orientation.distance import nearest_equivalent
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import compose, inverse

_SAME_CHORD = 1e-7  # rounding errors are far smaller, grid spacings far larger


@dataclass(frozen=True, eq=False)
class Refinement:
    """A finer grid whose poses are sorted by their parent in the coarse one.

    fine : the finer grid.
    start : (K + 1,) int64; the children of coarse pose k are ``start[k]:start[k + 1]``.
    """

    fine: PoseGrid
    start: NDArray[np.int64]


def refine(coarse: PoseGrid) -> Refinement:
    """The next finer grid, sorted by the parents of its poses.

    The parent of a fine pose is the nearest coarse pose; if several are equally near, they take turns.  In a
    symmetric grid each child is stored as the equivalent that is nearest to its parent.
    """
    fine = coarse.finer()
    if coarse.children_in_order:
        return Refinement(fine, np.arange(len(coarse) + 1) * (len(fine) // len(coarse)))
    parent = _nearest_parent(coarse, fine)
    order = np.argsort(parent, kind="stable")
    quaternions = fine.quaternions[order]
    if fine.point_group.order > 1:
        quaternions = nearest_equivalent(quaternions, fine.point_group, coarse.quaternions[parent[order]])
    fine = replace(fine, quaternions=quaternions, log_weights=fine.log_weights[order])
    return Refinement(fine, np.searchsorted(parent[order], np.arange(len(coarse) + 1)))


def _nearest_parent(coarse: PoseGrid, fine: PoseGrid) -> NDArray[np.int64]:
    """Index of the coarse pose nearest to each fine pose; fine pose j takes number j mod n of n ties."""
    # A midpoint of the 600-cell lattice has at most 6 equally near parents (the corners of an octahedron).
    n_candidates = min(8, len(coarse.equivalents))
    chords, entries = coarse.tree.query(fine.quaternions, k=n_candidates)
    candidates = entries // (2 * coarse.point_group.order)
    tied = chords < chords[:, :1] + _SAME_CHORD
    # Sorted by index, so that the choice does not depend on how the tree breaks ties.
    candidates = np.sort(np.where(tied, candidates, len(coarse)), axis=1)
    turn = np.arange(len(fine)) % tied.sum(axis=1)
    return np.take_along_axis(candidates, turn[:, None], axis=1)[:, 0]


def reduce_grid(grid: PoseGrid, group: PointGroup) -> PoseGrid:
    """One pose of each set of equivalents R S: the one closest to the identity (a fundamental zone).

    The weight of a pose on the border of the zone is divided by the number of equally close equivalents, and
    poses that are equivalents of each other are joined.  If the group maps the grid onto itself (I, T, D2 and
    C2 on a 600-cell grid), exactly K / order poses with exact weights remain.  Otherwise the border of the
    zone cuts the grid at arbitrary places, and the weights are scaled to sum to 1.
    """
    if grid.point_group.order > 1:
        if grid.point_group == group:
            return grid
        raise OrienteerError(
            f"a grid reduced by {grid.point_group} cannot be reduced again by {group}.",
            "Reduce the full grid (C1).",
        )
    if group.order == 1:
        return grid
    closeness = np.abs(grid.quaternions @ inverse(group.quaternions).T)
    closest = closeness.max(axis=1)
    in_zone = np.flatnonzero(closeness[:, 0] > closest - 1e-9)
    n_as_close = np.sum(closeness[in_zone] > closest[in_zone, None] - 1e-9, axis=1)
    quaternions = grid.quaternions[in_zone]
    weights = grid.weights[in_zone] / n_as_close

    keeper = np.arange(len(in_zone))
    border = np.flatnonzero(n_as_close > 1)
    if len(border):
        keeper[border] = border[_first_equivalent(quaternions[border], group)]
    kept, joined = np.unique(keeper, return_inverse=True)
    weights = np.bincount(joined, weights)
    return PoseGrid(
        quaternions=quaternions[kept],
        log_weights=np.log(weights / weights.sum()),
        kind=grid.kind,
        level=grid.level,
        finer=partial(_finer_reduced, grid, group),
        point_group=group,
    )


def _finer_reduced(grid: PoseGrid, group: PointGroup) -> PoseGrid:
    return reduce_grid(grid.finer(), group)


def _first_equivalent(quaternions: NDArray[np.float64], group: PointGroup) -> NDArray[np.int64]:
    """For each orientation, the index of the first orientation in the list that is its equivalent, (N,)."""
    from scipy.spatial import KDTree

    first = np.arange(len(quaternions))
    tree = KDTree(quaternions)
    for element in group.quaternions[1:]:
        turned = compose(quaternions, element)
        for sign in (1.0, -1.0):
            chord, partner = tree.query(sign * turned, distance_upper_bound=_SAME_CHORD)
            found = np.isfinite(chord)
            first[found] = np.minimum(first[found], partner[found])
    return first
