"""Soft masks: 1 at the particle, 0 in the empty box, and a smooth edge between.

Outside the particle a density contains only noise, which lowers a Fourier shell correlation; a mask removes
it.  But both densities then have the mask in common, and a sharp mask makes them agree where they do not.
Hence the soft edge, and the correction of :mod:`orienteer.compare.phase_randomisation`.
"""

import numpy as np

from orienteer.compare.fsc import check_density
from orienteer.compare.turning import image_functions
from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.errors import OrienteerError

# Islands smaller than this share of the largest one count as noise.
_LEAST_ISLAND = 0.05
_BLUR_VOXELS = 1.5


def soft_mask(
    density: Array, voxel_size_A: float, *, threshold: float | None = None, volume_A3: float | None = None,
    dilate_A: float | None = None, edge_A: float | None = None,
) -> Array:  # fmt: skip
    """A mask around the particle, (n, n, n) float32 from 0 to 1, on the device of the density.

    The density is blurred a little, so that single bright voxels do not matter.  Voxels above the threshold
    are the particle, except for islands that are small compared with the largest.

    density : (n, n, n) real without NaN.
    threshold : level of the blurred density.  By default the one that best separates it into two classes
        (Otsu 1979).
    volume_A3 : take the densest voxels of this volume, in cubic angstrom, instead of a threshold.
    dilate_A : how far the mask extends beyond the particle; by default two voxels.
    edge_A : width of the cosine edge beyond that; by default four voxels.
    """
    n = check_density(density)
    if not 0 < voxel_size_A < np.inf:
        raise OrienteerError(f"a voxel of {voxel_size_A} A has no size.")
    dilate = 2.0 if dilate_A is None else dilate_A / voxel_size_A
    edge = 4.0 if edge_A is None else edge_A / voxel_size_A
    if not (0 <= dilate < np.inf and 0 <= edge < np.inf):
        raise OrienteerError(f"a mask cannot reach out by {dilate_A} A with an edge of {edge_A} A.")
    if threshold is not None and volume_A3 is not None:
        raise OrienteerError("give a mask a threshold or a volume, not both.", "Leave one of them out.")
    xp = array_namespace(density)
    functions = image_functions(density)
    blurred = functions.gaussian_filter(xp.astype(density, xp.float64), _BLUR_VOXELS)
    if volume_A3 is not None:
        threshold = _level_of_volume(blurred, volume_A3 / voxel_size_A**3)
    elif threshold is None:
        threshold = _parting_level(blurred)
    inside = _without_islands(blurred > threshold)
    if not bool(xp.any(inside)):
        raise OrienteerError(
            f"no voxel of the density is above {threshold:.4g}, so there is nothing to mask.",
            "Give a lower threshold, or a volume.",
        )
    if bool(xp.all(inside)):
        return xp.ones((n, n, n), dtype=xp.float32)
    distance = functions.distance_transform_edt(~inside) - dilate
    slope = xp.clip(distance / max(edge, 1e-9), 0.0, 1.0)
    return xp.astype((1 + xp.cos(np.pi * slope)) / 2, xp.float32)


def filled_share(mask: Array) -> float:
    """Share of the box, by volume, inside a mask; the half-bit curve needs it."""
    xp = array_namespace(mask)
    return float(min(1.0, max(float(xp.mean(xp.astype(mask, xp.float64))), 1.0 / mask.size)))


def _parting_level(values: Array) -> float:
    """The level that separates the values into two classes of least variance (Otsu 1979)."""
    flat = to_numpy(values).ravel()
    counts, edges = np.histogram(flat, bins=512)
    middle = (edges[1:] + edges[:-1]) / 2
    below, total = np.cumsum(counts), np.cumsum(counts * middle)
    above = below[-1] - below
    parts = (below > 0) & (above > 0)
    if not parts.any():
        raise OrienteerError(
            "the density is the same everywhere, so there is nothing to mask.",
            "Give a map that shows something.",
        )
    apart = np.zeros(len(middle))
    mean_below = total[parts] / below[parts]
    mean_above = (total[-1] - total[parts]) / above[parts]
    apart[parts] = below[parts] * above[parts] * (mean_below - mean_above) ** 2
    return float(edges[1 + int(np.argmax(apart))])


def _level_of_volume(values: Array, n_voxels: float) -> float:
    """The level above which ``n_voxels`` voxels lie."""
    flat = to_numpy(values).ravel()
    keep = round(n_voxels)
    if not 1 <= keep <= len(flat):
        raise OrienteerError(
            f"the volume of the mask is {n_voxels:.4g} voxels, but the box has {len(flat)}.",
            "Give the volume of the particle in cubic angstrom; a protein has 1.21 A³ per dalton.",
        )
    if keep == len(flat):
        return -np.inf
    return float(np.partition(flat, len(flat) - keep - 1)[len(flat) - keep - 1])


def _without_islands(inside: Array) -> Array:
    """The voxels of connected pieces that are not small compared with the largest."""
    xp = array_namespace(inside)
    labels, n_pieces = image_functions(inside).label(inside)
    if int(n_pieces) < 2:
        return inside
    sizes = xp.bincount(xp.reshape(labels, (-1,)))
    sizes[0] = 0
    return (sizes >= _LEAST_ISLAND * xp.max(sizes))[labels]
