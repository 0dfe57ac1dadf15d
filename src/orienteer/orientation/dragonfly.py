"""Orientations as Dragonfly writes them: the same quaternions, used the other way round.

Dragonfly builds from (q0, q1, q2, q3) the transpose of the usual matrix and reads the model at that matrix
times the detector's q.  Orienteer's R(q) turns the particle, so that the pattern samples the model at
R(q)^T q: the same point.  Its laboratory is ours too (q_z of its detector files is at most 0, as for a beam
along +z), so a quaternion means the same orientation in both programs; only matrices must be transposed.

>>> import numpy as np
>>> from orienteer.orientation.quaternion import random_uniform, to_matrix
>>> q = random_uniform(5, seed=1)
>>> bool(np.allclose(dragonfly_matrix(q), np.swapaxes(to_matrix(q), 1, 2)))
True
"""

from numpy.typing import ArrayLike

from orienteer.compute.arrays import Array
from orienteer.orientation.quaternion import as_float64, as_quaternions, canonical, from_matrix, normalise


def from_dragonfly(quaternions: ArrayLike | Array) -> Array:
    """Orientations (..., 4) from Dragonfly's quaternions, which are printed with few digits: normalised."""
    return canonical(normalise(quaternions))


def to_dragonfly(quaternions: ArrayLike | Array) -> Array:
    """Quaternions (..., 4) that Dragonfly reads as these orientations, on its half of the sphere."""
    return canonical(normalise(quaternions))


def dragonfly_matrix(quaternions: ArrayLike | Array) -> Array:
    """Dragonfly's matrix (..., 3, 3), written out from its definition: detector q to model coordinate."""
    xp, q = as_quaternions(quaternions)
    a, b, c, d = (q[..., i] for i in range(4))
    rows = [
        [1 - 2 * (c * c + d * d), 2 * (b * c + a * d), 2 * (b * d - a * c)],
        [2 * (b * c - a * d), 1 - 2 * (b * b + d * d), 2 * (c * d + a * b)],
        [2 * (b * d + a * c), 2 * (c * d - a * b), 1 - 2 * (b * b + c * c)],
    ]
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


def from_dragonfly_matrix(matrices: ArrayLike | Array) -> Array:
    """Orientations (..., 4) from Dragonfly's matrices (..., 3, 3)."""
    xp, m = as_float64(matrices)
    return from_matrix(xp.matrix_transpose(m))
