"""How far every voxel of an intensity is to be trusted: the frames are drawn again, and merged again.

In each replicate a frame counts as often as a Poisson number of mean 1 says, which is what drawing as many
frames anew comes to, and what can be decided for each frame by itself while frames stream by.  Poses stay as
they are.  The spread of the replicates is the error that comes from the number of frames and photons; errors
of poses that all frames share, and of the model of the experiment, are not in it.

Frames are merged as a reconstruction does it: what they have more than the slices of the intensity corrects
it, so that interpolation adds no spread of its own.  A voxel with a handful of photons cannot tell how much
it scatters; there the spread of its shell decides, which is known as a multiple of that of photon counting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.shells import OUTSIDE, radial_mean, shell_index
from orienteer.compute.arrays import Array, DeviceName, choose_device, namespace_of_device, to_numpy
from orienteer.compute.machine import memory_GiB
from orienteer.compute.progress import steps
from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.orientation.quaternion import inverse, to_matrix
from orienteer.reconstruction.halves import hash_of_events
from orienteer.reconstruction.pixels import PixelTable
from orienteer.reconstruction.relative_intensity import both_friedel
from orienteer.reconstruction.symmetry import symmetrise_sums
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import make_sums
from orienteer.slicing.trilinear import insert_slices, slice_volume
from orienteer.source.base import Source
from orienteer.source.patterns import Patterns
from orienteer.volume.volume import Volume

# P(n <= k) of a Poisson number of mean 1; beyond, doubles no longer tell it from 1.
_CUMULATED = np.cumsum(np.exp(-1) / np.cumprod(np.concatenate([[1.0], np.arange(1.0, 18.0)])))
# Fewer frames than this, in effect, do not say how much they scatter.
FEWEST_FRAMES = 8.0
# What the shell says counts as much as so many frames or photons of the voxel itself.
_SHELL_COUNTS = 10.0
_SHARE_OF_MEMORY = 0.25
_BYTES_PER_VOXEL = 32  # of the sums of a replicate on the device


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """An intensity with the error of every voxel.

    intensity : all frames merged once at their poses, in the unit of the intensity that was given.
    error : standard deviation of each voxel; NaN where too few frames have data to tell.
    frames : (n, n, n) float32, number of frames, in effect, that each voxel rests on.
    replicates, seed : how often the frames were drawn, and from which seed.
    """

    intensity: Volume
    error: Volume
    frames: Array
    replicates: int
    seed: int

    def band(self, share: float = 0.9) -> tuple[Array, Array]:
        """Lower and upper bounds, (n, n, n) each, within which so large a share of voxels is expected."""
        if not 0 < share < 1:
            raise OrienteerError(f"a band holds a share between 0 and 1 of the voxels, not {share}.")
        reach = NormalDist().inv_cdf((1 + share) / 2) * self.error.values
        return self.intensity.values - reach, self.intensity.values + reach


def relative_error(intensity: Volume, error: Volume) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Radius of every shell in 1/A, and the error of its voxels over its mean intensity, (S,) both."""
    mean = radial_mean(intensity.values)
    spread = np.sqrt(radial_mean(error.values.astype(np.float64) ** 2))
    radius = np.arange(len(mean), dtype=np.float64) * float(intensity.voxel_size[0])
    relative = np.full(len(mean), np.nan)
    np.divide(spread, mean, out=relative, where=mean > 0)
    return radius, relative


