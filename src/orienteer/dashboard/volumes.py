"""Volumes in a form that a browser can show: few voxels, one byte each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.dashboard.link_guard import LinkGuard
from orienteer.dashboard.refusal import Refused
from orienteer.errors import FileError
from orienteer.phase.files import DENSITY_MRC
from orienteer.run.files import INTENSITY_H5, LOOP_DENSITY
from orienteer.volume.mrc import read_mrc
from orienteer.volume.volume import Volume

Kind = Literal["intensity", "density", "density_loop"]
MOST_VOXELS = 512**3
_DECADES = 5.0
# Share of the largest density above which a voxel counts as particle, and the margin kept around it.
_LEAST_SHARE, _MARGIN = 0.05, 1.25
_OTHER_AXES = ((1, 2), (0, 2), (0, 1))


@dataclass(frozen=True)
class SmallVolume:
    """A volume in one byte per voxel.

    voxels : (n, n, n) uint8, x slowest; 0 is ``low`` and 255 is ``high``.
    scale : "linear", or "log": then low and high are decimal logarithms of the values.
    voxel : edge of a voxel, in ``unit``.
    """

    voxels: NDArray[np.uint8]
    low: float
    high: float
    scale: Literal["linear", "log"]
    voxel: float
    unit: str


def file_of(path: Path, kind: Kind, model: int) -> Path:
    """The path of the volume of a model (counted from 1); the file may be missing."""
    if kind == "intensity":
        return path / INTENSITY_H5
    if kind == "density":
        return path / DENSITY_MRC if model == 1 else path / f"phased_model_{model}" / DENSITY_MRC
    one = path / f"{LOOP_DENSITY}.mrc"
    return one if model == 1 and one.exists() else path / f"{LOOP_DENSITY}_{model}.mrc"


def read_small(links: LinkGuard, file: Path, kind: Kind, model: int, size: int) -> SmallVolume:
    """The volume of a file with at most ``size`` voxels along each edge.

    An intensity falls by orders of magnitude from its centre, so its logarithm is shown.  The box of a
    density is mostly empty, so only the part with the particle is shown.
    """
    if not file.exists():
        raise Refused(404, f"There is no {kind.replace('_', ' ')} of model {model} yet.")
    links.file(file)
    volume = _read_intensity(file, model) if kind == "intensity" else _read_density(file)
    whole = np.asarray(volume.values, np.float32)
    whole = whole if kind == "intensity" else centred(whole)
    values = shrink(whole, size)
    factor = whole.shape[0] / values.shape[0]
    scale: Literal["linear", "log"] = "log" if kind == "intensity" else "linear"
    if scale == "log":
        values = _logarithm(values)
    finite = values[np.isfinite(values)]
    if not len(finite):
        raise FileError(file, "has no voxel with a value.", "Reconstruct again with more frames.")
    low, high = float(finite.min()), float(finite.max())
    span = high - low or 1.0
    # Voxels that were never measured get the lowest value.
    voxels = np.rint((np.nan_to_num(values, nan=low) - low) * (255 / span)).astype(np.uint8)
    return SmallVolume(voxels, low, high, scale, volume.voxel_size[0] * factor, volume.unit)


def _read_intensity(file: Path, model: int) -> Volume:
    """One model of an intensity file; the others are not read."""
    from orienteer.compute.hdf5_reading import get_dataset, open_hdf5, read_numbers
    from orienteer.volume.hdf5 import recognise_volume_hdf5

    with open_hdf5(file, "volume file") as opened:
        if not recognise_volume_hdf5(opened):
            raise FileError(
                file, "is an HDF5 file, but not an Orienteer volume.", "Look at it with: orienteer inspect"
            )
        values = get_dataset(opened, "values", "f", (None, None, None, None))
        n_models = len(values)
        _check_size(file, int(np.prod(values.shape[1:], dtype=object)))
        if 1 <= model <= n_models:
            return Volume(values[model - 1], read_numbers(opened, "voxel_size", "f", (3,)), "reciprocal")
    raise Refused(404, f"There is no model {model}: the run has {n_models}.")


def _read_density(file: Path) -> Volume:
    _check_size(file, file.stat().st_size // 4)
    with file.open("rb") as opened:
        if opened.read(2) == b"\x1f\x8b":  # its unpacked size is not known beforehand
            raise FileError(
                file, "is compressed, but maps of a run never are.", "Put back the map of the run."
            )
    return read_mrc(file, space="real")


def _check_size(file: Path, n_voxels: int) -> None:
    if n_voxels > MOST_VOXELS:
        edge = round(MOST_VOXELS ** (1 / 3))
        raise FileError(
            file,
            f"has {n_voxels:,} voxels; the page shows up to {edge} along an edge.",
            "Open it in ChimeraX.",
        )


def _logarithm(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Decimal logarithms, limited to the top 5 orders of magnitude, which is what eyes can use; NaN stays."""
    highest = float(np.nanmax(values, initial=0.0))
    if highest <= 0:
        return np.where(np.isnan(values), np.nan, 0.0).astype(np.float32)
    return np.asarray(np.log10(np.maximum(values, highest * 10**-_DECADES)), np.float32)


def centred(density: NDArray[np.float32]) -> NDArray[np.float32]:
    """The central part of a cube that holds all voxels above a twentieth of the largest, with a margin.

    >>> empty = np.zeros((20, 20, 20), np.float32)
    >>> empty[12, 10, 10] = 1
    >>> centred(empty).shape
    (8, 8, 8)
    """
    n = density.shape[0]
    seen = density > _LEAST_SHARE * np.nanmax(density, initial=0.0)
    if density.shape != (n, n, n) or not seen.any():
        return density
    farthest = max(np.abs(np.flatnonzero(seen.any(axis=axes)) - n // 2).max() for axes in _OTHER_AXES)
    half = int(np.ceil(_MARGIN * farthest)) + 1
    if half >= n // 2:
        return density
    part = slice(n // 2 - half, n // 2 + half)
    return density[part, part, part]


def shrink(values: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    """A volume with at most ``size`` voxels along an edge: means over boxes, of the voxels that have a value.

    values : (n, n, n).  Returns (m, m, m), m = min(n, size), whose voxels divide the same cube evenly.
    """
    if max(values.shape) <= size:
        return values
    known = np.isfinite(values)
    sums, weights = np.where(known, values, 0.0).astype(np.float32), known.astype(np.float32)
    for axis, n in enumerate(values.shape):
        if n > size:
            shares = _shares(n, size)
            sums, weights = (
                np.moveaxis(np.tensordot(shares, part, axes=(1, axis)), 0, axis) for part in (sums, weights)
            )
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(weights > 1e-6, sums / weights, np.nan), np.float32)


def _shares(n: int, m: int) -> NDArray[np.float32]:
    """(m, n) how much of each of n old intervals lies in each of m new ones, in lengths of an old one."""
    new, old = np.arange(m)[:, None] * (n / m), np.arange(n)[None, :]
    covered = np.minimum(new + n / m, old + 1) - np.maximum(new, old)
    return np.asarray(np.clip(covered, 0, None), np.float32)
