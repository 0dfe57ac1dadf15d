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

from orienteer.compute.arrays import (
    Array,
    DeviceName,
    array_namespace,
    choose_device,
    namespace_of_device,
    to_numpy,
)
from orienteer.compute.progress import steps
from orienteer.likelihood.fluence import bound_fluence, normalise_fluence, update_fluence
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.point_group import as_point_group
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.expectation import Batch, Deposit, Expander, expect, merge
from orienteer.reconstruction.frame_store import FrameStore
from orienteer.reconstruction.halves import half_of_events, sentinels_of_events
from orienteer.reconstruction.ladder import Stage, ladder
from orienteer.reconstruction.noise_model import NoiseModel
from orienteer.reconstruction.pixels import pixel_table
from orienteer.reconstruction.plan import Plan, make_plan
from orienteer.reconstruction.radial_profile import estimate_profile
from orienteer.reconstruction.relative_intensity import (
    both_friedel,
    half_correlation,
    random_start,
    resized,
    shell_sums,
    shrink,
    solve,
    wiener_gain,
)
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.speckle import estimate_diameter
from orienteer.reconstruction.step import Step
from orienteer.reconstruction.symmetry import symmetrise_sums
from orienteer.reconstruction.temperature import Annealing
from orienteer.reconstruction.workspace import Workspace
from orienteer.slicing.sums import make_sums
from orienteer.source.base import Source
from orienteer.volume.volume import Volume

# A stage is over when an iteration gains less than this, in nats per frame.
_SMALL_GAIN = 0.05
_FEWEST, _MOST, _MOST_LAST = 3, 10, 25
# What a checkpoint holds.
_ARRAYS = (
    "models", "full", "half_correlation", "fluence", "best_pose", "best_model", "confidence", "perplexity",
    "log_likelihood", "expected", "merged",
)  # fmt: skip
_NUMBERS = (
    "iteration", "finished", "reason", "start", "stage_number", "iterations_in_stage", "last_log_likelihood",
)  # fmt: skip


