"""Size and shape of a particle, and the noise, from its intensity before any phase is known.

The transform of an intensity is the autocorrelation of the density.  It ends at the particle's largest
distance; beyond is only noise.  The intensity is divided by its radial mean first, so that every shell counts
equally, and neither a missing centre nor the steep fall of the profile hides the end.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import distances
from orienteer.errors import OrienteerError
from orienteer.phase.half_grid import density_of, frequencies, rounded_radii, transform_of

# The particle ends where the power has fallen to this multiple of the noise.
_ABOVE_NOISE = 3.0
# Even without noise, the edges of the data leave this share of the largest power at all distances.
_LEAST_POWER = 2e-4
# Factor for the largest distances, which are few and the first to be lost in the noise.
_MARGIN = 1.15
# Beyond this share of the longest distance in the box, its half diagonal, everything is noise.
_NOISE_FROM = 0.7
# Axes of the first support are at least this share of the longest: the shape is known only roughly.
_SHORTEST_AXIS = 0.6


@dataclass(frozen=True, eq=False)
class Autocorrelation:
    """Size and shape of a particle from its autocorrelation.

    diameter_A : largest extent, given or found.
    is_found : whether the diameter was found in the data.
    seen_A : the diameter seen in the data, even if another was given; 0 if none is seen.
    box_A : edge of the box.
    axes : (3, 3) float64, unit vectors along the long, middle and short axis, one per row.
    semi_axes_A : (3,) float64, of an ellipsoid of the same shape whose longest extent is the diameter.
    """

    diameter_A: float
    is_found: bool
    box_A: float
    axes: NDArray[np.float64]
    semi_axes_A: NDArray[np.float64]
    seen_A: float = 0.0

    @property
    def volume_A3(self) -> float:
        """Volume of the ellipsoid."""
        return float(4 / 3 * np.pi * np.prod(self.semi_axes_A))


def autocorrelation_of(
    values: NDArray[np.float64], measured: NDArray[np.bool_], box_A: float, diameter_A: float = 0.0
) -> Autocorrelation:
    """Size and shape of a particle from its intensity.

    values : (n, n, n // 2 + 1), the intensity in the order of the FFT; measured : where it is known.
    diameter_A : largest extent of the particle; 0: find it.
    """
    n = len(values)
    power = density_of(_relative(values, measured) * _soft_edges(measured)) ** 2
    distance, shell = _distances(n)
    number = np.bincount(shell.ravel())
    profile = np.bincount(shell.ravel(), weights=power.ravel()) / np.maximum(number, 1)
    farthest = n / 2 * 3**0.5
    floor = float(np.median(profile[int(_NOISE_FROM * farthest) : int(farthest)]))
    is_found, seen_A = not diameter_A, _end_of(profile, floor, n) * box_A / n
    if is_found:
        diameter_A = seen_A
    if not diameter_A:
        raise OrienteerError(
            "the intensity has no speckles that show the size of the particle.", "Give its diameter."
        )
    inside = (distance < diameter_A / box_A * n) & (distance > 0)
    axes, spread = _principal_axes(np.sqrt(np.maximum(power - floor, 0)) * inside)
    ratio = np.maximum(spread / spread[0], _SHORTEST_AXIS) if spread[0] > 0 else np.ones(3)
    return Autocorrelation(float(diameter_A), is_found, float(box_A), axes, diameter_A / 2 * ratio, seen_A)


def noise_of(values: NDArray[np.float64], measured: NDArray[np.bool_], share: float) -> NDArray[np.float64]:
    """Standard error of the intensity, (n, n, n // 2 + 1), constant in each shell.

    It is estimated from the transform of the relative intensity beyond the particle's largest distance,
    assuming that noise is spread evenly over all distances.  The edges of the data and the steep profile
    leave something there too: a noise of 10 % is overestimated by up to a factor of two, larger noise is
    estimated well.

    share : diameter of the particle over the edge of the box.
    """
    n = len(values)
    window = _soft_edges(measured)
    relative = _relative(values, measured) * window
    distance, _ = _distances(n)
    beyond = distance > min(share * n, 0.75 * n)
    noise = transform_of(density_of(relative) * beyond).real
    shell = rounded_radii(n)
    weight = np.bincount(shell[measured], weights=window[measured] ** 2, minlength=shell.max() + 1)
    sums = np.bincount(shell[measured], weights=noise[measured] ** 2, minlength=len(weight))
    square = sums / np.maximum(weight, 1e-3)
    return np.asarray((np.sqrt(square / beyond.mean()) * _levels(values, measured))[shell])


def _relative(values: NDArray[np.float64], measured: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Relative deviation of the intensity from the mean of its shell, 0 where it was not measured."""
    level = _levels(values, measured)[rounded_radii(len(values))]
    return np.where(measured, values / level - 1, 0)


def _levels(values: NDArray[np.float64], measured: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Mean of each shell, with a tiny positive lower bound."""
    shell = rounded_radii(len(values))
    number = np.bincount(shell[measured], minlength=shell.max() + 1)
    sums = np.bincount(shell[measured], weights=values[measured], minlength=len(number))
    means = sums / np.maximum(number, 1)
    return np.asarray(np.maximum(means, 1e-12 * max(means.max(), 1e-300)))


def _distances(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Periodic distance of each voxel from the first one, in voxels, (n, n, n), and the same rounded."""
    whole, _ = frequencies(n)
    distance = distances(whole)
    return distance, np.rint(distance).astype(np.int64)


def _soft_edges(measured: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1 in the middle of the measured region, falling smoothly at its edges to avoid ringing."""
    from scipy.ndimage import gaussian_filter

    # Along the halved axis the grid begins at q = 0, the middle of the data: its mirror image precedes it.
    return np.asarray(gaussian_filter(measured.astype(np.float64), 1.5, mode=("wrap", "wrap", "mirror")))


def _end_of(profile: NDArray[np.float64], floor: float, n: int) -> float:
    """The largest distance in voxels at which the power is above the noise; 0 if it never is."""
    least = max(_ABOVE_NOISE * floor, _LEAST_POWER * float(profile[1:].max()))
    above = np.flatnonzero(profile[: n // 2 + 1] > least)
    return float(above[-1] + 0.5) * _MARGIN if above.size >= 2 else 0.0


def _principal_axes(weight: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Principal axes of a distribution around the first voxel, longest first, and its rms along each."""
    whole, _ = frequencies(len(weight))
    total = max(float(weight.sum()), 1e-300)
    x, y, z = whole[:, None, None], whole[:, None], whole
    pairs = [[float((weight * (a * b)).sum()) / total for a in (x, y, z)] for b in (x, y, z)]
    squares, vectors = np.linalg.eigh(np.array(pairs))
    return vectors.T[::-1], np.sqrt(np.maximum(squares[::-1], 0))
