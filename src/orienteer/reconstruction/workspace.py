"""What all iterations of a stage share: pixels, points, poses, and the frames on the device."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.compute.ranks.comm import complete_rows
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.orientation.grids import make_grid
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import to_matrix
from orienteer.posterior.tempering import even_sample
from orienteer.reconstruction.course.ladder import Stage
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.frames.batches import Batches, KeptFrames, PreparedFrames, StageFrames
from orienteer.reconstruction.frames.frame_store import FrameStore
from orienteer.reconstruction.model.radial_profile import RadialProfile
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.fine_search import FineSearch
from orienteer.reconstruction.orienting.rows import Poses, RowSpace
from orienteer.slicing.patches import PointPatches

if TYPE_CHECKING:
    from orienteer.reconstruction.carried import Carried

# Fluences within this ratio are treated as one, with an error of about one nat for a thousand photons.
_NARROW_RATIO = 1.05
# A rotation of the grid after which the equivalents of each pose lie between the other poses.  Unturned they
# would coincide, because the 600-cell itself has the symmetries I and T.
_ASKEW = (0.0606, -0.0723, -0.9735, -0.2084)
# Prior of a junk class before any frame has been seen.
_JUNK_PRIOR = 0.05

Part = int | Literal["sentinel"]


class Workspace:
    """The fixed parts of a stage.

    stage : radii and level.
    places : (P,) the pixel list: places in the table of pixels, the ``n_scored`` scored ones first.
    points : the pixel list in voxels; pixel_weights : (P,) float32 correction times radial mean.
    poses, quaternions, rows : the first grid, on the device, in float64, and as rows; every frame is compared
        with all its poses.
    fine : the search on the finer grid below it, in stages with two passes; else None.
    ratios : (M, P) float32, radial mean of each model relative to that of all frames; None: all are 1.
    edge_voxels : edge of the cube that holds all merged pixels.
    mesh : ranks that share frames and poses.
    """

    def __init__(self, emc: "Carried", stage: Stage) -> None:
        given, is_turned = emc.settings.given_group, emc.equivalents > 1
        self.stage, self.mesh = stage, emc.mesh
        self.xp: Any = emc.xp
        pixels = emc.pixels
        self.n_scored: int
        self.places, self.n_scored = pixels.choose(stage.scored_inv_A, stage.merged_inv_A)
        voxels = pixels.q_inv_A[self.places] / stage.voxel_inv_A
        self.points = PointPatches.of(voxels.astype(np.float32), emc.device)
        self.length_inv_A = pixels.length_inv_A[self.places]
        self.shell: NDArray[np.int64] = np.rint(self.length_inv_A / stage.voxel_inv_A).astype(np.int64)
        weights = pixels.correction[self.places] * emc.profile(self.length_inv_A)
        self.pixel_weights: Array = self.xp.asarray(weights.astype(np.float32))
        background = emc.noise.background
        self.pixel_model = PixelModel(
            self.pixel_weights, self.pixel_weights, self.n_scored,
            None if background is None else self.xp.asarray(background[self.places].astype(np.float32)),
        )  # fmt: skip
        reach = float(np.abs(voxels).max(initial=1.0))
        self.edge_voxels = 2 * (int(np.ceil(max(reach, stage.merged_inv_A / stage.voxel_inv_A))) + 1) + 1
        grid = grid_of(stage.first_level, given.name, is_turned=is_turned)
        self.quaternions = grid.quaternions
        matrices = np.ascontiguousarray(np.swapaxes(to_matrix(grid.quaternions), 1, 2))
        self.poses = Poses(
            self.xp.asarray(matrices.astype(np.float32)), self.xp.asarray(grid.log_weights.astype(np.float32))
        )
        self._n_junk = emc.settings.junk_classes
        self._tile_rows = min(emc.plan.tile_rows, len(grid))
        self.rows: RowSpace
        self.take_models(np.ones(emc.n_models))
        self.fine: FineSearch | None = None
        if stage.in_two_passes:
            self.fine = FineSearch(
                self.rows, grid, kept_mass=emc.settings.kept_mass, score_bytes=emc.plan.score_bytes,
                tile_rows=emc.plan.fine_tile_rows, comm=self.mesh.poses,
                same_parts=emc.settings.deterministic,
            )  # fmt: skip
        self._frames_of: dict[Part, NDArray[np.int64]] = {
            half: np.flatnonzero((emc.half == half) & ~emc.sentinel) for half in range(2)
        }
        self._frames_of["sentinel"] = np.flatnonzero(emc.sentinel)
        self._frames = StageFrames(
            emc.frames, self.places, self.n_scored, emc.device, emc.plan, emc.fluence, learns=~emc.sentinel
        )
        self.ratios: Array | None = None
        self._kept: dict[Part, KeptFrames] = {}
        self._samples: dict[tuple[Part, int], PreparedFrames] = {}
        self._scored_photons: NDArray[np.float64] | None = None

    @property
    def n_poses(self) -> int:
        """Poses of the finest grid of the stage."""
        return len(self.poses if self.fine is None else self.fine.poses)

    @property
    def is_grouped(self) -> bool:
        """Whether frames are sorted into groups by fluence."""
        return self._frames.is_grouped

    @property
    def grouping_fluence(self) -> NDArray[np.float64]:
        """(N,) fluences by which the frames were sorted into groups."""
        return self._frames.grouping_fluence

    def frames_of(self, part: Part) -> NDArray[np.int64]:
        """Places of the frames of a half, or of the sentinels."""
        return self._frames_of[part]

    def parts(self, models: Array) -> list[tuple[Part, Array]]:
        """All frames: each half with the models of the other half, and the sentinels with the last models."""
        last = len(models) - 1
        halves: list[tuple[Part, Array]] = [(half, models[last - half]) for half in range(last + 1)]
        return [*halves, ("sentinel", models[last])]

    def batches(
        self, part: Part, fluence: NDArray[np.float64], weight: NDArray[np.float64] | None = None
    ) -> Batches:
        """The frames of a half, or the sentinels, in batches with their fluences.

        Ranks that share the poses of the same frames have the same batches; other ranks have other frames.
        weight : (N,) how much each frame counts in the merge; None: all the same.
        """
        if part not in self._kept:
            frames = self._frames_of[part]
            self._kept[part] = self._frames.keep(frames[self._frames.store.is_here[frames]])
        return Batches(self._kept[part], fluence, self.xp, weight)

    def regrouped(self, part: Part, fluence: NDArray[np.float64]) -> Batches:
        """The frames of a half, or the sentinels, in groups of nearly the same fluence (N,), for one use.

        Within a group, scores depend on the fluence of each frame to first order only.  The error is the same
        for all poses of a frame, but not for the different fluences that it has in different states, and its
        probability could exceed 1.
        """
        frames = self._frames_of[part]
        grouped = replace(self._frames, grouping_fluence=fluence, fluence_ratio=_NARROW_RATIO)
        return Batches(grouped.keep(frames[self._frames.store.is_here[frames]]), fluence, self.xp)

    def let_go(self) -> None:
        """Free the memory of the prepared frames; they are prepared again when they are needed."""
        self._kept.clear()
        self._samples.clear()

    def sample(
        self, part: Part, fluence: NDArray[np.float64], n_frames: int,
        weight: NDArray[np.float64] | None = None,
    ) -> Batch | None:  # fmt: skip
        """A few frames of a half, evenly chosen, the same on all ranks; arguments as of :meth:`batches`."""
        if not len(self._frames_of[part]):
            return None
        if (part, n_frames) not in self._samples:
            frames = self._frames_of[part]
            chosen = self._frames.chunk(frames[even_sample(len(frames), n_frames)])
            patterns = self._frames.store.patterns_of_all(chosen.places)
            self._samples[part, n_frames] = self._frames.prepare(chosen, patterns)
        return self._samples[part, n_frames].batch(fluence, self.xp, weight)

    def scored_photons(self, store: FrameStore) -> NDArray[np.float64]:
        """Photons of every frame on the scored pixels, (N,)."""
        if self._scored_photons is None:
            photons, seen = np.zeros(store.n_frames), [np.zeros(0, dtype=np.int64)]
            parts: tuple[Part, ...] = (0, 1, "sentinel")
            for part in parts:
                for batch in self.batches(part, self.grouping_fluence):
                    seen.append(batch.places)
                    for group in batch.groups:
                        photons[batch.places[group.columns]] = to_numpy(group.frames.scored_photons)
            complete_rows(self.mesh.all, store.own_of(np.concatenate(seen)), photons)
            self._scored_photons = photons
        return self._scored_photons

    def expander(self, models: Array, junk: Array | None = None) -> Expander:
        """Makes slices of models (M, n, n, n) and of junk classes (J, U)."""
        return Expander(models, self.points, self.junk(junk), self.ratios)

    def take_ratios(self, ratios: Sequence[RadialProfile]) -> None:
        """Use these radial means of the models, relative to that of all frames."""
        factors = np.stack([ratio(self.length_inv_A) for ratio in ratios])
        self.ratios = None if (factors == 1).all() else self.xp.asarray(factors.astype(np.float32))

    def junk(self, junk: Array | None) -> Array | None:
        """The junk classes (J, U) at the pixels of this stage."""
        return None if junk is None else self.xp.ascontiguousarray(junk[:, self.xp.asarray(self.places)])

    def take_models(self, counts: NDArray[np.float64]) -> None:
        """Use as many models as there are counts (M,) of frames; only in a stage of one pass."""
        self.rows = RowSpace(self.poses, len(counts), self._log_prior(counts), self._n_junk, self._tile_rows)

    def update_prior(self, mass: NDArray[np.float64]) -> None:
        """Set the priors of models and junk classes to their shares of the mass (rows,) of an iteration."""
        n_models = self.rows.n_models
        if n_models + self._n_junk == 1:
            return
        K = len(self.poses)
        models = np.array([mass[m * K : (m + 1) * K].sum() for m in range(n_models)])
        junk = mass[n_models * K :]
        self.rows.log_prior = self._log_prior(models, junk)

    def _log_prior(self, models: NDArray[Any], junk: NDArray[Any] | None = None) -> Array:
        """ln of the prior of every row.  A class counts one frame more than it has, so that none dies out."""
        if junk is None:
            junk = np.full(self._n_junk, _JUNK_PRIOR * models.sum())
        total = models.sum() + junk.sum() + len(models) + len(junk)
        xp = self.xp
        parts = [self.poses.log_weights + float(np.log((m + 1) / total)) for m in models]
        if len(junk):
            parts.append(xp.asarray(np.log((junk + 1) / total).astype(np.float32)))
        return xp.concatenate(parts).astype(xp.float32)


@lru_cache(maxsize=4)
def grid_of(level: int, symmetry: str, *, is_turned: bool) -> PoseGrid:
    """The poses of a level, reduced by a given symmetry; or turned relative to the axes of a found one."""
    grid = make_grid("600-cell", level, symmetry)
    return grid.turned(_ASKEW) if is_turned else grid
