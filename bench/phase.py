"""How fast phasing is, how often starts find the right density, and what a background does to it.

    python bench/phase.py [--parts speed success background] [--device cuda] [--objects virus blobs-2]
                          [--seeds 0 1] [--starts N] [--edge A] [--schedule TEXT] [--keep]

speed : seconds of all starts with the default methods and their supports, beside the two FFTs of each
    iteration alone, which no implementation can do without.
    CPU: 10 starts x 500 iterations of 64^3 (goal 60 s on 2 cores); GPU: 100 x 1 000 of 128^3 (goal 20 s).
success : intensities with a missing centre of two speckles and 10 % of noise, phased with default settings.
    A start has found the density when its correlation with the truth over all measured voxels, after shift
    and inversion, is 0.95 and more.  Goal: 90 % of the starts.
    The true volume is that of the voxels in which the truth, without waves finer than the edge of the data,
    is above a tenth of its typical density (orienteer.phase.filled).  Two volumes are compared with it: that
    of the particle, by the same definition from the density that was found (goal: within 5 %), and that of
    the support, which must hold all that the data see: for hard bodies about the same, for soft ones more.
    Settings were chosen with the objects of bench/blind.py and seed 0; others are there to check them.
    Each seed is that of the noise, of the voxels held out and of the starts.
background : with a flat background of 5 % of the mean intensity; how much the density changes, and
    how bright the middle becomes, both over the density's own.  Goal: less than 5 %.

The truth is used here only to judge.
"""

import argparse
import itertools
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from blind import OBJECTS, PDB, make_object
from machine import describe_machine, report
from orienteer.compute.arrays import array_namespace, to_device, to_numpy
from orienteer.particle.base import Particle
from orienteer.particle.named_bodies import random_blobs, virus
from orienteer.particle.opening import open_structure
from orienteer.phase.alignment import align_starts, apply_alignment, level_shells
from orienteer.phase.conclusion import conclude
from orienteer.phase.course import Course
from orienteer.phase.data import PhasingData, phasing_data
from orienteer.phase.filled import filled_voxels, typical_density
from orienteer.phase.half_grid import density_of, frequencies, transform_of, voxel_counts
from orienteer.phase.held_out import log_likelihood
from orienteer.phase.phasing import phase, phase_starts, prepared_course
from orienteer.phase.schedule import parse_schedule
from orienteer.phase.settings import DEFAULT_SCHEDULE, PhaseSettings
from orienteer.volume.volume import Volume

HOLE_SPECKLES, NOISE, BACKGROUND, OVERSAMPLING = 2.0, 0.1, 0.05, 2.4
FOUND = 0.95
# The objects of bench/blind.py, and others that nothing was chosen with.
OTHERS = (*OBJECTS, "blobs-2", "blobs-3", "blobs-4", "3j03")


@dataclass(frozen=True)
class Problem:
    """An intensity, and the transform (n, n, n) of the density behind it, both centred."""

    intensity: Volume
    transform: Any
    diameter_A: float


def make_problem(
    particle: Particle,
    diameter_A: float,
    edge_A: float,
    *,
    hole: float = HOLE_SPECKLES,
    noise: float = NOISE,
    background: float = 0.0,
    seed: int = 0,
) -> Problem:
    """The intensity of a particle to a resolution, with what an experiment does to it."""
    voxel = 1 / (OVERSAMPLING * diameter_A)
    half = int(1 / edge_A / voxel) + 1
    axis = np.arange(-half, half + 1) * voxel
    transform = particle.amplitude_on_grid(axis)
    q = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    measured = (q <= 1 / edge_A) & (q >= hole / diameter_A)
    values = np.abs(transform) ** 2
    values += background * values[measured].mean()
    scatter = np.random.default_rng(seed).normal(size=values.shape)
    scatter = (scatter + scatter[::-1, ::-1, ::-1]) / 2**0.5  # mates are one measurement
    values *= 1 + noise * scatter
    return Problem(Volume(np.where(measured, values, np.nan), voxel, "reciprocal"), transform, diameter_A)


