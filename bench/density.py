"""From frames to a validated density: how long every stage takes, and how good the density is.

    python bench/density.py [--frames N] [--photons N] [--seeds N] [--first-seed N] [--device cuda]
                            [--object 3iyf] [--edge A] [--pixels N] [--diameter A] [--level N]
                            [--pdb FILE] [--keep]

Each run simulates frames with Poisson noise and writes them to a file.  From there on nothing but that file
is known: reconstruct, phase, validate (both halves to density, FSC, errors of voxels) and report, each with
default settings but for the resolution, which ends at the edge of the detector.  Then the density is compared
with the particle: the resolution where the Fourier shell correlation falls below 0.5, and its value in the
last shell that lies wholly inside the edge, with no mask.  Goal for 10 000 frames of 2 000 photons of 3IYF on
one H200: 30 s from the file to the report, 12.2 A, 0.85 at the edge, for five seeds of five.

The halves come first, and the run of all frames begins with the map on which they agree
(orienteer.validate.halves_first).  Seconds are of the wall clock; ``parts`` are those of the validation, and
``stages`` the iterations and their seconds in every stage of the run and of the halves.  On a GPU each half
has a process of its own, and the run is phased in another while the halves are compared.  The first run on
a machine also compiles all kernels, which its row says.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import orienteer
from blind import BEAM, OBJECTS, PDB, Object, make_object
from machine import report_runs
from orienteer.compare.comparison import compare
from orienteer.compute.arrays import DeviceName, to_device
from orienteer.compute.card_sharing import shared_card
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.phase.result import Phasing
from orienteer.phase.settings import PhaseSettings
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.stopwatch import Stopwatch
from orienteer.report.page import write_report
from orienteer.run.run import Run
from orienteer.simulation.settings import SimulateSettings
from orienteer.validate.validation import PARTS
from orienteer.validate.whole_way import STAGES, go_the_whole_way

# Folders of the halves below that of a run.
HALVES = ("validation/half_1", "validation/half_2")
GOAL_SECONDS, GOAL_RESOLUTION_A, GOAL_AT_EDGE = 30.0, 12.2, 0.85


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Note the seconds that a stage takes."""
    start = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - start


def write_frames(path: Path, thing: Object, options: argparse.Namespace, seed: int) -> None:
    """Simulate the frames of an experiment into a file."""
    detector = square_detector(
        thing.pixels, distance_m=0.2, edge_resolution_A=thing.edge_A, wavelength_A=BEAM.wavelength_A
    )
    settings = SimulateSettings(frames=options.frames, photons_per_frame=options.photons, seed=seed)
    experiment = orienteer.Experiment(thing.particle, BEAM, detector, settings, device=options.device)
    with orienteer.writer_for(path, like=experiment) as writer:
        for batch in experiment.batches():
            writer.append(batch)


def judge(found: Phasing, thing: Object, device: DeviceName) -> dict[str, Any]:
    """The density beside the particle, which is used only here."""
    density = replace(found.density, values=to_device(found.density.values, device))
    compared = compare(thing.particle, density)
    q, correlation = compared.curve.q_inv_A, compared.curve.correlation
    inside = np.flatnonzero(q + q[1] / 2 <= 1 / thing.edge_A * (1 + 1e-6))
    return {
        "resolution_A": compared.resolution.resolution_A,
        "at_edge": float(correlation[inside[-1]]),
        "mean_fsc": float(np.nanmean(correlation[inside[1:]])),
        "correlation": compared.correlation,
    }


