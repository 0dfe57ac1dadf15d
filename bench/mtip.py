"""M-TIP: blind resolution and time, against EMC on the same frames; and the rate of matching.

    python bench/mtip.py blind    [--device cuda] [--object 3iyf] [--frames N ...] [--photons N]
                                  [--noise-free] [--methods mtip emc] [--seeds N] [--edge A] [--pixels N]
                                  [--pdb FILE] [--rows FILE] [--keep]
    python bench/mtip.py matching [--device cuda] [--orientations K ...] [--frames D] [--pixels P] [--keep]

blind: frames are simulated and reconstructed from a random start with default settings, and the intensity is
phased.  Resolution is where the Fourier shell correlation with the particle falls below 0.5; the particle is
used for nothing else.  Asked of one H200: 10 000 frames of 3IYF, without noise and of 1 000 photons, 12.2 A
in 3 minutes, five seeds of five.  With several numbers of frames and both methods it is the table of what
each makes of few frames.

matching: slices of K orientations are made from one model and matched with D frames, every frame keeping its
best.  Asked of one H200: 1 048 576 orientations, 2 500 frames and 16 384 pixels in 1 s, and times linear in
the orientations from 64 000 on.

What merging takes is measured by ``merging.py``.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import orienteer
from blind import BEAM, OBJECTS, PDB, Object, make_object
from density import judge, timed
from machine import add_row, add_rows_option, describe_machine, finished_rows, report, report_runs
from orienteer.compute.arrays import namespace_of_device
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.mtip.matching import match
from orienteer.mtip.settings import MtipSettings
from orienteer.orientation.quaternion import to_matrix
from orienteer.orientation.super_fibonacci import super_fibonacci
from orienteer.phase.settings import PhaseSettings
from orienteer.reconstruction.benchmark import made_up
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.rows import Poses, RowSpace
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.stopwatch import Stopwatch
from orienteer.run.run import Run
from orienteer.simulation.settings import SimulateSettings
from orienteer.validate.half_phasing import phase_run

GOAL_SECONDS, GOAL_RESOLUTION_A, GOAL_MATCHING_SECONDS = 180.0, 12.2, 1.0
SETTINGS = {"emc": EmcSettings, "mtip": MtipSettings}
MATCHING = {"cpu": ([4_000, 8_000], 100, 1024), "cuda": ([64_000, 262_144, 1_048_576], 2_500, 16_384)}


def write_frames(path: Path, thing: Object, n_frames: int, seed: int, options: argparse.Namespace) -> None:
    """Simulate an experiment into a file, with or without noise."""
    detector = square_detector(
        thing.pixels, distance_m=0.2, edge_resolution_A=thing.edge_A, wavelength_A=BEAM.wavelength_A
    )
    settings = SimulateSettings(
        frames=n_frames, photons_per_frame=options.photons, seed=seed, poisson=not options.noise_free
    )
    experiment = orienteer.Experiment(thing.particle, BEAM, detector, settings, device=options.device)
    with orienteer.writer_for(path, like=experiment) as writer:
        for batch in experiment.batches():
            writer.append(batch)


def reconstruct(
    frames: Path, folder: Path, method: str, thing: Object, seed: int, options: argparse.Namespace
) -> dict[str, Any]:
    """From the file of frames to a density that is compared with the particle."""
    seconds: dict[str, float] = {}
    row: dict[str, Any] = {"method": method, "seed": seed}
    try:
        with timed(seconds, "reconstruct_seconds"):
            settings = SETTINGS[method](resolution_A=thing.edge_A)
            run = Run.create(
                folder, orienteer.open(frames), settings, seed=seed, device=options.device, method=method
            )
            steps = list(run.iterate())
        with timed(seconds, "phase_seconds"):
            found = phase_run(run, PhaseSettings(), device=options.device)
    except OrienteerError as error:  # a run that gives up has not succeeded, and the others go on
        return row | seconds | {"success": False, "error": str(error)}
    row |= seconds | {"iterations": len(steps), "halves_agree_to_A": steps[-1].agrees_to_A}  # type: ignore[attr-defined]
    row |= judge(found, thing, options.device)
    in_time = sum(seconds.values()) <= GOAL_SECONDS
    is_fine = row["resolution_A"] is not None and row["resolution_A"] <= GOAL_RESOLUTION_A / 12 * thing.edge_A
    return row | {"success": bool(in_time and is_fine)}


def measure_blind(options: argparse.Namespace) -> None:
    began = time.perf_counter()
    own = make_object(options.object, options.pdb)
    thing = Object(own.particle, own.diameter_A, options.edge or own.edge_A, options.pixels or own.pixels)
    rows = finished_rows(options)
    done = {(row["frames"], row["seed"], row["method"]) for row in rows}
    for n_frames in options.frames or [10_000]:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            methods = [method for method in options.methods if (n_frames, seed, method) not in done]
            if not methods:
                continue
            with tempfile.TemporaryDirectory() as place:
                frames = Path(place) / "frames.h5"
                write_frames(frames, thing, n_frames, seed, options)
                for method in methods:
                    row = reconstruct(frames, Path(place) / method, method, thing, seed, options)
                    rows.append({"frames": n_frames, **row})
                    print(rows[-1], file=sys.stderr, flush=True)
                    add_row(options, rows[-1])
    noise = "without noise" if options.noise_free else "with Poisson noise"
    problem = (
        f"frames of {options.photons:g} photons of {options.object} {noise}, {thing.pixels}^2 pixels, "
        f"{thing.edge_A:g} A at the edge"
    )
    successes = {}
    for method in options.methods:
        own_rows = [row["success"] for row in rows if row["method"] == method]
        successes[method] = f"{sum(own_rows)}/{len(own_rows)}"
    name = f"mtip_blind{'_noise_free' if options.noise_free else ''}_{options.device}"
    report_runs(name, problem, began, options, successes=successes, runs=rows)


def measure_matching(options: argparse.Namespace) -> None:
    numbers, frames, pixels = MATCHING[options.device]
    frames, pixels = (options.frames or [frames])[0], options.pixels or pixels
    problem, truth, _ = made_up(frames, pixels, 2, "gaussian", options.device, 0, options.photons)
    xp: Any = namespace_of_device(options.device)
    batch, expander = problem._batch(problem._prepared[0]), Expander(truth[None], problem._points)
    result: dict[str, Any] = {
        "problem": f"{len(batch)} frames of {pixels} pixels, squared distances with a scale for each frame",
        "machine": describe_machine(options.device),
        "asked_seconds": GOAL_MATCHING_SECONDS,
    }
    for n_poses in options.orientations or numbers:
        matrices = np.swapaxes(to_matrix(super_fibonacci(n_poses).quaternions), 1, 2).astype(np.float32)
        poses = Poses(xp.asarray(np.ascontiguousarray(matrices)), xp.zeros(n_poses, dtype=np.float32))
        rows = RowSpace(
            poses, 1, poses.log_weights, tile_rows=problem.plan.tile_rows if options.device == "cpu" else 4096
        )
        seconds = []
        for _ in range(options.repeats + 1):  # the first one compiles
            with Stopwatch(options.device == "cuda") as watch:
                start = watch.now()
                match(problem.likelihood, expander, rows, batch)
                watch.note("match", start)
            seconds.append(watch.seconds()["match"])
        best = min(seconds[1:])
        result[f"{n_poses} orientations"] = {"seconds": best, "per_orientation_us": 1e6 * best / n_poses}
    report(f"mtip_matching_{options.device}", result, options.keep)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["blind", "matching"], nargs="?", default="matching")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--pdb", type=Path, default=PDB, help="structure file of 3iyf")
    parser.add_argument("--object", choices=OBJECTS, default="3iyf")
    parser.add_argument("--methods", choices=sorted(SETTINGS), nargs="+", default=["mtip"])
    parser.add_argument(
        "--frames", type=int, nargs="+", help="10 000 for blind; 100 (CPU), 2 500 for matching"
    )
    parser.add_argument("--photons", type=float, default=1_000.0, help="per frame")
    parser.add_argument("--noise-free", action="store_true", help="frames are the expected photons")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--edge", type=float, default=0.0, help="A, of the detector (default: of the object)")
    parser.add_argument("--pixels", type=int, default=0, help="along an edge; of a frame for matching")
    parser.add_argument("--orientations", type=int, nargs="+", help="to match with")
    parser.add_argument("--repeats", type=int, default=3)
    add_rows_option(parser)
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    measure_blind(options) if options.what == "blind" else measure_matching(options)


if __name__ == "__main__":
    main()
