"""Neighbours on a grid of poses, for frames whose best pose may lie just beyond the ones they named."""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.posterior.responsibilities import Responsibilities

_NEIGHBOURS = 12


def neighbours_of(grid: PoseGrid) -> NDArray[np.int64]:
    """(K, n) each pose and its nearest others, at most 12 of them; equivalents count as one."""
    own = 2 * grid.point_group.order
    n_entries = min(own + 3 * _NEIGHBOURS, len(grid.equivalents))
    _, entry = grid.tree.query(grid.quaternions, k=n_entries)
    pose = np.asarray(entry).reshape(len(grid), -1) // own
    found = np.empty((len(grid), min(_NEIGHBOURS + 1, len(grid))), dtype=np.int64)
    for k in range(len(grid)):
        _, first = np.unique(pose[k], return_index=True)
        near = pose[k][np.sort(first)]
        near = np.concatenate([[k], near[near != k]])[: found.shape[1]]
        found[k] = np.pad(near, (0, found.shape[1] - len(near)), constant_values=k)
    return found


def widen(coarse: Responsibilities, neighbours: Array) -> Responsibilities:
    """The listed rows and their neighbours, which all count the same."""
    xp = array_namespace(coarse.row)
    K = len(neighbours)
    row = coarse.row.astype(np.int64)
    wide = neighbours[row % K] + (row - row % K)[:, None]
    key = xp.unique(coarse.frame.astype(np.int64)[:, None] * coarse.n_rows + wide)
    start = xp.searchsorted(key, xp.arange(coarse.n_frames + 1) * coarse.n_rows)
    ones = xp.ones(len(key), dtype=np.float32)
    return Responsibilities(
        coarse.n_rows, start.astype(np.int64), (key % coarse.n_rows).astype(np.int32), ones
    )
