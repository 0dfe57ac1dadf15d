"""The intensity in the form of results: volumes for files, and a radial summary for a small plot."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.crossing import crossing_of
from orienteer.compute.arrays import Array, to_numpy
from orienteer.reconstruction.model.radial_profile import RadialProfile, at_voxels, distances_in_cube
from orienteer.volume.volume import Volume

# Two halves agree in a shell if they correlate by at least this.
_AGREES = 0.5
# As at the usual oversampling.
_SHELLS_PER_SPECKLE = 4


def intensity_volumes(
    relative: Array, profiles: Sequence[RadialProfile], voxel_inv_A: float, merged_inv_A: float,
    diameter_A: float = 0.0,
) -> list[Volume]:  # fmt: skip
    """The intensity of each model, in photons per pixel of mean correction at mean fluence.

    relative : (M, n, n, n) intensity relative to the radial mean; profiles : the M radial means.
    merged_inv_A : largest |q| at which frames were merged; beyond it the volumes are NaN.
    diameter_A : of the particle, written into the metadata for phasing; 0: not written.
    """
    told = {"diameter_A": diameter_A} if diameter_A else {}
    n = len(relative[0])
    radius = distances_in_cube(n) * voxel_inv_A
    outside = np.where(radius > merged_inv_A + voxel_inv_A, np.nan, 1.0)
    return [
        Volume(
            to_numpy(values) * at_voxels(profile(radius) * outside, n, np), voxel_inv_A, "reciprocal",
            name=f"intensity {m + 1}", metadata=told,
        )
        for m, (values, profile) in enumerate(zip(relative, profiles, strict=True))
    ]  # fmt: skip


def radial_summary(
    half_correlation: NDArray[np.float64], radial_mean: Callable[[NDArray[Any]], NDArray[np.float64]],
    voxel_inv_A: float, merged_inv_A: float,
) -> dict[str, list[float]]:  # fmt: skip
    """Radius, radial mean and half correlation of every merged shell.

    radial_mean : of the intensity, photons per pixel at distances from the centre in 1/Å.
    """
    radius = np.arange(len(half_correlation)) * voxel_inv_A
    inside = (radius > 0) & (radius <= merged_inv_A)
    return {
        "q_inv_A": radius[inside].tolist(),
        "intensity": radial_mean(radius[inside]).tolist(),
        "half_correlation": half_correlation[inside].tolist(),
    }


def agreement_A(radial: Mapping[str, Sequence[float]]) -> float | None:
    """The full-period resolution at which the correlation of the halves falls below 0.5 and stays there.

    radial : ``q_inv_A`` in rising order, and ``half_correlation``, as :func:`radial_summary` has them.
    The resolution of the last shell if it never falls.

    Within a speckle of the centre there is nothing to agree about but the size, and a virus is round even
    further out.  So the curve begins behind the first speckle; if its first shell is below 0.5, it begins at
    the first of the innermost third that is not.  From there on :mod:`orienteer.compare.crossing` says where
    it has fallen.  None if that is within a speckle: a few inner shells agree by chance.

    >>> shells = np.arange(1, 13)
    >>> agreement_A({"q_inv_A": 0.005 * shells, "half_correlation": np.where(shells < 11, 1.0, 0.0)})
    19.04...
    """
    q, correlation = np.asarray(radial["q_inv_A"]), np.nan_to_num(np.asarray(radial["half_correlation"]))
    if len(q) == 0:
        return None
    first = min(_SHELLS_PER_SPECKLE - 1, len(q) - 1)
    begun = np.flatnonzero(correlation[first : max(first + 1, len(q) // 3)] >= _AGREES)
    first += int(begun[0]) if len(begun) else 0
    found = crossing_of(
        q, correlation - _AGREES, q**2, shells_per_speckle=_SHELLS_PER_SPECKLE, first_shell=first
    )
    if found.q is None or (found.shell is not None and found.shell - first < _SHELLS_PER_SPECKLE):
        return None
    return 1 / found.q
