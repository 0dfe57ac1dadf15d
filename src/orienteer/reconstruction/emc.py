"""EMC: expand the intensity into slices, expect where frames came from, maximise and compress, repeat.

One iteration of :class:`Emc` is Algorithm 1 of Ekeberg, Engblom and Liu, with four additions.  Frames are
oriented by the model of the half they do not belong to, so that no frame is drawn to its own noise.  The
model is relative to its radial mean, so that interpolation is accurate near the bright centre.  Resolution
and orientations grow together.  The temperature follows the spread of the posteriors, never sharper than
the grid can hold.
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.shells import shell_index
from orienteer.compute.arrays import Array, DeviceName, choose_device, namespace_of_device, to_numpy
from orienteer.compute.progress import steps
from orienteer.likelihood.base import Likelihood
from orienteer.likelihood.fluence import bound_fluence, normalise_fluence, update_fluence
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.point_group import as_point_group
from orienteer.orientation.six_hundred_cell import covering_bound_deg
from orienteer.posterior.scores import ScoreStore
from orienteer.posterior.tempering import inverse_temperatures
from orienteer.reconstruction.compression import compress
from orienteer.reconstruction.course import Course, Progress, Turn
from orienteer.reconstruction.expectation import Deposit, Expander, expect, merge
from orienteer.reconstruction.frame_fit import fit_frames, particle_probability
from orienteer.reconstruction.frame_store import FrameStore
from orienteer.reconstruction.frame_table import FrameTable
from orienteer.reconstruction.halves import half_of_events, refuse_empty_parts, sentinels_of_events
from orienteer.reconstruction.ladder import ladder
from orienteer.reconstruction.mean_pose import mean_poses
from orienteer.reconstruction.noise_model import NoiseModel
from orienteer.reconstruction.pixels import pixel_table
from orienteer.reconstruction.plan import Plan, make_plan
from orienteer.reconstruction.radial_profile import RadialProfile, estimate_profile
from orienteer.reconstruction.relative_intensity import n_shells_of, random_start, resized
from orienteer.reconstruction.results import intensity_volumes, radial_summary
from orienteer.reconstruction.screening import ring_photons, unlike_others
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.speckle import choose_diameter
from orienteer.reconstruction.step import Step
from orienteer.reconstruction.temperature import Annealing
from orienteer.reconstruction.time_left import seconds_left
from orienteer.reconstruction.unknown_background import even_share, uneven_background
from orienteer.reconstruction.workspace import Workspace
from orienteer.slicing.sums import make_sums
from orienteer.source.base import Source
from orienteer.volume.volume import Volume

_SCREENED_NATS = 3.0
# Correlation of the halves from which on a shell shows speckles.
_KNOWN = 0.5
# Patterns less deep than this, in speckles, look the same after half a turn about the beam.
_FLAT_SPECKLES = 0.5


class Emc:
    """A blind reconstruction, iteration by iteration.

    ::

        emc = Emc(orienteer.open("hits.h5"), EmcSettings(symmetry="C4"), seed=1)
        while not emc.finished:
            print(emc.step().log_likelihood)
        intensity = emc.volumes()[0]

    ``Run`` does the same in a directory from which it can go on.

    source : patterns with a detector and a wavelength; columns that tell the truth are never read.
    seed : of every random draw.
    plan, remarks : what the run will need, and what is doubtful about the data.
    """

    def __init__(
        self,
        source: Source,
        settings: EmcSettings | None = None,
        *,
        seed: int = 0,
        device: DeviceName = "auto",
    ) -> None:
        self.settings = settings or EmcSettings()
        self.seed, self.device = seed, choose_device(device)
        self.xp: Any = namespace_of_device(self.device)
        self.group = as_point_group(self.settings.symmetry)
        self.pixels = pixel_table(source)
        self.frames = FrameStore(source, self.pixels)
        self.remarks = [*self.pixels.remarks, *self.frames.remarks]
        N = self.frames.n_frames
        self.edge_inv_A = self.pixels.edge_inv_A(self.settings.resolution_A)
        event_id = self.frames.event_id
        self.half = half_of_events(event_id) if self.settings.halves else np.zeros(N, dtype=np.int64)
        self.sentinel = sentinels_of_events(event_id, self.settings.sentinels)
        self.n_halves = 2 if self.settings.halves else 1
        refuse_empty_parts(self.half, self.sentinel, self.n_halves)
        self.noise = NoiseModel(self.settings, self.pixels, N)
        if self.settings.background == "estimate":
            self.noise.background = uneven_background(
                self.pixels.q_inv_A, self.pixels.correction, self.frames.pixel_photons,
                self.frames.pixel_frames,
            )  # fmt: skip
        self._first_weight = self._screen()
        self.diameter_A, remark = choose_diameter(
            self.frames, self.settings.diameter_A, self.noise.background, self._first_weight > 0
        )
        self.remarks += [remark] if remark else []
        self.voxel_inv_A = 1 / (self.settings.oversampling * self.diameter_A)
        self.fluence = self._first_fluence()
        exposure = self.pixels.correction * self.frames.pixel_frames
        self.profile = estimate_profile(
            self.pixels.length_inv_A,
            self.noise.without_background(self.frames.pixel_photons, self.frames.pixel_frames),
            exposure, self.voxel_inv_A,
        )  # fmt: skip
        self.stages = ladder(self.edge_inv_A, self.diameter_A, self.settings.level)
        self.plan = self._plan()
        self.course = Course(len(self.stages), self.settings.starts, self.settings.iterations)
        self.table = FrameTable(N)
        self.candidates: list[dict[str, Any]] = []
        self.models: Array = None
        self.junk: Array | None = None
        self._begin_start(0)

    # The loop ---------------------------------------------------------------------------------------------

    def step(self) -> Step:
        """One iteration of Algorithm 1; says what came of it and whether the run is over."""
        began = time.monotonic()
        work, course, table = self.work, self.course, self.table
        likelihood = self.noise.likelihood(work)
        beta = self.annealing.inverse_temperature(work, likelihood, self.models, self.fluence)
        deposits = [self._orient_and_merge(half, likelihood, beta) for half in range(self.n_halves)]
        found = compress(deposits, self.group)
        change = found.change_from(self.models)
        self.models, self.full, self.half_correlation = found.models, found.full, found.half_correlation
        self._update_nuisances(work, deposits)
        sentinels_deg = self._watch(work, likelihood, beta)
        merged = table.merged & ~self.sentinel
        now = self._progress(work, float(table.log_likelihood[merged].mean()))
        stage, start = course.stage, course.start
        radial = radial_summary(
            self.half_correlation, self.profile, self.voxel_inv_A, work.stage.merged_inv_A
        )
        turn = course.judge(now)
        seconds = time.monotonic() - began
        left = seconds_left(seconds, course, self.annealing, self.stages, self.pixels, self.group.order)
        self._turn(turn)
        return Step(
            iteration=course.iteration,
            log_likelihood=now.log_likelihood,
            change=change,
            inverse_temperature=min(beta, 1.0),
            perplexity=float(np.exp(np.log(table.perplexity[merged]).mean())),
            grid_level=work.stage.level,
            n_rotations=len(work.poses),
            resolution_A=now.resolution_A,
            sentinel_agreement_deg=sentinels_deg,
            half_correlation=now.agreement,
            seconds=seconds,
            seconds_left=left,
            photons_merged=float(self.frames.photons[merged].sum()),
            stage=stage + 1,
            n_stages=course.n_stages,
            start=start + 1,
            finished=course.finished,
            reason=course.reason,
            radial=radial,
        )

    def _orient_and_merge(self, half: int, likelihood: Likelihood, beta: float) -> Deposit:
        """Orient the frames of a half by the model of the other, so that no frame meets its own noise."""
        work = self.work
        expander = Expander(self.models[self.n_halves - 1 - half], work.points, work.junk(self.junk))
        deposit = self._new_deposit(work)
        batches = work.batches(half, self.fluence, self.table.weight)
        for batch in steps(batches, f"Iteration {self.iteration + 1}"):
            store = ScoreStore(len(work.rows), len(batch), self.device, self.settings.kept_mass)
            own_beta = inverse_temperatures(beta, batch.fluence)
            posterior = expect(likelihood, expander, work.rows, batch, own_beta, store)
            expected = merge(likelihood, expander, work.rows, batch, store, deposit, work.pixel_weights)
            self.table.note(work, likelihood, batch, posterior)
            self.table.note_merge(batch, expected)
        return deposit

    def _update_nuisances(self, work: Workspace, deposits: list[Deposit]) -> None:
        table = self.table
        # A blurred model explains no frame better than anything would: they are judged from the second stage.
        judges = self.settings.reject_junk and self.course.stage > 0
        exact = self.estimates_fluence and (self.noise.background is not None or self.frames.has_missing)
        if judges or exact:
            dispersion = self.noise.dispersion_of_pixels(work)[: work.n_scored]
            fit = fit_frames(
                work, self.models, table.quaternion, table.model, self.fluence, dispersion, fits_fluence=exact
            )
        if judges:
            n_rows = len(work.poses) * self.settings.models
            # Of all poses one was chosen; and what screening left out needs a better reason to be taken in.
            odds = fit.log_odds - np.log(n_rows / np.clip(table.perplexity, 1, n_rows))
            odds = np.minimum(odds, fit.log_deviation_odds) - _SCREENED_NATS * (1 - self._first_weight)
            table.weight = particle_probability(odds, table.merged & ~self.sentinel)
        if self.estimates_fluence:
            photons = work.scored_photons(self.frames)
            seen = table.merged & (table.expected > 0)
            # Sentinels are not merged: what a typical frame expects must do for them.
            typical = np.median(table.expected[seen]) if seen.any() else 0.0
            expected = np.where(seen, table.expected, typical)
            fluence = fit.fluence if exact else update_fluence(photons, expected)
            fluence = bound_fluence(fluence, photons, self.noise.background_photons(work))
            fluence, mean = normalise_fluence(fluence, (seen & (table.shown >= 0)).astype(np.float64))
            self.fluence = fluence
            # Expected photons are those of the models before, of which only the ratios between frames count:
            # the new models already fit fluences of mean 1.  A fit to the new models has their scale.
            if exact:
                self.models = self.models * self.xp.float32(mean)
                self.full = self.full * self.xp.float32(mean)
        self.noise.update(work, self.models, table.quaternion, table.shown, self.fluence, self.half)
        mass = to_numpy(sum(deposit.row_mass for deposit in deposits))
        work.update_prior(mass)
        if self.junk is not None:
            self.junk = self.noise.solve_junk(deposits, work, self.junk)

    def _watch(self, work: Workspace, likelihood: Likelihood, beta: float) -> float | None:
        """Median angle between the poses that the halves give to the sentinels, which neither has seen."""
        if self.n_halves < 2 or not self.sentinel.any():
            return None
        reach_deg = 2 * covering_bound_deg(work.stage.level)
        poses = []
        for models in self.models:
            expander = Expander(models, work.points, work.junk(self.junk))
            found = []
            for batch in work.batches("sentinel", self.fluence):
                store = ScoreStore(len(work.rows), len(batch), self.device, self.settings.kept_mass)
                own_beta = inverse_temperatures(beta, batch.fluence)
                posterior = expect(likelihood, expander, work.rows, batch, own_beta, store)
                self.table.note(work, likelihood, batch, posterior)
                best = self.table.quaternion[batch.places]
                found.append(mean_poses(store.kept(), work.quaternions, best, self.group, reach_deg))
            poses.append(np.concatenate(found))
        # The two ends of a pattern turned by 180 degrees differ by q_z, twice lambda q^2 / 2.
        depth_inv_A = self.pixels.wavelength_A * work.stage.scored_inv_A**2
        is_flat = depth_inv_A * self.diameter_A < _FLAT_SPECKLES
        apart = angular_distance_deg(poses[0], poses[1], self.group, flat_ewald=is_flat)
        return float(np.median(apart))

    # Stages -----------------------------------------------------------------------------------------------

    def _progress(self, work: Workspace, log_likelihood: float) -> Progress:
        radius = int(work.stage.scored_inv_A / self.voxel_inv_A)
        agreement = at_edge = None
        if self.n_halves == 2:
            agreement = float(self.half_correlation[2 : max(3, radius)].mean())
            at_edge = float(self.half_correlation[int(0.9 * radius) : max(3, radius)].mean())
        return Progress(
            log_likelihood, agreement, at_edge, 1 / work.stage.scored_inv_A, self.annealing.iterations_done
        )

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
            self._take(self.candidates[best])
            self.candidates = []
            self._enter(1)

    def _begin_start(self, start: int) -> None:
        self.course.start, self.models = start, None
        self.table.weight = self._first_weight.copy()
        self.fluence = self._first_fluence()
        self._enter(0)
        n = self.work.edge_voxels
        speckle = 1 / (self.diameter_A * self.voxel_inv_A)
        models = [random_start(n, _seed(self.seed, start, m), speckle) for m in range(self.settings.models)]
        first = self.xp.asarray(np.stack(models))
        self.models = self.xp.stack([first] * self.n_halves)
        self.full = first
        self.junk = None
        if self.settings.junk_classes:
            self.junk = self.noise.first_junk(len(self.pixels), self.seed, self.xp)
        self.noise.forget()
        self.half_correlation = np.ones(n_shells_of(first[0]))

    def _enter(self, stage: int) -> None:
        if stage > 0 and self.models is not None and self.settings.background == "estimate":
            self._take_off_background()
        self.course.enter(stage)
        self.work = Workspace(self, self.stages[stage])
        self.annealing = Annealing(len(self.work.poses), is_first=stage == 0)
        self.table.forget_merge()
        if self.models is not None:
            n, xp = self.work.edge_voxels, self.xp
            self.models = xp.stack([xp.stack([resized(m, n) for m in half]) for half in self.models])
            self.full = xp.stack([resized(m, n) for m in self.full])

    def _take_off_background(self) -> None:
        """What the model shows everywhere on a shell, and around it, becomes background."""
        xp, noise = self.xp, self.noise
        n = len(self.half_correlation)
        radius = np.arange(n) * self.voxel_inv_A
        n_known = int(np.argmax(np.append(self.half_correlation[2:], 0.0) < _KNOWN)) + 2
        model = to_numpy(self.models.mean(axis=(0, 1)))
        share = even_share(model, self.profile(radius), 1 / (self.diameter_A * self.voxel_inv_A), n_known)
        of_pixel = np.interp(self.pixels.length_inv_A, radius, share)
        even = of_pixel * self.profile(self.pixels.length_inv_A) * self.pixels.correction
        noise.background = even if noise.background is None else noise.background + even
        self.profile = self.profile.scaled(1 - np.interp(self.profile.radius_inv_A, radius, share))
        cube = share[np.clip(shell_index(len(model)), 0, n - 1)]
        rest = xp.asarray(cube.astype(np.float32))
        self.models, self.full = (
            xp.maximum(x - rest, xp.float32(0)) / (1 - rest) for x in (self.models, self.full)
        )

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
    def best_model(self) -> NDArray[np.int64]:
        """The model of every frame's likeliest pose, (N,); -1: junk."""
        return self.table.shown

    # Results ----------------------------------------------------------------------------------------------

    def volumes(self) -> list[Volume]:
        """The intensity of each model, in photons per pixel of mean correction at mean fluence."""
        return intensity_volumes(self.full, self.profile, self.voxel_inv_A, self.work.stage.merged_inv_A)

    def orientations(self) -> dict[str, NDArray[Any]]:
        """One row per frame."""
        table = self.table
        return {
            "event_id": self.frames.event_id,
            "quaternion": table.quaternion,
            "confidence": table.confidence,
            "fluence": self.fluence,
            "model": table.shown,
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
            "half_correlation": self.half_correlation,
            "profile": self.profile.log_mean,
            "grouping_fluence": self.work.grouping_fluence,
            "log_prior": to_numpy(self.work.rows.log_prior),
            **self.course.state(),
            **self.table.state(),
            **self.annealing.state(),
        }

    def _learnt(self) -> dict[str, Any]:
        """What the frames have taught so far: models, junk, fluences, noise."""
        return {
            "models": to_numpy(self.models),
            "full": to_numpy(self.full),
            "junk": None if self.junk is None else to_numpy(self.junk),
            "fluence": self.fluence,
            **self.noise.state(),
        }

    def _take(self, learnt: Mapping[str, Any]) -> None:
        xp = self.xp
        self.models, self.full = (xp.asarray(learnt[name], dtype=np.float32) for name in ("models", "full"))
        self.junk = None if learnt["junk"] is None else xp.asarray(learnt["junk"], dtype=np.float32)
        self.fluence = np.array(learnt["fluence"], dtype=np.float64)
        self.noise.restore(learnt)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of the same run, bit for bit."""
        starts = [f"candidates/{i}/" for i in range(int(state["n_candidates"]))]
        self.candidates = [
            {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}
            for start in starts
        ]
        # Frames are sorted by the fluences that held when the stage began.
        self.fluence = np.array(state["grouping_fluence"], dtype=np.float64)
        self.profile = RadialProfile(self.profile.radius_inv_A, np.array(state["profile"], dtype=np.float64))
        self.noise.restore(state)
        self.models = None
        self._enter(int(state["course/stage"]))
        self._take(state)
        self.half_correlation = np.array(state["half_correlation"], dtype=np.float64)
        self.work.rows.log_prior = self.xp.asarray(state["log_prior"], dtype=np.float32)
        for part in (self.course, self.table, self.annealing):
            part.restore(state)

    # Set-up -----------------------------------------------------------------------------------------------

    def _first_fluence(self) -> NDArray[np.float64]:
        photons, background = self.frames.photons, self.noise.background
        behind = 0.0 if background is None else float(background.sum())
        # Without a particle there is still noise: less than that is nobody's signal.
        mean = max(photons.mean() - behind, np.sqrt(photons.mean()))
        excess = max(photons.var() - photons.mean(), 0.0) / mean**2
        choice = self.settings.fluence
        self.estimates_fluence = choice == "estimate" or (choice == "auto" and excess > 0.15**2)
        if not self.estimates_fluence:
            return np.ones(len(photons))
        signal = np.maximum(photons - behind, np.sqrt(np.maximum(photons, 1.0)) if behind else 1e-3 * mean)
        # As the profile is: together they give the photons of every frame.
        return np.asarray(signal / signal.mean())

    def _screen(self) -> NDArray[np.float64]:
        """1 for frames that may be of one particle, by their radial profile, and 0 for others."""
        if not self.settings.reject_junk:
            return np.ones(self.frames.n_frames)
        background = self.noise.background
        photons = ring_photons(self.frames, background)
        behind = 0.0 if background is None else background.sum() / photons.shape[1]
        return np.where(unlike_others(photons, photons + behind), 0.0, 1.0)

    def _plan(self) -> Plan:
        from orienteer.orientation.grids import make_grid

        level = max(stage.level for stage in self.stages)
        n_poses = len(make_grid("600-cell", level, self.settings.symmetry))
        n_rows = n_poses * self.settings.models + self.settings.junk_classes
        edge = 2 * (int(np.ceil(self.edge_inv_A / self.voxel_inv_A)) + 1) + 1
        return make_plan(
            self.device, self.frames.n_frames, len(self.pixels), n_rows, edge, self.frames.lit_share,
            self.frames.largest, self.frames.is_counts, self.settings.memory_GiB, self.frames.is_in_memory,
        )  # fmt: skip

    def _new_deposit(self, work: Workspace) -> Deposit:
        sums = [
            make_sums(work.edge_voxels, self.device, deterministic=self.settings.deterministic)
            for _ in range(self.settings.models)
        ]
        junk = None
        if self.junk is not None:
            junk = self.xp.zeros((len(self.junk), len(work.places), 2), dtype=np.float64)
        return Deposit(sums, junk, self.xp.zeros(len(work.rows), dtype=np.float64))


def _seed(seed: int, start: int, model: int) -> int:
    state = np.random.SeedSequence(seed, spawn_key=(start, model)).generate_state(1, np.uint64)
    return int(state[0])
