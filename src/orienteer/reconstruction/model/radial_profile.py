"""The radial mean of the intensity on a fine scale; the intensity relative to it varies little.

Near the centre the intensity falls by orders of magnitude over a few voxels, too steeply to be interpolated
between them.  So the reconstruction stores the intensity relative to its radial mean.  The mean itself is a
property of the pixels, because no rotation changes their distance from the centre.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.arrays import Array

# A ring ends when it has at least so many photons and is so thick (in voxels), by whichever pair comes first.
# Its mean is known to 2 % where photons are many; few photons do not make it average over a steep fall.
_RINGS = ((3000.0, 0.1), (100.0, 1.0), (10.0, 4.0))


@dataclass(frozen=True, eq=False)
class RadialProfile:
    """Expected photons at unit fluence and unit correction as a function of the distance from the centre.

    radius_inv_A : (G,) ascending.
    log_mean : (G,) natural logarithm of the mean there.
    """

    radius_inv_A: NDArray[np.float64]
    log_mean: NDArray[np.float64]

    def __call__(self, length_inv_A: ArrayLike) -> NDArray[np.float64]:
        """The mean at these distances; constant beyond the ends."""
        return np.asarray(np.exp(np.interp(np.asarray(length_inv_A), self.radius_inv_A, self.log_mean)))

    def at_voxels(self, n: int, voxel_inv_A: float) -> NDArray[np.float64]:
        """The mean at the voxels of a cube, (n, n, n)."""
        return np.asarray(at_voxels(self(distances_in_cube(n) * voxel_inv_A), n, np))

    def times(self, other: "RadialProfile") -> "RadialProfile":
        """The product of both profiles, at the radii of either."""
        radius = np.union1d(self.radius_inv_A, other.radius_inv_A)
        return RadialProfile(radius, np.log(self(radius)) + np.log(other(radius)))

    def scaled(self, factor: NDArray[Any] | float) -> "RadialProfile":
        """The profile times a factor above 0, one for all or (G,) at each of its radii."""
        return RadialProfile(self.radius_inv_A, self.log_mean + np.log(factor))


def distances_in_cube(n: int) -> NDArray[np.float64]:
    """All distances from the centre that voxels of a cube of edge n may have, in voxels, (D,).

    Entry s is the square root of s.  They are far fewer than the voxels, so that functions of the distance
    are evaluated here only.
    """
    return np.sqrt(np.arange(3 * (n // 2) ** 2 + 1, dtype=np.float64))


def at_voxels(curves: NDArray[Any], n: int, xp: Any) -> Array:
    """Curves (..., D) over :func:`distances_in_cube`, at the voxels of a cube, (..., n, n, n), on a device.

    xp : the array library of the device.
    """
    square = (xp.arange(n, dtype=np.int32) - n // 2) ** 2
    return xp.asarray(curves)[..., square[:, None, None] + square[:, None] + square]


def estimate_profile(
    length_inv_A: NDArray[Any], photons: NDArray[Any], exposure: NDArray[Any], voxel_inv_A: float
) -> RadialProfile:
    """The radial mean of measured photons, in rings as thin as the number of photons allows.

    length_inv_A : (U,) distances of the pixels from the centre.
    photons : (U,) photons of all frames in each pixel.
    exposure : (U,) correction of each pixel times summed fluence of the frames it was recorded in.
    """
    order = np.argsort(length_inv_A, kind="stable")
    length = np.asarray(length_inv_A, dtype=np.float64)[order]
    counted = np.asarray(photons, dtype=np.float64)[order]
    exposed = np.asarray(exposure, dtype=np.float64)[order]
    ends = _ring_ends(length / voxel_inv_A, counted)
    starts = np.concatenate([[0], ends[:-1]])
    ring_photons = np.add.reduceat(counted, starts)
    ring_exposure = np.add.reduceat(exposed, starts)
    # In a wide ring, the photons of a falling profile lie nearer to the inner edge.
    weight = counted + 1e-12 * (1 + counted.sum())
    middle = np.add.reduceat(weight * length, starts) / np.add.reduceat(weight, starts)
    mean = ring_photons / np.maximum(ring_exposure, 1e-300)
    least = max(float(mean.max()) * 1e-12, 1e-30)
    log_mean = np.log(np.maximum(mean, least))
    return RadialProfile(*_continued(middle, log_mean, float(length[-1]), np.log(least)))


def _ring_ends(radius: NDArray[Any], counted: NDArray[Any]) -> NDArray[np.int64]:
    """Where each ring ends, for pixels sorted by radius in voxels; the last ring ends at the edge."""
    total = np.concatenate([[0.0], np.cumsum(counted)])
    ends = [0]
    while ends[-1] < len(radius):
        first = ends[-1]
        closing = [
            max(
                int(np.searchsorted(total, total[first] + photons, "left")),
                int(np.searchsorted(radius, radius[first] + thickness, "right")),
            )
            for photons, thickness in _RINGS
        ]
        ends.append(min(*closing, len(radius)))
    return np.array(ends[1:], dtype=np.int64)


def _continued(
    radius: NDArray[Any], log_mean: NDArray[Any], edge: float, lowest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Continue the profile to the edge: within the last ring, wide and dark, it falls as it did before."""
    if len(radius) < 2 or edge <= radius[-1]:
        return radius, log_mean
    slope = min((log_mean[-1] - log_mean[-2]) / max(radius[-1] - radius[-2], 1e-300), 0.0)
    end = max(log_mean[-1] + slope * (edge - radius[-1]), lowest)
    return np.append(radius, edge), np.append(log_mean, end)
