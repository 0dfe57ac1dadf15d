"""Rotations as unit quaternions (w, x, y, z), scalar first, for NumPy and CuPy arrays of any shape (..., 4).

A quaternion turns the particle: r' = R r.  ``compose(a, b)`` applies b first, so its matrix is A B.  A
quarter turn about z takes x to y; followed by a quarter turn about x it takes x to z:

>>> quarter_z = from_axis_angle([0, 0, 1], 90)
>>> quarter_x = from_axis_angle([1, 0, 0], 90)
>>> rotate(quarter_z, [1.0, 0.0, 0.0]).round(12) + 0.0
array([0., 1., 0.])
>>> rotate(compose(quarter_x, quarter_z), [1.0, 0.0, 0.0]).round(12) + 0.0
array([0., 0., 1.])

q and -q are the same rotation; :func:`canonical` picks one of the two.  Everything is computed in float64,
and if one argument is on the GPU, the result is too.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.errors import OrienteerError

# Components of a unit quaternion smaller than this are rounding errors of zero.
ZERO = 1e-12


def as_float64(*arrays: ArrayLike | Array) -> tuple[Any, ...]:
    """The array library that suits all arguments, followed by the arguments as float64 arrays of it."""
    on_gpu = [array for array in arrays if is_on_gpu(array)]
    xp = array_namespace(on_gpu[0] if on_gpu else np.empty(0))
    return xp, *(xp.asarray(array, dtype=xp.float64) for array in arrays)


def as_quaternions(*arrays: ArrayLike | Array) -> tuple[Any, ...]:
    """Like :func:`as_float64`, with an error for anything that is not (..., 4)."""
    xp, *quaternions = as_float64(*arrays)
    for q in quaternions:
        if q.ndim == 0 or q.shape[-1] != 4:
            raise OrienteerError(f"quaternions have shape {tuple(q.shape)}; expected (..., 4): w, x, y, z.")
    return xp, *quaternions


def identity() -> NDArray[np.float64]:
    """The rotation that changes nothing, (4,)."""
    return np.array([1.0, 0.0, 0.0, 0.0])


def normalise(quaternions: ArrayLike | Array) -> Array:
    """The quaternions scaled to length 1, (..., 4)."""
    xp, q = as_quaternions(quaternions)
    length = xp.linalg.vector_norm(q, axis=-1, keepdims=True)
    if not bool(xp.all(xp.isfinite(length) & (length > 0))):
        raise OrienteerError("a quaternion of length 0, or with NaN or infinity, is not a rotation.")
    return q / length


def canonical(quaternions: ArrayLike | Array) -> Array:
    """q or -q, whichever has a positive first non-zero component, (..., 4).

    Components below 1e-12 count as zero, so that rounding cannot decide the sign of a half turn.
    """
    xp, q = as_quaternions(quaternions)
    sign = xp.zeros(q.shape[:-1], dtype=xp.float64)
    for component in range(4):
        value = q[..., component]
        sign = xp.where((sign == 0) & (xp.abs(value) > ZERO), xp.sign(value), sign)
    return q * xp.where(sign == 0, 1.0, sign)[..., None] + 0.0  # + 0.0 turns -0.0 into 0.0


def compose(a: ArrayLike | Array, b: ArrayLike | Array) -> Array:
    """The rotation "first b, then a", (..., 4): the quaternion product a b.  Shapes broadcast."""
    xp, a, b = as_quaternions(a, b)
    aw, ax, ay, az = (a[..., i] for i in range(4))
    bw, bx, by, bz = (b[..., i] for i in range(4))
    return xp.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def inverse(quaternions: ArrayLike | Array) -> Array:
    """The rotation that undoes a unit quaternion, (..., 4): its conjugate."""
    xp, q = as_quaternions(quaternions)
    return q * xp.asarray([1.0, -1.0, -1.0, -1.0])


def rotate(quaternions: ArrayLike | Array, vectors: ArrayLike | Array) -> Array:
    """The turned vectors r' = R r, (..., 3).  Shapes before the last axis broadcast.

    To turn many vectors by many rotations, a matrix product with :func:`to_matrix` is cheaper.
    """
    as_quaternions(quaternions)
    xp, q, r = as_float64(quaternions, vectors)
    if r.ndim == 0 or r.shape[-1] != 3:
        raise OrienteerError(f"vectors have shape {tuple(r.shape)}; expected (..., 3).")
    return xp.matmul(to_matrix(q), r[..., None])[..., 0]


def to_matrix(quaternions: ArrayLike | Array) -> Array:
    """Rotation matrices R with r' = R r, (..., 3, 3), of unit quaternions.

    >>> to_matrix(from_axis_angle([0, 0, 1], 90)).round(12) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    xp, q = as_quaternions(quaternions)
    w, x, y, z = (q[..., i] for i in range(4))
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(matrices: ArrayLike | Array) -> Array:
    """Canonical unit quaternions of rotation matrices R with r' = R r, (..., 4).

    The entries of R give all products 4 q_i q_j.  The row of that 4 x 4 matrix with the largest diagonal is q
    times a factor >= 2, so no trace of R causes a loss of precision (Shepperd, J. Guidance 1, 223, 1978).
    """
    xp, m = as_float64(matrices)
    if m.ndim < 2 or m.shape[-2:] != (3, 3):
        raise OrienteerError(f"rotation matrices have shape {tuple(m.shape)}; expected (..., 3, 3).")
    defect = xp.abs(xp.matmul(m, xp.matrix_transpose(m)) - xp.eye(3))
    if not bool(xp.all(defect < 1e-3)) or not bool(xp.all(xp.linalg.det(m) > 0)):
        raise OrienteerError(
            "a matrix is not a rotation: its rows are not orthonormal, or it mirrors.",
            "Orthogonalise it first; a mirrored particle cannot be reached by turning.",
        )
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    wx, wy, wz = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    products = [
        [1 + xx + yy + zz, wx, wy, wz],
        [wx, 1 + xx - yy - zz, xy, xz],
        [wy, xy, 1 - xx + yy - zz, yz],
        [wz, xz, yz, 1 - xx - yy + zz],
    ]
    largest = xp.argmax(xp.stack([products[i][i] for i in range(4)], axis=-1), axis=-1)[..., None]
    rows = [xp.stack(row, axis=-1) for row in products]
    q = rows[0]
    for i in range(1, 4):
        q = xp.where(largest == i, rows[i], q)
    return canonical(normalise(q))


