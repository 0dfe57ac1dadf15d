"""The mean of a posterior around its likeliest pose; it may lie between the points of the grid."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.orientation.distance import nearest_equivalent
from orienteer.orientation.point_group import PointGroup
from orienteer.posterior.grouping import owner_of
from orienteer.posterior.responsibilities import Responsibilities

# Likeliest poses of a frame that are used: those around the likeliest one, and a few others.
_MOST_POSES = 32
# Entries that are sorted at once.  A sort takes six times the memory of its data, and flat posteriors of many
# frames already fill a good part of a card.
_SORTED_AT_ONCE = 1 << 22


def likeliest(kept: Responsibilities, n_poses: int = _MOST_POSES) -> Responsibilities:
    """The likeliest rows of each frame, at most ``n_poses``, on the same device; rows are not in order."""
    xp, starts = array_namespace(kept.row), to_numpy(kept.start)
    chosen, first = [xp.zeros(0, dtype=np.int64)], 0
    while first < kept.n_frames:
        # At least one frame at a time, and as many as the limit allows.
        last = int(np.searchsorted(starts, starts[first] + _SORTED_AT_ONCE, side="right")) - 1
        last = max(last, first + 1)
        chosen.append(_likeliest_entries(kept, starts, first, last, n_poses))
        first = last
    entries = xp.concatenate(chosen)
    count = xp.minimum(xp.diff(kept.start), n_poses)
    start = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(count, dtype=np.int64)])
    return Responsibilities(kept.n_rows, start, kept.row[entries], kept.probability[entries])


def _likeliest_entries(
    kept: Responsibilities, starts: NDArray[np.int64], first: int, last: int, n_poses: int
) -> Array:
    """Places in ``kept`` of the likeliest entries of the frames ``first`` .. ``last`` - 1, frame by frame."""
    xp, begin, end = array_namespace(kept.row), int(starts[first]), int(starts[last])
    own = kept.start[first : last + 1] - begin
    frame = owner_of(own, end - begin)
    falling = -kept.probability[begin:end].astype(np.float64)
    order = xp.lexsort(xp.stack([falling, frame.astype(np.float64)]))
    rank = xp.arange(end - begin) - own[frame]
    return begin + order[rank < n_poses]


def mean_poses(
    kept: Responsibilities,
    quaternions: NDArray[np.float64],
    best: NDArray[np.float64],
    group: PointGroup,
    reach_deg: float,
) -> NDArray[np.float64]:
    """Mean orientation (D, 4) of each frame over the poses within ``reach_deg`` of its likeliest one.

    kept : posteriors of D frames over rows; row j is pose j modulo K of some model, and rows beyond all
        models (junk) count for no pose.
    quaternions : (K, 4) poses of the grid; best : (D, 4) the likeliest pose of each frame.

    Only the likeliest few poses of a frame count; wide posteriors have hundreds of thousands, far apart.
    """
    kept, K = likeliest(kept), len(quaternions)
    row, frame = to_numpy(kept.row), to_numpy(kept.frame)
    weight: NDArray[Any] = to_numpy(kept.probability).astype(np.float64)
    poses = nearest_equivalent(quaternions[row % K], group, best[frame])
    closeness = np.sum(poses * best[frame], axis=1)
    weight = np.where(np.abs(closeness) >= np.cos(np.deg2rad(reach_deg) / 2), weight, 0.0)
    weight = np.where(row < kept.n_rows // K * K, weight, 0.0) * np.where(closeness < 0, -1.0, 1.0)
    mean = np.stack(
        [np.bincount(frame, weights=weight * poses[:, i], minlength=len(best)) for i in range(4)], axis=1
    )
    length = np.linalg.norm(mean, axis=1, keepdims=True)
    return np.where(length > 0, mean / np.where(length > 0, length, 1.0), best)
