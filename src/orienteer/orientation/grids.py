"""Make a pose grid from the name of its kind, or from a resolution and a particle size."""

from collections.abc import Callable

import numpy as np

from orienteer.errors import OrienteerError
from orienteer.orientation.hopf import hopf
from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.six_hundred_cell import MOST_DIVISIONS, covering_bound_deg, six_hundred_cell
from orienteer.orientation.super_fibonacci import super_fibonacci

KINDS: dict[str, Callable[[int], PoseGrid]] = {
    "600-cell": six_hundred_cell,
    "hopf": hopf,
    "super-fibonacci": super_fibonacci,
}

# Covering radius times the cube root of the number of poses, measured exactly up to 25 000 poses.
_HOPF_CONSTANT_DEG = 232.0
_SPIRAL_CONSTANT_DEG = 245.0


def make_grid(kind: str, level: int, group: PointGroup | str = "C1") -> PoseGrid:
    """The pose grid of a kind ("600-cell", "hopf", "super-fibonacci") at a level, reduced by a point group.

    >>> make_grid("600-cell", 10, "I")
    PoseGrid(600-cell, level 10, I, 835 poses)
    """
    if kind not in KINDS:
        raise OrienteerError(f"there is no pose grid '{kind}'.", f"Kinds are {', '.join(KINDS)}.")
    group = as_point_group(group)
    return KINDS[kind](level).reduced(group)


def grid_for_resolution(
    resolution_A: float,
    diameter_A: float,
    kind: str = "600-cell",
    group: PointGroup | str = "C1",
) -> PoseGrid:
    """The coarsest grid that is fine enough for a resolution: about one pose per speckle at the edge.

    A particle of diameter D shows n = D q_max speckles from the centre to the edge of its patterns, where
    q_max = 1 / resolution_A (full period).  A turn by 1/n rad moves the edge by one speckle, and the 600-cell
    with n divisions has a pose within 4 / (tau^3 n) = 0.94 / n rad of every orientation; the levels of the
    other kinds are chosen to match this to within 5 %.  Reduction by a group other than I, T, D2 and C2 can
    widen the holes at the border of the fundamental zone by about a third: check ``covering_radius_deg``.

    Parameters
    ----------
    resolution_A : full-period resolution 1 / q_max at the edge of the patterns.
    diameter_A : largest extent of the particle.
    kind : "600-cell", "hopf" or "super-fibonacci".
    group : the particle's symmetry.

    >>> grid_for_resolution(resolution_A=12, diameter_A=215)
    PoseGrid(600-cell, level 18, C1, 291780 poses)
    """
    for name, value in (("resolution_A", resolution_A), ("diameter_A", diameter_A)):
        if not (np.isfinite(value) and value > 0):
            raise OrienteerError(
                f"{name} is {value}; it must be a positive length in Å.", "Give a number such as 200."
            )
    n_speckles = diameter_A / resolution_A
    if n_speckles > MOST_DIVISIONS:
        raise OrienteerError(
            f"a particle of {diameter_A:g} Å at {resolution_A:g} Å shows {n_speckles:.0f} speckles, "
            f"but a grid of all orientations is made for at most {MOST_DIVISIONS}.",
            "Ask for a lower resolution, and refine around the best poses with near() and children().",
        )
    n_speckles = max(1, int(np.ceil(n_speckles - 1e-9)))
    match kind:
        case "600-cell":
            return make_grid(kind, n_speckles, group)
        case "hopf":
            n_poses = _poses_to_cover(n_speckles, _HOPF_CONSTANT_DEG)
            return make_grid(kind, max(0, int(np.ceil(np.log2(n_poses / 72) / 3))), group)
        case _:
            return make_grid(kind, int(np.ceil(_poses_to_cover(n_speckles, _SPIRAL_CONSTANT_DEG))), group)


def _poses_to_cover(n_speckles: int, constant_deg: float) -> float:
    """Number of poses to cover as finely as the 600-cell with n_speckles divisions, to within 5 %."""
    return float((constant_deg / (1.05 * covering_bound_deg(n_speckles))) ** 3)
