"""What one iteration hands to the next: models, fluences, table of frames, course; also as a checkpoint."""

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, to_numpy
from orienteer.compute.ranks.mesh import SERIAL_MESH, Mesh
from orienteer.orientation.point_group import POLYHEDRA, PointGroup
from orienteer.reconstruction.course.course import Course
from orienteer.reconstruction.frames.frame_table import FrameTable
from orienteer.reconstruction.model.compression import Compressed
from orienteer.reconstruction.model.momentum import Momentum
from orienteer.reconstruction.model.quadrupole import is_nearly_round
from orienteer.reconstruction.model.radial_profile import RadialProfile, at_voxels, distances_in_cube
from orienteer.reconstruction.model.relative_intensity import (
    inverse_start,
    n_shells_of,
    random_start,
    resized,
)
from orienteer.reconstruction.model.symmetry import symmetric_start
from orienteer.reconstruction.nuisances.updating import take_off_background
from orienteer.reconstruction.orienting.sentinels import SentinelWatch, watch_of
from orienteer.reconstruction.orienting.temperature import Annealing
from orienteer.reconstruction.preparation import Preparation
from orienteer.reconstruction.results import intensity_volumes
from orienteer.reconstruction.settings import AUTO_SYMMETRY, EmcSettings
from orienteer.reconstruction.states.number_of_states import Growth
from orienteer.reconstruction.states.radial_means import (
    NO_RATIO,
    ratios_of_state,
    ratios_of_states,
    state_of_ratios,
)
from orienteer.reconstruction.workspace import Workspace
from orienteer.source.base import Source
from orienteer.volume.volume import Volume

# Particles with at least this many rotations often reach a wrong solution, and get this many starts.  So does
# a nearly round particle, until one of its starts shows its symmetry.
_HIGH_ORDER, MOST_STARTS = 12, 4
# Starts of a particle with the symmetry of a polyhedron: a random one and its inverse, of which one is right.
_STARTS_OF_POLYHEDRON = 2


