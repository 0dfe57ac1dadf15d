"""How well mixtures of states are told apart, with nothing but the frames.

    python bench/conformations.py [--device cuda] [--cases two-50 minority-300 auto-3]
                                  [--frames N] [--seeds N] [--resolution A] [--pixels N] [--no-maps]
                                  [--rows FILE] [--keep]

The states are the open and the closed form of a chaperonin, 3J03 and 3IYF, and, for three, the middle of the
path between them.  Each case simulates frames with Poisson noise, reconstructs them with default settings but
for the number of models, which ``auto`` leaves open, and pairs models and states such that most frames
agree.  Told are the share of frames in the right state, and of each state the share that was found of it, the
occupancy, and, from 1 000 photons per frame on, the resolution of its map: phased, and compared with the
atoms at FSC 0.5.
"""

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from machine import add_row, add_rows_option, finished_rows, report_runs
from orienteer.compare.comparison import compare
from orienteer.compute.arrays import to_device, to_numpy
from orienteer.detector.beam import Beam
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.particle.conformations import Ensemble, ensemble_on_path
from orienteer.particle.opening import open_structure
from orienteer.phase.phasing import phase
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings
from orienteer.volume.volume import Volume

DATA = Path(__file__).parents[2] / "shared" / "data"
BEAM = Beam(photon_energy_eV=4600)
_BATCH = 2000
# Photons per frame from which 10 000 frames make a map worth phasing.
_ENOUGH_FOR_A_MAP = 1000.0


@dataclass(frozen=True)
class Case:
    """A mixture, and what is said about it.

    photons : per frame, in the mean.
    states : places on the path from 3IYF (0) to 3J03 (1); weights : how often each occurs.
    models : as in the settings.
    """

    photons: float
    states: tuple[float, ...]
    weights: tuple[float, ...]
    models: int | Literal["auto"]


CASES = {
    **{f"two-{photons}": Case(photons, (0, 1), (0.5, 0.5), 2) for photons in (50, 100, 300, 1000)},
    "minority-300": Case(300, (0, 1), (0.95, 0.05), 2),
    "path-1000": Case(1000, (0, 0.5, 1), (1 / 3, 1 / 3, 1 / 3), 3),
    "auto-1": Case(1000, (0,), (1,), "auto"),
    "auto-2": Case(1000, (0, 1), (0.5, 0.5), "auto"),
    "auto-3": Case(1000, (0, 0.5, 1), (1 / 3, 1 / 3, 1 / 3), "auto"),
}


def make_ensemble(case: Case, data: Path) -> Ensemble:
    """The states of a case: the two structures as they are, or three states of the atoms both hold."""
    ends = [open_structure(data / name) for name in ("3iyf.pdb.gz", "3j03.pdb.gz")]
    if all(place in (0, 1) for place in case.states):
        particles = tuple(ends[int(place)] for place in case.states)
        return Ensemble(particles, np.array(case.weights), tuple(f"{place:g}" for place in case.states))
    return ensemble_on_path(ends[0], ends[1], case.states, case.weights)


def pair_states(
    truth: NDArray[np.int64], model: NDArray[np.int64], n_states: int, n_models: int
) -> tuple[NDArray[np.int64], list[int | None]]:
    """How many frames of each state (row) are in each model (column), and the model of each state."""
    counts = np.zeros((n_states, n_models), dtype=np.int64)
    shown = model >= 0
    np.add.at(counts, (truth[shown], model[shown]), 1)
    states, models = linear_sum_assignment(-counts)
    paired = dict(zip(states.tolist(), models.tolist(), strict=True))
    return counts, [paired.get(state) for state in range(n_states)]


def true_states(experiment: Experiment) -> NDArray[np.int64]:
    """The state of every frame, (N,), in the order of the data."""
    batches = experiment.batches(_BATCH)
    return np.concatenate([to_numpy(batch.columns["truth_class"]) for batch in batches]).astype(np.int64)


