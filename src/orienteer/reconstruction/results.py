"""What a reconstruction shows of its intensity: volumes for files, a radial summary for a small plot."""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.reconstruction.radial_profile import RadialProfile
from orienteer.volume.volume import Volume


def intensity_volumes(
    relative: Array, profile: RadialProfile, voxel_inv_A: float, merged_inv_A: float
) -> list[Volume]:
    """The intensity of each model, in photons per pixel of mean correction at mean fluence.

    relative : (M, n, n, n) intensity relative to the radial mean.
    merged_inv_A : beyond this nothing was merged: NaN.
    """
    n = len(relative[0])
    axis = (np.arange(n) - n // 2) * voxel_inv_A
    length = np.sqrt(sum(np.square(a) for a in np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)))
    mean = profile(length)
    mean[length > merged_inv_A + voxel_inv_A] = np.nan
    return [
        Volume(to_numpy(values) * mean, voxel_inv_A, "reciprocal", name=f"intensity {m + 1}")
        for m, values in enumerate(relative)
    ]


def radial_summary(
    half_correlation: NDArray[np.float64], profile: RadialProfile, voxel_inv_A: float, merged_inv_A: float
) -> dict[str, list[float]]:
    """Radius, radial mean and half correlation of every merged shell."""
    radius = np.arange(len(half_correlation)) * voxel_inv_A
    inside = (radius > 0) & (radius <= merged_inv_A)
    return {
        "q_inv_A": radius[inside].tolist(),
        "intensity": profile(radius[inside]).tolist(),
        "half_correlation": half_correlation[inside].tolist(),
    }
