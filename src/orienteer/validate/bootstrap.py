"""The error of every voxel of an intensity, by a bootstrap over the frames.

Frames are divided at random into groups, and each group is merged separately.  A bootstrap would draw groups
with repetition many times, and add up their merges.  The scatter of its results follows from the groups
directly, so nothing has to be drawn.  With E_g the photons of group g in excess of the expected ones and X_g
its exposure, the intensity is corrected by r = sum E_g / sum X_g, and in the limit of many draws

    var(r) = G / (G - 1) * sum (E_g - r X_g)^2 / (sum X_g)^2

(the infinitesimal jackknife, Efron 1982).  Poses stay fixed, so this is the error from the limited number of
frames and photons.  It does not include errors of poses that all frames share, errors of the model of the
experiment, or the filter by which a reconstruction keeps what its halves agree about.

The scatter of a voxel with only a few photons is not reliable.  There the variance is taken from its shell,
as a multiple of the variance of photon counting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.shells import OUTSIDE, radial_mean, shell_index
from orienteer.compute.arrays import Array, DeviceName, to_numpy
from orienteer.compute.machine import memory_GiB
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.reconstruction.frames.pixels import PixelTable
from orienteer.source.base import Source
from orienteer.validate.remerging import Remerging
from orienteer.volume.volume import Volume

# Voxels with fewer effective frames than this get no error.
FEWEST_FRAMES = 8.0
# The variance of the shell has the weight of this many frames or photons of the voxel itself.
_SHELL_COUNTS = 10.0
_SHARE_OF_MEMORY = 0.25
_BYTES_PER_VOXEL = 32  # of the sums of a group on the device


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """An intensity with the error of every voxel.

    intensity : all frames merged once at their poses, in the unit of the given intensity.
    error : standard deviation of each of its voxels; NaN where too few frames have data.
    frames : (n, n, n) float32, effective number of frames in each voxel.
    replicates, seed : the number of groups, and the seed by which frames are assigned to them.
    """

    intensity: Volume
    error: Volume
    frames: Array
    replicates: int
    seed: int


def relative_error(intensity: Volume, error: Volume) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Radius of every shell in 1/A, and the error of its voxels over its mean intensity, (S,) both."""
    mean = radial_mean(intensity.values)
    spread = np.sqrt(radial_mean(error.values.astype(np.float64) ** 2))
    radius = np.arange(len(mean), dtype=np.float64) * float(intensity.voxel_size[0])
    relative = np.full(len(mean), np.nan)
    np.divide(spread, mean, out=relative, where=mean > 0)
    return radius, relative


def bootstrap_intensity(
    source: Source,
    orientations: Mapping[str, NDArray[Any]],
    intensity: Volume,
    pixels: PixelTable,
    *,
    group: PointGroup | str = "C1",
    background: NDArray[np.float64] | None = None,
    replicates: int = 32,
    seed: int = 0,
    device: DeviceName = "auto",
) -> Bootstrap:
    """Merge all frames at their poses, and find how much the intensity depends on the choice of frames.

    source : the frames.
    orientations : columns of a run: ``event_id``, ``quaternion``, ``fluence``, and if present ``model`` (-1:
        not merged) and ``sentinel``.  Frames that are missing there are not merged.
    intensity : in reciprocal space, by which the frames were oriented; the result has the same grid.
    pixels : of the source.
    background : (U,) photons per shot at the pixels, or None.
    replicates : number of groups of frames; the relative error of the errors is 1 / sqrt(2 replicates).
    seed : of the assignment of frames to groups.
    """
    if replicates < 2:
        raise OrienteerError(
            f"{counted(replicates, 'group')} of frames show no spread.", "Use at least 2; 32 are usual."
        )
    if intensity.space != "reciprocal" or len(set(intensity.shape)) != 1:
        raise OrienteerError(f"an intensity in a cube of reciprocal space is needed, not {intensity!r}.")
    merging = Remerging(orientations, intensity, pixels, as_point_group(group), background, device)
    spread = _Spread()
    for groups in _turns(replicates, merging):
        for sums in merging.sums(source, groups, replicates, seed):
            spread.add(sums)
    correction, variance, exposure, frames = spread.solved()
    frames, scale = np.minimum(frames, merging.n_frames), merging.scale
    known = (frames >= FEWEST_FRAMES) & np.isfinite(scale)
    # The sums are means over opposite and equivalent directions.
    exposed = 2 * merging.group.order * exposure
    variance = _steadied(variance, exposed, merging.relative, frames, known)
    values = np.where(exposure > 0, merging.relative + correction, np.nan) * scale
    return Bootstrap(
        replace(intensity.with_values(values.astype(np.float32)), name="all frames merged once, unfiltered"),
        replace(
            intensity.with_values(np.where(known, np.sqrt(variance) * scale, np.nan).astype(np.float32)),
            name="standard deviation of the merge",
        ),
        frames.astype(np.float32),
        replicates,
        seed,
    )


