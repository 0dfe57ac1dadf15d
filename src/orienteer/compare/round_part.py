"""The round part of a density, which stays the same under all rotations about the particle's middle."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.fsc import (
    from_half_transform,
    half_radius,
    half_shells,
    half_transform,
    shell_products,
)
from orienteer.compute.arrays import Array, array_namespace

# The middle is searched for in steps of one voxel first, and of this size in the end.
_LAST_STEP = 1 / 16


class RoundPart:
    """Means over the shells of a transform about the middle of the particle.

    transform : (n, n, n // 2 + 1) complex128 of :func:`half_transform`.
    middle : (3,) of the particle, in voxels from the first one: the place near ``near`` about which the
        shells from ``first_shell`` on are roundest, each measured by the round share of its power.
    end : the shell from which on there are no data.
    """

    def __init__(self, transform: Array, near: NDArray[np.float64], first_shell: int, end: int) -> None:
        xp = array_namespace(transform)
        self.n, self._end = int(transform.shape[0]), end
        self.radius, self.shells = half_radius(self.n, xp), xp.asarray(half_shells(self.n))
        self._ones = xp.ones_like(transform)
        number, distance = shell_products(self._ones, self.radius * self._ones, self.n)[1::-1]
        self._radii, self._number = xp.asarray((distance / number)[:end]), number
        self.middle = self._roundest(transform, near, slice(first_shell, end))
        self._to_middle = self._moved_to(self.middle, xp)

    def of(self, transform: Array) -> Array:
        """The round part of a transform: its means over shells, with linear interpolation between them."""
        xp = array_namespace(transform)
        centred = transform * self._to_middle
        same = xp.zeros_like(self.radius)
        # Lines through means miss part of a curved profile; a second pass finds most of it.
        for _ in range(2):
            mean = (self._sums(centred - same)[0] / self._number)[: self._end]
            # Beyond the last shell, in the corners, the round part is set to 0.
            joined = xp.interp(xp.reshape(self.radius, (-1,)), self._radii, xp.asarray(mean), right=0.0)
            same = same + xp.reshape(joined, self.radius.shape)
        return same * xp.conj(self._to_middle)

    def taken_off(self, density: Array, first_shell: int) -> Array:
        """The density (n, n, n) minus its round part from shell ``first_shell`` on."""
        xp = array_namespace(density)
        transform = half_transform(density)
        beyond = self.radius >= first_shell - 0.5
        return from_half_transform(transform - xp.where(beyond, self.of(transform), 0.0), self.n)

    def _roundest(self, transform: Array, near: NDArray[np.float64], shells: slice) -> NDArray[np.float64]:
        """The place about which the shells are roundest, found by ever smaller steps along the axes."""
        xp = array_namespace(transform)

        def roundness(place: NDArray[np.float64]) -> float:
            total, power = self._sums(transform * self._moved_to(place, xp))
            return float((total**2 / np.maximum(power * self._number, 1e-300))[shells].sum())

        place, best, step = np.asarray(near, np.float64), roundness(near), 1.0
        while step >= _LAST_STEP:
            tried = [place + step * way for way in np.concatenate([np.eye(3), -np.eye(3)])]
            found = [roundness(one) for one in tried]
            if max(found) > best:
                place, best = tried[int(np.argmax(found))], max(found)
            else:
                step /= 2
        return place

    def _moved_to(self, place: NDArray[np.float64], xp: Any) -> Array:
        """The factors that move the origin of a transform to a place."""
        whole, half = np.fft.fftfreq(self.n), np.arange(self.n // 2 + 1) / self.n
        x, y, z = (np.exp(2j * np.pi * q * c) for q, c in zip((whole, whole, half), place, strict=True))
        return xp.asarray(x)[:, None, None] * xp.asarray(y)[:, None] * xp.asarray(z)

    def _sums(self, transform: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sums over each shell of the real parts and of the squares, (S,) each."""
        total, power, _ = shell_products(transform, self._ones, self.n)
        return total, power


def centroid(density: Array) -> NDArray[np.float64]:
    """The centroid (3,) of the positive density, in voxels from the first; without any, that of the box."""
    xp = array_namespace(density)
    n = density.shape[0]
    weight = xp.astype(xp.maximum(density, 0.0), xp.float64)
    total = float(xp.sum(weight))
    if total <= 0:
        return np.full(3, float(n // 2))
    axis = xp.arange(n, dtype=xp.float64)
    others = ((1, 2), (0, 2), (0, 1))
    return np.array([float(xp.sum(axis * xp.sum(weight, axis=sides))) / total for sides in others])
