"""How often a reconstruction succeeds with nothing but the frames: objects x photons per frame x seeds.

    python bench/blind.py [--pdb FILE] [--objects virus blobs] [--photons 100 1000] [--frames N]
                          [--seeds 0 1 2] [--device cuda] [--processes N] [--method perfect]
                          [--rows FILE] [--keep]

Each run simulates frames with Poisson noise, reconstructs them with default settings, and turns the result
onto the true intensity.  Success is a mean correlation of 0.9 and more over the shells that carry signal:
those whose speckles a merge with the true orientations resolves (``orienteer.compare.signal``).  The radial
profile is removed first, because every reconstruction gets it right.

Beside each result that falls short stands that of the merge with the true orientations, on the same cube and
over the same shells: no reconstruction can be expected to do much better.  Where even that misses 0.9, the
data do not decide, and the run counts as neither success nor failure.  ``--method perfect`` makes this merge
alone.

Eighty runs take a while.  ``--rows`` names a file to which each run adds its line as it ends; runs that stand
there already are not made again, so that the study goes on where it was stopped.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from machine import add_row, add_rows_option, finished_rows, report_runs
from orienteer.compare.alignment import align_intensities
from orienteer.compare.shells import shell_correlation
from orienteer.compare.signal import SIGNAL_LIMIT, photons_in_shells, shells_with_signal
from orienteer.compute.arrays import Array, to_numpy
from orienteer.compute.card_sharing import shared_card
from orienteer.detector.beam import Beam
from orienteer.detector.masks import PixelUse
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.orientation.quaternion import to_matrix
from orienteer.particle.base import Particle
from orienteer.particle.named_bodies import random_blobs, two_domains, virus
from orienteer.particle.opening import open_structure
from orienteer.reconstruction.model.autocorrelation import WienerFilter
from orienteer.reconstruction.model.radial_profile import estimate_profile
from orienteer.reconstruction.model.relative_intensity import both_friedel, prior_photons, solve
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings
from orienteer.slicing.trilinear import insert_slices
from orienteer.volume.volume import Volume

PDB = Path(__file__).parents[2] / "shared" / "data" / "3iyf.pdb.gz"
BEAM = Beam(photon_energy_eV=4600)
SUCCESS = 0.9
OBJECTS = ("3iyf", "virus", "blobs", "two-domain")
# Orientations over which the photons of a shell are averaged.
_PILOT_FRAMES = 64
# Bright frames are taken in smaller numbers: fewer show every speckle as well.
_BRIGHT, _FEWER_FRAMES = 1e4, 0.2
# Faint frames are taken in larger numbers, by these factors.  Of 100 photons and with 3 times as many, a run
# that begins at the truth keeps a correlation of 0.95 of the blobs, and without its symmetry 0.73 of the
# virus, which is nearly round; blind, the blobs came to 0.86, and to 0.91 with 9 times as many.
_MORE_FRAMES = {
    ("3iyf", 100): 3, ("virus", 100): 10, ("blobs", 100): 10, ("two-domain", 100): 3,
}  # fmt: skip


@dataclass(frozen=True)
class Object:
    """What scatters, its extent, and a detector that shows its speckles on three to four pixels each."""

    particle: Particle
    diameter_A: float
    edge_A: float
    pixels: int


def make_object(name: str, pdb: Path) -> Object:
    """The object of a name in OBJECTS; the bodies show 10 speckles from the centre to the edge."""
    match name:
        case "3iyf":
            structure = open_structure(pdb)
            return Object(structure, 2 * structure.radius_A, edge_A=12, pixels=128)
        case "virus":
            return Object(virus(300), 300, edge_A=30, pixels=64)
        case "blobs":
            return Object(random_blobs(300, 30, seed=1), 300, edge_A=30, pixels=64)
        case _:
            return Object(two_domains(300), 300, edge_A=30, pixels=64)


def true_intensity(particle: Particle, n: int, voxel_inv_A: float) -> Array:
    """|F|^2 on a cube (n, n, n) with its centre at n // 2; NaN in the corners."""
    axis = (np.arange(n) - n // 2) * voxel_inv_A
    points = np.stack([x.ravel() for x in np.meshgrid(axis, axis, axis, indexing="ij")], axis=1)
    transform = SampledTransform.from_particle(particle, n / 2 * voxel_inv_A, BEAM.photon_energy_eV)
    return transform.intensity(points, np.eye(3)).reshape(n, n, n)


def perfect_merge(experiment: Experiment, n: int, voxel_inv_A: float) -> Array:
    """The frames merged with their true orientations, (n, n, n), and filtered as a reconstruction is."""
    used = np.flatnonzero(experiment.detector.mask < PixelUse.NEVER)
    beam = experiment.beam
    points = (experiment.detector.q_inv_A(beam.wavelength_A)[used] / voxel_inv_A).astype(np.float32)
    correction = experiment.detector.correction(beam.polarisation)[used]
    length = experiment.detector.q_length_inv_A(beam.wavelength_A)[used]
    batches = list(experiment.batches(1000))
    photons = sum(to_numpy(batch.dense())[:, used].sum(axis=0, dtype=np.float64) for batch in batches)
    exposure = correction / correction.mean() * experiment.settings.frames
    profile = estimate_profile(length, photons, exposure, voxel_inv_A)
    pixel_weights = (correction / correction.mean() * profile(length)).astype(np.float32)
    halves = np.zeros((2, n, n, n, 2))
    for i, batch in enumerate(batches):
        frames = to_numpy(batch.dense())[:, used].astype(np.float32)
        matrices = np.swapaxes(to_matrix(to_numpy(batch.columns["truth_orientation"])), 1, 2)
        ones = np.ones(len(frames), np.float32)
        insert_slices(halves[i % 2], points, matrices, frames, ones, pixel_weights)
    halves = [both_friedel(half) for half in halves]
    total = halves[0] + halves[1]
    # Frames at single poses leave many voxels nearly empty.
    prior = prior_photons(np.inf)
    keep_signal = WienerFilter(solve(halves[0], prior), solve(halves[1], prior), total[..., 1])
    axis = (np.arange(n) - n // 2) * voxel_inv_A
    radius = np.sqrt(sum(np.square(x) for x in np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)))
    relative = keep_signal(solve(total, prior), total[..., 1], is_half=False)
    return np.where(total[..., 1] > 0, relative * profile(radius), np.nan)


def reconstruct(
    experiment: Experiment, seed: int, device: str, memory_GiB: float = 0.0
) -> tuple[Volume, dict[str, Any]]:
    """The intensity that default settings find, and what it took."""
    from orienteer.reconstruction.emc import Emc
    from orienteer.reconstruction.settings import EmcSettings

    emc = Emc(experiment, EmcSettings(memory_GiB=memory_GiB), seed=seed, device=device)
    notes = []
    while not emc.finished:
        step = emc.step()
        if step.note:
            notes.append(f"{step.iteration}: {step.note}")
    left_out = float((emc.orientations()["model"] < 0).mean())
    told = {
        "iterations": emc.iteration,
        "reason": emc.reason,
        "diameter_A": emc.diameter_A,
        "symmetry": emc.group.name,
        "notes": notes,
        "frames_left_out": left_out,
    }
    return emc.volumes()[0], told


def cube_of(experiment: Experiment) -> tuple[int, float]:
    """Voxels along the edge and voxel size in 1/A of a cube as fine as the pixels that holds them all."""
    q = experiment.detector.q_length_inv_A(BEAM.wavelength_A)
    voxel = float(np.partition(q, 3)[:4].mean()) * 2**0.5  # four pixels around the beam, half a diagonal away
    return 2 * int(np.ceil(q.max() / voxel)) + 3, voxel


def judge(
    experiment: Experiment, thing: Object, values: Array, voxel_inv_A: float, always: bool = False
) -> dict[str, Any]:
    """Correlation of a reconstruction with the truth on the shells with signal.

    That of the perfect merge is there where it matters: the reconstruction fell short; or ``always``.
    """
    n = values.shape[0]
    truth = true_intensity(thing.particle, n, voxel_inv_A)
    radius = experiment.detector.q_length_inv_A(BEAM.wavelength_A) / voxel_inv_A
    pilot = experiment.expected(experiment.truth_sampler.shots(0, _PILOT_FRAMES))
    photons = photons_in_shells(to_numpy(pilot).mean(0) * experiment.settings.frames, radius, n)
    signal = shells_with_signal(truth, photons, 1 / (thing.diameter_A * voxel_inv_A))
    if not signal.any():
        return {"signal_shells": 0, "success": None}
    last = int(np.flatnonzero(signal)[-1])
    aligned = align_intensities(truth, values, last_shell=last)
    correlation = aligned.shells.mean(signal)
    perfect = None
    if correlation < SUCCESS or always:
        perfect = shell_correlation(truth, perfect_merge(experiment, n, voxel_inv_A)).mean(signal)
    is_decided = perfect is None or perfect >= SUCCESS
    return {
        "success": bool(correlation >= SUCCESS) if is_decided else None,
        "correlation": correlation,
        "perfect_correlation": perfect,
        "signal_shells": int(signal.sum()),
        "signal_to_A": 1 / (last * voxel_inv_A),
        "voxels": n,
    }


def frames_of(name: str, photons: float, options: argparse.Namespace) -> int:
    """How many frames a run takes."""
    factor = _FEWER_FRAMES if photons >= _BRIGHT else _MORE_FRAMES.get((name, int(photons)), 1)
    return int(options.frames * factor)


def run_one(name: str, photons: float, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One reconstruction and its verdict."""
    thing = make_object(name, options.pdb)
    detector = square_detector(
        thing.pixels, distance_m=0.2, edge_resolution_A=thing.edge_A, wavelength_A=BEAM.wavelength_A
    )
    frames = frames_of(name, photons, options)
    settings = SimulateSettings(frames=frames, photons_per_frame=photons, seed=seed)
    experiment = Experiment(thing.particle, BEAM, detector, settings, device=options.device)
    row: dict[str, Any] = {"object": name, "photons": photons, "frames": frames, "seed": seed}
    start = time.perf_counter()
    try:
        if options.method == "perfect":
            n, voxel = cube_of(experiment)
            values = perfect_merge(experiment, n, voxel)
        else:
            volume, told = reconstruct(experiment, seed, options.device, options.memory_GiB)
            row |= told
            values, voxel = to_numpy(volume.values), volume.voxel_size[0]
        row["seconds"] = time.perf_counter() - start
        return row | judge(experiment, thing, values, voxel)
    except OrienteerError as error:  # a run that gives up has not succeeded, and the others go on
        return row | {"success": False, "error": str(error), "seconds": time.perf_counter() - start}


def table(rows: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Successes among the runs that the data can decide, by object and photons per frame."""
    result: dict[str, dict[str, str]] = {}
    for row in rows:
        alike = [r for r in rows if (r["object"], r["photons"]) == (row["object"], row["photons"])]
        judged = [r["success"] for r in alike if r["success"] is not None]
        text = f"{sum(judged)}/{len(judged)}" if judged else "undecided"
        result.setdefault(row["object"], {})[f"{row['photons']:g}"] = text
    return result


def run_all(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All runs, several at a time: a small run leaves most of a GPU to others."""
    done = finished_rows(options)
    yield from done
    kinds = [
        (name, photons, seed, options)
        for seed in options.seeds
        for name in options.objects
        for photons in options.photons
        if (name, photons, seed) not in {(row["object"], row["photons"], row["seed"]) for row in done}
    ]
    # Runs that take long begin first, so that none is left alone at the end.
    kinds.sort(key=lambda kind: kind[0] != "3iyf" and (kind[0], kind[1]) not in _MORE_FRAMES)
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for row in pool.imap_unordered(_run_kind, kinds):
            print({key: row.get(key) for key in ("object", "photons", "seed", "success", "correlation",
                  "perfect_correlation", "diameter_A", "iterations", "frames_left_out", "seconds", "error",
                  "broken")},
                  file=sys.stderr, flush=True)  # fmt: skip
            if "broken" not in row:
                add_row(options, row)
            yield row


def _run_kind(kind: tuple[str, float, int, argparse.Namespace]) -> dict[str, Any]:
    try:
        return run_one(*kind)
    except Exception as error:  # the others go on; this one is made again when the study is
        name, photons, seed, _ = kind
        problem = f"{type(error).__name__}: {error}"
        return {"object": name, "photons": photons, "seed": seed, "success": None, "broken": problem}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pdb", type=Path, default=PDB, help="structure file of 3iyf (default: beside the checkout)"
    )
    parser.add_argument(
        "--objects", nargs="+", choices=OBJECTS, help="default: all on the GPU, all but 3iyf on the CPU"
    )
    parser.add_argument("--photons", nargs="+", type=float, default=[1e2, 1e3, 1e4, 1e5], help="per frame")
    parser.add_argument("--frames", type=int, help="default: 10 000 on the GPU, 2 000 on the CPU")
    parser.add_argument("--seeds", type=int, nargs="+", help="default: 0 to 4 on the GPU, 0 on the CPU")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--processes", type=int, help="runs at a time; default: 10 on the GPU, 1 on the CPU")
    parser.add_argument("--method", choices=["emc", "perfect"], default="emc")
    parser.add_argument(
        "--memory-GiB", type=float, default=0.0, help="that scores and slices of a run may take"
    )
    add_rows_option(parser)
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    options.objects = options.objects or (OBJECTS if on_gpu else OBJECTS[1:])
    options.frames = options.frames or (10_000 if on_gpu else 2_000)
    options.seeds = options.seeds or list(range(5 if on_gpu else 1))
    options.processes = options.processes or (10 if on_gpu else 1)
    began = time.perf_counter()
    with shared_card() if on_gpu else nullcontext():
        rows = list(run_all(options))
    problem = (
        f"{options.frames} frames with Poisson noise (more of faint and fewer of bright ones: each run says "
        f"how many), default settings; success: mean correlation >= {SUCCESS} over shells with a signal over "
        f"noise of {SIGNAL_LIMIT:g} and more per Shannon voxel"
    )
    name = f"blind_{options.method}_{options.device}"
    report_runs(name, problem, began, options, method=options.method, successes=table(rows), runs=rows)


if __name__ == "__main__":
    main()
