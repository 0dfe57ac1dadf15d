"""Hand over what one reconstruction has learnt to another, which then does not begin at random.

The halves stay apart: the half of a frame follows from a hash of its event id, the same in every run, so that
in neither run is a frame oriented by a model that it was merged into.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.orientation.point_group import PointGroup
from orienteer.reconstruction.model.radial_profile import RadialProfile
from orienteer.reconstruction.model.relative_intensity import by_shell, n_shells_of, resized
from orienteer.reconstruction.settings import AUTO_SYMMETRY

if TYPE_CHECKING:
    from orienteer.reconstruction.carried import Carried


@dataclass(frozen=True, eq=False)
class LearntMap:
    """Models, with all that is needed to resample them on the voxels of another reconstruction.

    models : (H, M, n, n, n) float32, relative to the profile; full : (M, n, n, n), of all frames together.
    voxel_inv_A, merged_inv_A : edge of a voxel, and the radius up to which frames were merged.
    profile : radial mean of the intensity.
    dispersion : (shells,) relative variance of the model's own error; sigma : width of the Gaussian noise.
    symmetry : of the models, about the axes of the group's definition.
    """

    models: NDArray[np.float32]
    full: NDArray[np.float32]
    voxel_inv_A: float
    merged_inv_A: float
    profile: RadialProfile
    dispersion: NDArray[np.float64]
    sigma: float
    symmetry: str = "C1"

    @classmethod
    def of(cls, emc: Carried) -> LearntMap:
        """The present map of a reconstruction."""
        stage = emc.work.stage
        models, full = to_numpy(emc.models), to_numpy(emc.full)
        if emc.work.ratios is not None:
            n, voxel = emc.work.edge_voxels, stage.voxel_inv_A
            ratios = np.stack([ratio.at_voxels(n, voxel) for ratio in emc.ratios]).astype(np.float32)
            models, full = models * ratios, full * ratios
        return cls(
            models, full, stage.voxel_inv_A, stage.merged_inv_A, emc.profile,
            emc.noise.dispersion, emc.noise.sigma, emc.group.name,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Arrays and numbers by name."""
        return {
            "map/models": self.models,
            "map/full": self.full,
            "map/voxel_inv_A": self.voxel_inv_A,
            "map/merged_inv_A": self.merged_inv_A,
            "map/profile_radius_inv_A": self.profile.radius_inv_A,
            "map/profile_log_mean": self.profile.log_mean,
            "map/dispersion": self.dispersion,
            "map/sigma": self.sigma,
            "map/symmetry": self.symmetry,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> LearntMap:
        """The map of a state."""
        return cls(
            np.array(state["map/models"], np.float32),
            np.array(state["map/full"], np.float32),
            float(state["map/voxel_inv_A"]),
            float(state["map/merged_inv_A"]),
            RadialProfile(
                np.array(state["map/profile_radius_inv_A"], np.float64),
                np.array(state["map/profile_log_mean"], np.float64),
            ),
            np.array(state["map/dispersion"], np.float64),
            float(state["map/sigma"]),
            str(state.get("map/symmetry", "C1")),  # older maps have none
        )


def begin_from(emc: Carried, learnt: LearntMap, stage: int = 0) -> None:
    """Let a reconstruction begin with the first model of a map instead of a random one, in this stage."""
    xp = emc.xp
    emc.models = None
    if emc.settings.symmetry == AUTO_SYMMETRY and learnt.symmetry != emc.group.name:
        # The symmetry found by the other reconstruction holds here, too.
        emc.take_group(PointGroup(learnt.symmetry))
    emc.enter(stage, is_new=False)
    work = emc.work
    zoom = learnt.voxel_inv_A / work.stage.voxel_inv_A

    def moved(model: NDArray[np.float32]) -> Array:
        cube = resized(xp.asarray(model), work.edge_voxels, zoom)
        radius = np.arange(n_shells_of(cube)) * work.stage.voxel_inv_A
        # Where nothing was merged, the model is 1: the radial mean, here as there.
        known = radius <= learnt.merged_inv_A
        ratio = np.where(known, learnt.profile(radius) / emc.profile(radius), 1.0)
        return (cube * by_shell(ratio, cube)).astype(np.float32)

    halves = learnt.models[:, 0] if len(learnt.models) == emc.n_halves else learnt.full[:1]
    emc.models = xp.stack([moved(model)[None] for model in halves] * (emc.n_halves // len(halves)))
    emc.full = moved(learnt.full[0])[None]
    emc.noise.dispersion, emc.noise.sigma = learnt.dispersion.copy(), learnt.sigma
    emc.noise.rescale_shells(zoom)
    emc.half_correlation = np.ones(n_shells_of(emc.full[0]))
    emc.course.is_patient = False