def truth_on_grid(problem: Problem, data: PhasingData) -> np.ndarray:
    """Transform of the truth (n, n, n // 2 + 1) complex64 on the data's grid, around the voxel n // 2."""
    whole, half = frequencies(data.n)
    reach = len(problem.transform) // 2
    x, z = np.flatnonzero(np.abs(whole) <= reach), np.flatnonzero(half <= reach)
    places = whole[x].astype(int) + reach
    result = np.zeros((data.n, data.n, data.n // 2 + 1), np.complex128)
    # Particles have F = sum exp(+2 pi i q r); the FFT has the other sign.
    result[np.ix_(x, x, z)] = problem.transform[np.ix_(places, places, half[z].astype(int) + reach)].conj()
    ramp = np.exp(-2j * np.pi * (data.n // 2) / data.n * whole)
    return (result * ramp[:, None, None] * ramp[:, None] * ramp[: len(half)].copy()).astype(np.complex64)


def in_power(transforms: Any, measured: Any) -> Any:
    """Transforms with a power of 1 in all over the measured voxels, and nothing elsewhere."""
    xp = array_namespace(transforms)
    kept = transforms * measured
    counts = xp.asarray(voxel_counts(kept.shape[-2]).astype(np.float32))
    power = (xp.abs(kept) ** 2 * counts).sum(axis=(-3, -2, -1), keepdims=True)
    return (kept / xp.sqrt(power)).astype(xp.complex64)


def judge(densities: Any, data: PhasingData, truth: np.ndarray) -> dict[str, Any]:
    """Correlation and mean FSC of every start with the truth, after shift and inversion."""
    target = to_device(truth, data.device)
    transforms = transform_of(densities).astype(np.complex64)
    correlation = align_starts(
        in_power(target[None], data.measured)[0], in_power(transforms, data.measured)
    ).agreement
    fsc = align_starts(
        level_shells(target[None], data.measured)[0], level_shells(transforms, data.measured)
    ).agreement
    return {
        "found": float((correlation >= FOUND).mean()),
        "correlation": np.round(np.sort(correlation), 3).tolist(),
        "mean_fsc": np.round(np.sort(fsc), 3).tolist(),
    }


def speed(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of many starts, and of their FFTs alone."""
    on_gpu = options.device == "cuda"
    n = options.voxels or (128 if on_gpu else 64)
    starts = options.starts or (100 if on_gpu else 10)
    iterations = options.iterations or (1000 if on_gpu else 500)
    # A box of n voxels with 2.4 voxels across a speckle.
    edge = 300 / ((n // 2 - 1.5) / OVERSAMPLING)
    data = phasing_data(make_problem(virus(300), 300, edge).intensity, device=options.device)
    settings = PhaseSettings(starts=starts, schedule=f"{iterations}*raar(0.87)")
    course = Course.of(data, settings)
    volume = course.first_volume / 2

    def wait() -> np.ndarray:
        """Seconds on the clock and of the processor, when all that was asked for is done."""
        if on_gpu:
            import cupy

            cupy.cuda.Device().synchronize()
        return np.array([time.perf_counter(), time.process_time()])

    def once(count: int) -> np.ndarray:
        state = course.start(range(starts), np.full(starts, volume), 0)
        begin = wait()
        course.run(state, parse_schedule(f"{count}*raar(0.87)"), lambda done: None)
        return wait() - begin

    once(2 * course.every + 1)  # compile, and plan the FFTs
    seconds, processor = once(iterations)
    density = course.start(range(starts), np.full(starts, volume), 0).density
    repeats = max(3, min(iterations // 10, 50))
    density_of(transform_of(density))
    begin = wait()
    for _ in range(repeats):
        density_of(transform_of(density))
    floor, processor_floor = (wait() - begin) / repeats * iterations
    # Other work on the machine spoils seconds more than processor time, so both are given.
    own = {"processor_seconds": processor, "processor_seconds_of_the_ffts_alone": processor_floor}
    return {
        **({} if on_gpu else own),
        "problem": f"{starts} starts x {iterations} iterations of RAAR, box of {data.n}^3, supports renewed",
        "seconds": seconds,
        "ms_per_start_and_iteration": 1e3 * seconds / starts / iterations,
        "seconds_of_the_ffts_alone": floor,
        "share_of_the_ffts": floor / seconds,
    }


def settings_of(options: argparse.Namespace) -> PhaseSettings:
    return PhaseSettings(starts=options.starts or 20, schedule=options.schedule)


def make_body(name: str, options: argparse.Namespace) -> tuple[Particle, float, float]:
    """The particle of a name, its diameter and the edge of its data in A; blobs-7 are those of seed 7."""
    kind, _, number = name.partition("-")
    if kind == "blobs" and number:
        return random_blobs(300, 30, seed=int(number)), 300, options.edge or 30
    if name == "3j03":
        structure = open_structure(PDB.with_name("3j03.pdb.gz"))
        return structure, 2 * structure.radius_A, options.edge or 12
    thing = make_object(name, PDB)
    return thing.particle, thing.diameter_A, options.edge or thing.edge_A


def success(name: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Share of the starts of an object that find it, and volumes over the true one."""
    particle, diameter_A, edge_A = make_body(name, options)
    problem = make_problem(particle, diameter_A, edge_A, seed=seed)
    settings = settings_of(options)
    begin = time.process_time()
    data = phasing_data(problem.intensity, settings, seed=seed, device=options.device)
    course, volume = prepared_course(data, settings, seed)
    chosen = time.process_time()
    state = phase_starts(course, settings, volume, seed)
    ended = time.process_time()
    scores, judged = (
        log_likelihood(state.density, state.background, data, use) for use in (data.choosing, data.judging)
    )
    result = conclude(state.density, state.support, state.background, scores, judged, data)
    truth = truth_on_grid(problem, data)
    true_volume = float(filled_voxels(density_of(truth), to_numpy(data.measured)).sum())
    return {
        "object": name,
        "seed": seed,
        "edge_A": edge_A,
        "box": data.n,
        "starts": settings.starts,
        **judge(state.density, data, truth),
        "diameter_over_true": data.diameter_A / diameter_A,
        "support_over_true": volume / true_volume,
        "particle_over_true": result.particle_volume_A3 / data.voxel_A**3 / true_volume,
        "averaged": len(result.clusters.clusters[0]),
        "unseen_error": result.unseen_error,
        "processor_seconds_choosing": chosen - begin,
        "processor_seconds_phasing": ended - chosen,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """What each object and seed gave, a line each."""
    lines = [
        f"{'object':<12}{'seed':>5}{'found':>7}{'mean FSC':>10}{'support':>9}{'particle':>10}{'unseen':>8}"
    ]
    lines += [
        f"{row['object']:<12}{row['seed']:>5}{row['found']:>7.0%}{np.median(row['mean_fsc']):>10.3f}"
        f"{row['support_over_true']:>9.2f}{row['particle_over_true']:>10.3f}{row['unseen_error']:>8.2f}"
        for row in rows
    ]
    return "\n".join(lines)


def background(name: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """What a flat background changes in the density, and in the middle of it."""
    kinds = (0.0, BACKGROUND)
    body = make_body(name, options)
    problems = [make_problem(*body, hole=0.0, noise=0.0, background=flat) for flat in kinds]
    settings = settings_of(options)
    results = [phase(one.intensity, settings, seed=seed, device=options.device) for one in problems]
    data = phasing_data(problems[0].intensity, settings, device="cpu")
    # Beyond the edge of the data, and in the hole, a density is what its support makes of it.
    transforms = [
        transform_of(to_numpy(result.density.values))[None].astype(np.complex64) * data.measured
        for result in results
    ]
    levelled = [level_shells(one, data.measured) for one in transforms]
    found = align_starts(levelled[0][0], levelled[1])
    plain, moved = density_of(transforms[0])[0], density_of(apply_alignment(transforms[1], found))[0]
    # The unit of a density is not known, so both are brought to the same one.
    moved *= (moved * plain).sum() / (moved**2).sum()
    middle = (slice(data.n // 2 - 1, data.n // 2 + 2),) * 3
    spot = moved[middle].mean() - plain[middle].mean()
    truth = (np.abs(problems[0].transform) ** 2)[np.isfinite(to_numpy(problems[0].intensity.values))].mean()
    return {
        "object": name,
        "change": float(np.sqrt(((moved - plain) ** 2).sum() / (plain**2).sum())),
        "middle_over_typical": float(spot / typical_density(plain)),
        "background_over_true": results[1].background / (BACKGROUND * float(truth)),
        "background_without_one": results[0].background / (BACKGROUND * float(truth)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("speed", "success", "background")
    parser.add_argument("--parts", nargs="+", choices=parts, help="default: all on the GPU, speed on the CPU")
    parser.add_argument("--objects", nargs="+", choices=OTHERS, help="default: all; on the CPU the bodies")
    parser.add_argument("--starts", type=int, help="starts of each phasing")
    parser.add_argument("--iterations", type=int, help="of the part speed")
    parser.add_argument("--voxels", type=int, help="along the edge of the box of the part speed")
    parser.add_argument("--edge", type=float, help="resolution in A; default: each object's own")
    parser.add_argument("--schedule", default=DEFAULT_SCHEDULE)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of noise and starts")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    chosen = options.parts or (parts if on_gpu else parts[:1])
    objects = options.objects or (OTHERS if on_gpu else OBJECTS[1:])
    result: dict[str, Any] = {"machine": describe_machine(options.device), "schedule": options.schedule}
    if "speed" in chosen:
        result["speed"] = speed(options)
    for part, work in (("success", success), ("background", background)):
        if part in chosen:
            result[part] = []
            for name, seed in itertools.product(objects, options.seeds):
                result[part].append(work(name, seed, options))
                print(part, result[part][-1], file=sys.stderr, flush=True)
    if "success" in chosen:
        print(table(result["success"]), file=sys.stderr)
    report(f"phase_{options.device}", result, options.keep)


if __name__ == "__main__":
    main()