def from_file_to_report(
    frames: Path,
    folder: Path,
    edge_A: float,
    diameter_A: float,
    seed: int,
    device: DeviceName,
    level: int = 0,
) -> tuple[Phasing, dict[str, Any]]:
    """From the file of frames to the report; the density, and what was claimed and how long it took."""
    seconds: dict[str, float] = {}
    settings, phasing = (
        EmcSettings(resolution_A=edge_A, diameter_A=diameter_A, level=level),
        PhaseSettings(diameter_A=diameter_A),
    )
    with timed(seconds, "way"), Stopwatch() as watch:
        run = Run.create(folder, orienteer.open(frames), settings, seed=seed, device=device)
        found, validation = go_the_whole_way(run, phasing=phasing, device=device)
    with timed(seconds, "report"):
        page = write_report(run.path)
    parts = watch.seconds()
    return found, {
        "seconds": sum(seconds.values()),
        **{f"{name.replace(' ', '_')}_seconds": parts.get(name, 0.0) for name in STAGES},
        "report_seconds": seconds["report"],
        "parts": {name: parts.get(name, 0.0) for name in PARTS},
        "iterations": run.iteration,
        "stages": {folder: stages_of(Run.open(run.path / folder)) for folder in (".", *HALVES)},
        "voxels": found.density.shape[0],
        "claim": validation.statement,
        "claim_A": validation.resolution_A,
        "densities_A": validation.densities_agree_to_A,
        "speckles_A": validation.speckles_agree_to_A,
        "remarks": [*found.remarks, *validation.remarks],
        "report_bytes": page.stat().st_size,
    }


def stages_of(run: Run) -> list[tuple[int, float]]:
    """Iterations of each stage of a run, and the seconds that they took."""
    steps = run.steps
    return [
        (len(own), round(sum(step["seconds"] for step in own), 2))
        for own in ([step for step in steps if step["stage"] == n + 1] for n in range(steps[-1]["n_stages"]))
    ]


def count_kernels() -> int:
    """Kernels of the GPU that are kept, compiled, for every process of this user."""
    folder = Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")
    return sum(1 for _ in folder.rglob("*.cubin")) if folder.exists() else 0


def run_one(thing: Object, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One experiment from its frames to the verdict."""
    row: dict[str, Any] = {"seed": seed}
    n_compiled = count_kernels()
    with tempfile.TemporaryDirectory() as place:
        frames = Path(place) / "frames.h5"
        with timed(row, "simulate_seconds"):
            write_frames(frames, thing, options, seed)
        try:
            density, told = from_file_to_report(
                frames, Path(place) / "run", thing.edge_A, options.diameter, seed, options.device,
                options.level,
            )  # fmt: skip
        except OrienteerError as error:  # a run that gives up has not succeeded, and the others go on
            return row | {"success": False, "error": str(error)}
    row |= {"compiles": count_kernels() > n_compiled} | told | judge(density, thing, options.device)
    resolution_A = row["resolution_A"]
    # The goal is stated for data to 12 A, and scales with their edge.
    is_fine = resolution_A is not None and resolution_A <= GOAL_RESOLUTION_A / 12 * thing.edge_A
    return row | {"success": bool(is_fine and row["at_edge"] >= GOAL_AT_EDGE)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pdb", type=Path, default=PDB, help="structure file of 3iyf (default: beside the checkout)"
    )
    parser.add_argument("--object", choices=OBJECTS, default="3iyf")
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--photons", type=float, default=2_000.0, help="per frame")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--edge", type=float, default=0.0, help="A, of the detector (default: of the object)")
    parser.add_argument("--pixels", type=int, default=0, help="along an edge (default: of the object)")
    parser.add_argument(
        "--diameter", type=float, default=0.0, help="A, told beforehand (default: nothing is)"
    )
    parser.add_argument(
        "--level", type=int, default=0, help="finest grid of orientations (default: as needed)"
    )
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    began = time.perf_counter()
    own = make_object(options.object, options.pdb)
    thing = Object(own.particle, own.diameter_A, options.edge or own.edge_A, options.pixels or own.pixels)
    rows = []
    with shared_card() if options.device == "cuda" else nullcontext(False) as is_shared:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            rows.append(run_one(thing, seed, options))
            print(rows[-1], file=sys.stderr, flush=True)
    problem = (
        f"{options.frames} Poisson frames of {options.photons:g} photons of {options.object}, "
        f"{thing.pixels}^2 pixels, {thing.edge_A:g} A at the edge; success: {GOAL_RESOLUTION_A / 12:.3f} of "
        f"that at FSC 0.5 against the particle, and an FSC of {GOAL_AT_EDGE} at the edge"
    )
    successes = f"{sum(row['success'] for row in rows)}/{len(rows)}"
    in_time = f"{sum(row.get('seconds', np.inf) <= GOAL_SECONDS for row in rows)}/{len(rows)}"
    report_runs(
        f"density_{options.device}", problem, began, options, successes=successes, in_time=in_time,
        card_is_shared=is_shared, runs=rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
