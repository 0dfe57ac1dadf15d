"""EMC: expand the model into slices, compute the probability of each pose, maximise and compress, repeat.

One iteration of :class:`Emc` is Algorithm 1 of Ekeberg, Engblom and Liu (arXiv:1409.4256), with four
additions.  Each half of the frames is oriented by the model of the other half, so that no frame is compared
with its own noise.  The model is stored relative to its radial mean, so that interpolation is accurate near
the bright centre.  Resolution and the grid of orientations become finer together, in stages.  The temperature
is chosen so that the perplexity of the frames follows a schedule and never falls below what the grid can
represent.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array
from orienteer.compute.progress import steps
from orienteer.compute.stage_log import awaited, logged
from orienteer.likelihood.base import Likelihood
from orienteer.reconstruction.carried import Carried
from orienteer.reconstruction.course.course import Progress, Turn, first_edge_shell
from orienteer.reconstruction.course.turns import decide, next_turn, take_turn
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.model.compression import Compressed, compress
from orienteer.reconstruction.model.nearness import Halves, gain_in_nearness
from orienteer.reconstruction.model.relative_intensity import prior_photons
from orienteer.reconstruction.nuisances.first_estimates import bounded_weights, weights_in_temperature
from orienteer.reconstruction.nuisances.updating import update_nuisances
from orienteer.reconstruction.orienting.closing import refine_all
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.known_poses import KnownPoses
from orienteer.reconstruction.orienting.search import N_SAMPLE, Grid, Search, choose_search
from orienteer.reconstruction.states.posterior import StatePosterior
from orienteer.reconstruction.step import Step
from orienteer.reconstruction.stopwatch import batch_stage
from orienteer.reconstruction.telling import told
from orienteer.reconstruction.workspace import Workspace
from orienteer.slicing.sums import make_sums

# Momentum begins after this many iterations since the end of annealing, if the temperature is 1.
_STEPS_FROM_START = 5


class Emc(Carried):
    """A reconstruction from frames in unknown orientations, one iteration at a time.

    ::

        emc = Emc(orienteer.open("hits.h5"), EmcSettings(symmetry="C4"), seed=1)
        while not emc.finished:
            print(emc.step().log_likelihood)
        intensity = emc.volumes()[0]

    ``Run`` does the same and keeps its state in a directory, from which it can resume.

    source : frames with a detector and a wavelength.  Columns that hold the truth of a simulation are never
        read, unless a setting names one (``known_orientations_column``).
    seed : determines every random draw.
    mesh : ranks that share the work; all of them take the same steps.  By default there is one rank.

    gathers_momentum : whether momentum is added to the steps of faint frames.
    """

    gathers_momentum = True

    def step(self) -> Step:
        """Do one iteration of Algorithm 1; returns its numbers, and whether the run is over."""
        began, sent_before = time.monotonic(), self.mesh.sent_bytes
        work, course, table = self.work, self.course, self.table
        likelihood = self.noise.likelihood(work)
        with logged("temperature"):
            weight = weights_in_temperature(table.weight, self.fluence)
            self.annealing.inverse_temperature(
                work, likelihood, self.models, self.fluence, weight, table.states_per_frame
            )
            # Ranks may round differently, but must decide alike: the numbers of the first decide.
            self.annealing = self.mesh.all.bcast(self.annealing)
            beta = self.annealing.inverse
        deposits, found = self.new_models(likelihood, beta)
        change = found.change_from(self.models)
        self.take_models(found)
        with logged("nuisances"):
            update_nuisances(self, deposits)
            if course.stage == 0:  # frames still move from state to state
                self.learn_ratios()
        judging = self._judging
        now = self.mesh.all.bcast(self.progress(work, judging, change))
        if self.annealing.is_followed and now.agreement is not None:
            self.annealing.follow(now.agreement)
        turn, words = next_turn(self, now, likelihood, beta)
        if turn == "end" and not course.after_limit and self.settings.refine:
            with logged("refine"):
                refine_all(self, likelihood)
            now = self.progress(work, judging, change)
        step = told(self, work, judging, now, beta, began, sent_before)
        notes = decide(self, turn), words, self.take_turn(turn)
        return replace(step, note=" ".join(note for note in notes if note))

    @property
    def _judging(self) -> NDArray[np.bool_]:
        """(N,) the frames whose mean evidence judges the models.

        Frames that the first look took for something else do not count.  Frames that are rejected later do:
        evidences can only be compared, between steps and between starts, if they are of the same frames.
        """
        merged = self.table.merged & ~self.sentinel
        particles = merged & (self.first_weight > 0)
        return particles if particles.any() else merged

    def new_models(self, likelihood: Likelihood, beta: float) -> tuple[list[Deposit], Compressed]:
        """Orient and merge the frames of each half; returns the deposits, and the new models made of them."""
        deposits = self.oriented(range(self.n_halves), likelihood, beta)
        with logged("solve"):
            found = self.solve(deposits)
        # The first steps only lead away from the random start: momentum must not carry on their direction.
        has_left = self.annealing.is_untempered and self.annealing.iterations_done > _STEPS_FROM_START
        if self.gathers_momentum and has_left:
            return deposits, self.momentum.carry(self.models, found)
        self.momentum.forget()
        return deposits, found

    def solve(self, deposits: list[Deposit]) -> Compressed:
        """New models from the deposit of each half."""
        return compress(deposits, self.group, self.prior_photons)

    def are_nearer(self, found: Compressed) -> bool:
        """Whether the halves show that refined models are nearer to the truth than those from the grid."""
        gain, last_shell = 0.0, int(self.work.stage.scored_inv_A / self.work.stage.voxel_inv_A)
        for m, (_, exposure, _) in enumerate(found.together):
            old = Halves(self.models[:, m], self.correlation_of(m))
            new = Halves(found.models[:, m], found.correlation_of(m))
            # States are weighted by their photons.
            gain += gain_in_nearness(old, new, exposure, last_shell) * float(exposure.sum())
        return gain >= 0

    @property
    def prior_photons(self) -> float:
        """Photons of the radial mean that every voxel starts with, given how far frames are spread.

        Equivalent voxels get the same photons, so together they start with the share of one voxel.
        """
        return prior_photons(self._spread) / self.group.order

    @property
    def _spread(self) -> float:
        """Effective number of poses of a frame of the particle, per state and per equivalent pose.

        Frames that do not show the particle are left out: an empty shot is spread over all poses.
        """
        table = self.table
        merged = table.merged & ~self.sentinel
        shown = merged & (table.shown >= 0)
        perplexity = table.mean_perplexity(shown if shown.any() else merged)
        return perplexity / (table.states_per_frame * self.equivalents)

    def orient_and_merge(
        self, half: int, likelihood: Likelihood, beta: float, weight: NDArray[np.float64] | None = None
    ) -> Deposit:
        """Orient the frames of a half by the model of the other half, which does not contain their noise.

        weight : (N,) how much each frame counts in the merge; None: as in the table.
        """
        return self.oriented([half], likelihood, beta, weight)[0]

    def oriented(
        self, halves: Sequence[int], likelihood: Likelihood, beta: float,
        weight: NDArray[np.float64] | None = None,
    ) -> list[Deposit]:  # fmt: skip
        """Orient and merge several halves: at the same time, if different ranks have their frames."""
        # Taking samples is collective.  After it, ranks that orient different halves wait for each other only
        # when both halves have been oriented.
        says = weights_in_temperature(self.table.weight, self.fluence)
        samples = [self.work.sample(half, self.fluence, N_SAMPLE, says) for half in halves]
        states_per_frame = self.table.states_per_frame
        deposits = [self.new_deposit(self.work, half) for half in halves]
        for half, sample, deposit in zip(halves, samples, deposits, strict=True):
            if sample is not None and self.mesh.orients(half):
                expander = self.new_expander(half)
                search = self._search(likelihood, expander, sample, beta, states_per_frame)
                self._merge_half(half, likelihood, expander, search, deposit, weight)
        places = np.concatenate([self.work.frames_of(half) for half in halves])
        self.table.complete(self.mesh.all, self.frames.own_of(places))
        for deposit in deposits:
            deposit.join(self.mesh.all)
        return deposits

    def _merge_half(
        self, half: int, likelihood: Likelihood, expander: Expander, search: Search, deposit: Deposit,
        weight: NDArray[np.float64] | None,
    ) -> None:  # fmt: skip
        """Orient and merge the frames of a half that this rank has."""
        work = self.work
        weight = bounded_weights(self.table.weight if weight is None else weight, self.fluence)
        batches = work.batches(half, self.fluence, weight)
        for batch in awaited(steps(batches, f"Iteration {self.iteration + 1}")):
            with batch_stage("orient", batch.places, self.device == "cuda"):
                states = StatePosterior(self.n_models, len(batch), self.xp) if self.n_models > 1 else None
                posterior, expected = search.step(
                    likelihood, expander, batch, deposit, work.pixel_weights, states
                )
                beta_of_frames = search.inverse_temperatures(batch)
                self.table.note(search.grid, likelihood, batch, posterior, beta_of_frames, states)
                if self.known is not None:
                    self.table.keep_known(batch.places, self.known.quaternion)
                self.table.note_merge(batch, expected)

    def _search(
        self, likelihood: Likelihood, expander: Expander, sample: Batch, beta: float, states_per_frame: float
    ) -> Search:
        """The search that finds the poses of the frames; frames with a given pose are not searched for."""
        work, known = self.work, self.known
        search = None
        if known is None or not known.are_all:
            search = choose_search(
                work, likelihood, expander, sample, beta, self.settings.kept_mass, states_per_frame
            )
            if known is None:
                return search
        grid: Grid = work if search is None else search.grid
        return KnownPoses(search, grid, known.quaternion, self.plan.tile_rows, work.mesh.poses)

    def new_expander(self, half: int) -> Expander:
        """Makes the slices that the frames of a half are compared with, from the model of the other half."""
        return self.work.expander(self.models[self.n_halves - 1 - half], self.junk)

    def new_deposit(self, work: Workspace, half: int) -> Deposit:
        """An empty deposit for the frames of a half."""
        in_any_order = self.sums_in_any_order
        magnitudes = self._magnitudes(work, half) if in_any_order else None
        sums = [
            make_sums(work.edge_voxels, self.device, in_any_order, magnitudes) for _ in range(self.n_models)
        ]
        junk = None
        if self.junk is not None:
            junk = self.xp.zeros((len(self.junk), len(work.places), 2), dtype=np.float64)
        row_mass = self.xp.zeros(len(work.rows), dtype=np.float64)
        return Deposit(sums, junk, row_mass, self.models[half], work.ratios)

    def _magnitudes(self, work: Workspace, half: int) -> tuple[float, float]:
        """Upper limits of the photons and of the weights that all frames of a half can add to the sums.

        A frame counts with its fluence, or with 1 if that is larger.  The photons that the slices of the
        model predict are subtracted, so they enter the limit as well.
        """
        frames = np.maximum(self.fluence[work.frames_of(half)], 1.0).sum()
        weights = float(frames) * float(abs(work.pixel_weights).sum())
        if work.ratios is not None:
            weights *= float(work.ratios.max())
        return weights * (1 + float(abs(self.models[half]).max())), weights

    @property
    def sums_in_any_order(self) -> bool:
        """Whether sums must not depend, to the bit or nearly so, on the order in which slices are added."""
        return self.settings.deterministic

    def round_slice(self) -> Array:
        """(P,) float32, a slice of a round particle: relative to the radial mean it is 1 everywhere."""
        return self.xp.ones(len(self.work.places), dtype=np.float32)

    def progress(self, work: Workspace, judging: NDArray[np.bool_], change: float) -> Progress:
        """The numbers by which an iteration is judged.  judging : (N,) the frames whose evidence counts."""
        radius = int(work.stage.scored_inv_A / work.stage.voxel_inv_A)
        agreement = at_edge = None
        if self.n_halves == 2:
            agreement = float(self.half_correlation[2 : max(3, radius)].mean())
            following = self.stages[min(self.course.stage + 1, len(self.stages) - 1)]
            if following.scored_inv_A > work.stage.scored_inv_A:
                first = first_edge_shell(radius, self.speckle, self.group.order)
                at_edge = float(self.half_correlation[first : max(3, radius)].mean())
        return Progress(
            float(self.table.log_evidence[judging].mean()), change, agreement, at_edge,
            1 / work.stage.scored_inv_A, self.annealing.iterations_done, self._spread,
        )  # fmt: skip

    def take_turn(self, turn: Turn) -> str:
        """Prepare what comes next; returns a sentence for the user, or an empty one."""
        return take_turn(self, turn)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a state of the same run: to the bit if the plan is the same, else with a remark."""
        super().restore(state)
        if words := self.take_turn(self.course.reopen()):
            self.remarks.append(words)
