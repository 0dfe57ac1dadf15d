"""Find the axes of a point group in an intensity that may have its symmetry.

The axes may have any orientation: if they are turned by Q, the rotations g of the group become Q g Q^-1.  An
intensity with the symmetry looks the same after each of these, so the search is for the Q with the highest
correlation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.rotation_search import RotationSearch, around
from orienteer.compare.turning import LINEAR
from orienteer.compute.arrays import Array
from orienteer.orientation.grids import make_grid
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import canonical, compose, inverse
from orienteer.orientation.six_hundred_cell import covering_bound_deg

# Divisions of the grid of orientations Q, voxels that are compared, and how many of the best are refined.
_DIVISIONS, _POINTS, _FOLLOWED = 8, 1500, 3
# Orientations Q that are compared at once; how often a step is halved, and most steps.
_AT_ONCE, _HALVINGS, _MOST_STEPS = 32, 4, 24


@dataclass(frozen=True, eq=False)
class SymmetryAxes:
    """The orientation of a group's axes.

    quaternion : (4,), the rotation of the axes in the intensity from those in the definition of the group.
    correlation : of the intensity with itself after the rotations of the group, averaged over them.
    """

    group: PointGroup
    quaternion: NDArray[np.float64]
    correlation: float


def find_axes(values: Array, group: PointGroup, *, first_shell: int, last_shell: int) -> SymmetryAxes:
    """The axes about which an intensity is most symmetric, whether it has the symmetry or not.

    values : (n, n, n) intensity, centre voxel n // 2; NaN where never measured.
    first_shell, last_shell : the shells that are compared, in voxels.

    >>> x, y, z = np.mgrid[-12:13, -12:13, -12:13]
    >>> column = np.exp(-((x - 3 * np.sin(z / 4)) ** 2 + y**2) / 8)
    >>> found = find_axes(column + column[::-1, ::-1], PointGroup("C2"), first_shell=3, last_shell=10)
    >>> found.correlation > 0.9
    True
    """
    search = RotationSearch(values, values, first_shell, last_shell)
    rotations = group.quaternions[1:]

    def agreement(axes: NDArray[np.float64], points: NDArray[np.int64]) -> NDArray[np.float64]:
        turned = compose(compose(axes[:, None], rotations), inverse(axes)[:, None])
        scores = search.scores(np.asarray(turned).reshape(-1, 4), points, LINEAR)
        return np.asarray(scores.reshape(len(axes), -1).mean(axis=1))

    step_deg = covering_bound_deg(_DIVISIONS)
    axes = np.asarray(make_grid("600-cell", _DIVISIONS, group).quaternions)
    # Further out the steps of the grid would be larger than speckles.
    reach = max(first_shell, int(search.speckle / np.radians(step_deg)))
    inner = search.points(min(last_shell, reach), _POINTS)
    parts = np.array_split(axes, -(-len(axes) // _AT_ONCE))
    best = axes[np.argsort(-np.concatenate([agreement(part, inner) for part in parts]), kind="stable")]
    points = search.points(last_shell, _POINTS)
    tops = []
    for one in best[:_FOLLOWED]:
        step, halvings = step_deg / 2, 0
        for _ in range(_MOST_STEPS):
            near = around(one[None], step)
            scores = agreement(near, points)
            if scores.argmax() == len(near) // 2:  # the present rotation is best
                step, halvings = step / 2, halvings + 1
                if halvings > _HALVINGS:
                    break
            one = near[scores.argmax()]
        tops.append((float(scores.max()), one))
    correlation, quaternion = max(tops, key=lambda top: top[0])
    return SymmetryAxes(group, np.asarray(canonical(quaternion)), correlation)
