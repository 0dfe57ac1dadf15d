"""How far every voxel of an intensity is to be trusted: frames are drawn again, and merged again.

Frames are parted at random into groups, and each group is merged by itself.  A bootstrap would draw groups
with repetition and add up what they have merged, very often; how far its results scatter follows from the
groups themselves, so that nothing has to be drawn.  With E_g the photons that group g has more than expected
and X_g its exposure, the intensity is corrected by r = sum E_g / sum X_g, and in the limit of many draws

    var(r) = G / (G - 1) * sum (E_g - r X_g)^2 / (sum X_g)^2

(the infinitesimal jackknife, Efron 1982).  Poses stay as they are: it is the error that comes from the number
of frames and photons.  Errors of poses that all frames share, and of the model of the experiment, are not in
it; nor is the filter with which a reconstruction keeps what its halves agree about.

A voxel with a handful of photons cannot tell how much it scatters; there the spread of its shell decides,
which is known as a multiple of that of photon counting.
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

# Fewer frames than this, in effect, do not say how much they scatter.
FEWEST_FRAMES = 8.0
# What the shell says counts as much as so many frames or photons of the voxel itself.
_SHELL_COUNTS = 10.0
_SHARE_OF_MEMORY = 0.25
_BYTES_PER_VOXEL = 32  # of the sums of a group on the device


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """An intensity with the error of every voxel.

    intensity : all frames merged once at their poses, in the unit of the intensity that was given.
    error : standard deviation of each voxel of that; NaN where too few frames have data to tell.
    frames : (n, n, n) float32, number of frames, in effect, that each voxel rests on.
    replicates, seed : the number of groups, and the seed that parts the frames.
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
    """The intensity of all frames at their poses, and how much it depends on which frames there were.

    source : the frames.
    orientations : columns of a run: ``event_id``, ``quaternion``, ``fluence``, and ``model`` (-1: not merged)
        and ``sentinel`` where there are any.  Frames that are missing there count nothing.
    intensity : in reciprocal space, what the frames were oriented by; its grid is that of the result.
    pixels : of the source.
    background : (U,) photons per shot at the pixels, or None.
    replicates : groups that the frames are parted into; errors are then known to 1 / sqrt(2 replicates).
    seed : of the parting.
    """
    if replicates < 2:
        raise OrienteerError(
            f"{counted(replicates, 'group')} of frames show no spread.", "Take at least 2; 32 are usual."
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
    """Variances (n, n, n), mixed with what their shell expects where frames or photons are few.

    exposure : photons that the radial mean would have given; relative : the intensity over the radial mean.
    known : voxels whose variance says something.
    """
    # A voxel without photons is not one without error: one photon of the radial mean is added to each.
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
    """Sums over groups of what they have merged, and of its squares and products, on the device."""

    def __init__(self) -> None:
        self.n = 0
        self._sums: Any = 0.0

    def add(self, merged: Array) -> None:
        """Take what one more group has merged, (n, n, n, 2)."""
        excess, exposure = merged[..., 0], merged[..., 1]
        self.n += 1
        terms = (excess, exposure, excess * excess, excess * exposure, exposure * exposure)
        self._sums = list(terms) if self.n == 1 else [a + b for a, b in zip(self._sums, terms, strict=True)]

    def solved(self) -> tuple[NDArray[np.float64], ...]:
        """Correction, its variance, exposure and frames in effect, (n, n, n) each; 0 where nothing is."""
        E, X, EE, EX, XX = (to_numpy(total) for total in self._sums)
        seen = X > 1e-12
        inverse = np.divide(1.0, X, out=np.zeros_like(X), where=seen)
        r = E * inverse
        part = self.n / (self.n - 1)
        variance = part * np.maximum(EE - 2 * r * EX + r * r * XX, 0.0) * inverse**2
        # As many frames of equal exposure would differ as much between groups.
        spread = part * (XX - X * X / self.n)
        frames = np.divide(X * X, spread, out=np.zeros_like(X), where=seen & (spread > 1e-12 * X * X))
        return r, variance, X, frames


def _turns(n_groups: int, merging: Remerging) -> list[range]:
    """Groups that are merged together while the frames are read once: as many as memory holds."""
    room = _SHARE_OF_MEMORY * memory_GiB()[1] * 2**30
    if merging.device == "cuda":
        room = 0.5 * float(merging.xp.cuda.runtime.memGetInfo()[0])
    at_once = int(max(1, room // (_BYTES_PER_VOXEL * merging.n**3) - 1))
    return [range(first, min(first + at_once, n_groups)) for first in range(0, n_groups, at_once)]
