"""Fast against exact intensities: relative L2 error of the simulated photons of a large structure.

    python bench/simulate_accuracy.py [--pdb FILE] [--device cuda] [--keep]

128 x 128 pixels, 12 A and 5 A at the middle of a side, 20 random orientations; the exact reference is the
direct sum over atoms in float64.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from machine import describe_machine, report
from orienteer.compute.arrays import DeviceName, to_numpy
from orienteer.detector.beam import Beam
from orienteer.detector.square import square_detector
from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.particle.opening import open_structure
from orienteer.particle.structure import Structure
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings

PDB = Path(__file__).parents[2] / "shared" / "data" / "3iyf.pdb.gz"
BEAM = Beam(photon_energy_eV=4600)


def measure(
    structure: Structure, edge_A: float, n: int, accuracy: float, device: DeviceName
) -> dict[str, Any]:
    """Errors and times for one detector."""
    detector = square_detector(128, distance_m=0.2, edge_resolution_A=edge_A, wavelength_A=BEAM.wavelength_A)
    orientations = random_uniform(n, seed=20)
    start = time.perf_counter()
    settings = SimulateSettings(frames=n, accuracy=accuracy)
    experiment = Experiment(structure, BEAM, detector, settings, orientations=orientations, device=device)
    set_up = time.perf_counter() - start
    fast = to_numpy(experiment.expected(experiment.truth())).astype(np.float64)

    q = detector.q_inv_A(BEAM.wavelength_A)
    errors, start = [], time.perf_counter()
    for k, R in enumerate(to_matrix(orientations)):
        # Row vectors times R are R^T q: the unturned structure is asked where the turned one would be seen.
        amplitude = structure.amplitude(q @ R, BEAM.photon_energy_eV)
        exact = np.abs(amplitude) ** 2 * detector.correction(BEAM.polarisation) * experiment.fluence_r_e2
        errors.append(float(np.linalg.norm(fast[k] - exact) / np.linalg.norm(exact)))
    transform = experiment.scattering.particles[0]
    return {
        "edge_A": edge_A,
        "corner_A": float(1 / np.linalg.norm(q, axis=1).max()),
        "orientations": n,
        "relative_l2_error_mean": float(np.mean(errors)),
        "relative_l2_error_max": float(np.max(errors)),
        "set_up_seconds": set_up,
        "direct_sum_seconds_per_frame": (time.perf_counter() - start) / n,
        "taps": transform.kernel.width**3,
        "oversampling": transform.kernel.oversampling,
        "grid": list(transform.grid.shape),
        "grid_MiB": transform.n_bytes / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pdb", type=Path, default=PDB, help="structure file (default: 3IYF beside the checkout)"
    )
    parser.add_argument(
        "--edge", type=float, nargs="+", default=[12.0, 5.0], help="resolutions at the edge in A"
    )
    parser.add_argument("--orientations", type=int, default=20)
    parser.add_argument("--accuracy", type=float, default=1e-4)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    start = time.perf_counter()
    structure = open_structure(options.pdb)
    cases = [
        measure(structure, edge, options.orientations, options.accuracy, options.device)
        for edge in options.edge
    ]
    result = {
        "problem": f"{options.pdb.name}, {len(structure)} atoms, 128 x 128 pixels, "
        f"accuracy {options.accuracy:g}",
        "machine": describe_machine(options.device),
        "seconds": time.perf_counter() - start,
        "error": max(case["relative_l2_error_max"] for case in cases),
        "cases": cases,
    }
    report(f"simulate_accuracy_{options.device}", result, options.keep)


if __name__ == "__main__":
    main()
