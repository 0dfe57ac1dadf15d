"""Correlation of two intensities after a rotation, on a selection of voxels, for many rotations at once.

In both cubes every shell is first given mean 0 and variance 1, so that neither the steep fall with q nor the
bright centre decides.
"""

from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.shells import OUTSIDE, n_shells, radial_mean, shell_index, without_profile
from orienteer.compare.turning import CUBIC, LINEAR, sample, spline_coefficients
from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.orientation.quaternion import compose, from_axis_angle, to_matrix

OFFSETS = np.array(list(product((-1.0, 0.0, 1.0), repeat=3)))  # (27, 3)
# Speckles are measured in a cube that extends this many voxels from the centre.
_REACH_OF_SPECKLES = 32
_SEED = 20  # of the selection of voxels, so that the same volumes always give the same answer


class RotationSearch:
    """Two volumes with even shells, and their correlation on selected voxels for any rotations."""

    def __init__(self, reference: Array, moving: Array, first_shell: int, last_shell: int) -> None:
        # Nothing further out can be turned into the last shell; splines extend over two voxels.
        self.reference, self.moving = (
            even_shells(_middle(values, last_shell + 3)) for values in (reference, moving)
        )
        self.first_shell, self.last_shell = first_shell, last_shell
        n = self.reference.shape[0]
        shell = shell_index(n).ravel()
        chosen = np.flatnonzero((shell >= first_shell) & (shell <= last_shell) & (shell != OUTSIDE))
        self._voxels = np.stack(np.unravel_index(chosen, (n, n, n)), axis=1) - n // 2
        self._shells = shell[chosen]
        self._draws = np.random.default_rng(_SEED).random(len(chosen))
        # Long streaks, as of a body with facets, are only as wide as ordinary speckles: limit the width.
        self.speckle = min(2.0, speckle_radius(self.reference))
        self._cubic: Array | None = None

    def points(self, last_shell: int, n_points: int) -> NDArray[np.int64]:
        """Voxels (P, 3), from the centre: all, or about n_points drawn with weights of 1 / radius."""
        inside = self._shells <= last_shell
        if int(inside.sum()) > n_points:
            share = inside / np.maximum(self._shells, 1)
            inside = self._draws < share * (n_points / share.sum())
        return np.asarray(self._voxels[inside])

    def scores(
        self, quaternions: NDArray[np.float64], points: NDArray[np.int64], order: int,
        shell_weights: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:  # fmt: skip
        """Correlation over the points (P, 3) of the reference and the turned volume, (K,).

        The turned values are normalised: interpolation weakens them by an amount that depends on the
        rotation, which would otherwise favour rotations that map voxels onto voxels.
        """
        xp = array_namespace(self.reference)
        n = self.reference.shape[0]
        at = points + n // 2
        x, y, z = (xp.asarray(at[:, i]) for i in range(3))
        values = self.reference[x, y, z]
        weights = np.ones(len(points))
        if shell_weights is not None:
            weights = shell_weights[shell_index(n)[at[:, 0], at[:, 1], at[:, 2]]]
        weights = xp.asarray(weights)
        turned = sample(
            self._coefficients(order), points.astype(np.float64),
            np.swapaxes(to_matrix(quaternions), 1, 2), order,
        )  # fmt: skip
        turned = xp.astype(turned, xp.float64)
        strength = xp.sqrt(xp.matmul(turned * turned, weights) * xp.sum(weights * values * values))
        products = xp.matmul(turned, weights * values)
        return to_numpy(products / xp.where(strength > 0, strength, 1.0))

    def shell_agreement(
        self, quaternion: NDArray[np.float64], points: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Correlation over the points (P, 3) of every shell, (S,); 0 for shells without points."""
        n = self.reference.shape[0]
        x, y, z = (points + n // 2).T
        back = np.swapaxes(to_matrix(quaternion), 0, 1)[None]
        b = to_numpy(sample(self._coefficients(CUBIC), points.astype(np.float64), back, CUBIC))[0]
        xp = array_namespace(self.reference)
        a = to_numpy(self.reference[xp.asarray(x), xp.asarray(y), xp.asarray(z)])
        shell = shell_index(n)[x, y, z]
        products, one, other = (
            np.bincount(shell, weights=values, minlength=n_shells(n)) for values in (a * b, a * a, b * b)
        )
        return np.asarray(products / np.sqrt(np.maximum(one * other, 1e-30)))

    def _coefficients(self, order: int) -> Array:
        if order == LINEAR:
            return self.moving
        if self._cubic is None:
            self._cubic = spline_coefficients(self.moving, order)
        return self._cubic


def even_shells(values: Array) -> Array:
    """The cube with mean 0 and variance 1 on every shell, (n, n, n) float64; 0 where nothing is known."""
    xp = array_namespace(values)
    deviation = without_profile(values)
    spread = np.sqrt(radial_mean(deviation * deviation))
    inverse = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    factor = xp.asarray(np.append(inverse, 0.0)[shell_index(values.shape[0])])
    result = deviation * factor
    return xp.where(xp.isnan(result), 0.0, result)


def _middle(values: Array, reach: int) -> Array:
    """The cube of 2 reach + 1 voxels around the centre voxel, or the whole cube if that is not larger."""
    n = values.shape[0]
    if 2 * reach + 1 >= n:
        return values
    inside = slice(n // 2 - reach, n // 2 + reach + 1)
    return values[inside, inside, inside]


def speckle_radius(even: Array) -> float:
    """Half width of the speckles of a cube with even shells, in voxels, at least 1.

    It is the distance at which the autocorrelation has fallen to half of its value one voxel from the centre.
    The centre itself is not used, because it contains noise that is independent from voxel to voxel.
    """
    xp = array_namespace(even)
    inner = _middle(even, _REACH_OF_SPECKLES)
    power = xp.abs(xp.fft.fftn(inner)) ** 2
    autocorrelation = xp.fft.fftshift(xp.real(xp.fft.ifftn(power)))
    profile = radial_mean(autocorrelation)[1:].tolist()
    below = [s for s, value in enumerate(profile, start=1) if value < profile[0] / 2]
    return float(max(1, below[0] - 1)) if below and profile[0] > 0 else 1.0


def around(quaternions: NDArray[np.float64], step_deg: float) -> NDArray[np.float64]:
    """Each rotation and its 26 neighbours, one step away along the axes and diagonals, (27 K, 4)."""
    return np.asarray(compose(_turns(step_deg), quaternions[:, None])).reshape(-1, 4)


@lru_cache(maxsize=64)
def _turns(step_deg: float) -> NDArray[np.float64]:
    """The rotations to the neighbours, (27, 4); cached, because a search uses the same few steps."""
    return np.array([small_turn(step_deg * offset) for offset in OFFSETS])


def small_turn(vector_deg: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rotation about a vector by its length in degrees, (4,)."""
    angle = float(np.linalg.norm(vector_deg))
    if angle == 0:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return np.asarray(from_axis_angle(vector_deg, angle))
