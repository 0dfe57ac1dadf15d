"""Angle between orientations, if symmetry or a flat Ewald sphere makes some of them indistinguishable."""

import numpy as np
from numpy.typing import ArrayLike

from orienteer.compute.arrays import Array
from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.orientation.quaternion import as_quaternions, compose, from_axis_angle, inverse


def angular_distance_deg(
    a: ArrayLike | Array,
    b: ArrayLike | Array,
    group: PointGroup | str | None = None,
    flat_ewald: bool = False,
) -> Array:
    """Smallest turn, in degrees, that takes orientation a to b or to an equivalent of b, (...).

    Parameters
    ----------
    a, b : (..., 4) unit quaternions; shapes broadcast.
    group : the particle's symmetry.  R and R S then count as the same orientation for every S of the group.
    flat_ewald : whether the curvature of the Ewald sphere is negligible.  By Friedel's law a half turn about
        the beam then leaves a pattern unchanged, so R and Rz(180°) R count as the same orientation: a
        symmetry of the laboratory, on the left.

    >>> from orienteer.orientation.quaternion import identity
    >>> float(angular_distance_deg(identity(), from_axis_angle([0, 0, 1], 100), "C4").round(9))
    10.0
    """
    xp, a, b = as_quaternions(a, b)
    between = compose(inverse(a), b)
    if flat_ewald:
        turned = compose(inverse(a), compose(from_axis_angle([0, 0, 1], 180), b))
        return xp.minimum(_smallest_turn_deg(between, group), _smallest_turn_deg(turned, group))
    return _smallest_turn_deg(between, group)


def _smallest_turn_deg(turn: Array, group: PointGroup | str | None) -> Array:
    """Smallest angle of (turn S) over all S of the group, from 0 to 180 degrees."""
    if group is not None:
        turn = nearest_equivalent(turn, as_point_group(group))
    xp, turn = as_quaternions(turn)
    # atan2 keeps full precision near 0, where arccos of w would lose half of the digits.
    return xp.atan2(xp.linalg.vector_norm(turn[..., 1:], axis=-1), xp.abs(turn[..., 0])) * (360 / np.pi)


def nearest_equivalent(
    quaternions: ArrayLike | Array, group: PointGroup, reference: ArrayLike | Array | None = None
) -> Array:
    """The equivalent q S of each orientation q that is nearest to the reference (default identity), (..., 4).

    If several are equally near within rounding, the first in the order of the group is taken.
    """
    xp, q, elements = as_quaternions(quaternions, group.quaternions)
    relative = q if reference is None else compose(inverse(reference), q)
    # The scalar part of (relative S) is the dot product of relative with the inverse of S.
    closeness = xp.abs(xp.matmul(relative, xp.matrix_transpose(inverse(elements))))
    nearly_best = closeness > xp.max(closeness, axis=-1, keepdims=True) - 1e-9
    first = xp.argmax(xp.astype(nearly_best, xp.int8), axis=-1)
    return compose(q, elements[first])
