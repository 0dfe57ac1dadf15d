"""Two densities on one grid, whatever their boxes and voxels."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orienteer.compare.resampling import resample
from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError
from orienteer.volume.volume import Volume

# Voxel sizes in headers are float32.
_SAME = 1e-5
# Differences of voxels and boxes below this share are not reported.
NOT_WORTH_A_WORD = 0.01
# A thinner box is a slice, which cannot be compared in three dimensions.
_THINNEST = 4


def on_one_grid(reference: Volume, moving: Volume) -> tuple[Volume, Volume, float, tuple[str, ...]]:
    """Both densities as cubes of equal voxels, the edge of a voxel in A, and what was done, in sentences.

    The voxels are the larger ones of the two, and the box contains both.  The reference keeps its place in
    space; the moving density is put there, centre voxel on centre voxel.  NaN becomes 0, and the space added
    by a larger box gets the level of the border.
    """
    remarks: list[str] = []
    pair = [
        _checked(volume, name, remarks)
        for volume, name in ((reference, "the reference"), (moving, "the density to align"))
    ]
    voxel_A = max(max(volume.voxel_size) for volume in pair)
    fits = all(
        len(set(volume.shape)) == 1 and np.allclose(volume.voxel_size, voxel_A, rtol=_SAME) for volume in pair
    )
    if fits and pair[0].shape == pair[1].shape:
        return pair[0], replace(pair[1], origin=pair[0].origin), voxel_A, tuple(remarks)
    longest = max(max(np.multiply(volume.shape, volume.voxel_size)) for volume in pair)
    n = int(np.ceil(longest / voxel_A * (1 - _SAME)))
    sizes = " and ".join(
        f"{' x '.join(map(str, volume.shape))} voxels of {_step(volume)} A" for volume in pair
    )
    if worth_a_word([*pair[0].voxel_size, *pair[1].voxel_size]) or worth_a_word(
        [edge for volume in pair for edge in np.multiply(volume.shape, volume.voxel_size)]
    ):
        remarks.append(
            f"Grids of {sizes} were brought onto one of {n} x {n} x {n} voxels of {voxel_A:.4g} A."
        )
    centre = [
        start + step * index
        for start, step, index in zip(
            reference.origin, reference.voxel_size, reference.centre_index, strict=True
        )
    ]
    origin = tuple(c - voxel_A * (n // 2) for c in centre)
    values = []
    for volume in pair:
        level = border_level(volume.values)
        values.append(level + resample(volume.values - level, volume.voxel_size, n, voxel_A))
    first, second = (
        Volume(own, voxel_A, "real", origin, volume.name, volume.metadata)
        for own, volume in zip(values, pair, strict=True)
    )
    return first, second, voxel_A, tuple(remarks)


def worth_a_word(lengths: Sequence[float]) -> bool:
    """Whether lengths differ enough to be reported to the user."""
    return max(lengths) > (1 + NOT_WORTH_A_WORD) * min(lengths)


def border_level(values: Array) -> float:
    """Mean of the outermost voxels of a box: the level of its empty part, which need not be 0."""
    xp = array_namespace(values)
    faces = [values[0], values[-1], values[:, 0], values[:, -1], values[:, :, 0], values[:, :, -1]]
    return float(
        sum(float(xp.sum(xp.astype(face, xp.float64))) for face in faces) / sum(f.size for f in faces)
    )


def _checked(volume: Volume, what: str, remarks: list[str]) -> Volume:
    """A density without NaN, checked to be one that can be compared."""
    if volume.space != "real":
        raise OrienteerError(
            f"{what} is an intensity, not a density.", "Align intensities with align_intensities."
        )
    if min(volume.shape) < _THINNEST:
        raise OrienteerError(
            f"{what} is a slice of {' x '.join(map(str, volume.shape))} voxels, not a volume.",
            f"Give a volume with at least {_THINNEST} voxels along each axis.",
        )
    values = volume.values
    if volume.n_missing:
        if volume.n_missing == values.size:
            raise OrienteerError(f"{what} has no values: all voxels are NaN.", "Give another map.")
        remarks.append(f"{volume.n_missing} voxels of {what} are NaN and were set to 0.")
        xp = array_namespace(values)
        values = xp.where(xp.isnan(values), xp.asarray(0, dtype=values.dtype), values)
    if _is_constant(values):
        raise OrienteerError(
            f"{what} is the same everywhere: there is nothing to compare.", "Give a map that shows something."
        )
    return volume.with_values(values)


def _is_constant(values: Array) -> bool:
    xp = array_namespace(values)
    return bool(xp.max(values) == xp.min(values))


def _step(volume: Volume) -> str:
    sizes = volume.voxel_size
    same = max(sizes) - min(sizes) <= _SAME * max(sizes)
    return f"{sizes[0]:.4g}" if same else " x ".join(f"{size:.4g}" for size in sizes)
