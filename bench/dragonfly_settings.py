"""Processor time of an iteration on the CPU, at the two settings at which Dragonfly was timed.

    python bench/dragonfly_settings.py [--settings A B] [--threads 1 2] [--repeats 3] [--blind] [--keep]

A: 3 000 frames of 101 x 101 pixels (7 780 orient), 600 photons on 327 lit pixels, 10 860 orientations, volume
143^3, constant fluence.  B: 2 000 frames of 151 x 151 pixels (17 520 orient), 2 044 photons on 845 lit
pixels, 6 300 orientations, volume 213^3, fluence varies and is estimated.  Our frames are simulated, of a
body whose photons light about as many pixels, and whose frames, merged at the true orientations as they are,
have shells about as well known as Dragonfly's: 60 large Gaussian balls and 1 000 small ones among them.

Early ("flat" in the result) is from a random model with posteriors as wide as Dragonfly's in its first
iterations, late ("sharp") from the true intensity at inverse temperature 1, as in its last.

Dragonfly's times are constants of bench/dragonfly_settings.py, measured once: user time of all threads per
iteration, by its own Poisson EMC compiled as shipped, on two cores of a 2.8 GHz Xeon, which is another
machine than that of the row, and on frames of its own simulation of the same number, size and photons.

``--blind`` runs A from a random start to the end, on Dragonfly's grid and told as much: that the fluence is
constant.  The result is compared with the truth: angles between found and true orientations, and the
correlation with the true intensity in shells, whose radius is given in pixels of the detector.  Beside it
stand merges with the true orientations, filtered as a reconstruction is, and raw with voxels as large as
pixels, as it does beside Dragonfly's own result, which was found on other frames of the same size.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from blind import perfect_merge, true_intensity
from machine import describe_machine, report
from orienteer.compare.alignment import align_intensities
from orienteer.compare.shells import ShellCorrelation, shell_correlation
from orienteer.compute.arrays import Array, to_numpy
from orienteer.detector.beam import Beam
from orienteer.detector.square import square_detector
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import compose, inverse, to_matrix
from orienteer.particle.named_bodies import random_blobs
from orienteer.particle.structure import Structure, blobs
from orienteer.reconstruction.benchmark import Problem, time_state
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.reconstruction.model.radial_profile import estimate_profile
from orienteer.reconstruction.model.relative_intensity import both_friedel, random_start
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings
from orienteer.slicing.trilinear import insert_slices, slice_volume
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns, concatenate

BEAM = Beam(wavelength_A=2.5)
EDGE_A = 20.0  # resolution at the side of the detector


@dataclass(frozen=True)
class Setting:
    """One of Dragonfly's data sets, and the processor seconds that it took per iteration."""

    frames: int
    side: int
    stop: float
    photons: float
    diameter_A: float
    level: int
    fluence_jitter: float
    flat_share: float  # of all poses that a frame is spread over in the first iterations
    dragonfly: dict[str, float]

    @property
    def estimates_fluence(self) -> bool:
        """Whether every frame has a fluence of its own."""
        return self.fluence_jitter > 0


SETTINGS = {
    "A": Setting(3000, 101, 8.9, 600, 230, 6, 0.0, np.exp(-0.41), {"flat": 67, "sharp": 30}),
    "B": Setting(2000, 151, 11.1, 2044, 240, 5, 0.5, np.exp(-0.58), {"flat": 76, "sharp": 46}),
}
# Dragonfly's run of A in 20 iterations; its shells, and those of the merge with the true orientations.
DRAGONFLY_BLIND = {
    "processor_seconds": 940.0,
    "median_error_deg": 7.4,
    "share_within_10_deg": 0.67,
    "shell_correlation": {10: 0.998, 18: 0.994, 26: 0.954, 30: 0.913, 34: 0.782, 42: 0.686, 50: 0.457},
    "raw_merge_correlation": {10: 0.999, 18: 0.994, 26: 0.929, 30: 0.831, 34: 0.680, 42: 0.568, 50: 0.352},
}


