"""EMC: expand the intensity into slices, expect where frames came from, maximise and compress, repeat.

One iteration of :class:`Emc` is Algorithm 1 of Ekeberg, Engblom and Liu, with four additions.  Frames are
oriented by the model of the half they do not belong to, so that no frame is drawn to its own noise.  The
model is relative to its radial mean, so that interpolation is accurate near the bright centre.  Resolution
and orientations grow together.  The temperature follows the spread of the posteriors, never sharper than
the grid can hold.
"""

import time
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, to_numpy
from orienteer.compute.progress import steps
from orienteer.likelihood.base import Likelihood
from orienteer.reconstruction.closing import refine_all
from orienteer.reconstruction.compression import Compressed, compress
from orienteer.reconstruction.course import Course, Progress, Turn, chosen_start, first_edge_shell
from orienteer.reconstruction.expectation import Deposit, Expander
from orienteer.reconstruction.first_estimates import bounded_weights
from orienteer.reconstruction.frame_table import FrameTable
from orienteer.reconstruction.nuisances import take_off_background, update_nuisances
from orienteer.reconstruction.number_of_states import Growth, ask_sentinels
from orienteer.reconstruction.preparation import Preparation
from orienteer.reconstruction.radial_profile import RadialProfile
from orienteer.reconstruction.relative_intensity import n_shells_of, random_start, resized
from orienteer.reconstruction.results import agreement_A, intensity_volumes, radial_summary
from orienteer.reconstruction.search import N_SAMPLE, choose_search
from orienteer.reconstruction.sentinels import Watch, is_watched, watch_sentinels
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.splitting import drop_state, split_state
from orienteer.reconstruction.state_posterior import StatePosterior
from orienteer.reconstruction.state_summary import occupancy, state_summaries
from orienteer.reconstruction.step import Step
from orienteer.reconstruction.symmetry import symmetric_start
from orienteer.reconstruction.temperature import Annealing
from orienteer.reconstruction.time_left import seconds_left
from orienteer.reconstruction.workspace import Workspace
from orienteer.slicing.sums import make_sums
from orienteer.source.base import Source
from orienteer.volume.volume import Volume

# Order of a point group from which on poses are few and wrong basins many, and the starts it then gets.
_HIGH_ORDER, _STARTS = 12, 4


