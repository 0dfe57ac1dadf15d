"""Merge all frames once more at the poses that a run gave them, group by group.

As in a reconstruction, the differences between frames and slices of the intensity are merged and correct it,
so that interpolation adds no scatter of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, distances
from orienteer.compare.shells import radial_mean
from orienteer.compute.arrays import Array, DeviceName, choose_device, namespace_of_device, to_numpy
from orienteer.compute.progress import steps
from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import inverse, to_matrix
from orienteer.reconstruction.frames.pixels import PixelTable
from orienteer.reconstruction.model.halves import hash_of_events
from orienteer.reconstruction.model.relative_intensity import both_friedel
from orienteer.reconstruction.model.symmetry import symmetrise_sums
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import make_sums
from orienteer.slicing.trilinear import insert_slices, slice_volume
from orienteer.source.base import Source
from orienteer.source.patterns import Patterns
from orienteer.volume.volume import Volume


def groups_of_events(event_id: NDArray[np.uint64], n_groups: int, seed: int) -> NDArray[np.int64]:
    """The group of every event (N,), counted from 0, by a hash of the event id; the order does not matter.

    >>> groups = groups_of_events(np.arange(8000, dtype=np.uint64), 8, seed=0)
    >>> bool((abs(np.bincount(groups) - 1000) < 120).all())
    True
    """
    salt = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    return (hash_of_events(event_id, salt) % np.uint64(n_groups)).astype(np.int64)


class Remerging:
    """Merges frames at their poses, as corrections of an intensity.

    relative : (n, n, n) float64, the intensity over its radial mean; 1 where it was never measured.
    scale : (n, n, n) that radial mean.
    n_frames : number of frames that are merged.
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
            raise OrienteerError(
                "the intensity is nowhere positive, so there is nothing to merge.",
                "Reconstruct again with more frames.",
            )

        def profile(radius: NDArray[np.float64]) -> NDArray[np.float64]:
            """The radial mean at a distance in voxels; its logarithm is interpolated, because it is steep."""
            return np.exp(np.interp(radius, shells[good], np.log(mean[good])))

        radius = distances(centred_axis(self.n))
        level = profile(radius)
        inside = radius <= shells[good][-1] + 1
        self.scale = np.where(inside, level, np.nan)
        self.relative = np.where(np.isfinite(values) & inside, values / level, 1.0)
        self._model = self.xp.asarray(self.relative.astype(np.float32))
        length = pixels.length_inv_A / voxel
        self._chosen = np.flatnonzero(length <= min(self.n // 2 - 1, shells[good][-1] + 0.5))
        if not len(self._chosen):
            raise OrienteerError(
                "no pixel lies inside the cube of the intensity.",
                "Give the patterns that the run was made from, with their geometry: --data FILE",
            )
        self._index = self.xp.asarray(pixels.index[self._chosen])
        points = (pixels.q_inv_A[self._chosen] / voxel).astype(np.float32)
        self._points = PointPatches.of(points, self.device)
        weight = pixels.correction[self._chosen] * profile(length[self._chosen])
        self._pixel_weights = self.xp.asarray(weight.astype(np.float32))
        self._background = None
        if background is not None:
            self._background = self.xp.asarray(background[self._chosen].astype(np.float32))
        self._table = _used_frames(orientations)
        self.n_frames = len(self._table[0])

    def sums(self, source: Source, groups: range, n_groups: int, seed: int) -> Iterator[Array]:
        """Sums (n, n, n, 2) of each group: photons in excess of the expected, and exposure in photons."""
        if source.n_frames is None:
            raise OrienteerError("frames of an endless source cannot be merged again.", "Store them first.")
        held = [make_sums(self.n, self.device) for _ in groups]
        size = max(1, min(1024, 2**27 // (4 * source.n_pixels)))
        told = steps(range(-(-source.n_frames // size)), "Merging groups of frames")
        for batch, _ in zip(source.batches(size), told, strict=True):
            group = groups_of_events(batch.event_id, n_groups, seed)
            mine = np.flatnonzero((group >= groups.start) & (group < groups.stop))
            # Sort frames by group, so that each group is one contiguous slice of the arrays.
            mine = mine[np.argsort(group[mine], kind="stable")]
            self._insert(held, batch[mine], group[mine] - groups.start)
        for sums in held:
            yield symmetrise_sums(both_friedel(sums.finish()), self.group)

    def _insert(self, held: list[Any], batch: Patterns, group: NDArray[np.int64]) -> None:
        """Add frames to the sums of their groups; group : (D,) in rising order."""
        prepared = self._prepared(batch)
        if prepared is None:
            return
        used, matrices, residual, exposure, missing = prepared
        ends = np.searchsorted(group[used], np.arange(len(held) + 1))
        for sums, first, last in zip(held, ends[:-1], ends[1:], strict=True):
            if last > first:
                some = slice(int(first), int(last))
                insert_slices(
                    sums, self._points, matrices[some], residual[some], exposure[some], self._pixel_weights,
                    weights=None if missing is None else missing[some],
                )  # fmt: skip

    def _prepared(
        self, batch: Patterns
    ) -> tuple[NDArray[np.int64], Array, Array, Array, Array | None] | None:
        """Positions in the batch of the frames that are merged, their matrices, residuals (D, P) and fluences
        (D,), and weights (D, P) if pixels are missing."""
        ids, quaternion, fluence = self._table
        place = np.searchsorted(ids, batch.event_id)
        place = np.minimum(place, len(ids) - 1)
        used = np.flatnonzero(ids[place] == batch.event_id)
        if not len(used):
            return None
        xp, rows = self.xp, place[used]
        some = batch[used].to(self.device)
        counts = some.dense()[:, self._index].astype(np.float32)
        matrices = xp.asarray(to_matrix(np.asarray(inverse(quaternion[rows]))).astype(np.float32))
        exposure = xp.asarray(fluence[rows].astype(np.float32))
        expected = slice_volume(self._model, self._points, matrices)
        weights = exposure[:, None] * self._pixel_weights
        residual = counts - expected * weights
        if self._background is not None:
            residual = residual - self._background
        forbidden = some.forbidden
        if forbidden is None:
            return used, matrices, residual, exposure, None
        hidden = forbidden[:, self._index]
        nothing = xp.float32(0)
        residual, weights = (xp.where(hidden, nothing, values) for values in (residual, weights))
        return used, matrices, residual, exposure, weights


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
        raise OrienteerError(
            "no frame was merged, so there is nothing to draw from.",
            "Give more frames, or let fewer be taken for junk.",
        )
    order = np.flatnonzero(used)[np.argsort(ids[used], kind="stable")]
    return ids[order], quaternion[order], fluence[order]
