"""All that is computed before the first iteration: pixels, frames, halves, size, profile, stages, plan."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import DeviceName, choose_device, namespace_of_device
from orienteer.compute.ranks.mesh import SERIAL_MESH, Mesh, unlike_asked
from orienteer.compute.ranks.nccl import card_of_cupy, nccl_of_cupy, why_not
from orienteer.orientation.point_group import PointGroup
from orienteer.reconstruction.course.ladder import Stage, askew_stages, ladder
from orienteer.reconstruction.frames.frame_store import FrameStore
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.reconstruction.given_size import refuse_too_small, size_doubt
from orienteer.reconstruction.model.halves import half_of_events, refuse_empty_parts, sentinels_of_events
from orienteer.reconstruction.model.radial_profile import estimate_profile
from orienteer.reconstruction.model.speckle import choose_diameter, estimate_diameter
from orienteer.reconstruction.nuisances.first_estimates import first_estimates
from orienteer.reconstruction.nuisances.noise_model import NoiseModel
from orienteer.reconstruction.nuisances.unknown_background import uneven_background
from orienteer.reconstruction.orienting.known_orientations import given_orientations
from orienteer.reconstruction.plan import Plan, count_poses, make_plan
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.states.number_of_states import most_models
from orienteer.source.base import Source


class Preparation:
    """What data and settings determine about a reconstruction before its first iteration.

    group : symmetry of the models, given or found.
    pixels, frames : the usable pixels and the frames of the data.
    half, sentinel : (N,) the half of every frame, and whether it is a sentinel.
    first_weight : (N,) 0 for frames that look like something else, otherwise 1.
    estimates_fluence : whether every frame has a fluence of its own.
    began_with_fluences : whether it had one at the start; states found later may explain the brightness.
    fluence_spread : relative standard deviation of the fluence.
    diameter_A, voxel_inv_A, edge_inv_A : diameter of the particle; edge of a voxel of the final intensity;
        largest |q|.
    profile : radial mean of the intensity.
    noise : likelihood and background.
    stages : the ladder of resolutions.
    known : orientations that were given; None: all are to be found.
    mesh : ranks that share the work; all of them prepare the same.
    plan, remarks : what the run will need; what is doubtful about the data, in sentences for the user.

    has_some_frames : whether the source holds only some of the frames that the settings are about.
    """

    has_some_frames = False

    def __init__(
        self, source: Source, settings: EmcSettings, device: DeviceName, mesh: Mesh = SERIAL_MESH
    ) -> None:
        self.settings, self.device, self.mesh = settings, choose_device(device), mesh
        self.xp: Any = namespace_of_device(self.device)
        self.group = settings.given_group
        self.pixels = pixel_table(source)
        self.frames = FrameStore(source, self.pixels, mesh)
        self.known = given_orientations(
            settings, source, self.frames.event_id, may_be_none=self.has_some_frames
        )
        counts_photons = settings.likelihood != "gaussian"
        self.remarks = [self.known.words] if self.known is not None else []
        self.remarks += [*self.pixels.remarks, *self.frames.count_check.remarks(counts_photons)]
        self.edge_inv_A = self.pixels.edge_inv_A(settings.resolution_A)
        beyond_edge = self.pixels.beyond_edge(settings.resolution_A)
        self.remarks += [beyond_edge] if beyond_edge else []
        self._split()
        self.noise = NoiseModel(settings, self.pixels)
        if settings.background == "estimate":
            self.noise.background = uneven_background(
                self.pixels.q_inv_A, self.pixels.correction, self.frames.pixel_photons,
                self.frames.pixel_frames,
            )  # fmt: skip
        look = first_estimates(self.frames, settings, self.noise.background, ~self.sentinel)
        photons, n_frames, exposure = look.sums(self.frames)
        if settings.background == "estimate":
            # Again, without the frames that are unlike the others.
            self.noise.background = uneven_background(
                self.pixels.q_inv_A, self.pixels.correction, photons, n_frames
            )
        self.first_weight, self._first_fluence = look.weight, look.fluence
        self.estimates_fluence, self.fluence_spread = look.estimates_fluence, look.fluence_spread
        self.began_with_fluences = look.estimates_fluence
        self.diameter_A, remark = choose_diameter(
            self.frames, settings.diameter_A, self.noise.background, self.first_weight > 0
        )
        self.remarks += [remark] if remark else self._doubts_of_size()
        self.frames.share_out(self.half)
        self.voxel_inv_A = 1 / (settings.oversampling * self.diameter_A)
        self.profile = estimate_profile(
            self.pixels.length_inv_A, self.noise.without_background(photons, n_frames),
            self.pixels.correction * exposure, self.voxel_inv_A,
        )  # fmt: skip
        self.stages = self._ladder()
        if self.device == "cuda" and mesh.all.size > 1:
            path = why_not(mesh.all, nccl_of_cupy(), card_of_cupy())
            self.remarks += [path] if path else []
        # Ranks differ in free memory, but must all work in the same tiles and batches.
        self.plan = mesh.all.bcast(self._plan())
        too_little = self.plan.beyond(settings.memory_GiB)
        self.remarks += [too_little] if too_little else []
        self.remarks += unlike_asked(
            mesh, settings.mesh, settings.half_sets if settings.halves else "together"
        )

    def take_group(self, group: PointGroup) -> None:
        """Give the models another symmetry; if it is a found one, grids are turned relative to its axes."""
        if group == self.group:
            return
        self.group = group
        is_found = group.order > self.settings.given_group.order
        self.stages = askew_stages(self._ladder(), group.name, self.device) if is_found else self._ladder()

    def _ladder(self) -> list[Stage]:
        return ladder(
            self.edge_inv_A, self.diameter_A, self.settings.level, device=self.device,
            group_order=self.settings.given_group.order, voxel_inv_A=self.voxel_inv_A,
        )  # fmt: skip

    def first_fluence(self) -> NDArray[np.float64]:
        """Fluences (N,) estimated before there is a model."""
        return self._first_fluence.copy()

    def _split(self) -> None:
        event_id = self.frames.event_id
        self.half = np.zeros(len(event_id), dtype=np.int64)
        self.n_halves = 1
        if self.settings.halves:
            self.half, self.n_halves = half_of_events(event_id), 2
        self.sentinel = sentinels_of_events(event_id, self.settings.sentinels)
        refuse_empty_parts(self.half, self.sentinel, self.n_halves)

    def _doubts_of_size(self) -> list[str]:
        """A warning if the frames contradict the given diameter; not if only some of the frames are here."""
        given_A = self.settings.diameter_A
        if not given_A or self.has_some_frames:
            return []
        seen_A = estimate_diameter(
            self.frames, self.pixels.spacing_inv_A, self.noise.background, self.first_weight > 0
        )
        refuse_too_small(given_A, 1 / self.edge_inv_A, seen_A)
        doubt = size_doubt(given_A, seen_A)
        return [doubt] if doubt else []

    def _plan(self) -> Plan:
        n_poses = count_poses(max(stage.level for stage in self.stages), self.group.order)
        n_models = most_models(self.settings)
        n_rows = n_poses * n_models + self.settings.junk_classes
        edge = 2 * (int(np.ceil(self.edge_inv_A / self.voxel_inv_A)) + 1) + 1
        return make_plan(
            self.device, self.frames.n_frames, len(self.pixels), n_rows, edge, self.frames.lit_share,
            self.frames.largest, self.frames.is_counts, self.settings.memory_GiB, self.frames.is_in_memory,
            np.inf if self.settings.likelihood == "gaussian" else self.frames.largest_square,
            n_models=n_models, n_halves=self.n_halves,
            stored_bytes=self.frames.nbytes if self.device == "cpu" else 0,
            n_ranks=self.mesh.all.size,
            n_local=self.mesh.all.n_local if self.device == "cpu" else self.mesh.all.n_per_card,
            is_deterministic=self.settings.deterministic,
        )  # fmt: skip