class Emc(Preparation):
    """A blind reconstruction, iteration by iteration.

    ::

        emc = Emc(orienteer.open("hits.h5"), EmcSettings(symmetry="C4"), seed=1)
        while not emc.finished:
            print(emc.step().log_likelihood)
        intensity = emc.volumes()[0]

    ``Run`` does the same in a directory from which it can go on.

    source : patterns with a detector and a wavelength; columns that tell the truth are never read.
    seed : of every random draw.
    """

    def __init__(
        self,
        source: Source,
        settings: EmcSettings | None = None,
        *,
        seed: int = 0,
        device: DeviceName = "auto",
    ) -> None:
        super().__init__(source, settings or EmcSettings(), device)
        self.seed = seed
        n_starts = self.settings.starts or (_STARTS if self.group.order >= _HIGH_ORDER else 1)
        # Several models begin as one, which is split.
        self.n_models, self.growth = 1, Growth(self.settings.models)
        self.course = Course(
            len(self.stages), n_starts, self.settings.iterations, grows=self.settings.models != 1
        )
        self.table = FrameTable(self.frames.n_frames)
        self.candidates: list[dict[str, Any]] = []
        self.models: Array = None
        self._found: Compressed
        self._full: Array | None = None
        self.junk: Array | None = None
        self.work: Workspace
        self.annealing: Annealing
        self.watch: Watch | None = None
        self._begin_start(0)

    # The loop ---------------------------------------------------------------------------------------------

    def step(self) -> Step:
        """One iteration of Algorithm 1; says what came of it and whether the run is over."""
        began = time.monotonic()
        work, course, table = self.work, self.course, self.table
        likelihood = self.noise.likelihood(work)
        beta = self.annealing.inverse_temperature(
            work, likelihood, self.models, self.fluence, table.states_per_frame
        )
        deposits, found = self.new_models(likelihood, beta)
        change = found.change_from(self.models)
        self.take_models(found)
        update_nuisances(self, deposits)
        merged = table.merged & ~self.sentinel
        if (merged & (self.first_weight > 0)).any():
            # What looks like something else has no say in how well the others fit.  What is left out later
            # has: likelihoods of the same frames can be compared, from step to step and start to start.
            merged &= self.first_weight > 0
        now = self._progress(work, float(table.log_likelihood[merged].mean()), change)
        stage, start = course.stage, course.start
        turn = course.judge(now)
        if is_watched(course, turn):
            self.watch = watch_sentinels(self, likelihood, beta)
            if self.watch is not None and (self.watch.is_no_better if turn == "end" else self.watch.is_worse):
                turn = course.give_up(turn)
        watch = self.watch
        if turn == "end" and not course.after_limit and self.settings.refine:
            refine_all(self, likelihood)
            now = self._progress(work, float(table.log_likelihood[merged].mean()), change)
        radial = radial_summary(
            self.half_correlation, self.profile, work.stage.voxel_inv_A, work.stage.merged_inv_A
        )
        seconds = time.monotonic() - began
        left = seconds_left(seconds, course, self.annealing, self.stages, self.pixels, self.group.order)
        note = ""
        if (course.after_limit or turn) == "best start":
            nats = [each["log_likelihood"] for each in self.candidates] + [course.last_log_likelihood]
            note = chosen_start(nats)
        elif (course.after_limit or turn) == "judge states":
            asked = ask_sentinels(self) if self.settings.models == "auto" else None
            note = self.growth.judge(asked, occupancy(self))
        states = state_summaries(self)
        perplexity = float(np.exp(np.log(table.perplexity[merged]).mean()))
        self._turn(turn)
        return Step(
            iteration=course.iteration,
            log_likelihood=now.log_likelihood,
            change=change,
            inverse_temperature=min(beta, 1.0),
            perplexity=perplexity,
            grid_level=work.stage.level,
            n_rotations=work.n_poses,
            resolution_A=now.resolution_A,
            sentinel_agreement_deg=None if watch is None else watch.agreement_deg,
            sentinel_gain_nats=None if watch is None else watch.gain_nats,
            half_correlation=now.agreement,
            seconds=seconds,
            seconds_left=left,
            photons_merged=float(self.frames.photons[merged].sum()),
            stage=stage + 1,
            n_stages=course.n_stages,
            start=start + 1,
            finished=course.finished,
            reason=course.reason,
            note=note,
            states=states,
            radial=radial,
            agrees_to_A=agreement_A(radial) if self.n_halves == 2 and not course.found_nothing else None,
        )

    def new_models(self, likelihood: Likelihood, beta: float) -> tuple[list[Deposit], Compressed]:
        """What the frames of each half leave behind, and the models that it makes."""
        deposits = [self.orient_and_merge(half, likelihood, beta) for half in range(self.n_halves)]
        return deposits, self.solve(deposits)

    def solve(self, deposits: list[Deposit]) -> Compressed:
        """New models from what the frames of each half have left behind."""
        return compress(deposits, self.group)

    def orient_and_merge(
        self, half: int, likelihood: Likelihood, beta: float, weight: NDArray[np.float64] | None = None
    ) -> Deposit:
        """Orient the frames of a half by the model of the other, so that no frame meets its own noise.

        weight : (N,) how much each frame counts in the merge; None: as in the table.
        """
        work = self.work
        expander = Expander(self.models[self.n_halves - 1 - half], work.points, work.junk(self.junk))
        deposit = self.new_deposit(work, half)
        sample = work.sample(half, self.fluence, N_SAMPLE)
        if sample is None:
            return deposit
        search = choose_search(
            work, likelihood, expander, sample, beta, self.settings.kept_mass, self.table.states_per_frame
        )
        weight = bounded_weights(self.table.weight if weight is None else weight, self.fluence)
        batches = work.batches(half, self.fluence, weight)
        for batch in steps(batches, f"Iteration {self.iteration + 1}"):
            states = StatePosterior(self.n_models, len(batch), self.xp) if self.n_models > 1 else None
            posterior, expected = search.step(
                likelihood, expander, batch, deposit, work.pixel_weights, states
            )
            self.table.note(search.grid, likelihood, batch, posterior, states)
            self.table.note_merge(batch, expected)
        return deposit

    def new_deposit(self, work: Workspace, half: int) -> Deposit:
        """Room for what the frames of a half leave behind."""
        sums = [
            make_sums(work.edge_voxels, self.device, deterministic=self.settings.deterministic)
            for _ in range(self.n_models)
        ]
        junk = None
        if self.junk is not None:
            junk = self.xp.zeros((len(self.junk), len(work.places), 2), dtype=np.float64)
        row_mass = self.xp.zeros(len(work.rows), dtype=np.float64)
        return Deposit(sums, junk, row_mass, self.models[half])

    def round_slice(self) -> Array:
        """(P,) float32, every slice of a round particle: relative to the radial mean it is 1."""
        return self.xp.ones(len(self.work.places), dtype=np.float32)

    def take_models(self, found: Compressed) -> None:
        """Go on with new models."""
        self.models, self.half_correlation = found.models, found.half_correlation
        self._found, self._full = found, None

    @property
    def full(self) -> Array:
        """(M, n, n, n) the models of all frames together, made when they are asked for."""
        if self._full is None:
            self._full = self._found.full()
        return self._full

    @full.setter
    def full(self, full: Array) -> None:
        self._full = full

    def correlation_of(self, model: int) -> NDArray[np.float64]:
        """The correlation of the halves of one model that was taken last, (shells + 1,)."""
        return self._found.correlation_of(model)

    def brighten(self, factor: NDArray[np.float64] | float) -> None:
        """Multiply the models that were taken last, each by its factor (M,) or all by one."""
        self.take_models(self._found.brighter(factor))

    # Stages -----------------------------------------------------------------------------------------------

    def _progress(self, work: Workspace, log_likelihood: float, change: float) -> Progress:
        radius = int(work.stage.scored_inv_A / work.stage.voxel_inv_A)
        agreement = at_edge = None
        if self.n_halves == 2:
            agreement = float(self.half_correlation[2 : max(3, radius)].mean())
            following = self.stages[min(self.course.stage + 1, len(self.stages) - 1)]
            if following.scored_inv_A > work.stage.scored_inv_A:
                speckle = 1 / (self.diameter_A * work.stage.voxel_inv_A)
                first = first_edge_shell(radius, speckle, self.group.order)
                at_edge = float(self.half_correlation[first : max(3, radius)].mean())
        return Progress(
            log_likelihood, change, agreement, at_edge, 1 / work.stage.scored_inv_A,
            self.annealing.iterations_done,
        )  # fmt: skip

    def _turn(self, turn: Turn) -> None:
        """Make ready for what comes next."""
        if turn == "next stage":
            self._enter(self.course.stage + 1)
        elif turn in ("next start", "best start"):
            found = self._learnt()
            self.candidates.append({**found, "log_likelihood": self.course.last_log_likelihood})
            if turn == "next start":
                self._begin_start(self.course.start + 1)
                return
            best = int(np.argmax([candidate["log_likelihood"] for candidate in self.candidates]))
            self.course.start = best
            self.course.has_start = True
            self._take(self.candidates[best])
            self.candidates = []
            self._enter(0 if self.course.grows else 1, is_new=False)
        elif turn == "judge states":
            self._grow()

    def _grow(self) -> None:
        """Do what was decided about the number of models."""
        growth = self.growth
        if growth.verdict in ("split", "begin again"):
            if growth.verdict == "begin again":
                growth.n_tries += 1
                drop_state(self, int(occupancy(self).argmin()))
            else:
                growth.before = {**self._learnt(), **self.table.state(), "evidence": growth.evidence}
            split_state(self)
            self.course.enter(0)
            self.annealing = Annealing(len(self.work.poses), is_first=False, after_split=True)
            return
        if growth.verdict == "take back":
            self._take(growth.before)
            self.table.restore(growth.before)
        growth.before, self.course.grows = {}, False
        self._enter(1)

    def _begin_start(self, start: int) -> None:
        self.course.start, self.models = start, None
        self.table.weight = self.first_weight.copy()
        self.fluence = self.first_fluence()
        self._enter(0)
        n = self.work.edge_voxels
        speckle = 1 / (self.diameter_A * self.work.stage.voxel_inv_A)
        models = [random_start(n, _seed(self.seed, start, m), speckle) for m in range(self.n_models)]
        # Frames correct a model; what they say is made symmetric, and so must be what they begin with.
        first = self.xp.stack([symmetric_start(self.xp.asarray(model), self.group) for model in models])
        self.models = self.xp.stack([first] * self.n_halves)
        self.full = first
        self.junk = None
        if self.settings.junk_classes:
            self.junk = self.noise.first_junk(len(self.pixels), self.seed, self.xp)
        self.noise.forget()
        self.half_correlation = np.ones(n_shells_of(first[0]))

    def _enter(self, stage: int, *, is_new: bool = True) -> None:
        if stage > 0 and self.models is not None and self.settings.background == "estimate":
            take_off_background(self)
        zoom = 1.0
        if self.models is not None:
            zoom = self.work.stage.voxel_inv_A / self.stages[stage].voxel_inv_A
            self.noise.rescale_shells(zoom)
        self.course.enter(stage)
        self.work = Workspace(self, self.stages[stage])
        self.annealing = Annealing(len(self.work.poses), is_first=is_new and stage == 0)
        self.table.forget_merge()
        if self.models is not None:
            n, xp = self.work.edge_voxels, self.xp
            self.models = xp.stack([xp.stack([resized(m, n, zoom) for m in half]) for half in self.models])
            self.full = xp.stack([resized(m, n, zoom) for m in self.full])

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
        """Why it is over, in one sentence."""
        return self.course.reason

    @property
    def at_limit(self) -> bool:
        """Whether it is over because of the limit of iterations, and a higher one would let it go on."""
        return self.course.after_limit != ""

    @property
    def best_model(self) -> NDArray[np.int64]:
        """The model of every frame's likeliest pose, (N,); -1: junk."""
        return self.table.shown

    # Results ----------------------------------------------------------------------------------------------

    def volumes(self) -> list[Volume]:
        """The intensity of each model, in photons per pixel of mean correction at mean fluence."""
        stage = self.work.stage
        return intensity_volumes(self.full, self.profile, stage.voxel_inv_A, stage.merged_inv_A)

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
            **self._learnt(),
            **candidates,
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
        }

    def _learnt(self) -> dict[str, Any]:
        """What the frames have taught so far: models and their agreement, junk, fluences, noise."""
        return {
            "models": to_numpy(self.models),
            "full": to_numpy(self.full),
            "junk": None if self.junk is None else to_numpy(self.junk),
            "fluence": self.fluence,
            "estimates_fluence": self.estimates_fluence,
            "weight": self.table.weight,
            "half_correlation": self.half_correlation,
            **self.noise.state(),
        }

    def _take(self, learnt: Mapping[str, Any]) -> None:
        xp = self.xp
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

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of the same run, bit for bit where the plan is the same; else it is told."""
        if (begun := str(state["plan"])) != self.plan.order_of_sums:
            self.remarks.append(
                f"This run was last planned with {begun}, and goes on with {self.plan.order_of_sums}: "
                "results are the same up to rounding, but not to the bit."
            )
        starts = [f"candidates/{i}/" for i in range(int(state["n_candidates"]))]
        self.candidates = [
            {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}
            for start in starts
        ]
        # Frames are sorted by the fluences that held when the stage began.
        self.fluence = np.array(state["grouping_fluence"], dtype=np.float64)
        self.profile = RadialProfile(self.profile.radius_inv_A, np.array(state["profile"], dtype=np.float64))
        self.noise.restore(state)
        self.models, self.n_models = None, len(state["full"])
        self._enter(int(state["course/stage"]))
        self._take(state)
        self.watch = None
        if state["watch"] is not None:
            agreement_deg, gain_nats, error_nats, n_sentinels = map(float, state["watch"])
            self.watch = Watch(agreement_deg, gain_nats, error_nats, int(n_sentinels))
        self.work.rows.log_prior = self.xp.asarray(state["log_prior"], dtype=np.float32)
        for part in (self.course, self.table, self.annealing, self.growth):
            part.restore(state)
        self._turn(self.course.reopen())


def _seed(seed: int, start: int, model: int) -> int:
    state = np.random.SeedSequence(seed, spawn_key=(start, model)).generate_state(1, np.uint64)
    return int(state[0])