def _steadied(
    variance: NDArray[np.float64], exposure: NDArray[np.float64], relative: NDArray[np.float64],
    frames: NDArray[np.float64], known: NDArray[np.bool_],
) -> NDArray[np.float64]:  # fmt: skip
    """Variances (n, n, n), mixed with the variance expected from their shell where frames or photons are few.

    exposure : photons that the radial mean would have given; relative : the intensity over the radial mean.
    known : voxels with enough frames for a variance of their own.
    """
    # A voxel without photons still has an error: add one photon of the radial mean to each.
    photons = exposure * relative + 1
    counting = photons / (exposure + 1) ** 2
    ratio = np.where(known, variance / counting, np.nan)
    shell = shell_index(len(variance))
    by_shell = radial_mean(ratio)
    usual = float(np.nanmean(ratio)) if known.any() else 1.0
    by_shell = np.append(np.where(np.isfinite(by_shell), by_shell, usual), usual)
    expected = counting * by_shell[np.where(shell == OUTSIDE, len(by_shell) - 1, shell)]
    own = np.minimum(frames, photons)
    return np.asarray((own * variance + _SHELL_COUNTS * expected) / (own + _SHELL_COUNTS))


class _Spread:
    """Sums over groups of their merged values, and of the squares and products of these, on the device."""

    def __init__(self) -> None:
        self.n = 0
        self._sums: Any = 0.0

    def add(self, merged: Array) -> None:
        """Add the sums of one more group, (n, n, n, 2)."""
        excess, exposure = merged[..., 0], merged[..., 1]
        self.n += 1
        terms = (excess, exposure, excess * excess, excess * exposure, exposure * exposure)
        self._sums = list(terms) if self.n == 1 else [a + b for a, b in zip(self._sums, terms, strict=True)]

    def solved(self) -> tuple[NDArray[np.float64], ...]:
        """Correction, its variance, exposure and effective frames, (n, n, n) each; 0 without data."""
        E, X, EE, EX, XX = (to_numpy(total) for total in self._sums)
        seen = X > 1e-12
        inverse = np.divide(1.0, X, out=np.zeros_like(X), where=seen)
        r = E * inverse
        part = self.n / (self.n - 1)
        variance = part * np.maximum(EE - 2 * r * EX + r * r * XX, 0.0) * inverse**2
        # The number of frames of equal exposure whose sums would scatter as much between groups.
        spread = part * (XX - X * X / self.n)
        frames = np.divide(X * X, spread, out=np.zeros_like(X), where=seen & (spread > 1e-12 * X * X))
        return r, variance, X, frames


def _turns(n_groups: int, merging: Remerging) -> list[range]:
    """Ranges of groups that are merged in one pass over the frames, each as large as memory allows."""
    room = _SHARE_OF_MEMORY * memory_GiB()[1] * 2**30
    if merging.device == "cuda":
        room = 0.5 * float(merging.xp.cuda.runtime.memGetInfo()[0])
    at_once = int(max(1, room // (_BYTES_PER_VOXEL * merging.n**3) - 1))
    return [range(first, min(first + at_once, n_groups)) for first in range(0, n_groups, at_once)]