def from_axis_angle(axis: ArrayLike | Array, angle_deg: ArrayLike | Array) -> Array:
    """Unit quaternions of right-handed turns about axes (..., 3) of any length by angles (...), (..., 4)."""
    xp, axis, angle_deg = as_float64(axis, angle_deg)
    length = xp.linalg.vector_norm(axis, axis=-1, keepdims=True)
    if axis.shape[-1] != 3 or not bool(xp.all(xp.isfinite(length) & (length > 0))):
        raise OrienteerError("a rotation axis must have three finite components that are not all zero.")
    half = (angle_deg * (np.pi / 360))[..., None]
    vector = axis / length * xp.sin(half)
    return xp.concat([xp.broadcast_to(xp.cos(half), (*vector.shape[:-1], 1)), vector], axis=-1)


def to_axis_angle(quaternions: ArrayLike | Array) -> tuple[Array, Array]:
    """Unit axes (..., 3) and right-handed angles (...) in degrees, 0 to 180; the identity gets the axis z."""
    xp, q = as_quaternions(quaternions)
    q = canonical(q)
    length = xp.linalg.vector_norm(q[..., 1:], axis=-1)
    still = (length == 0)[..., None]
    axis = xp.where(still, xp.asarray([0.0, 0.0, 1.0]), q[..., 1:] / xp.where(still, 1.0, length[..., None]))
    return axis, xp.atan2(length, q[..., 0]) * (360 / np.pi)


def random_uniform(n: int, seed: int | np.random.Generator) -> NDArray[np.float64]:
    """n rotations drawn uniformly from all rotations, (n, 4) canonical; the first m do not depend on n.

    Four normal deviates have no preferred direction in 4D, and a uniform distribution on the 3-sphere is a
    uniform distribution of rotations.
    """
    return canonical(normalise(np.random.default_rng(seed).standard_normal((n, 4))))  # type: ignore[no-any-return]


def mean(quaternions: ArrayLike | Array, weights: ArrayLike | Array | None = None) -> Array:
    """The rotation nearest to N given ones (..., N, 4) with weights (..., N), (..., 4) canonical.

    It maximises the weighted sum of (q . mean)^2, so the sign of each q does not matter.  It is the
    eigenvector of the weighted sum of q q^T with the largest eigenvalue (Markley et al., J. Guidance 30,
    1193, 2007).
    """
    xp, q = as_quaternions(quaternions)
    if q.ndim < 2 or q.shape[-2] == 0:
        raise OrienteerError(f"a mean needs quaternions (..., N, 4) with N at least 1; got {tuple(q.shape)}.")
    _, q, w = as_float64(q, xp.ones(q.shape[:-1]) if weights is None else weights)
    if not bool(xp.all(w >= 0)) or not bool(xp.all(xp.sum(w, axis=-1) > 0)):
        raise OrienteerError("weights of a mean must be at least 0 and not all 0.")
    moments = xp.matmul(xp.matrix_transpose(q * w[..., None]), q)
    return canonical(xp.linalg.eigh(moments)[1][..., :, -1])
