"""What one stage needs and no iteration changes: pixels, points, poses, frames on the device."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.likelihood.fluence import fluence_groups
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.product import Product, product_of
from orienteer.orientation.grids import make_grid
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import to_matrix
from orienteer.posterior.tempering import even_sample
from orienteer.reconstruction.expectation import Batch, Group, Poses, RowSpace
from orienteer.reconstruction.frame_store import FrameStore
from orienteer.reconstruction.ladder import Stage
from orienteer.slicing.patches import PointPatches

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc

# Frames whose fluences differ by less than this factor share their slices; to first order each is scored at
# its own fluence.
_FLUENCE_RATIO = 2.0
_SAMPLE = 64
# Prior of a junk class before any frame has been seen.
_JUNK_PRIOR = 0.05

Part = int | Literal["sentinel"]


class Workspace:
    """The fixed parts of a stage.

    stage : radii and level.
    places : (P,) the pixel list, places in the table of pixels, ``n_scored`` of them first.
    points : the pixel list in voxels; pixel_weights : (P,) float32 correction times radial mean.
    poses, quaternions : the grid of orientations, on the device and in float64.
    edge_voxels : edge of the cube that holds all merged pixels.
    """

    def __init__(self, emc: "Emc", stage: Stage) -> None:
        self.stage, self._store, self._device = stage, emc.frames, emc.device
        self._plan, self.xp = emc.plan, emc.xp
        pixels = emc.pixels
        self.places, self.n_scored = pixels.choose(stage.scored_inv_A, stage.merged_inv_A)
        voxels = pixels.q_inv_A[self.places] / emc.voxel_inv_A
        self.points = PointPatches.of(voxels.astype(np.float32), emc.device)
        self.length_inv_A = pixels.length_inv_A[self.places]
        self.shell = np.rint(self.length_inv_A / emc.voxel_inv_A).astype(np.int64)
        weights = pixels.correction[self.places] * emc.profile(self.length_inv_A)
        self.pixel_weights: Array = self.xp.asarray(weights.astype(np.float32))
        background = emc.noise.background
        self.pixel_model = PixelModel(
            self.pixel_weights, self.pixel_weights, self.n_scored,
            None if background is None else self.xp.asarray(background[self.places].astype(np.float32)),
        )  # fmt: skip
        reach = float(np.abs(voxels).max(initial=1.0))
        self.edge_voxels = 2 * (int(np.ceil(max(reach, stage.merged_inv_A / emc.voxel_inv_A))) + 1) + 1
        grid = _grid(stage.level, emc.settings.symmetry)
        self.quaternions = grid.quaternions
        matrices = np.ascontiguousarray(np.swapaxes(to_matrix(grid.quaternions), 1, 2))
        self.poses = Poses(
            self.xp.asarray(matrices.astype(np.float32)), self.xp.asarray(grid.log_weights.astype(np.float32))
        )
        self._n_models, self._n_junk = emc.settings.models, emc.settings.junk_classes
        self.rows = RowSpace(
            self.poses, self._n_models, self._log_prior(np.full(self._n_models, 1.0)), self._n_junk,
            min(emc.plan.tile_rows, len(grid)),
        )  # fmt: skip
        self._frames_of: dict[Part, NDArray[np.int64]] = {
            half: np.flatnonzero((emc.half == half) & ~emc.sentinel) for half in range(2)
        }
        self._frames_of["sentinel"] = np.flatnonzero(emc.sentinel)
        self.grouping_fluence = emc.fluence
        self._prepared: dict[Part, list[_Prepared]] = {}
        self._samples: dict[Part, _Prepared] = {}
        self._scored_photons: NDArray[np.float64] | None = None

    @property
    def is_grouped(self) -> bool:
        """Whether frames of different fluence are kept apart."""
        return bool(np.ptp(self.grouping_fluence) > 0)

    def frames_of(self, part: Part) -> NDArray[np.int64]:
        """Places of the frames of a half, or of the sentinels."""
        return self._frames_of[part]

    def parts(self, models: Array) -> list[tuple[Part, Array]]:
        """All frames: each half with the model of the other half, and the sentinels with the last."""
        last = len(models) - 1
        halves: list[tuple[Part, Array]] = [(half, models[last - half]) for half in range(last + 1)]
        return [*halves, ("sentinel", models[last])]

    def batches(
        self, part: Part, fluence: NDArray[np.float64], weight: NDArray[np.float64] | None = None
    ) -> "list[Batch] | _Batches":
        """The frames of a half, or the sentinels, in batches with their fluences.

        weight : (N,) how much each frame counts in the merge; None: all the same.
        """
        if not self._store.is_in_memory:
            return _Batches(self, part, fluence, weight)
        if part not in self._prepared:
            self._prepared[part] = list(self._prepare(part))
        return [prepared.batch(fluence, self.xp, weight) for prepared in self._prepared[part]]

    def sample(self, part: Part, fluence: NDArray[np.float64]) -> Batch | None:
        """A few frames of a half, evenly chosen."""
        if not len(self._frames_of[part]):
            return None
        if part not in self._samples:
            frames = self._frames_of[part]
            self._samples[part] = self._prepare_frames(frames[even_sample(len(frames), _SAMPLE)])
        return self._samples[part].batch(fluence, self.xp)

    def scored_photons(self, store: FrameStore) -> NDArray[np.float64]:
        """Photons of every frame on the scored pixels, (N,)."""
        if self._scored_photons is None:
            photons = np.zeros(store.n_frames)
            parts: tuple[Part, ...] = (0, 1, "sentinel")
            for part in parts:
                for batch in self.batches(part, self.grouping_fluence):
                    for group in batch.groups:
                        photons[batch.places[group.columns]] = to_numpy(group.frames.scored_photons)
            self._scored_photons = photons
        return self._scored_photons

    def junk(self, junk: Array | None) -> Array | None:
        """The junk classes (J, U) at the pixels of this stage."""
        return None if junk is None else self.xp.ascontiguousarray(junk[:, self.xp.asarray(self.places)])

    def update_prior(self, mass: NDArray[np.float64]) -> None:
        """Classes as frequent as their frames: mass (rows,) of the last iteration is the prior of classes."""
        if self._n_models + self._n_junk == 1:
            return
        K = len(self.poses)
        models = np.array([mass[m * K : (m + 1) * K].sum() for m in range(self._n_models)])
        junk = mass[self._n_models * K :]
        self.rows.log_prior = self._log_prior(models, junk)

    def _log_prior(self, models: NDArray[Any], junk: NDArray[Any] | None = None) -> Array:
        """One frame more in every class than was counted, so that none dies at once."""
        if junk is None:
            junk = np.full(self._n_junk, _JUNK_PRIOR * models.sum())
        total = models.sum() + junk.sum() + len(models) + len(junk)
        xp = self.xp
        parts = [self.poses.log_weights + float(np.log((m + 1) / total)) for m in models]
        if len(junk):
            parts.append(xp.asarray(np.log((junk + 1) / total).astype(np.float32)))
        return xp.concatenate(parts).astype(xp.float32)

    def _prepare(self, part: Part) -> "Iterator[_Prepared]":
        frames = self._frames_of[part]
        if not len(frames):
            return
        frames = (
            frames[np.argsort(self.grouping_fluence[frames], kind="stable")] if self.is_grouped else frames
        )
        for chunk in self._store.chunks(frames, self._plan.batch_frames):
            yield self._prepare_frames(chunk)

    def _prepare_frames(self, frames: NDArray[np.int64]) -> "_Prepared":
        bounds = np.array([0, len(frames)])
        if self.is_grouped:
            groups = fluence_groups(self.grouping_fluence[frames], _FLUENCE_RATIO)
            frames, bounds = frames[groups.order], groups.bounds
        parts = []
        for first, last in pairwise(bounds.tolist()):
            if last > first:
                batch = self._store.batch(
                    frames[first:last], self.places, self.n_scored, self._device, self._plan.layout
                )
                parts.append((slice(first, last), batch, product_of(batch, self._plan.precision)))  # type: ignore[arg-type]
        return _Prepared(frames, parts)


class _Prepared:
    """Frames on the device; with the fluences of the moment they make a batch."""

    def __init__(self, places: NDArray[np.int64], parts: list[tuple[slice, FrameBatch, Product]]) -> None:
        self.places, self.parts = places, parts

    def batch(
        self, fluence: NDArray[np.float64], xp: Any, weight: NDArray[np.float64] | None = None
    ) -> Batch:
        own = fluence[self.places]
        # At the mean fluence of a group the signal's share of all its photons is right.
        groups = tuple(
            Group(columns, frames, product, float(own[columns].mean()), not np.ptp(own[columns]) > 0)
            for columns, frames, product in self.parts
        )
        weights = None if weight is None else xp.asarray(weight[self.places].astype(np.float32))
        return Batch(self.places, groups, xp.asarray(own), weights)


class _Batches:
    """Batches that are read from disk when their turn comes."""

    def __init__(
        self, work: Workspace, part: Part, fluence: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> None:
        self._work, self._part, self._fluence, self._weight = work, part, fluence, weight

    def __len__(self) -> int:
        return max(1, -(-len(self._work.frames_of(self._part)) // self._work._plan.batch_frames))

    def __iter__(self) -> Iterator[Batch]:
        for prepared in self._work._prepare(self._part):
            yield prepared.batch(self._fluence, self._work.xp, self._weight)


@lru_cache(maxsize=4)
def _grid(level: int, symmetry: str) -> PoseGrid:
    return make_grid("600-cell", level, symmetry)