def poisson_weights(event_id: NDArray[np.uint64], seed: int, replicate: int) -> NDArray[np.float32]:
    """How often each event (N,) counts in a replicate; a hash of the event decides, in whatever order.

    >>> weights = poisson_weights(np.arange(100_000, dtype=np.uint64), seed=0, replicate=3)
    >>> bool(abs(weights.mean() - 1) < 0.01), bool(abs(weights.var() - 1) < 0.02)
    (True, True)
    """
    salt = int(np.random.SeedSequence(seed, spawn_key=(replicate,)).generate_state(1, np.uint64)[0])
    uniform = (hash_of_events(event_id, salt) >> np.uint64(11)).astype(np.float64) / 2**53
    return np.searchsorted(_CUMULATED, uniform, side="right").astype(np.float32)


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
    """
    if replicates < 2:
        raise OrienteerError(f"{replicates} replicates show no spread.", "Draw at least 2; 32 are usual.")
    if intensity.space != "reciprocal" or len(set(intensity.shape)) != 1:
        raise OrienteerError(f"an intensity in a cube of reciprocal space is needed, not {intensity!r}.")
    merging = _Merging(orientations, intensity, pixels, as_point_group(group), background, device)
    centre = _Moments()
    spread = _Moments()
    for first, last in _groups(replicates, merging):
        # The merge of all frames travels with the first group.
        chosen = [None] if first == 0 else []
        found = merging.sums(source, [*chosen, *range(first, last)], seed)
        for which, sums in found:
            (centre if which is None else spread).add(merging.solved(sums))
    scale = merging.scale
    correction, exposure = centre.mean
    variance, variance_of_exposure = spread.variance
    frames = np.divide(
        exposure**2, variance_of_exposure, out=np.zeros_like(exposure), where=variance_of_exposure > 0
    )
    frames = np.minimum(frames, merging.n_frames)
    known = (frames >= FEWEST_FRAMES) & np.isfinite(scale)
    # The sums are means over opposite and equivalent directions.
    exposed = 2 * merging.group.order * exposure
    variance = _steadied(variance, exposed, merging.relative, frames, known)
    values = np.where(exposure > 0, merging.relative + correction, np.nan) * scale
    return Bootstrap(
        replace(intensity.with_values(values.astype(np.float32)), name="intensity of all frames once"),
        replace(
            intensity.with_values(np.where(known, np.sqrt(variance) * scale, np.nan).astype(np.float32)),
            name="standard deviation of the intensity",
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


class _Moments:
    """Mean and variance of arrays that come one after the other."""

    def __init__(self) -> None:
        self.n = 0
        self.mean: Any = 0.0
        self._squares: Any = 0.0

    def add(self, values: NDArray[np.float64]) -> None:
        """Take one more array."""
        self.n += 1
        before = values - self.mean
        self.mean = self.mean + before / self.n
        self._squares = self._squares + before * (values - self.mean)

    @property
    def variance(self) -> Any:
        """About the mean of those that came."""
        return self._squares / max(self.n - 1, 1)


class _Merging:
    """Everything that all replicates share.

    relative : (n, n, n) float64, the intensity over its radial mean; 1 where it was never measured.
    scale : (n, n, n) that radial mean.
    n_frames : frames that are merged.
    """

    def __init__(
        self,
        orientations: Mapping[str, NDArray[Any]],
        intensity: Volume,
        pixels: PixelTable,
        group: PointGroup,
        background: NDArray[np.float64] | None,
        device: DeviceName,
    ) -> None:
        self.device, self.xp, self.group = choose_device(device), namespace_of_device(device), group
        self.n = intensity.shape[0]
        voxel = float(intensity.voxel_size[0])
        values = to_numpy(intensity.values).astype(np.float64)
        mean = radial_mean(values)
        shells = np.arange(len(mean))
        good = np.isfinite(mean) & (mean > 0)
        if not good.any():
            raise OrienteerError("the intensity is nowhere positive, so that there is nothing to merge.")

        def profile(radius: NDArray[np.float64]) -> NDArray[np.float64]:
            """The radial mean at a distance in voxels; it is steep, so that logarithms are joined."""
            return np.exp(np.interp(radius, shells[good], np.log(mean[good])))

        axis = (np.arange(self.n) - self.n // 2).astype(np.float64)
        radius = np.sqrt(sum(a**2 for a in np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)))
        level = profile(radius)
        inside = radius <= shells[good][-1] + 1
        self.scale = np.where(inside, level, np.nan)
        self.relative = np.where(np.isfinite(values) & inside, values / level, 1.0)
        self._model = self.xp.asarray(self.relative.astype(np.float32))
        length = pixels.length_inv_A / voxel
        self._chosen = np.flatnonzero(length <= min(self.n // 2 - 1, shells[good][-1] + 0.5))
        if not len(self._chosen):
            raise OrienteerError("no pixel lies inside the cube of the intensity.")
        self._index = pixels.index[self._chosen]
        points = (pixels.q_inv_A[self._chosen] / voxel).astype(np.float32)
        self._points = PointPatches.of(points, self.device)
        weight = pixels.correction[self._chosen] * profile(length[self._chosen])
        self._pixel_weights = self.xp.asarray(weight.astype(np.float32))
        self._background = None
        if background is not None:
            self._background = self.xp.asarray(background[self._chosen].astype(np.float32))
        self._table = _used_frames(orientations)
        self.n_frames = len(self._table[0])

    def sums(
        self, source: Source, replicates: list[int | None], seed: int
    ) -> Iterator[tuple[int | None, Array]]:
        """Sums (n, n, n, 2) of each replicate, of which None counts every frame once."""
        held = [make_sums(self.n, self.device) for _ in replicates]
        n_frames = source.n_frames
        if n_frames is None:
            raise OrienteerError("frames of an endless source cannot be drawn again.", "Store them first.")
        size = max(1, min(1024, 2**27 // (4 * source.n_pixels)))
        batches = source.batches(size)
        told = steps(range(-(-n_frames // size)), "Drawing frames again")
        for batch, _ in zip(batches, told, strict=True):
            prepared = self._prepared(batch)
            if prepared is None:
                continue
            ids, matrices, residual, exposure, missing = prepared
            for sums, which in zip(held, replicates, strict=True):
                weight = np.ones(len(ids), np.float32)
                if which is not None:
                    weight = poisson_weights(ids, seed, which)
                own = self.xp.asarray(weight)
                insert_slices(
                    sums, self._points, matrices, residual * own[:, None], exposure * own,
                    self._pixel_weights,
                    weights=None if missing is None else missing * own[:, None],
                )  # fmt: skip
        for which, sums in zip(replicates, held, strict=True):
            yield which, symmetrise_sums(both_friedel(sums.finish()), self.group)

    def solved(self, sums: Array) -> NDArray[np.float64]:
        """(2, n, n, n): correction of the relative intensity, and exposure in photons."""
        excess, exposure = (to_numpy(sums[..., i]).astype(np.float64) for i in (0, 1))
        # Where a replicate has no frame it knows as little as the intensity did.
        correction = np.divide(excess, exposure, out=np.zeros_like(excess), where=exposure > 1e-12)
        return np.stack([correction, exposure])

    def _prepared(
        self, batch: Patterns
    ) -> tuple[NDArray[np.uint64], Array, Array, Array, Array | None] | None:
        """Ids, matrices, residuals (D, P), fluences (D,) and full weights where pixels are missing."""
        ids, quaternion, fluence = self._table
        place = np.searchsorted(ids, batch.event_id)
        place = np.minimum(place, len(ids) - 1)
        used = np.flatnonzero(ids[place] == batch.event_id)
        if not len(used):
            return None
        xp, rows = self.xp, place[used]
        some = batch[used]
        counts = xp.asarray(to_numpy(some.dense())[:, self._index].astype(np.float32))
        matrices = xp.asarray(to_matrix(np.asarray(inverse(quaternion[rows]))).astype(np.float32))
        exposure = xp.asarray(fluence[rows].astype(np.float32))
        expected = slice_volume(self._model, self._points, matrices)
        weights = exposure[:, None] * self._pixel_weights
        residual = counts - expected * weights
        if self._background is not None:
            residual = residual - self._background
        forbidden = some.forbidden
        if forbidden is None:
            return batch.event_id[used], matrices, residual, exposure, None
        hidden = xp.asarray(to_numpy(forbidden)[:, self._index])
        nothing = xp.float32(0)
        residual, weights = (xp.where(hidden, nothing, values) for values in (residual, weights))
        return batch.event_id[used], matrices, residual, exposure, weights


def _used_frames(
    orientations: Mapping[str, NDArray[Any]],
) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
    """Ids in rising order, quaternions and fluences of the frames that were merged."""
    ids = np.asarray(orientations["event_id"], np.uint64)
    quaternion = np.asarray(orientations["quaternion"], np.float64)
    fluence = np.asarray(orientations.get("fluence", np.ones(len(ids))), np.float64)
    used = np.isfinite(quaternion).all(axis=1) & (fluence > 0)
    if "model" in orientations:
        used &= np.asarray(orientations["model"]) >= 0
    if "sentinel" in orientations:
        used &= ~np.asarray(orientations["sentinel"], bool)
    if not used.any():
        raise OrienteerError("no frame was merged, so that there is nothing to draw from.")
    order = np.flatnonzero(used)[np.argsort(ids[used], kind="stable")]
    return ids[order], quaternion[order], fluence[order]


def _groups(replicates: int, merging: _Merging) -> list[tuple[int, int]]:
    """Replicates that are merged together while the frames are read once: as many as memory holds."""
    room = _SHARE_OF_MEMORY * memory_GiB()[1] * 2**30
    if merging.device == "cuda":
        room = 0.5 * float(merging.xp.cuda.runtime.memGetInfo()[0])
    at_once = int(max(1, room // (_BYTES_PER_VOXEL * merging.n**3) - 1))
    return [(first, min(first + at_once, replicates)) for first in range(0, replicates, at_once)]
