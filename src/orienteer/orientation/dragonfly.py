"""Orientations as Dragonfly writes them: the same quaternions, used with transposed matrices.

Dragonfly builds from (q0, q1, q2, q3) the transpose of the usual matrix and reads the model at that matrix
times the detector's q.  Orienteer's R(q) turns the particle, so that the pattern samples the model at
R(q)^T q: the same point.  Both use the same laboratory frame (q_z in Dragonfly's detector files is at most 0,
as for a beam along +z), so a quaternion means the same orientation in both; only matrices must be transposed.
"""

from numpy.typing import ArrayLike

from orienteer.compute.arrays import Array
from orienteer.orientation.quaternion import canonical, normalise


def to_dragonfly(quaternions: ArrayLike | Array) -> Array:
    """Quaternions (..., 4) that Dragonfly reads as these orientations, with the sign that it uses."""
    return canonical(normalise(quaternions))
