"""Simulated frames per second with Poisson noise, after set-up, and to disk apart.

    python bench/simulate_rate.py [--pdb FILE] [--device cuda] [--frames N] [--keep]

128 x 128 pixels, 12 A at the middle of a side.  On the GPU the kernels are also timed one by one, for all
variants of the interpolation (taps per axis, order of the pixels).
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from machine import describe_machine, report
from orienteer.compute.arrays import to_numpy
from orienteer.detector.beam import Beam
from orienteer.detector.square import square_detector
from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.orientation.quaternion import to_matrix
from orienteer.particle.opening import open_structure
from orienteer.particle.structure import Structure
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.photons import draw_photons, list_photons
from orienteer.simulation.settings import SimulateSettings
from orienteer.source.opening import writer_for

PDB = Path(__file__).parents[2] / "shared" / "data" / "3iyf.pdb.gz"
BEAM = Beam(photon_energy_eV=4600)
DETECTOR = square_detector(128, distance_m=0.2, edge_resolution_A=12, wavelength_A=BEAM.wavelength_A)
SKOPI_SECONDS_PER_FRAME = 58.6  # direct sum, same structure and pixels, measured on one core


def seconds_of(work: Callable[[], Any], device: str, repeats: int = 3) -> float:
    """Least seconds of several runs, the device's queue included."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        if device == "cuda":
            import cupy

            cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(structure: Structure, options: argparse.Namespace) -> dict[str, Any]:
    """Set-up, rate, rate to disk, and the exact sum beside them."""
    settings = SimulateSettings(frames=options.frames, accuracy=options.accuracy, photons_per_frame=565)
    start = time.perf_counter()
    experiment = Experiment(structure, BEAM, DETECTOR, settings, device=options.device)
    photons = experiment.patterns(0, 1).photons
    set_up = time.perf_counter() - start

    def make_all() -> None:
        for batch in experiment.batches(device=options.device):
            len(batch)

    make_all()
    made = seconds_of(make_all, options.device)
    processor = time.process_time()
    make_all()
    processor = time.process_time() - processor

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        path = Path(folder) / "frames.h5"
        with writer_for(path, "Orienteer", detector=experiment.detector) as writer:
            for batch in experiment.batches():
                writer.append(batch)
        written = time.perf_counter() - start
        size = path.stat().st_size

    truth = experiment.truth(0, options.exact_frames)
    fast = to_numpy(experiment.expected(truth)).astype(np.float64)
    start = time.perf_counter()
    q = DETECTOR.q_inv_A(BEAM.wavelength_A)
    scale = DETECTOR.correction(BEAM.polarisation) * experiment.fluence_r_e2
    exact = np.array(
        [
            np.abs(structure.amplitude(q @ R, BEAM.photon_energy_eV)) ** 2 * scale
            for R in to_matrix(truth.orientation[:, 0])
        ]
    )
    direct = (time.perf_counter() - start) / options.exact_frames
    transform = experiment.scattering.particles[0]
    return {
        "seconds": made,
        "error": float((np.linalg.norm(fast - exact, axis=1) / np.linalg.norm(exact, axis=1)).max()),
        "frames_per_second": options.frames / made,
        "frames_per_processor_second": options.frames / processor,
        "set_up_seconds": set_up,
        "frames_per_second_to_disk": options.frames / written,
        "bytes_per_frame_on_disk": size / options.frames,
        "batch": experiment.frames_per_batch,
        "photons_of_first_frame": int(photons[0]),
        "direct_sum_seconds_per_frame": direct,
        "times_faster_than_own_direct_sum": direct * options.frames / made,
        "times_faster_than_skopi_direct_sum": SKOPI_SECONDS_PER_FRAME * options.frames / made,
        "taps": transform.kernel.width**3,
        "grid_MiB": transform.n_bytes / 2**20,
    }


def time_kernels(structure: Structure, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Seconds per kernel for every variant of the interpolation, on the GPU."""
    import cupy

    n_frames = 4096
    q_max = float(DETECTOR.q_length_inv_A(BEAM.wavelength_A).max())
    experiment = Experiment(structure, BEAM, DETECTOR, SimulateSettings(photons_per_frame=565), device="cuda")
    truth = experiment.truth(0, n_frames)
    matrices = np.swapaxes(to_matrix(truth.orientation[:, 0]), 1, 2) / BEAM.wavelength_A
    points, scale = experiment.scattering.points, experiment.scattering.correction
    weights = np.full(n_frames, experiment.fluence_r_e2)
    event_id = cupy.arange(n_frames, dtype=cupy.uint64)
    out = cupy.empty((n_frames, DETECTOR.n_pixels), cupy.float32)
    rows = []
    for width in (4, 5, 6):
        transform = SampledTransform.from_particle(
            structure, q_max, BEAM.photon_energy_eV, error=options.accuracy, width=width, device="cuda"
        )
        for order in (None, experiment.scattering.order):

            def interpolate(transform: Any = transform, order: Any = order) -> None:
                transform.intensity(points, matrices, scale, weights, out, order=order)

            interpolate()
            seconds = seconds_of(interpolate, "cuda", 5)
            rows.append({
                "width": width, "patches": order is not None,
                "grid_MiB": transform.n_bytes / 2**20,
                "interpolate_frames_per_second": n_frames / seconds,
                "points_per_second": n_frames * DETECTOR.n_pixels / seconds,
            })  # fmt: skip
    draw_photons(out, 1, event_id)
    seconds = seconds_of(lambda: draw_photons(out, 1, event_id), "cuda", 5)
    counts = draw_photons(out, 1, event_id)
    list_photons(counts)
    listing = seconds_of(lambda: list_photons(counts), "cuda", 5)
    rows.append(
        {"photons_frames_per_second": n_frames / seconds, "list_frames_per_second": n_frames / listing}
    )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pdb", type=Path, default=PDB, help="structure file (default: 3IYF beside the checkout)"
    )
    parser.add_argument(
        "--frames", type=int, default=None, help="frames to make (4 000 on the CPU, 200 000 on the GPU)"
    )
    parser.add_argument("--exact-frames", type=int, default=3, help="frames compared with the direct sum")
    parser.add_argument("--accuracy", type=float, default=1e-4)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    options.frames = options.frames or (4_000 if options.device == "cpu" else 200_000)
    structure = open_structure(options.pdb)
    result = {
        "problem": f"{options.pdb.name}, {len(structure)} atoms, 128 x 128 pixels, 12 A at the edge, "
        f"{options.frames} frames of 565 photons with Poisson noise, accuracy {options.accuracy:g}",
        "machine": describe_machine(options.device),
        **measure(structure, options),
    }
    if options.device == "cuda":
        result["kernels"] = time_kernels(structure, options)
    report(f"simulate_rate_{options.device}", result, options.keep)


if __name__ == "__main__":
    main()