def body(setting: Setting, seed: int = 5) -> Structure:
    """Large Gaussian balls, and small ones of 4 to 6 A with 15 % of the electrons.

    The large ones alone would leave next to nothing at high angles, where a protein still has detail.
    """
    large = random_blobs(setting.diameter_A, 60, seed)
    rng = np.random.default_rng(seed + 1)
    sigma_A = rng.uniform(4.0, 6.0, 1000)
    directions = rng.normal(size=(len(sigma_A), 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reach = (setting.diameter_A / 2 - 2 * sigma_A) * rng.uniform(size=len(sigma_A)) ** (1 / 3)
    weight = rng.uniform(0.5, 1.5, len(sigma_A)) * sigma_A**3
    weight *= 0.15 / 0.85 * large.n_electrons / weight.sum()
    return large + blobs(directions * reach[:, None], weight, sigma_A)


def experiment_of(setting: Setting, seed: int = 3) -> Experiment:
    """The simulated experiment."""
    detector = square_detector(
        setting.side, pixel_size_m=5e-4, edge_resolution_A=EDGE_A, wavelength_A=BEAM.wavelength_A,
        beam_stop_radius_pixels=setting.stop, corners="merge_only",
    )  # fmt: skip
    settings = SimulateSettings(
        frames=setting.frames,
        photons_per_frame=setting.photons,
        fluence_jitter=setting.fluence_jitter,
        seed=seed,
    )
    return Experiment(body(setting), BEAM, detector, settings, device="cpu")


def problem_of(setting: Setting) -> tuple[Problem, Array, Array]:
    """The frames as an iteration takes them, the true relative intensity and a random one."""
    experiment = experiment_of(setting)
    table = pixel_table(experiment)
    order = np.argsort(table.merge_only, kind="stable")
    length, correction = table.length_inv_A[order], table.correction[order]
    voxel = float(length.max()) / (0.6999 * (setting.side - 1))  # the cube has Dragonfly's number of voxels
    counts = np.concatenate([to_numpy(batch.dense()) for batch in experiment.batches(500)])
    counts = counts.reshape(len(counts), -1)[:, table.index[order]].astype(np.uint16)
    photons = counts.sum(axis=0, dtype=np.float64)
    profile = estimate_profile(length, photons, correction * len(counts), voxel)
    problem = Problem(
        (table.q_inv_A[order] / voxel).astype(np.float32), (correction * profile(length)).astype(np.float32),
        int((~table.merge_only).sum()), Patterns(counts), setting.level, "cpu",
        estimates_fluence=setting.estimates_fluence,
    )  # fmt: skip
    n = problem.edge_voxels
    axis = (np.arange(n) - n // 2) * voxel
    radius = np.sqrt(sum(np.square(a) for a in np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)))
    relative = true_intensity(body(setting), n, voxel) / profile(radius)
    relative = np.nan_to_num(relative, nan=0.0).astype(np.float32)
    some = slice_volume(relative, problem.points, to_numpy(problem.rows.poses.matrices)[::50])
    relative *= (
        photons[: problem.n_scored].sum()
        / len(counts)
        / float((some * problem.pixel_weights)[:, : problem.n_scored].sum(axis=1).mean())
    )
    return problem, relative, random_start(n, 1, 1 / (setting.diameter_A * voxel))


def time_setting(name: str, threads: list[int], repeats: int) -> dict[str, Any]:
    """Both states of a setting at several numbers of threads, and how far their results differ."""
    setting = SETTINGS[name]
    problem, truth, start = problem_of(setting)
    K = len(problem.rows)
    result: dict[str, Any] = {
        "frames": setting.frames, "pixels_that_orient": problem.n_scored, "pixels": len(problem.points),
        "lit_pixels": round(problem.lit_pixels, 1), "photons": setting.photons, "orientations": K,
        "volume": problem.edge_voxels, "layout": problem.plan.layout, "tile_rows": problem.plan.tile_rows,
    }  # fmt: skip
    flat_beta = problem.inverse_temperature(start, setting.flat_share * K)
    for state, model, beta in (("flat", start, flat_beta), ("sharp", truth, 1.0)):
        own: dict[str, Any] = {"dragonfly_processor_seconds": setting.dragonfly[state]}
        models = []
        for n in threads:
            numba.set_num_threads(n)
            own[f"threads_{n}"] = time_state(problem, model, beta, repeats)
            models.append(problem.iterate(model, beta)[0])
            problem.fluence = np.ones(setting.frames)  # where every iteration begins
            ratio = setting.dragonfly[state] / own[f"threads_{n}"]["processor_seconds"]
            own[f"threads_{n}"]["times_less_than_dragonfly"] = ratio
        own["largest_relative_difference_between_threads"] = max(
            float(np.abs(other - models[0]).max() / np.abs(models[0]).max()) for other in models
        )
        result[state] = own
    numba.set_num_threads(max(threads))
    return result


def raw_merge_correlation(setting: Setting, patterns: Patterns, experiment: Experiment) -> ShellCorrelation:
    """Frames merged as they are at their true orientations, voxels as large as pixels, against the truth."""
    table = pixel_table(experiment)
    voxel = 2 / (setting.side - 1) / EDGE_A
    n = 2 * int(np.ceil(table.length_inv_A.max() / voxel)) + 3
    frames = to_numpy(patterns.dense()).reshape(len(patterns), -1)[:, table.index].astype(np.float32)
    matrices = np.swapaxes(to_matrix(to_numpy(patterns.columns["truth_orientation"])), 1, 2)
    sums = np.zeros((n, n, n, 2))
    insert_slices(
        sums, (table.q_inv_A / voxel).astype(np.float32), matrices, frames,
        np.ones(len(frames), np.float32), table.correction.astype(np.float32),
    )  # fmt: skip
    photons, exposure = np.moveaxis(both_friedel(sums), -1, 0)
    merged = np.where(exposure > 0, photons / np.where(exposure > 0, exposure, 1), np.nan)
    return shell_correlation(true_intensity(body(setting), n, voxel), merged)


def compare_with_truth(emc: Any, experiment: Experiment, patterns: Patterns) -> dict[str, Any]:
    """How far a finished run is from the truth."""
    setting, volume = SETTINGS["A"], emc.volumes()[0]
    voxel, n = volume.voxel_size[0], volume.values.shape[0]
    intensity = true_intensity(body(setting), n, voxel)
    last = min(int(1 / EDGE_A / voxel), (n - 1) // 2)
    first = int(np.ceil(emc.pixels.length_inv_A.min() / voxel)) + 1
    found = align_intensities(intensity, to_numpy(volume.values), first_shell=first, last_shell=last)
    poses = compose(emc.orientations()["quaternion"], inverse(found.quaternion))
    error = np.asarray(angular_distance_deg(poses, to_numpy(patterns.columns["truth_orientation"])))
    perfect = shell_correlation(intensity, perfect_merge(experiment, n, voxel))
    raw = raw_merge_correlation(setting, patterns, experiment)
    pixel_in_voxels = 2 / (setting.side - 1) / EDGE_A / voxel

    def at_pixels(shells: ShellCorrelation, in_voxels: float = pixel_in_voxels) -> dict[int, float]:
        known = np.isfinite(shells.correlation)
        curve = np.interp(
            [r * in_voxels for r in DRAGONFLY_BLIND["shell_correlation"]],
            shells.radius[known], shells.correlation[known],
        )  # fmt: skip
        return dict(zip(DRAGONFLY_BLIND["shell_correlation"], curve.round(3).tolist(), strict=True))

    return {
        "median_error_deg": float(np.median(error)),
        "share_within_10_deg": float((error < 10).mean()),
        "shell_correlation": at_pixels(found.shells),
        "filtered_merge_correlation": at_pixels(perfect),
        "raw_merge_correlation": at_pixels(raw, 1.0),
    }


def run_blind(**settings: Any) -> dict[str, Any]:
    """Setting A from a random start to the end, with Dragonfly's grid."""
    from orienteer.reconstruction.emc import Emc
    from orienteer.reconstruction.settings import EmcSettings
    from orienteer.reconstruction.stopwatch import Stopwatch

    settings = {"level": SETTINGS["A"].level, "fluence": "constant"} | settings
    experiment = experiment_of(SETTINGS["A"])
    patterns = concatenate(list(experiment.batches(500)))
    frames = InMemorySource(patterns, experiment.frame_shape)
    start, user = time.perf_counter(), time.process_time()
    emc = Emc(frames.with_detector(experiment.detector), EmcSettings(**settings), seed=1, device="cpu")
    steps: list[dict[str, Any]] = []
    parts: dict[str, float] = {"set-up": time.process_time() - user}
    while not emc.finished:
        before = time.process_time()
        with Stopwatch() as watch:
            step = emc.step()
        spent = time.process_time() - before
        for part, seconds in watch.processor_seconds().items():
            parts[part] = parts.get(part, 0.0) + seconds
        steps.append({
            "stage": step.stage, "level": step.grid_level, "rotations": step.n_rotations,
            "resolution_A": step.resolution_A, "processor_seconds": spent, "perplexity": step.perplexity,
            "log_likelihood": step.log_likelihood, "half_correlation": step.half_correlation,
        })  # fmt: skip
        print(steps[-1], file=sys.stderr, flush=True)
    processor_seconds, seconds = time.process_time() - user, time.perf_counter() - start
    return {
        "settings": settings,
        "processor_seconds": processor_seconds,
        "seconds": seconds,
        **compare_with_truth(emc, experiment, patterns),
        "dragonfly": DRAGONFLY_BLIND,
        "reason": emc.reason,
        "diameter_A": emc.diameter_A,
        "estimates_fluence": emc.estimates_fluence,
        "edge_voxels": emc.work.edge_voxels,
        "breakdown": parts,
        "steps": steps,
    }


def main() -> None:
    """Time the chosen settings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--settings", nargs="*", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--blind", action="store_true", help="also the whole run of A")
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    result: dict[str, Any] = {
        "problem": "one plain Poisson EMC iteration; seconds are processor time of all threads",
        "machine": describe_machine(),
        "dragonfly_machine": "2 cores of a 2.8 GHz Xeon",
    }
    for name in options.settings:
        result[name] = time_setting(name, options.threads, options.repeats)
    if options.blind:
        result["blind_A"] = run_blind()
    report("dragonfly_settings", result, options.keep)


if __name__ == "__main__":
    main()
