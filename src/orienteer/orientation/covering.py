"""The covering radius of a pose grid: how far an orientation can be from its nearest pose."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.orientation.quaternion import random_uniform

if TYPE_CHECKING:
    from orienteer.orientation.pose_grid import PoseGrid

_EXACT_UP_TO = 16_000  # points on the 3-sphere; the hull of more takes seconds
_N_PROBES, _N_HOLES, _N_PATCH = 100_000, 200, 160


def covering_radius_deg(grid: "PoseGrid") -> float:
    """Depth in degrees of the deepest hole found in the grid (see ``PoseGrid.covering_radius_deg``)."""
    from scipy.spatial import QhullError

    probes = random_uniform(_N_PROBES, seed=0)
    chords, _ = grid.tree.query(probes)
    deepest = 2 * np.arcsin(chords.max() / 2)
    try:
        if len(grid.equivalents) <= _EXACT_UP_TO:
            return float(np.degrees(2 * np.max(hole_depths(grid.equivalents)[1])))
        for probe in probes[np.argsort(chords)[-_N_HOLES:]]:
            distances, entries = grid.tree.query(probe, k=_N_PATCH)
            centres, depths = hole_depths(grid.equivalents[entries])
            reach = 2 * np.arcsin(distances.max() / 2)
            # A hole is real only if its whole ball lies inside the patch: the hull ignores poses beyond it.
            certain = np.arccos(np.clip(centres @ probe, -1, 1)) + depths < reach
            deepest = max(deepest, np.max(depths[certain], initial=0.0))
    except QhullError:  # a few poses in one plane have no hull; the distances of the probes must do
        pass
    return float(np.degrees(2 * deepest))


def hole_depths(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centres (F, 4) and 4D angular radii (F,) in radians of the empty balls between points on the 3-sphere.

    Each facet of the convex hull is a Delaunay cell of the sphere: the facet's plane n.x = c cuts off a cap
    with no point inside, with its centre at n and the angular radius arccos c.
    """
    from scipy.spatial import ConvexHull

    facets = ConvexHull(points).equations
    return facets[:, :4], np.arccos(np.clip(-facets[:, 4], -1, 1))
