"""Time to the same likelihood: grids that grow with what is known, against the finest grid from the start.

    python bench/adaptive.py [--device cuda] [--frames N] [--photons N] [--levels 5 12] [--keep]

Ekeberg, Engblom and Liu (2014) began with 5 divisions of the 600-cell and went to 12 whenever the likelihood
stood still, which halved the time of 60 iterations.  Three ways from the same random start, on the same
pixels:

fixed : all iterations on the finest grid;
stepwise : one division more whenever an iteration gains less than 0.05 nats per frame;
coarse to fine : from the coarsest grid at once to the finest, but only below the poses of the grid between
    that a frame keeps.

The likelihood is that of the best poses on the finest grid.  On the CPU the time is that of all cores
together, so that other programs hardly count.
"""

import argparse
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machine import describe_machine, report
from orienteer.compute.arrays import to_numpy
from orienteer.detector.beam import Beam
from orienteer.detector.square import square_detector
from orienteer.orientation.six_hundred_cell import n_rotations
from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.course.course import Course, Progress
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.search import TwoPasses, WholeGrid, choose_search
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.workspace import Workspace
from orienteer.simulation.experiment import simulate
from orienteer.simulation.settings import SimulateSettings
from orienteer.source.base import Source

WAVELENGTH_A, DIAMETER_A = 2.5, 215.0
KEPT = 0.999
SAME = 1e-3


class GridStudy(Emc):
    """A reconstruction on given grids at one resolution; the last one may be searched from coarse to fine."""

    def use_grids(self, levels: list[int], coarse_to_fine: bool) -> None:
        """Begin anew with a stage for every level."""
        stage = self.stages[-1]
        self.stages = [replace(stage, level=level, in_two_passes=False) for level in levels]
        self.stages[-1] = replace(self.stages[-1], in_two_passes=coarse_to_fine)
        self.course = Course(len(levels), 1, self.settings.iterations)
        self.begin_start(0)

    def progress(self, work: Workspace, judging: NDArray[np.bool_], change: float) -> Progress:
        # A finer grid comes at the same resolution, so noise at its edge is no reason to stop.
        return replace(super().progress(work, judging, change), agreement_at_edge=None)


def frames_of(n_frames: int, photons: float, pixels: int, edge_A: float) -> Source:
    """Shots of one particle without symmetry."""
    detector = square_detector(
        pixels, edge_resolution_A=edge_A, wavelength_A=WAVELENGTH_A, beam_stop_radius_pixels=2,
        pixel_size_m=2e-4,
    )  # fmt: skip
    settings = SimulateSettings(frames=n_frames, photons_per_frame=photons, seed=3)
    return simulate(random_blobs(DIAMETER_A, 30, 5), Beam(wavelength_A=WAVELENGTH_A), detector, settings)


