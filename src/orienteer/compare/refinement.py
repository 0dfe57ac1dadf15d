"""The last step of an alignment: refine rotation and shift together, to a small fraction of a voxel.

With g the gradient of the reference, a small further rotation ω and shift t change the moved density M by
-(ω × r + t) · g.  Least squares of reference - M then give six equations with a constant matrix, and each
round samples the moved density once (Gauss-Newton; Baker and Matthews 2004).  A dilation can be a seventh
unknown, which shows whether a voxel size is wrong.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.fsc import from_half_transform, half_transform, within_shells
from orienteer.compare.moving import MovableDensity, cube_points
from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.orientation.quaternion import compose, from_axis_angle, rotate

_MOST_ROUNDS = 12
_MOST_HALVINGS = 3
# Rounds end when no voxel moves by more than this.
_STILL_VOXELS = 0.003


@dataclass(frozen=True, eq=False)
class Placement:
    """The placement of a density on another: r' = scale * hand * R r + shift, in voxels from the centres.

    quaternion : (4,), of R; shift : (3,); hand : 1, or -1 for the point reflection.
    correlation : of the reference and the moved density.
    """

    quaternion: NDArray[np.float64]
    shift: NDArray[np.float64]
    hand: int
    correlation: float = np.nan
    scale: float = 1.0


class Refinement:
    """A reference, and the equations that refine the placement of any density on it.

    reference : (n, n, n) real without NaN.  Only the ball that fits into the cube counts.
    mask : (n, n, n) from 0 to 1, weight of each voxel of the reference.
    """

    def __init__(self, reference: Array, mask: Array | None = None) -> None:
        xp = array_namespace(reference)
        n = self.n = int(reference.shape[0])
        reference = within_shells(reference)
        inside = _ball(n)
        chosen = xp.asarray(inside)
        self.points = xp.asarray(cube_points(n)[inside], dtype=xp.float64)
        values = xp.reshape(reference, (-1,))[chosen]
        self._weights = xp.ones_like(values)
        if mask is not None:
            self._weights = xp.astype(xp.reshape(mask, (-1,))[chosen], xp.float64)
        self._values = self._without_mean(values)
        g = [xp.reshape(slope, (-1,))[chosen] for slope in _gradient(reference)]
        x, y, z = (self.points[:, i] for i in range(3))
        turns = [y * g[2] - z * g[1], z * g[0] - x * g[2], x * g[1] - y * g[0]]
        self._slopes = xp.stack([*turns, *g, x * g[0] + y * g[1] + z * g[2]])  # (7, P)
        means = xp.matmul(self._slopes, self._weights) / xp.sum(self._weights)
        self._slopes = self._slopes - means[:, None]
        self._matrix = to_numpy(xp.matmul(self._slopes * self._weights, self._slopes.T))

    def refine(self, moving: MovableDensity, start: Placement, *, scale_too: bool = False) -> Placement:
        """The placement of highest correlation near the start.

        scale_too : whether the size of the moving density may change as well.
        """
        unknowns = 7 if scale_too else 6
        matrix = self._matrix[:unknowns, :unknowns]
        # A ball does not determine a rotation: the pseudo-inverse leaves such unknowns unchanged.
        inverse = np.linalg.pinv(matrix, rcond=1e-8, hermitian=True)
        place, gap = self._look(moving, start)
        for _ in range(_MOST_ROUNDS):
            step = -inverse @ gap[:unknowns]
            for _ in range(_MOST_HALVINGS):
                tried, tried_gap = self._look(moving, _moved_on(place, step))
                if tried.correlation > place.correlation:
                    break
                step = step / 2
            else:
                return place
            place, gap = tried, tried_gap
            reach = np.linalg.norm(step[:3]) * self.n / 2 + np.linalg.norm(step[3:6])
            if reach + abs(step[6:]).sum() * self.n / 2 < _STILL_VOXELS:
                break
        return place

    def _look(self, moving: MovableDensity, place: Placement) -> tuple[Placement, NDArray[np.float64]]:
        """The placement with its correlation, and the sums of slopes times (reference - moved), (7,)."""
        xp = array_namespace(self._values)
        found = moving.at(self.points, place.quaternion, place.shift, place.hand, place.scale)
        found = self._without_mean(xp.astype(found, xp.float64))
        weighted = self._weights * found
        own = float(xp.sum(weighted * found))
        power = own * float(xp.sum(self._weights * self._values * self._values))
        if power <= 0:
            return replace(place, correlation=0.0), np.zeros(7)
        product = float(xp.sum(weighted * self._values))
        gap = self._weights * self._values - product / own * weighted
        return replace(place, correlation=product / np.sqrt(power)), to_numpy(xp.matmul(self._slopes, gap))

    def _without_mean(self, values: Array) -> Array:
        xp = array_namespace(values)
        return values - xp.sum(self._weights * values) / xp.sum(self._weights)


@lru_cache(maxsize=4)
def _ball(n: int) -> NDArray[np.int64]:
    """Flat indices of the voxels of a cube inside the ball that fits into it."""
    return np.flatnonzero((cube_points(n).astype(np.int64) ** 2).sum(axis=1) <= (n / 2 - 1) ** 2)


def _moved_on(place: Placement, step: NDArray[np.float64]) -> Placement:
    """The placement after a further small rotation, shift and dilation about the origin."""
    angle = float(np.linalg.norm(step[:3]))
    turn = from_axis_angle(step[:3], np.degrees(angle)) if angle > 0 else np.array([1.0, 0, 0, 0])
    larger = 1 + (float(step[6]) if len(step) > 6 else 0.0)
    shift = larger * np.asarray(rotate(turn, place.shift)) + step[3:6]
    quaternion = np.asarray(compose(turn, place.quaternion))
    return replace(place, quaternion=quaternion, shift=shift, scale=place.scale * larger)


def _gradient(values: Array) -> list[Array]:
    """Derivatives along x, y and z per voxel, by the Fourier series."""
    xp = array_namespace(values)
    n = values.shape[0]
    transform = half_transform(values)
    whole = 2 * np.pi * np.fft.fftfreq(n)
    half = 2 * np.pi * np.arange(n // 2 + 1) / n
    waves = (whole[:, None, None], whole[None, :, None], half[None, None, :])
    return [from_half_transform(1j * xp.asarray(wave) * transform, n) for wave in waves]
