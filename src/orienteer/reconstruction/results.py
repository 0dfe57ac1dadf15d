"""The intensity in the form of results: volumes for files, and a radial summary for a small plot."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.reconstruction.model.radial_profile import RadialProfile, at_voxels, distances_in_cube
from orienteer.volume.volume import Volume

# Two halves agree in a shell if they correlate by at least this.
_AGREES = 0.5
# Innermost shells, which have few voxels and say little.
_FEW_VOXELS = 2


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
    """The full-period resolution at which the correlation of the halves first falls below 0.5.

    radial : ``q_inv_A`` in rising order, and ``half_correlation``, as :func:`radial_summary` has them.
    None if it is below from the first shells on; the resolution of the last shell if it never falls.  The two
    innermost shells have few voxels and are skipped.

    >>> agreement_A({"q_inv_A": [0.01, 0.02, 0.03], "half_correlation": [0.9, 0.7, 0.3]})
    40.0
    """
    q, correlation = np.asarray(radial["q_inv_A"]), np.nan_to_num(np.asarray(radial["half_correlation"]))
    if len(q) == 0:
        return None
    first = min(_FEW_VOXELS, len(q) - 1)
    fallen = first + np.flatnonzero(correlation[first:] < _AGREES)
    if not len(fallen):
        return float(1 / q[-1])
    last = int(fallen[0]) - 1
    if last < 0 or correlation[last] < _AGREES:
        return None
    share = (correlation[last] - _AGREES) / (correlation[last] - correlation[last + 1])
    return float(1 / (q[last] + share * (q[last + 1] - q[last])))