class Carried(Preparation):
    """All that the next iteration begins with: models, fluences, junk, the table of frames and the course.

    ratios : for each model, its radial mean relative to that of all frames.
    has_own_means : whether each state has a radial mean of its own; otherwise all use that of all frames.
    may_find_symmetry : whether to look for a symmetry that was not given.
    """

    has_own_means = True
    may_find_symmetry = True

    def __init__(
        self,
        source: Source,
        settings: EmcSettings | None = None,
        *,
        seed: int = 0,
        device: DeviceName = "auto",
        mesh: Mesh = SERIAL_MESH,
    ) -> None:
        super().__init__(source, settings or EmcSettings(), device, mesh)
        self.seed = seed
        n_starts = self.settings.starts or _starts_of(self.group)
        if self._knows_all:  # all starts would end with the same models
            n_starts = 1
        # A run with several models begins with one, and splits it.
        self.n_models, self.growth = 1, Growth(self.settings.models)
        self.course = Course(
            len(self.stages), n_starts, self.settings.iterations, grows=self.settings.models != 1,
            is_patient=not self._knows_all,
        )  # fmt: skip
        self.ratios = [NO_RATIO]
        self.table = FrameTable(self.frames.n_frames)
        self.candidates: list[dict[str, Any]] = []
        self.models: Array = None
        self.momentum = Momentum()
        self._found: Compressed
        self._full: Array | None = None
        self.junk: Array | None = None
        self.work: Workspace
        self.annealing: Annealing
        self.watch: SentinelWatch | None = None
        self.begin_start(0)

    # Models -----------------------------------------------------------------------------------------------

    def take_models(self, found: Compressed) -> None:
        """Go on with new models."""
        self.models, self.half_correlation = found.models, found.half_correlation
        self._found, self._full = found, None

    @property
    def full(self) -> Array:
        """(M, n, n, n) the models of all frames together, computed on first use."""
        if self._full is None:
            self._full = self._found.full()
        return self._full

    @full.setter
    def full(self, full: Array) -> None:
        self._full = full

    def correlation_of(self, model: int) -> NDArray[np.float64]:
        """Correlation of the two halves of one of the present models, (shells + 1,)."""
        return self._found.correlation_of(model)

    def brighten(self, factor: NDArray[np.float64] | float) -> None:
        """Multiply the present models, each by its own factor (M,) or all by the same."""
        if self.n_models > 1 and self.has_own_means:
            # The prior pulls voxels with few photons to the radial mean, which must stay that of their model:
            # so the mean takes the factor.
            factors = np.broadcast_to(factor, self.n_models)
            self.ratios = [ratio.scaled(each) for ratio, each in zip(self.ratios, factors, strict=True)]
            self.work.take_ratios(self.ratios)
            return
        self.take_models(self._found.brighter(factor))

    def take_ratios(self, ratios: list[RadialProfile]) -> None:
        """Use new radial means for the models, relative to that of all frames.

        The models are rescaled, so that the intensities stay the same.
        """
        work, xp = self.work, self.xp
        radius = distances_in_cube(work.edge_voxels) * work.stage.voxel_inv_A
        before, after = (np.stack([ratio(radius) for ratio in each]) for each in (self.ratios, ratios))
        change = at_voxels((before / after).astype(np.float32), work.edge_voxels, xp)
        if self._full is None:  # not computed yet
            self.take_models(self._found.brighter(change))
        else:
            self.models, self.full = self.models * change, self.full * change
        self.ratios = ratios
        work.take_ratios(ratios)

    def learn_ratios(self) -> None:
        """Measure the radial mean of each model again, from the frames that show it now."""
        if self.n_models > 1 and self.has_own_means:
            self.take_ratios(ratios_of_states(self, self.merged_into, self.n_models))

    @property
    def merged_into(self) -> NDArray[np.int64]:
        """The model that each merged frame shows, (N,); -1 for sentinels, and for frames that show none."""
        return np.where(self.table.merged & ~self.sentinel, self.table.shown, -1)

    # Stages -----------------------------------------------------------------------------------------------

    def begin_start(self, start: int) -> None:
        self.course.start, self.course.has_asked_symmetry, self.models = start, False, None
        self.table.weight = self.first_weight.copy()
        self.fluence = self.first_fluence()
        self.enter(0)
        first = self._first_models(start)
        self.models = self.xp.stack([first] * self.n_halves)
        self.full = first
        self.junk = None
        if self.settings.junk_classes:
            self.junk = self.noise.first_junk(len(self.pixels), self.seed, self.xp)
        self.noise.forget()
        self.half_correlation = np.ones(n_shells_of(first[0]))

    def _first_models(self, start: int) -> Array:
        """(M, n, n, n) random models, different for each start.

        If a nearly round particle may have the symmetry of a polyhedron, every second start begins with the
        inverse of what the start before found.
        """
        may_be_polyhedron = self.group.name in POLYHEDRA or self.settings.symmetry == AUTO_SYMMETRY
        if start % 2 and self.candidates and may_be_polyhedron:
            before = self.candidates[-1]
            is_round: bool = self.mesh.all.bcast(is_nearly_round(before["models"], self.speckle))
            if is_round:
                full = self.xp.asarray(before["full"], dtype=np.float32)
                return self.xp.stack([inverse_start(model) for model in full])
        n = self.work.edge_voxels
        models = [random_start(n, _seed(self.seed, start, m), self.speckle) for m in range(self.n_models)]
        # Frames correct what is there, and their corrections are made symmetric: so must the start be.
        return self.xp.stack([symmetric_start(self.xp.asarray(model), self.group) for model in models])

    def enter(self, stage: int, *, is_new: bool = True) -> None:
        """Begin a stage with the present models.  is_new : whether those of the first stage are random."""
        if stage > 0 and self.models is not None and self.settings.background == "estimate":
            take_off_background(self)
        zoom, shown = 1.0, self.merged_into
        if self.models is not None:
            zoom = self.work.stage.voxel_inv_A / self.stages[stage].voxel_inv_A
            self.noise.rescale_shells(zoom)
        self.course.enter(stage)
        self.momentum.forget()
        self.work = Workspace(self, self.stages[stage])
        is_first = is_new and stage == 0 and not self._knows_all
        is_followed = self.n_halves == 2 and self.settings.models == 1
        self.annealing = Annealing(
            len(self.work.poses), is_first=is_first, is_followed=is_followed,
            equivalents=self.equivalents if stage == 0 else 1.0,
        )  # fmt: skip
        self.table.forget_merge()
        if self.models is not None:
            n, xp = self.work.edge_voxels, self.xp
            self.models = xp.stack([xp.stack([resized(m, n, zoom) for m in half]) for half in self.models])
            self.full = xp.stack([resized(m, n, zoom) for m in self.full])
            if self.n_models > 1 and self.has_own_means:
                self.take_ratios(ratios_of_states(self, shown, self.n_models))

    @property
    def speckle(self) -> float:
        """Width of a speckle in voxels."""
        return 1 / (self.diameter_A * self.work.stage.voxel_inv_A)

    @property
    def equivalents(self) -> float:
        """Equivalent poses of each orientation in the grid, because of the symmetry of the models.

        A given symmetry reduces the grid to one of each; with a found one, the grid keeps all of them.
        """
        return self.group.order / self.settings.given_group.order

    @property
    def _knows_all(self) -> bool:
        """Whether all orientations were given, so that none is searched for."""
        return self.known is not None and self.known.are_all

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return self.course.iteration

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self.course.finished

    @property
    def reason(self) -> str:
        """Why the run is over, in one sentence."""
        return self.course.reason

    @property
    def at_limit(self) -> bool:
        """Whether the limit of iterations ended the run, so that it goes on if the limit is raised."""
        return self.course.after_limit != ""

    @property
    def best_model(self) -> NDArray[np.int64]:
        """The likeliest model of each frame, (N,); -1: junk, or probably not the particle."""
        return self.table.shown

    # Results ----------------------------------------------------------------------------------------------

    def radial_mean(self, length_inv_A: NDArray[Any]) -> NDArray[np.float64]:
        """The radial mean of the intensity at distances from the centre, in photons per pixel."""
        return self.profile(length_inv_A)

    def volumes(self) -> list[Volume]:
        """The intensity of each model, in photons per pixel of mean correction at mean fluence."""
        stage = self.work.stage
        return intensity_volumes(
            self.full, [self.profile.times(ratio) for ratio in self.ratios], stage.voxel_inv_A,
            stage.merged_inv_A, float(self.diameter_A),
        )  # fmt: skip

    def orientations(self) -> dict[str, NDArray[Any]]:
        """One row per frame."""
        table = self.table
        return {
            "event_id": self.frames.event_id,
            "quaternion": table.quaternion,
            "confidence": table.confidence,
            "fluence": self.fluence,
            "model": table.shown,
            **({"state_probability": table.state_probability} if self.n_models > 1 else {}),
            "log_likelihood": table.log_likelihood,
            "perplexity": table.perplexity,
            "half": self.half,
            "sentinel": self.sentinel,
        }

    # State ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything the next iteration depends on, as arrays and numbers."""
        candidates = {
            f"candidates/{i}/{name}": value
            for i, candidate in enumerate(self.candidates)
            for name, value in candidate.items()
        }
        return {
            **self.learnt(),
            **candidates,
            "group": self.group.name,
            "n_candidates": len(self.candidates),
            "watch": None if self.watch is None else np.array(astuple(self.watch)),
            "plan": self.plan.order_of_sums,
            "profile": self.profile.log_mean,
            "grouping_fluence": self.work.grouping_fluence,
            "log_prior": to_numpy(self.work.rows.log_prior),
            **self.course.state(),
            **self.table.state(),
            **self.annealing.state(),
            **self.growth.state(),
            **self.momentum.state(),
        }

    def learnt(self) -> dict[str, Any]:
        """What was learnt from the frames so far: models and their agreement, junk, fluences, noise."""
        return {
            "models": to_numpy(self.models),
            "full": to_numpy(self.full),
            "junk": None if self.junk is None else to_numpy(self.junk),
            "fluence": self.fluence,
            "estimates_fluence": self.estimates_fluence,
            "weight": self.table.weight,
            "half_correlation": self.half_correlation,
            **self.noise.state(),
            **state_of_ratios(self.ratios),
        }

    def take_learnt(self, learnt: Mapping[str, Any]) -> None:
        xp = self.xp
        self.momentum.forget()
        self.models, self.full = (xp.asarray(learnt[name], dtype=np.float32) for name in ("models", "full"))
        if self.n_models != len(self.full):
            self.n_models = len(self.full)
            self.table.take_states(self.n_models)
        self.junk = None if learnt["junk"] is None else xp.asarray(learnt["junk"], dtype=np.float32)
        self.fluence = np.array(learnt["fluence"], dtype=np.float64)
        self.estimates_fluence = bool(learnt["estimates_fluence"])
        self.table.weight = np.array(learnt["weight"], dtype=np.float64)
        self.half_correlation = np.array(learnt["half_correlation"], dtype=np.float64)
        self.noise.restore(learnt)
        self.ratios = ratios_of_state(learnt, self.n_models)
        self.work.take_ratios(self.ratios)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a state of the same run: to the bit if the plan is the same, else with a remark."""
        if (begun := str(state["plan"])) != self.plan.order_of_sums:
            self.remarks.append(
                f"This run was last planned for {begun}, and now goes on with {self.plan.order_of_sums}: "
                "results agree up to rounding, but not to the bit."
            )
        starts = [f"candidates/{i}/" for i in range(int(state["n_candidates"]))]
        self.candidates = [
            {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}
            for start in starts
        ]
        # Older checkpoints name no group: theirs is the given one.
        self.take_group(PointGroup(str(state.get("group", self.group))))
        # Frames are grouped by the fluences that they had when the stage began.
        self.fluence = np.array(state["grouping_fluence"], dtype=np.float64)
        self.profile = RadialProfile(self.profile.radius_inv_A, np.array(state["profile"], dtype=np.float64))
        self.noise.restore(state)
        self.models, self.n_models = None, len(state["full"])
        self.enter(int(state["course/stage"]))
        self.take_learnt(state)
        self.watch = watch_of(state)
        log_prior = np.asarray(state["log_prior"], dtype=np.float32)
        if len(log_prior) == len(self.work.rows):  # else the checkpoint is of a version with another grid
            self.work.rows.log_prior = self.xp.asarray(log_prior)
        for part in (self.course, self.table, self.annealing, self.growth):
            part.restore(state)
        self.momentum.restore(state, self.xp)


def _starts_of(group: PointGroup) -> int:
    """How many starts a particle of this symmetry gets."""
    if group.name in POLYHEDRA:
        return _STARTS_OF_POLYHEDRON
    return MOST_STARTS if group.order >= _HIGH_ORDER else 1


def _seed(seed: int, start: int, model: int) -> int:
    state = np.random.SeedSequence(seed, spawn_key=(start, model)).generate_state(1, np.uint64)
    return int(state[0])