def run(emc: GridStudy, levels: list[int], coarse_to_fine: bool, device: str) -> dict[str, Any]:
    """Reconstruct to the end; seconds, and the likelihood of every iteration on the finest grid."""
    emc.use_grids(levels, coarse_to_fine)
    clock = time.perf_counter if device == "cuda" else time.process_time
    began = clock()
    seconds, log_likelihood, grids = [], [], []
    while not emc.finished:
        step = emc.step()
        is_finest = step.stage == step.n_stages
        seconds.append(clock() - began)
        log_likelihood.append(step.log_likelihood if is_finest else -np.inf)
        grids.append(step.grid_level)
        print(
            f"{step.iteration} n={grids[-1]} {step.log_likelihood:.2f} {seconds[-1]:.1f} s "
            f"halves {step.half_correlation:.3f}",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    return {
        "iterations_on_grids": {f"n = {n}": grids.count(n) for n in sorted(set(grids))},
        "iterations": len(grids),
        "seconds": seconds,
        "log_likelihood": log_likelihood,
        "half_correlation": float(step.half_correlation),
    }


def one_iteration(emc: GridStudy, device: str) -> dict[str, Any]:
    """Seconds of the last iteration of one half on the finest grid, all poses or from coarse to fine."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    work = emc.work
    likelihood = emc.noise.likelihood(work)
    batch, sample = next(iter(work.batches(0, emc.fluence))), work.sample(0, emc.fluence)
    expander = Expander(emc.models[-1], work.points)
    search = choose_search(work, likelihood, expander, sample, emc.annealing.inverse, KEPT)
    assert isinstance(search, TwoPasses)
    ways = {
        "coarse_to_fine": search,
        "all_poses": WholeGrid(search.grid, search.fine_beta, KEPT, search.grid),
    }
    seconds, evidence = {}, {}
    for name, way in ways.items():
        deposit = emc.new_deposit(work, 0)
        began = clock()
        posterior, expected = way.step(likelihood, expander, batch, deposit, work.pixel_weights)
        float(expected.sum())  # waits for the GPU
        seconds[name] = round(clock() - began, 3)
        evidence[name] = to_numpy(posterior.log_evidence)
    lost = evidence["all_poses"] - evidence["coarse_to_fine"]
    return {
        "frames": len(batch),
        "seconds": seconds,
        "times_faster": round(seconds["all_poses"] / seconds["coarse_to_fine"], 2),
        "evidence_lost_nats": {"mean": round(float(lost.mean()), 4), "worst": round(float(lost.max()), 4)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--photons", type=float, default=1000.0)
    parser.add_argument("--pixels", type=int, default=40)
    parser.add_argument("--edge-A", type=float, default=20.0)
    parser.add_argument("--resolution-A", type=float, default=40.0)
    parser.add_argument("--levels", type=int, nargs=2, default=[5, 12], help="coarsest and finest, even")
    parser.add_argument("--keep", action="store_true", help="write bench/results/adaptive_DEVICE.json")
    options = parser.parse_args()
    coarsest, finest = options.levels
    source = frames_of(options.frames, options.photons, options.pixels, options.edge_A)
    settings = EmcSettings(
        resolution_A=options.resolution_A, level=finest, fluence="constant", sentinels=0.0, refine=False
    )
    ways = {
        "coarse_to_fine": ([coarsest, finest], True),
        "stepwise": (list(range(coarsest, finest + 1)), False),
        "fixed": ([finest], False),
    }
    # Everything is compiled before the clocks start.
    run(GridStudy(source, EmcSettings(resolution_A=60.0, level=4, iterations=2)), [4], True, options.device)
    runs = {}
    for name, (levels, coarse_to_fine) in ways.items():
        emc = GridStudy(source, settings, seed=1, device=options.device)
        runs[name] = run(emc, levels, coarse_to_fine, options.device)
        if coarse_to_fine:
            iteration = one_iteration(emc, options.device)
    # Where the fixed run came to rest, to a thousandth: a tenth of what counted as standing still in 2014.
    goal = runs["fixed"]["log_likelihood"][-1]
    goal -= SAME * abs(goal)
    for result in runs.values():
        reached = np.flatnonzero(np.array(result["log_likelihood"]) >= goal)
        seconds, likelihood = result.pop("seconds"), result.pop("log_likelihood")
        result["seconds_to_the_end"] = round(seconds[-1], 2)
        result["final_log_likelihood"] = round(likelihood[-1], 3)
        result["seconds_to_the_likelihood_of_fixed"] = round(seconds[reached[0]], 2) if len(reached) else None
    fixed = runs["fixed"]["seconds_to_the_likelihood_of_fixed"]
    result = {
        "problem": f"{options.frames} frames of {options.photons:g} photons, {options.resolution_A:g} A, "
        f"600-cell n = {coarsest} .. {finest} ({n_rotations(coarsest)} .. {n_rotations(finest)} poses)",
        "clock": "wall" if options.device == "cuda" else "processor time of all cores",
        "machine": describe_machine(options.device),
        "runs": runs,
        "one_iteration_of_a_half": iteration,
        "times_faster_than_fixed": {
            name: None if each["seconds_to_the_likelihood_of_fixed"] is None
            else round(fixed / each["seconds_to_the_likelihood_of_fixed"], 2)
            for name, each in runs.items()
        },
    }  # fmt: skip
    report(f"adaptive_{options.device}", result, options.keep)


if __name__ == "__main__":
    main()
