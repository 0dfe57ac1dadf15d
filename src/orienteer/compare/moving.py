"""Turn, mirror and shift a density, almost without loss.

Splines through the voxels blur details finer than about four voxels.  So the density is first put on voxels
of half the size by its Fourier series, where splines are accurate, and sampled from there.  The corners of
the transform, beyond the last whole shell, are left out, because they would fold back after a rotation.

This is quick, and accurate to about 1e-4 of the strongest waves.  For final results on the CPU, the Fourier
series itself is evaluated at the moved voxels, so that even almost empty shells stay correct.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.fsc import within_shells
from orienteer.compare.resampling import resample
from orienteer.compare.turning import CUBIC, sample, spline_coefficients
from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.orientation.quaternion import to_matrix

_FINER = 2
_POINTS_AT_A_TIME = 2**21


class MovableDensity:
    """A density that can be sampled at r = s R^T (r' - t) for any rotation R, shift t and hand s = 1 or -1.

    values : (n, n, n) real without NaN; the centre voxel n // 2 is the origin, and lengths are in voxels.
    """

    def __init__(self, values: Array) -> None:
        xp = array_namespace(values)
        self.n = int(values.shape[0])
        fine = resample(within_shells(values), 1.0, _FINER * self.n, 1.0 / _FINER)
        self._coefficients = spline_coefficients(xp.astype(fine, xp.float32), CUBIC)

    def at(
        self, points: Array, quaternion: NDArray[np.float64], shift: NDArray[np.float64], hand: int,
        scale: float = 1.0,
    ) -> Array:  # fmt: skip
        """Values of the moved density at the points (P, 3), (P,) float32; 0 outside its box.

        scale : of the moved density; above 1 it is larger.
        """
        xp = array_namespace(self._coefficients)
        back = hand / scale * np.asarray(to_matrix(quaternion)).T
        if not is_on_gpu(self._coefficients):
            from orienteer.compare._spline_numba import sample_moved

            out = np.empty(len(points), dtype=np.float32)
            sample_moved(self._coefficients, points, back, shift, _FINER, self.n / 2, out)
            return out
        away = points - xp.asarray(shift)
        values = sample(self._coefficients, _FINER * away, back[None], CUBIC)[0]
        inside = xp.all(xp.abs(xp.matmul(away, xp.asarray(back.T))) <= self.n / 2, axis=1)
        return xp.where(inside, values, xp.asarray(0, dtype=values.dtype))

    def moved(
        self, quaternion: NDArray[np.float64], shift: NDArray[np.float64], hand: int, n: int | None = None
    ) -> Array:
        """The moved density on its own grid, or on a cube of n of its voxels, (n, n, n) float32."""
        xp = array_namespace(self._coefficients)
        n = self.n if n is None else n
        on_gpu = is_on_gpu(self._coefficients)
        result = xp.empty(n**3, dtype=xp.float32)
        for first in range(0, n**3, _POINTS_AT_A_TIME):
            last = min(first + _POINTS_AT_A_TIME, n**3)
            points = _points_on_gpu(n, first, last, xp) if on_gpu else cube_points(n)[first:last] * 1.0
            result[first:last] = self.at(points, quaternion, shift, hand)
        return xp.reshape(result, (n, n, n))


def move_density(
    values: Array, quaternion: NDArray[np.float64], shift: NDArray[np.float64], hand: int
) -> Array:
    """The density (n, n, n) moved to r' = hand * R r + shift in voxels, float32, on the same device.

    On the CPU accurate to 1e-9 of the strongest wave; on the GPU by the splines of :class:`MovableDensity`.
    """
    if is_on_gpu(values):
        return MovableDensity(values).moved(quaternion, shift, hand)
    import finufft

    n = values.shape[0]
    series = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(within_shells(values)))) / n**3
    back = hand * np.asarray(to_matrix(quaternion)).T
    points = cube_points(n)
    result = np.empty(n**3, dtype=np.float32)
    for first in range(0, n**3, _POINTS_AT_A_TIME):
        some = slice(first, first + _POINTS_AT_A_TIME)
        source = (points[some] - shift) @ back.T
        inside = (np.abs(source) <= n / 2).all(axis=1)
        x, y, z = np.ascontiguousarray(2 * np.pi / n * np.where(inside[:, None], source, 0.0).T)
        found = finufft.nufft3d2(x, y, z, series, isign=+1, eps=1e-9)
        result[some] = np.where(inside, found.real, 0.0)
    return result.reshape(n, n, n)


def _points_on_gpu(n: int, first: int, last: int, xp: Any) -> Array:
    """Some voxels of :func:`cube_points`, (P, 3) float64, made on the GPU, which is quicker than copying."""
    place = xp.arange(first, last)
    axes = (place // (n * n), place // n % n, place % n)
    return xp.stack([(axis - n // 2) * 1.0 for axis in axes], axis=1)


@lru_cache(maxsize=4)
def cube_points(n: int) -> NDArray[np.int32]:
    """Positions of all voxels of a cube, relative to its centre voxel, (n^3, 3)."""
    axis = np.arange(n, dtype=np.int32) - n // 2
    points = np.stack([x.ravel() for x in np.meshgrid(axis, axis, axis, indexing="ij")], axis=1)
    points.setflags(write=False)
    return points
