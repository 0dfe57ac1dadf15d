"""Average a volume over the rotations of the particle's point group."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, squared_distances
from orienteer.compare.turning import CUBIC, LINEAR, filled, sample, spline_coefficients
from orienteer.compute.arrays import Array, array_namespace
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import to_matrix

# Voxels whose equivalents are sampled at once: by splines in float64, and linearly in float32.
_SPLINE_POINTS_AT_ONCE = 1 << 16
_LINEAR_POINTS_AT_ONCE = 1 << 20
# Tolerances with which elements of a rotation matrix count as whole numbers, and two matrices as equal.
_EXACT, _SAME = 1e-9, 1e-6


def symmetrised(cube: Array, group: PointGroup, radius: float | None = None, order: int = CUBIC) -> Array:
    """The mean of a volume (n, n, n) over the rotations of the group, by splines, in the dtype of the volume.

    NaN (never measured) is left out of the mean; the result is NaN where all equivalents are.

    radius : in voxels around the centre voxel n // 2; voxels beyond it stay as they are.  By default that of
        the largest ball in the cube.
    """
    if group.order == 1:
        return cube
    xp = array_namespace(cube)
    known = ~xp.isnan(cube)
    is_whole = bool(xp.all(known))
    result = cube.copy()
    flat = result.reshape(-1)
    coefficients = spline_coefficients(filled(cube), order)
    known = known.astype(cube.dtype)
    for places, points, matrices in _equivalents(cube, group, radius, _SPLINE_POINTS_AT_ONCE):
        samples = sample(coefficients, points, matrices, order)
        if is_whole:
            flat[places] = samples.mean(axis=0)
            continue
        weight = (sample(known, points, matrices, LINEAR) > 0.5).astype(cube.dtype)
        number = weight.sum(axis=0)
        mean = (samples * weight).sum(axis=0) / xp.maximum(number, 1)
        flat[places] = xp.where(number > 0, mean, xp.asarray(np.nan, dtype=cube.dtype))
    return result


def mean_over_group(cube: Array, group: PointGroup, order: int = LINEAR) -> Array:
    """The mean of an intensity (n, n, n) over the group, float32; trilinear interpolation blurs it.

    cube : Friedel-symmetric, and n odd, so that one half determines the other.
    order : of the splines.

    Beyond the largest ball in the cube some equivalents lie outside the cube; the result is 0 there.
    """
    xp = array_namespace(cube)
    exact, others = _cosets(to_matrix(group.quaternions))
    volume = cube.astype(xp.float32)
    # First average over the rotations that map voxels onto voxels, which cost almost nothing: 12 of the 60 of
    # an icosahedron, and all of an octahedron.  Then one rotation of each coset of these is enough.
    volume = xp.ascontiguousarray(sum(_turned_exactly(volume, matrix) for matrix in exact) / len(exact))
    out = xp.zeros(cube.shape, dtype=xp.float32)
    flat, last = out.reshape(-1), cube.size - 1
    matrices = xp.asarray(others)
    at_once = _LINEAR_POINTS_AT_ONCE if order == LINEAR else _SPLINE_POINTS_AT_ONCE
    coefficients = spline_coefficients(volume, order)
    equivalents = _equivalents(cube, group, None, at_once, last_place=last // 2)
    for places, points, _ in equivalents:
        flat[places] = flat[last - places] = sample(coefficients, points, matrices, order).mean(axis=0)
    return out


def _cosets(matrices: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rotations h (H, 3, 3) that map voxels onto voxels, and c (K / H, 3, 3): the group is all h c."""
    whole = np.round(matrices)
    exact = whole[(np.abs(matrices - whole) < _EXACT).all(axis=(1, 2))]
    chosen: list[NDArray[np.float64]] = []
    met = np.zeros(len(matrices), dtype=bool)
    for k, matrix in enumerate(matrices):
        if not met[k]:
            chosen.append(matrix)
            turned = exact @ matrix
            met |= (np.abs(matrices[:, None] - turned).max(axis=(2, 3)) < _SAME).any(axis=1)
    return exact, np.stack(chosen)


def _turned_exactly(cube: Array, matrix: NDArray[np.float64]) -> Array:
    """The values (n, n, n) at ``matrix @ position`` of all voxels; n is odd, and the matrix permutes axes."""
    axes = np.abs(matrix).argmax(axis=1)
    mirrored = cube[tuple(slice(None, None, -1 if sign < 0 else 1) for sign in matrix.sum(axis=1))]
    return mirrored.transpose(tuple(np.argsort(axes).tolist()))


def _equivalents(
    cube: Array, group: PointGroup, radius: float | None, at_once: int, last_place: int | None = None
) -> Iterator[tuple[Array, Array, Array]]:
    """Places (P,) of voxels in the flat cube, their positions (P, 3), and the rotations (order, 3, 3)."""
    xp, n = array_namespace(cube), len(cube)
    largest = n // 2 - 1
    radius = largest if radius is None else min(radius, largest)
    square = squared_distances(centred_axis(n))
    inside = np.flatnonzero(square.ravel()[: None if last_place is None else last_place + 1] <= radius**2)
    matrices = xp.asarray(to_matrix(group.quaternions))
    for first in range(0, len(inside), at_once):
        places = inside[first : first + at_once]
        points = np.stack(np.unravel_index(places, cube.shape), axis=1).astype(np.float64) - n // 2
        yield xp.asarray(places), xp.asarray(points), matrices
