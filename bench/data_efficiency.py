"""What EMC and M-TIP make of the same frames: resolution against number of frames and photons.

    python bench/data_efficiency.py [--objects blobs] [--frames 300 1000 3000] [--photons 100 300 1000 3000]
                                    [--pixels N] [--edge A] [--seeds N] [--minutes N] [--device cuda]
                                    [--rows FILE] [--keep]

Each cell of the table is one experiment with Poisson noise, whose frames both methods reconstruct from a
random start with default settings.  Told are, against the true intensity and beside its radial mean: the mean
correlation over all shells to the edge, and the full-period resolution to which it stays above 0.5.  Beside
them stands what the methods themselves say: to what their halves agree, and how much likelier frames have
become that were never merged.  The truth is used for nothing else.  ``--minutes`` begins no further cell
after so long; cells are done from the cheapest on.
"""

import argparse
import sys
import time
from typing import Any

from blind import BEAM, OBJECTS, PDB, Object, make_object
from machine import add_row, add_rows_option, finished_rows, report_runs
from orienteer.compare.comparison import compare
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.mtip.mtip import Mtip
from orienteer.mtip.settings import MtipSettings
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings
from orienteer.source.in_memory import InMemorySource

METHODS = {"emc": (Emc, EmcSettings), "mtip": (Mtip, MtipSettings)}


def make_frames(
    thing: Object, n_frames: int, photons: float, seed: int, options: argparse.Namespace
) -> InMemorySource:
    """The frames of one experiment, which both methods get."""
    detector = square_detector(
        options.pixels, distance_m=0.2, edge_resolution_A=options.edge, wavelength_A=BEAM.wavelength_A
    )
    settings = SimulateSettings(frames=n_frames, photons_per_frame=photons, seed=seed)
    experiment = Experiment(thing.particle, BEAM, detector, settings, device=options.device)
    return InMemorySource(experiment.read(), detector.frame_shape).with_detector(detector)


def reconstruct(
    method: str, source: InMemorySource, thing: Object, seed: int, options: argparse.Namespace
) -> dict[str, Any]:
    """One method on the frames of a cell, against the truth."""
    kind, section = METHODS[method]
    began = time.process_time()
    try:
        run: Emc = kind(source, section(resolution_A=options.edge), seed=seed, device=options.device)
        while not run.finished:
            step = run.step()
        found = compare(thing.particle, run.volumes()[0], criterion="0.5")
    except OrienteerError as error:  # it has failed, and the others go on
        return {"method": method, "error": str(error)}
    return {
        "method": method,
        "correlation": round(found.correlation, 4),
        "resolution_A": found.resolution.resolution_A,
        "halves_agree_to_A": step.agrees_to_A,
        "sentinel_gain_nats": step.sentinel_gain_nats,
        "poses_per_frame": step.perplexity,
        "diameter_A": run.diameter_A,
        "iterations": step.iteration,
        "reason": run.reason,
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--objects", nargs="+", choices=OBJECTS, default=["blobs"])
    parser.add_argument("--pdb", default=PDB, help="structure file of 3iyf")
    parser.add_argument("--frames", type=int, nargs="+", default=[300, 1000, 3000])
    parser.add_argument("--photons", type=float, nargs="+", default=[100, 300, 1000, 3000], help="per frame")
    parser.add_argument("--pixels", type=int, default=48, help="along an edge")
    parser.add_argument("--edge", type=float, default=40.0, help="A, of the detector")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="after which no further cell begins")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    add_rows_option(parser)
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    began = time.perf_counter()
    rows = finished_rows(options)
    done = {(row["object"], row["frames"], row["photons"], row["seed"], row["method"]) for row in rows}
    things = {name: make_object(name, options.pdb) for name in options.objects}
    cells = [
        (seed, n_frames, photons, name)
        for seed in range(options.seeds)
        for n_frames in sorted(options.frames)
        for photons in sorted(options.photons)
        for name in options.objects
    ]
    for seed, n_frames, photons, name in cells:
        if time.perf_counter() - began > 60 * options.minutes:
            break
        methods = [method for method in METHODS if (name, n_frames, photons, seed, method) not in done]
        if not methods:
            continue
        source = make_frames(things[name], n_frames, photons, seed, options)
        for method in methods:
            row = {"object": name, "frames": n_frames, "photons": photons, "seed": seed}
            rows.append(row | reconstruct(method, source, things[name], seed, options))
            print(rows[-1], file=sys.stderr, flush=True)
            add_row(options, rows[-1])
    problem = (
        f"{options.pixels} x {options.pixels} pixels, {options.edge:g} A at the edge, Poisson noise, default "
        "settings, random starts; correlation of speckles with the truth over all shells to the edge"
    )
    report_runs(f"data_efficiency_{options.device}", problem, began, options, runs=rows)


if __name__ == "__main__":
    main()
