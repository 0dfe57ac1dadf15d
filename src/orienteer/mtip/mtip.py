"""M-TIP: slice the autocorrelation, match the frames, merge them by least squares, phase, repeat.

One generation of :class:`Mtip` is the loop of Donatelli, Sethian and Zwart, on the engine of EMC: its
likelihoods, posteriors, temperatures, stages, half sets and sentinels.  What differs is the model.  It is the
autocorrelation of the particle, which ends at the particle's diameter, and frames are merged by solving for
it.  The solution is drawn towards the autocorrelation of a density that follows it from generation to
generation, as far as that predicts the frames of the other half.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, distances
from orienteer.compute.arrays import Array, DeviceName, to_numpy
from orienteer.compute.ranks.mesh import SERIAL_MESH, Mesh
from orienteer.compute.stage_log import logged
from orienteer.errors import SettingsError
from orienteer.likelihood.base import Likelihood
from orienteer.mtip.envelope import envelope_of
from orienteer.mtip.exact_deposit import ExactDeposit, ExactSums
from orienteer.mtip.generation import (
    Merged,
    drawn_to_phased,
    merge_halves,
    most_exposed,
    sliceable,
    sums_of_half,
)
from orienteer.mtip.loop_density import loop_density
from orienteer.mtip.loop_phasing import LoopPhasing
from orienteer.mtip.references.keeper import Reading, ReferenceKeeper
from orienteer.mtip.references.topology import Ranks
from orienteer.mtip.relative_grid import RelativeGrid
from orienteer.mtip.settings import MtipSettings
from orienteer.mtip.unseen import unseen_correlation
from orienteer.orientation.quaternion import to_matrix
from orienteer.phase.settings import PhaseSettings
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.model.compression import Compressed
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.results import agreement_A, radial_summary
from orienteer.reconstruction.states.summary import state_summaries
from orienteer.reconstruction.step import Step
from orienteer.reconstruction.workspace import Workspace
from orienteer.source.base import Source
from orienteer.volume.volume import Volume

# Phasing starts once the mean correlation of the halves is above this.
_WORTH_PHASING = 0.3
# Lower bound of the relative intensity of a round particle: its rings are dark, but never 0.
_LEAST_ROUNDNESS = 0.02


class Mtip(Emc):
    """A blind reconstruction, generation by generation.

    ::

        mtip = Mtip(orienteer.open("hits.h5"), MtipSettings(), seed=1)
        while not mtip.finished:
            print(mtip.step().log_likelihood)
        intensity = mtip.volumes()[0]

    Arguments are those of :class:`Emc`.

    merges_whole_frames : whether whole frames are merged; else only their difference from the slices is.
    """

    settings: MtipSettings
    merges_whole_frames = False
    # All models share the envelope, which has no dark rings; the rings of each are in the model itself.
    has_own_means = False
    may_find_symmetry = False

    def __init__(
        self, source: Source, settings: MtipSettings | None = None, *, seed: int = 0,
        device: DeviceName = "auto", mesh: Mesh = SERIAL_MESH,
    ) -> None:  # fmt: skip
        self._phasings: dict[tuple[int, int], LoopPhasing] = {}
        settings = settings or MtipSettings()
        if settings.deterministic and settings.merging == "exact":
            raise SettingsError(
                'mtip.merging = "exact" adds pixels up in an order that changes from run to run, so that no '
                "run with it is deterministic.",
                'Set mtip.merging = "grid", or leave out deterministic.',
            )
        super().__init__(source, settings, seed=seed, device=device, mesh=mesh)
        wish = self.settings.references
        # "auto" measures times, and on the CPU kept slices change the last bits of the scores of faint
        # frames.  A deterministic run must not depend on the clock.
        wish = "recompute" if wish == "auto" and self.settings.deterministic else wish
        self.references = ReferenceKeeper(wish, Ranks.among(mesh.half))

    # The loop ---------------------------------------------------------------------------------------------

    def step(self) -> Step:
        """One generation.  The note of the step also says where slices come from, if that has changed."""
        step = super().step()
        if step.finished:
            step = self._judged(step)
            self.close()
        said = [words for words in (step.note, self.references.news()) if words]
        return replace(step, note=" ".join(said))

    def _judged(self, step: Step) -> Step:
        """The last step, with the agreement of the halves about pixels that oriented no frame."""
        oriented = self.known is None or not self.known.are_all
        if self.n_halves < 2 or self.at_limit or self.course.found_nothing or not oriented:
            return step
        by_model = unseen_correlation(self, self._roundness)
        photons = [float(exposure.sum()) + 1 for _, exposure, _ in self._found.together]
        self.half_correlation = np.average(by_model, axis=0, weights=photons)
        self._found = replace(self._found, half_correlation=self.half_correlation, by_model=by_model)
        stage = self.work.stage
        radial = radial_summary(
            self.half_correlation, self.radial_mean, stage.voxel_inv_A, stage.merged_inv_A
        )
        last = max(3, int(stage.scored_inv_A / stage.voxel_inv_A))
        return replace(
            step,
            radial=radial,
            half_correlation=float(self.half_correlation[2:last].mean()),
            agrees_to_A=agreement_A(radial),
            states=state_summaries(self),
        )

    def close(self) -> None:
        """Release windows and files; all ranks call this together.  The next generation opens them again."""
        self.references.close()

    def new_models(self, likelihood: Likelihood, beta: float) -> tuple[list[Deposit], Compressed]:
        """One generation; frames of each half are matched with slices of the other."""
        matched = self.oriented(range(self.n_halves), likelihood, beta)
        with logged("solve"):
            merged = [self._merge(matched, model) for model in range(self.n_models)]
        with logged("phase"):
            phased = [self._alike(self._phase(each, model), model) for model, each in enumerate(merged)]
        return matched, sliceable(self._grid, phased, self._roundness)

    def solve(self, deposits: list[Deposit]) -> Compressed:
        """New models from what the frames of each half have left behind, with no phasing."""
        merged = [self._alike(self._merge(deposits, model)) for model in range(len(deposits[0].sums))]
        return sliceable(self._grid, merged, self._roundness)

    def are_nearer(self, found: Compressed) -> bool:
        """As in EMC; but always true after phasing, which makes halves agree about more than their frames."""
        return bool(self._phasings) or super().are_nearer(found)

    def _merge(self, deposits: list[Deposit], model: int) -> Merged:
        """The autocorrelations of a model that fit the frames of each half best."""
        grid, q_max = self._grid, self.work.stage.merged_inv_A
        halves = [sums_of_half(grid, deposit, model, self.group, q_max) for deposit in deposits]
        return merge_halves(grid, halves, self.settings.tolerance)

    def _phase(self, merged: Merged, model: int) -> Merged:
        """Phase the densities of each half, and draw its autocorrelation towards that of the densities."""
        if not self.settings.phasing or self.n_halves < 2 or self._is_too_early(model):
            return merged
        phased = [self._phasing(half, model).follow(z) for half, z in enumerate(merged.autocorrelations)]
        drawn = drawn_to_phased(self._grid, merged, phased)
        for half, best in enumerate(drawn.phased_best):
            self._phasings[half, model].best = best
        return drawn

    def _alike(self, found: Merged, model: int | None = None) -> Merged:
        """What the first rank has found, on all ranks; with the densities of a model, if it was phased.

        Ranks may round differently, and phasing makes much of the last bits; but frames must be oriented by
        the same models on all ranks, because they are merged together.
        """
        comm = self.mesh.all
        if comm.size == 1:
            return found
        phasings = [each for key, each in sorted(self._phasings.items()) if key[1] == model]
        z, regularisation, densities = comm.bcast(
            (to_numpy(found.autocorrelations), found.regularisation, [each.arrays() for each in phasings])
        )
        for phasing, arrays in zip(phasings, densities, strict=True):
            phasing.restore(arrays)
        return replace(found, autocorrelations=self.xp.asarray(z), regularisation=regularisation)

    def _is_too_early(self, model: int) -> bool:
        """Whether the halves, as they were before this generation, have too little in common to be phased."""
        if (0, model) in self._phasings:
            return False
        stage = self.work.stage
        radius = max(3, int(stage.scored_inv_A / stage.voxel_inv_A))
        is_first = self.annealing.iterations_left > 0 and self.course.stage == 0
        agreement: float = self.mesh.all.bcast(float(np.mean(self.half_correlation[2:radius])))
        return is_first or not agreement > _WORTH_PHASING

    def new_expander(self, half: int) -> Expander:
        """What provides the slices for the frames of a half: made anew or kept, whichever costs less."""
        work, plan = self.work, self.plan
        n_frames = max(int(self.frames.is_here[work.frames_of(each)].sum()) for each in range(self.n_halves))
        at_once = max(1, min(n_frames, plan.batch_frames))
        share = len(work.rows) / plan.n_rotations * at_once / plan.n_frames
        reading = Reading(
            passes=-(-n_frames // at_once) / work.mesh.poses.size,
            score_seconds=share * plan.seconds_per_iteration,
            by_pixel=plan.layout == "sparse",
            in_order=work.mesh.poses.size == 1,
        )
        models, junk = self.models[self.n_halves - 1 - half], work.junk(self.junk)
        return self.references.expander(models, work.points, junk, work.rows, reading)

    def new_deposit(self, work: Workspace, half: int) -> Deposit:
        """An empty deposit for the frames of a half."""
        deposit = super().new_deposit(work, half)
        if self.merges_whole_frames:
            return replace(deposit, models=None)
        if self.settings.merging == "grid":
            return deposit
        # Exposure of a pixel: the photons of all frames of the half, spread evenly over its shell.
        radius = np.maximum(np.arange(work.shell.max() + 1.0), 0.5)
        photons = np.bincount(work.shell, to_numpy(work.pixel_weights)) * len(work.frames_of(half))
        exposure = (photons / (4 * np.pi * radius**2))[work.shell]
        xp = self.xp
        points = xp.asarray(self.pixels.q_inv_A[work.places])
        counted = xp.asarray(1 / (1 + exposure / most_exposed(self._grid)))
        turns = xp.asarray(to_matrix(self.group.quaternions))
        exact = [ExactSums(self._grid, points, counted, turns) for _ in deposit.sums]
        return ExactDeposit(deposit.sums, deposit.junk, deposit.row_mass, deposit.models, exact=exact)

    @property
    def sums_in_any_order(self) -> bool:
        """As in :class:`Emc`, but always true on the CPU, where it costs little.

        Phasing amplifies the smallest difference: without this, the result would depend on the number of
        ranks.
        """
        return self.settings.deterministic or self.device == "cpu"

    def round_slice(self) -> Array:
        """(P,) float32, any slice of a round particle: the radial mean divided by the envelope."""
        return self._round_at(self.work.length_inv_A).astype(np.float32)

    def radial_mean(self, length_inv_A: NDArray[Any]) -> NDArray[np.float64]:
        """The radial mean of the intensity, dark rings and all: models are relative to an envelope."""
        return self.profile(length_inv_A) * self._mean_over_envelope(length_inv_A)

    def _round_at(self, length_inv_A: NDArray[np.float64]) -> Array:
        return self.xp.asarray(np.maximum(self._mean_over_envelope(length_inv_A), _LEAST_ROUNDNESS))

    def _mean_over_envelope(self, length_inv_A: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._mean_of_frames(length_inv_A) / self._first_envelope(length_inv_A)

    # Stages and states ------------------------------------------------------------------------------------

    def begin_start(self, start: int) -> None:
        if start == 0:
            self._mean_of_frames = self.profile
            self.profile = self._first_envelope = envelope_of(self.profile, self.diameter_A)
        super().begin_start(start)

    def enter(self, stage: int, *, is_new: bool = True) -> None:
        super().enter(stage, is_new=is_new)
        work = self.work
        self._grid = RelativeGrid(
            work.edge_voxels, work.stage.voxel_inv_A, self.diameter_A, self.device
        )  # fmt: skip
        length = distances(centred_axis(work.edge_voxels, work.stage.voxel_inv_A))
        self._roundness = self._round_at(length)
        self._phasings = {}

    def take_models(self, found: Compressed) -> None:
        """Go on with new models; if their number has changed, phasing begins anew."""
        if self.models is not None and found.models.shape[1] != self.models.shape[1]:
            self._phasings = {}
        super().take_models(found)

    def densities(self) -> list[Volume]:
        """The density of each model from the loop, in arbitrary units; an empty list before it phases."""
        found = []
        for model in range(self.n_models):
            halves = [self._phasings[key] for key in sorted(self._phasings) if key[1] == model]
            density = loop_density(halves) if halves else None
            if density is None:
                return []
            found.append(density)
        return found

    def _phasing(self, half: int, model: int) -> LoopPhasing:
        if (half, model) not in self._phasings:
            work, symmetry = self.work, self.settings.given_group.name
            self._phasings[half, model] = LoopPhasing(
                self._grid,
                self.profile,
                (float(work.length_inv_A.min()), work.stage.merged_inv_A),
                PhaseSettings(diameter_A=self.diameter_A, symmetry=symmetry, background=False),
                _seed_of(self.seed, half, model),
            )
        return self._phasings[half, model]

    def learnt(self) -> dict[str, Any]:
        densities = {
            f"phasing/{half}/{model}/{name}": value
            for (half, model), phasing in self._phasings.items()
            for name, value in phasing.arrays().items()
        }
        return {**super().learnt(), **densities}

    def take_learnt(self, learnt: Mapping[str, Any]) -> None:
        super().take_learnt(learnt)
        found: dict[tuple[int, int], dict[str, Any]] = {}
        for path, value in learnt.items():
            if path.startswith("phasing/"):
                _, half, model, name = path.split("/")
                found.setdefault((int(half), int(model)), {})[name] = value
        self._phasings = {}
        for key, arrays in found.items():
            self._phasing(*key).restore(arrays)


def _seed_of(seed: int, half: int, model: int) -> int:
    """A different seed for each half: what the data leave open must not be the same in both."""
    return int(np.random.SeedSequence(seed, spawn_key=(3, half, model)).generate_state(1, np.uint32)[0])
