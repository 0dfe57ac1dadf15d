"""Two intensities on one grid, as far out as both reach."""

import numpy as np

from orienteer.compare.common_grid import worth_a_word
from orienteer.compare.turning import CUBIC, LINEAR, filled, sample, spline_coefficients
from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError
from orienteer.volume.volume import Volume

_SAME = 1e-5


def intensities_on_one_grid(reference: Volume, moving: Volume) -> tuple[Volume, Volume, tuple[str, ...]]:
    """Both intensities as cubes of equal voxels, and what was done, in sentences.

    The voxels are the smaller ones of the two, so that no speckle is missed; the cube ends with the smaller
    cube of the two.  NaN (never measured) stays NaN.
    """
    pair = [
        _checked(volume, name)
        for volume, name in ((reference, "the reference"), (moving, "the other intensity"))
    ]
    sizes = [volume.voxel_size[0] for volume in pair]
    same = abs(sizes[0] - sizes[1]) <= _SAME * max(sizes)
    if same and pair[0].shape == pair[1].shape:
        return pair[0], pair[1], ()
    voxel = min(sizes)
    reach = min((v.shape[0] - 1) // 2 * size for v, size in zip(pair, sizes, strict=True))
    n = 2 * int(reach / voxel * (1 + _SAME)) + 1
    if reach < 2 * max(sizes):
        raise OrienteerError(
            f"the two intensities hardly overlap: one ends at {reach:.4g} 1/A, and a voxel of the other is "
            f"{max(sizes):.4g} 1/A.",
            "Check the voxel sizes.",
        )
    first, second = (
        Volume(_at(v.values, voxel / size, n), voxel, "reciprocal", name=v.name, metadata=v.metadata)
        for v, size in zip(pair, sizes, strict=True)
    )
    if not worth_a_word(sizes) and not worth_a_word(
        [v.shape[0] * s for v, s in zip(pair, sizes, strict=True)]
    ):
        return first, second, ()
    grids = " and ".join(f"{v.shape[0]}³ voxels of {s:.4g} 1/A" for v, s in zip(pair, sizes, strict=True))
    return first, second, (f"Grids of {grids} were brought onto one of {n}³ voxels of {voxel:.4g} 1/A.",)


def _at(values: Array, step: float, n: int) -> Array:
    """The intensity at every ``step`` of its voxels around the centre, (n, n, n)."""
    xp = array_namespace(values)
    axis = xp.arange(n, dtype=xp.float64) - n // 2  # made on the device, which is quicker than copying
    points = xp.stack([xp.reshape(x, (-1,)) for x in xp.meshgrid(axis, axis, axis, indexing="ij")], axis=1)
    scale = step * np.eye(3)[None]
    dtype = values.dtype
    found = sample(spline_coefficients(filled(values), CUBIC), points, scale, CUBIC)
    missing = sample(xp.astype(xp.isnan(values), dtype), points, scale, LINEAR)
    found = xp.where(missing < 0.5, found, xp.asarray(np.nan, dtype=dtype))
    return xp.reshape(found, (n, n, n))


def _checked(volume: Volume, what: str) -> Volume:
    if volume.space != "reciprocal":
        raise OrienteerError(
            f"{what} is a density, not an intensity.", "Compare two densities, or two intensities."
        )
    sizes = volume.voxel_size
    if len(set(volume.shape)) != 1 or max(sizes) - min(sizes) > _SAME * max(sizes):
        raise OrienteerError(
            f"{what} has {' x '.join(map(str, volume.shape))} voxels of "
            f"{' x '.join(f'{size:.4g}' for size in sizes)} 1/A; a cube of cubes is needed.",
            "Write it on a grid with the same step and number of voxels along each axis.",
        )
    if volume.n_missing == volume.values.size:
        raise OrienteerError(f"{what} has no values: all voxels are NaN.", "Give another map.")
    xp = array_namespace(volume.values)
    known = volume.values[~xp.isnan(volume.values)]
    if bool(xp.max(known) == xp.min(known)):
        raise OrienteerError(
            f"{what} is the same everywhere: there is nothing to compare.", "Give a map that shows something."
        )
    return volume
