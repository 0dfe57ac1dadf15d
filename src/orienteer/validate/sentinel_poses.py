"""Whether two independent models give the same poses to frames that neither has seen.

A model agrees with the frames that it was made from, however wrong it is.  But a frame that was used for
neither model gets the same pose in both, after one rotation for all frames, only if both models show what the
frame shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.compute.progress import steps
from orienteer.errors import OrienteerError
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import compose, inverse, random_uniform
from orienteer.orientation.six_hundred_cell import covering_bound_deg
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.frames.batches import Batches, StageFrames
from orienteer.reconstruction.frames.frame_store import FrameStore
from orienteer.reconstruction.frames.frame_table import FrameTable
from orienteer.reconstruction.model.autocorrelation import LEAST_INTENSITY
from orienteer.reconstruction.orienting.expectation import expect
from orienteer.reconstruction.orienting.refinement import refine_poses
from orienteer.reconstruction.orienting.sentinels import is_flat
from orienteer.run.checkpoint import load_checkpoint
from orienteer.run.method import find_method

if TYPE_CHECKING:
    from orienteer.compute.arrays import DeviceName
    from orienteer.run.run import Run
    from orienteer.source.base import Source

_N_CHANCE = 4000


@dataclass(frozen=True, eq=False)
class PoseAgreement:
    """How far apart the poses lie that two models give to the same frames.

    frames : their number.
    median_deg, percentile_90_deg : of the angles between the two poses of each frame.
    chance_deg : the median for random poses, which two unrelated models would give.
    n_alike : number of rotations after which the model looks the same, although no symmetry was given; poses
        that differ by one of them count as the same.
    """

    frames: int
    median_deg: float
    percentile_90_deg: float
    chance_deg: float
    n_alike: int = 1


@dataclass(frozen=True, eq=False)
class HalfModel:
    """The findings of a half that are kept when its reconstruction, with all its frames, leaves the memory.

    frames : number of frames that it was made from.
    diameter_A, edge_inv_A : of the particle, and of the data.
    is_flat : whether patterns look the same after half a turn about the beam.
    poses : (n, 4) orientations of the sentinels.
    """

    frames: int
    diameter_A: float
    edge_inv_A: float
    is_flat: bool
    poses: NDArray[np.float64]


def ask_half(run: Run, own: Source, sentinels: Source, device: DeviceName = "auto") -> HalfModel:
    """Open the reconstruction of a half and let it orient the sentinels.

    own : the frames of the half.
    """
    return half_model(finished_emc(run, own, device), sentinels)


def half_model(emc: Emc, sentinels: Source) -> HalfModel:
    """The findings of a reconstruction, with the poses that it gives to the sentinels."""
    poses = poses_against(emc, sentinels) if len(sentinels) else np.zeros((0, 4))
    return HalfModel(emc.frames.n_frames, emc.diameter_A, emc.edge_inv_A, is_flat(emc), poses)


def finished_emc(run: Run, source: Source, device: DeviceName = "auto") -> Emc:
    """The reconstruction of a run in the state of its last checkpoint.

    source : the data of the run.
    """
    checkpoint, _ = load_checkpoint(run.path, run.described["run_id"])
    emc = find_method(run.method).make(source, run.settings, run.seed, device)
    if not isinstance(emc, Emc) or checkpoint is None:
        raise OrienteerError(
            f"{run.path}: it holds no reconstruction that can orient frames.",
            "Reconstruct first: orienteer reconstruct.",
        )
    emc.restore(checkpoint.state)
    return emc


def poses_against(emc: Emc, frames: Source) -> NDArray[np.float64]:
    """The likeliest orientation (n, 4) of every frame in the model of a reconstruction that never saw it.

    frames : on the same pixels.
    """
    work, xp = emc.work, emc.xp
    store = FrameStore(frames, emc.pixels)
    likelihood = emc.noise.likelihood(work)
    # A voxel may be dark by chance, so give the model a least intensity; else a frame could never lie there.
    models = xp.maximum(emc.full, np.float32(LEAST_INTENSITY))
    expander = work.expander(models, emc.junk)
    fluence = _fluence(emc, store)
    stage = StageFrames(store, work.places, work.n_scored, emc.device, emc.plan, fluence)
    table = FrameTable(store.n_frames)
    step_deg = covering_bound_deg(work.stage.first_level)
    tile_rows = emc.plan.refined_rows
    for batch in steps(Batches(stage.keep(np.arange(store.n_frames)), fluence, xp), "Orienting sentinels"):
        kept = ScoreStore(len(work.rows), len(batch), emc.device, emc.settings.kept_mass)
        untempered = xp.ones(len(batch))
        posterior = expect(likelihood, expander, work.rows, batch, untempered, kept)
        table.note(work, likelihood, batch, posterior, untempered)
        model = table.model[batch.places]
        some = np.flatnonzero(model >= 0)
        begun = table.quaternion[batch.places[some]]
        refined = refine_poses(
            likelihood, expander, batch, some, model[some], begun, step_deg, tile_rows=tile_rows
        )
        table.quaternion[batch.places[some]] = to_numpy(refined.quaternions)
    return table.quaternion


def pose_agreement(
    first: ArrayLike, second: ArrayLike, turn: ArrayLike, group: PointGroup | str = "C1",
    flat_ewald: bool = False, alike: ArrayLike = ((1.0, 0.0, 0.0, 0.0),),
) -> PoseAgreement:  # fmt: skip
    """How far two models agree on the poses of the same frames.

    first, second : (n, 4) orientations in the first and the second model.
    turn : (4,), the quaternion by which the second model is turned to give the first.
    flat_ewald : whether patterns look the same after half a turn about the beam.
    alike : (K, 4) rotations after which the first model looks the same, the identity included.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or not len(a):
        raise OrienteerError(f"poses of {len(a)} and of {len(b)} frames cannot be compared.")
    # I1(A q) = I2(q): a frame that samples I2 at R^T q samples I1 at A R^T q, so its pose there is R A^T.
    turned = compose(b, inverse(np.asarray(turn, np.float64)))
    rotations = np.asarray(alike, np.float64)

    def apart(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        equivalent = (compose(y, rotation) for rotation in rotations)
        found = [to_numpy(angular_distance_deg(x, each, group, flat_ewald)) for each in equivalent]
        return np.asarray(np.min(found, axis=0))

    angles, chance = apart(a, turned), apart(random_uniform(_N_CHANCE, 0), random_uniform(_N_CHANCE, 1))
    return PoseAgreement(
        len(a), float(np.median(angles)), float(np.percentile(angles, 90)), float(np.median(chance)),
        len(rotations),
    )  # fmt: skip


def _fluence(emc: Emc, store: FrameStore) -> NDArray[np.float64]:
    """Fluences (n,) from the photons of the frames, on the scale of the reconstruction."""
    if not emc.estimates_fluence:
        return np.ones(store.n_frames)
    behind = 0.0 if emc.noise.background is None else float(emc.noise.background.sum())
    used = emc.best_model >= 0
    of_unit = float((emc.frames.photons[used] - behind).sum() / max(emc.fluence[used].sum(), 1e-12))
    signal = np.maximum(store.photons - behind, np.sqrt(np.maximum(store.photons, 1.0)))
    return np.asarray(signal / max(of_unit, 1e-12))