def judge(emc: Emc, ensemble: Ensemble, truth: NDArray[np.int64], with_maps: bool) -> dict[str, Any]:
    """What came out, against the truth."""
    table, volumes = emc.orientations(), emc.volumes()
    model = np.asarray(table["model"])
    counts, paired = pair_states(truth, model, len(ensemble), len(volumes))
    right = sum(int(counts[state, m]) for state, m in enumerate(paired) if m is not None)
    states = []
    for state, m in enumerate(paired):
        row: dict[str, Any] = {"state": ensemble.names[state], "model": m}
        states.append(row)
        if m is None:
            continue
        row["frames_found"] = float(counts[state, m] / max(counts[state].sum(), 1))
        row["frames_of_it_right"] = float(counts[state, m] / max(counts[:, m].sum(), 1))
        row["occupancy"] = float((model == m).mean())
        particle = ensemble.particles[state]
        row["intensity_correlation"] = compare(particle, _on_device(volumes[m], emc)).correlation
        if with_maps:
            began = time.perf_counter()
            try:
                found = phase(volumes[m], seed=emc.seed, device=emc.device)
                # A map that is coarser than its intensity is one of a phasing that has failed.
                row |= {"phasing": repr(found), "phasing_remarks": list(found.remarks)}
                compared = compare(particle, _on_device(found.density, emc))
                row["resolution_A"] = compared.resolution.resolution_A
            except OrienteerError as error:
                row["error"] = str(error)
            row["phasing_seconds"] = time.perf_counter() - began
    return {
        "models": len(volumes),
        "frames_right": right / len(truth),
        "frames_left_out": float((model < 0).mean()),
        "counts": counts.tolist(),
        "states": states,
    }


def _on_device(volume: Volume, emc: Emc) -> Volume:
    return replace(volume, values=to_device(volume.values, emc.device))


def run_one(name: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One mixture from its frames to its maps."""
    case = CASES[name]
    ensemble = make_ensemble(case, options.data)
    detector = square_detector(
        options.pixels, distance_m=0.2, edge_resolution_A=options.resolution, wavelength_A=BEAM.wavelength_A
    )
    settings = SimulateSettings(frames=options.frames, photons_per_frame=case.photons, seed=seed)
    experiment = Experiment(ensemble, BEAM, detector, settings, device=options.device)
    row: dict[str, Any] = {"case": name, "photons": case.photons, "frames": options.frames, "seed": seed}
    began, cpu = time.perf_counter(), time.process_time()
    try:
        emc = Emc(experiment, EmcSettings(models=case.models), seed=seed, device=options.device)
        notes = []
        while not emc.finished:
            step = emc.step()
            notes += [step.note] if step.note else []
        row |= {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
        row |= {"iterations": emc.iteration, "reason": emc.reason, "notes": notes}
        with_maps = options.maps and case.photons >= _ENOUGH_FOR_A_MAP
        return row | judge(emc, ensemble, true_states(experiment), with_maps)
    except OrienteerError as error:  # a run that gives up has failed, and the others go on
        return row | {"error": str(error), "seconds": time.perf_counter() - began}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder of 3iyf.pdb.gz and 3j03.pdb.gz")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--frames", type=int, help="default: 10 000 on the GPU, 600 on the CPU")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each case")
    parser.add_argument("--resolution", type=float, help="at the edge, in A; default: 12 on the GPU, else 30")
    parser.add_argument("--pixels", type=int, help="along an edge; default: 128 on the GPU, 28 on the CPU")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--no-maps", dest="maps", action="store_false", help="do not phase the intensities")
    add_rows_option(parser)
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    options.frames = options.frames or (10_000 if on_gpu else 600)
    options.resolution = options.resolution or (12.0 if on_gpu else 30.0)
    options.pixels = options.pixels or (128 if on_gpu else 28)
    began = time.perf_counter()
    rows = finished_rows(options)
    done = {(row["case"], row["seed"]) for row in rows}
    for name in options.cases:
        for seed in range(options.seeds):
            if (name, seed) in done:
                continue
            rows.append(run_one(name, seed, options))
            print({key: rows[-1].get(key) for key in ("case", "seed", "models", "frames_right", "counts",
                  "frames_left_out", "states", "iterations", "seconds", "error")},
                  file=sys.stderr, flush=True)  # fmt: skip
            add_row(options, rows[-1])
    problem = (
        f"{options.frames} frames of {options.pixels} x {options.pixels} pixels, {options.resolution:g} A at "
        "the edge, Poisson noise, default settings but for the number of models"
    )
    report_runs(f"conformations_{options.device}", problem, began, options, runs=rows)


if __name__ == "__main__":
    main()
