"""Which shells of an intensity the photons could resolve even if every orientation were known.

A merge determines the intensity of a Shannon voxel, the volume 1/D^3 of one speckle of a particle of diameter
D, from the m photons in it, with a relative error of 1/sqrt(m).  The speckles of a shell deviate from its
mean by their contrast C, the relative standard deviation of the intensity on the shell.  Signal over noise,
as a ratio of variances, is then

    SNR = m C^2,    and the best possible correlation with the truth is sqrt(SNR / (1 + SNR))

on the scale of a speckle.  A cube has several voxels per speckle, each with only its share of the photons: in
a merge with the true orientations on 3.3 voxels per speckle, single voxels correlate with the truth to 0.85
at SNR 30, 0.6 at SNR 6 and 0.3 at SNR 1.  Shells below the limit say little about the quality of a
reconstruction, because no method could do much better there.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compare.shells import n_shells, radial_mean, radial_variance, shell_index
from orienteer.compute.arrays import Array
from orienteer.errors import OrienteerError

# With this limit, the last shells that count are hard but not hopeless for two to four voxels per speckle.
SIGNAL_LIMIT = 30.0


def photons_in_shells(photons: ArrayLike, radius: ArrayLike, n: int) -> NDArray[np.float64]:
    """Photons that land in every shell of a cube of n voxels, (S,) float64.

    photons : (P,) photons of every pixel, of one frame or of all.
    radius : (P,) distance of the pixel from the centre of the cube, in voxels.
    """
    photons, radius = np.asarray(photons, np.float64), np.asarray(radius, np.float64)
    if photons.shape != radius.shape or photons.ndim != 1:
        raise OrienteerError(f"photons {photons.shape} and radii {radius.shape} must be lists of one length.")
    shell = np.floor(radius + 0.5).astype(np.int64)
    inside = shell < n_shells(n)
    landed = np.bincount(shell[inside], weights=photons[inside], minlength=n_shells(n))
    return landed.astype(np.float64)


def merged_signal_to_noise(
    truth: Array, photons: ArrayLike, shannon_voxel: float, *, friedel: bool = True
) -> NDArray[np.float64]:
    """Variance of the speckles over that of the photon noise, per Shannon voxel of each shell, (S,) float64.

    truth : (n, n, n) the true intensity, in any unit.
    photons : (S,) photons of all frames in each shell; see :func:`photons_in_shells`.
    shannon_voxel : edge of a Shannon voxel in voxels of the cube: 1 / (diameter x voxel size).
    friedel : whether q and -q are merged, which puts the photons into half as many voxels.
    """
    n = truth.shape[0]
    photons = np.asarray(photons, np.float64)
    if photons.shape != (n_shells(n),):
        raise OrienteerError(f"a cube of {n} voxels has {n_shells(n)} shells, not {photons.shape}.")
    if not 0 < shannon_voxel < np.inf:
        raise OrienteerError(f"a Shannon voxel of {shannon_voxel:g} voxels has no size.")
    index = shell_index(n)
    voxels = np.bincount(index[index >= 0], minlength=len(photons)) / shannon_voxel**3
    independent = voxels / 2 if friedel else voxels
    mean, variance = radial_mean(truth), radial_variance(truth)
    contrast = np.zeros(len(photons))
    lit = mean > 0
    contrast[lit] = variance[lit] / mean[lit] ** 2
    return np.asarray(photons / independent * contrast)


def shells_with_signal(
    truth: Array,
    photons: ArrayLike,
    shannon_voxel: float,
    *,
    limit: float = SIGNAL_LIMIT,
    friedel: bool = True,
) -> NDArray[np.bool_]:
    """Whether a perfect merge resolves the speckles of each shell, (S,) bool; never the centre voxel.

    limit : least signal over noise of a Shannon voxel; the other arguments are those of
        :func:`merged_signal_to_noise`.
    """
    carries = merged_signal_to_noise(truth, photons, shannon_voxel, friedel=friedel) >= limit
    carries[0] = False
    return np.asarray(carries)


def expected_correlation(signal_to_noise: ArrayLike) -> NDArray[np.float64]:
    """Correlation between the truth and the truth plus independent noise.

    >>> float(expected_correlation(4.0).round(3))
    0.894
    """
    ratio = np.asarray(signal_to_noise, np.float64)
    return np.sqrt(ratio / (1 + ratio))