class Emc:
    """A blind reconstruction, iteration by iteration.

    >>> # emc = Emc(orienteer.open("hits.h5"), EmcSettings(), seed=1)
    >>> # while not emc.finished: print(emc.step().log_likelihood)
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
        self.remarks = list(self.pixels.remarks)
        N = self.frames.n_frames
        edge = float(self.pixels.length_inv_A.max())
        self.edge_inv_A = min(edge, 1 / self.settings.resolution_A) if self.settings.resolution_A else edge
        spacing = self.pixels.spacing_inv_A
        self.diameter_A = self._diameter(spacing)
        self.voxel_inv_A = 1 / (self.settings.oversampling * self.diameter_A)
        event_id = self.frames.event_id
        self.half = half_of_events(event_id) if self.settings.halves else np.zeros(N, dtype=np.int64)
        self.sentinel = sentinels_of_events(event_id, self.settings.sentinels)
        self.noise = NoiseModel(self.settings, self.pixels, N)
        self.fluence = self._first_fluence()
        exposure = self.pixels.correction * self.frames.pixel_frames
        self.profile = estimate_profile(
            self.pixels.length_inv_A,
            self.noise.without_background(self.frames.pixel_photons, self.frames.pixel_frames),
            exposure, self.voxel_inv_A,
        )  # fmt: skip
        self.stages = ladder(self.edge_inv_A, self.diameter_A, self.settings.level)
        self.plan = self._plan()
        self.n_halves = 2 if self.settings.halves else 1
        self.iteration, self.finished, self.reason = 0, False, ""
        self.best_pose = np.zeros((N, 4))
        self.best_pose[:, 0] = 1
        self.best_model = np.zeros(N, dtype=np.int64)
        self.confidence, self.perplexity, self.log_likelihood = np.zeros(N), np.ones(N), np.zeros(N)
        self.candidates: list[tuple[float, NDArray[np.float32]]] = []
        self.models: Array = None
        self.junk: Array | None = None
        self._begin_start(0)

    # The loop ---------------------------------------------------------------------------------------------

    def step(self) -> Step:
        """One iteration of Algorithm 1; says what came of it and whether the run is over."""
        began = time.monotonic()
        work = self.work
        likelihood = self.noise.likelihood(work)
        beta = self.annealing.inverse_temperature(work, likelihood, self.models, self.fluence)
        deposits = []
        for half in range(self.n_halves):
            # Orient by the other half's model: no frame meets its own noise.
            expander = Expander(self.models[self.n_halves - 1 - half], work.points, work.junk(self.junk))
            deposit = self._new_deposit(work)
            for batch in steps(work.batches(half, self.fluence), f"Iteration {self.iteration + 1}"):
                store = ScoreStore(len(work.rows), len(batch), self.device, self.settings.kept_mass)
                posterior = expect(likelihood, expander, work.rows, batch, beta, store)
                expected = merge(likelihood, expander, work.rows, batch, store, deposit, work.pixel_weights)
                self._note(work, likelihood, batch, posterior, expected)
            deposits.append(deposit)
        change = self._compress(work, deposits)
        self._update_nuisances(work, deposits)
        agreement = self._watch(work, likelihood, beta)
        self.iteration += 1
        stage, start = self.stage_number, self.start
        merged = self.merged & ~self.sentinel
        gain = self._advance(work)
        return Step(
            iteration=self.iteration,
            log_likelihood=float(self.log_likelihood[merged].mean()),
            change=change,
            inverse_temperature=float(np.mean(beta)),
            perplexity=float(np.exp(np.log(self.perplexity[merged]).mean())),
            grid_level=work.stage.level,
            n_rotations=len(work.poses),
            resolution_A=1 / work.stage.scored_inv_A,
            sentinel_agreement_deg=agreement,
            half_correlation=float(gain),
            seconds=time.monotonic() - began,
            seconds_left=None,
            photons_merged=float(self.frames.photons[merged].sum()),
            stage=stage + 1,
            n_stages=len(self.stages),
            start=start + 1,
            finished=self.finished,
            reason=self.reason,
            radial=self._radial(work),
        )

    def _compress(self, work: Workspace, deposits: list[Deposit]) -> float:
        """New models from what the frames left behind; returns the relative change."""
        xp = self.xp
        M = self.settings.models
        sums = [
            [symmetrise_sums(both_friedel(deposit.sums[m].finish()), self.group) for m in range(M)]
            for deposit in deposits
        ]
        new = xp.empty_like(self.models)
        self.full = xp.stack([solve(sum(half[m] for half in sums)) for m in range(M)])
        correlation = np.ones(len(shell_sums(self.full[0])))
        exposures = [sum(half[m] for half in sums)[..., 1] for m in range(M)]
        for m in range(M):
            solved = [solve(half[m]) for half in sums]
            if self.n_halves == 2:
                correlation_m = half_correlation(solved[0], solved[1], exposures[m])
                correlation = correlation_m if m == 0 else np.minimum(correlation, correlation_m)
            for h, values in enumerate(solved):
                gain = wiener_gain(correlation) if self.n_halves == 2 else np.ones(len(correlation))
                new[h, m] = shrink(values, sums[h][m][..., 1], gain)
        self.half_correlation = correlation
        weight = exposures[0] / float(exposures[0].sum())
        difference = float(xp.sqrt((weight * (new[0, 0] - self.models[0, 0]) ** 2).sum()))
        contrast = float(xp.sqrt((weight * (new[0, 0] - 1) ** 2).sum()))
        self.models = new
        return difference / max(contrast, 1e-12)

    def _update_nuisances(self, work: Workspace, deposits: list[Deposit]) -> None:
        if self.estimates_fluence:
            photons = work.scored_photons(self.frames)
            fluence = update_fluence(photons, self.expected)
            fluence = bound_fluence(fluence, photons, self.noise.background_photons(work))
            seen = self.merged & (self.expected > 0)
            fluence, mean = normalise_fluence(fluence, seen.astype(np.float64))
            self.fluence = fluence
            self.models = self.models * self.xp.float32(mean)
            self.full = self.full * self.xp.float32(mean)
        self.noise.update(work, self.models, self.best_pose, self.best_model, self.fluence, self.half)
        mass = to_numpy(sum(deposit.row_mass for deposit in deposits))
        work.update_prior(mass)
        if self.junk is not None:
            self.junk = self.noise.solve_junk(deposits, work, self.junk)

    def _watch(self, work: Workspace, likelihood: Any, beta: Any) -> float | None:
        """Median angle between the poses that the halves give to the sentinels, which neither has seen."""
        if self.n_halves < 2 or not self.sentinel.any():
            return None
        poses = []
        for half in range(2):
            expander = Expander(self.models[half], work.points, work.junk(self.junk))
            found = []
            for batch in work.batches("sentinel", self.fluence):
                store = ScoreStore(len(work.rows), len(batch), self.device, self.settings.kept_mass)
                posterior = expect(likelihood, expander, work.rows, batch, beta, store)
                self._note(work, likelihood, batch, posterior, None)
                found.append(self.best_pose[batch.places].copy())
            poses.append(np.concatenate(found))
        return float(np.median(angular_distance_deg(poses[0], poses[1], self.group)))

    # Stages -----------------------------------------------------------------------------------------------

    def _begin_start(self, start: int) -> None:
        self.start, self.models = start, None
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
        self.half_correlation = np.ones(len(shell_sums(first[0])))

    def _enter(self, stage_number: int) -> None:
        self.stage_number = stage_number
        stage: Stage = self.stages[stage_number]
        self.work = Workspace(self, stage)
        self.annealing = Annealing(len(self.work.poses), is_first=stage_number == 0)
        self.iterations_in_stage, self.last_log_likelihood = 0, -np.inf
        self.expected = np.zeros(self.frames.n_frames)
        self.merged = np.zeros(self.frames.n_frames, dtype=bool)
        if self.models is not None:
            n = self.work.edge_voxels
            self.models = self.xp.stack(
                [self.xp.stack([resized(m, n) for m in half]) for half in self.models]
            )
            self.full = self.xp.stack([resized(m, n) for m in self.full])

    def _advance(self, work: Workspace) -> float:
        """Decide what the next iteration does: go on, next stage, next start, or end."""
        shells = slice(2, max(3, int(work.stage.scored_inv_A / self.voxel_inv_A)))
        mean_correlation = float(self.half_correlation[shells].mean())
        merged = self.merged & ~self.sentinel
        log_likelihood = float(self.log_likelihood[merged].mean())
        gain = log_likelihood - self.last_log_likelihood
        self.last_log_likelihood = log_likelihood
        self.iterations_in_stage += 1
        is_last = self.stage_number == len(self.stages) - 1
        most = _MOST_LAST if is_last else _MOST
        settled = self.annealing.is_done and (
            (self.annealing.iterations_done >= _FEWEST and gain < _SMALL_GAIN)
            or self.annealing.iterations_done >= most
        )
        if self.iteration >= self.settings.iterations:
            self._finish(f"the limit of {self.settings.iterations} iterations is reached")
        elif settled and self.stage_number == 0 and self.settings.starts > 1:
            self._end_start(log_likelihood)
        elif settled and is_last:
            self._finish("an iteration gains nothing any more at the edge of the data")
        elif settled:
            self._enter(self.stage_number + 1)
        return mean_correlation

    def _end_start(self, log_likelihood: float) -> None:
        self.candidates.append((log_likelihood, to_numpy(self.models)))
        if len(self.candidates) < self.settings.starts:
            self._begin_start(self.start + 1)
            return
        best = int(np.argmax([value for value, _ in self.candidates]))
        self.start, self.models = best, self.xp.asarray(self.candidates[best][1])
        self.full = self.models.mean(axis=0)
        if len(self.stages) > 1:
            self._enter(1)
        else:
            self._finish("the likeliest of all starts has settled")

    def _finish(self, reason: str) -> None:
        self.finished, self.reason = True, reason

    # Results ----------------------------------------------------------------------------------------------

    def volumes(self) -> list[Volume]:
        """The intensity of each model, in photons per pixel of mean correction at mean fluence."""
        n = self.work.edge_voxels
        axis = (np.arange(n) - n // 2) * self.voxel_inv_A
        length = np.sqrt(sum(np.square(a) for a in np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)))
        profile = self.profile(length)
        profile[length > self.work.stage.merged_inv_A + self.voxel_inv_A] = np.nan
        return [
            Volume(to_numpy(values) * profile, self.voxel_inv_A, "reciprocal", name=f"intensity {m + 1}")
            for m, values in enumerate(self.full)
        ]

    def orientations(self) -> dict[str, NDArray[Any]]:
        """One row per frame."""
        return {
            "event_id": self.frames.event_id,
            "quaternion": self.best_pose,
            "confidence": self.confidence,
            "fluence": self.fluence,
            "model": self.best_model,
            "log_likelihood": self.log_likelihood,
            "perplexity": self.perplexity,
            "half": self.half,
            "sentinel": self.sentinel,
        }

    # State ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything the next iteration depends on, as arrays and numbers."""
        arrays = {name: to_numpy(getattr(self, name)) for name in _ARRAYS}
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        optional = {} if self.junk is None else {"junk": to_numpy(self.junk)}
        candidates = {f"candidate_{i}": models for i, (_, models) in enumerate(self.candidates)}
        return {
            **arrays, **numbers, **optional, **candidates,
            "candidate_log_likelihood": np.array([value for value, _ in self.candidates]),
            "log_prior": to_numpy(self.work.rows.log_prior),
            "grouping_fluence": self.work.grouping_fluence,
            "dispersion": self.noise.dispersion, "sigma": self.noise.sigma,
            "annealing_target": self.annealing.target, "annealing_done": self.annealing.iterations_done,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of the same run, bit for bit."""
        self.candidates = [
            (float(value), np.asarray(state[f"candidate_{i}"], dtype=np.float32))
            for i, value in enumerate(state["candidate_log_likelihood"])
        ]
        # Frames are sorted by the fluences that held when the stage began.
        self.fluence = np.asarray(state["grouping_fluence"], dtype=np.float64)
        self._enter(int(state["stage_number"]))
        for name in _NUMBERS:
            setattr(self, name, type(getattr(self, name))(state[name]))
        for name in _ARRAYS:
            old = getattr(self, name)
            setattr(self, name, array_namespace(old).asarray(state[name], dtype=old.dtype))
        self.junk = self.xp.asarray(state["junk"]) if "junk" in state else None
        self.work.rows.log_prior = self.xp.asarray(state["log_prior"], dtype=np.float32)
        self.noise.dispersion = np.asarray(state["dispersion"], dtype=np.float64)
        self.noise.sigma = float(state["sigma"])
        self.annealing.restore(
            {"target": state["annealing_target"], "iterations_done": state["annealing_done"]}
        )

    # Set-up -----------------------------------------------------------------------------------------------

    def _diameter(self, spacing_inv_A: float) -> float:
        if self.settings.diameter_A:
            return self.settings.diameter_A
        largest = 1 / (1.5 * spacing_inv_A)
        found = estimate_diameter(self.frames, spacing_inv_A)
        if not found:
            self.remarks.append(
                f"the speckles do not tell the size of the particle; {largest / 2:.0f} A is assumed "
                "(diameter_A in the settings says better)."
            )
            return largest / 2
        return min(found, largest)

    def _first_fluence(self) -> NDArray[np.float64]:
        photons = self.frames.photons
        mean = photons.mean()
        excess = max(photons.var() / mean**2 - 1 / mean, 0.0)
        choice = self.settings.fluence
        self.estimates_fluence = choice == "estimate" or (choice == "auto" and excess > 0.15**2)
        if not self.estimates_fluence:
            return np.ones(len(photons))
        return np.asarray(np.maximum(photons / mean, 1e-3))

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

    def _note(
        self, work: Workspace, likelihood: Any, batch: Batch, posterior: Any, expected: Array | None
    ) -> None:
        places = batch.places
        row = to_numpy(posterior.best_row)
        K = len(work.poses)
        junk = row >= K * self.settings.models
        pose = np.where(junk, 0, row % K)
        self.best_pose[places] = work.quaternions[pose]
        self.best_model[places] = np.where(junk, -1, row // K)
        self.perplexity[places] = to_numpy(posterior.perplexity)
        self.confidence[places] = np.exp(-to_numpy(posterior.entropy))
        constant = np.concatenate(
            [
                to_numpy(
                    likelihood.frame_constant(
                        group.frames,
                        group.fluence if likelihood.needs_fluence_groups else batch.fluence[group.columns],
                    )
                )
                for group in batch.groups
            ]
        )
        self.log_likelihood[places] = to_numpy(posterior.best_score) + constant
        if expected is not None:
            self.expected[places] = to_numpy(expected)
            self.merged[places] = True

    def _radial(self, work: Workspace) -> dict[str, list[float]]:
        n = len(self.half_correlation)
        radius = np.arange(n) * self.voxel_inv_A
        inside = (radius > 0) & (radius <= work.stage.merged_inv_A)
        return {
            "q_inv_A": radius[inside].tolist(),
            "intensity": self.profile(radius[inside]).tolist(),
            "half_correlation": self.half_correlation[inside].tolist(),
        }


def _seed(seed: int, start: int, model: int) -> int:
    state = np.random.SeedSequence(seed, spawn_key=(start, model)).generate_state(1, np.uint64)
    return int(state[0])
