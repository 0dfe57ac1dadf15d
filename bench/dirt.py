"""What the dirt of an experiment costs: resolution of a blind reconstruction, clean and with each dirt alone.

    python bench/dirt.py [--device cuda] [--processes N] [--seeds N] [--frames N] [--photons N]
                         [--object 3iyf] [--resolution-A 12] [--cases clean fluence junk] [--keep]

Every case has the same number of frames that show one particle, and the same photons in them; what is added
is named by the case:

    fluence     log-normal, standard deviation of its logarithm 1: a factor of 100 between 98 % of the shots
    junk        30 % of all shots are droplets and debris, or two particles at once
    background  as many photons as the particle scatters, with a slope; known from a file
    estimated   the same background, which nobody has told
    panel       an eighth of the detector is dead
    empty       half of all shots hold nothing but background
    all         fluence, junk, known background and dead panel together

Each run is blind, and its result is turned onto the true intensity.  ``resolution_A`` is where correlation
of shells, a speckle thick, falls below 0.5.  ``photon_limit_A`` is the same for a merge of the good frames
with their true orientations, fluences and background, each weighed by what it can tell, and filtered as a
reconstruction is.  Losses are in per cent of the reach in q:

    loss              against the blind run on clean frames of the same seed
    loss_of_photons   of the photon limit against that of clean frames: no method could avoid it
    loss_to_limit     against the photon limit of the same frames

A background that is even over the detector and as strong as the signal in all is a hundred times as strong
at the edge, where a particle scatters least.  Its noise alone then costs far more than any method: of 1 500
frames of 1 000 photons a quarter to a half of the reach, with orientations and background known; and bodies
that fall off like a Gaussian never come back, however many frames there are.  The problem of each device is
chosen such that the known background costs nothing up to the radius at which the runs stop, so that losses
are the reconstruction's own: 3IYF to 12 A by 10 000 frames of 10 000 photons on the GPU, two domains to 30 A
by 1 500 such frames on the CPU.
Where frames are rejected, precision and recall say how many of the rejected were bad, and how many of the bad
were rejected.  Two particles that do not interfere are as well explained by the model as one, but brighter.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blind import BEAM, OBJECTS, PDB, Object, make_object, true_intensity
from machine import report_runs
from orienteer.compare.alignment import align_intensities
from orienteer.compare.shells import shell_correlation, shell_index
from orienteer.compute.arrays import to_numpy
from orienteer.compute.card_sharing import shared_card
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.detector.square import square_detector
from orienteer.orientation.quaternion import to_matrix
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.model.autocorrelation import WienerFilter
from orienteer.reconstruction.model.relative_intensity import both_friedel, prior_photons, solve
from orienteer.reconstruction.settings import EmcSettings
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings
from orienteer.simulation.truth import ShotKind
from orienteer.slicing.trilinear import insert_slices

LIMIT = 0.5
# Object, frames, photons per frame, and where to stop in A, by device.
PROBLEMS = {"cpu": ("two-domain", 1500, 1e4, 30.0), "cuda": ("3iyf", 10_000, 1e4, 12.0)}
LOSSES = ("loss", "loss_of_photons", "loss_to_limit")
WIDE = float(np.sqrt(np.e - 1))  # relative deviation of a log-normal fluence whose logarithm deviates by 1


@dataclass(frozen=True)
class Case:
    """Dirt: settings of the simulation and of the reconstruction.

    background : photons of the background over those of the particle.
    is_known : whether the reconstruction is told the background.
    """

    simulation: dict[str, Any] = field(default_factory=dict)
    reconstruction: dict[str, Any] = field(default_factory=dict)
    background: float = 0.0
    is_known: bool = True
    dead_panel: bool = False

    @property
    def bad_share(self) -> float:
        """Share of shots that do not show one particle."""
        return sum(self.simulation.get(f"{kind}_fraction", 0.0) for kind in ("empty", "junk", "multiple"))


JUNK = {"junk_fraction": 0.2, "multiple_fraction": 0.1}
CASES = {
    "clean": Case(),
    "fluence": Case({"fluence_jitter": WIDE}),
    "junk": Case(JUNK),
    "background": Case({"background_slope": 0.5}, background=1.0),
    "estimated": Case({"background_slope": 0.5}, background=1.0, is_known=False),
    "panel": Case(dead_panel=True),
    "empty": Case({"empty_fraction": 0.5}, background=1.0),
    "all": Case(
        {"fluence_jitter": WIDE, "background_slope": 0.5, **JUNK}, background=1.0, dead_panel=True
    ),
}  # fmt: skip


def make_experiment(case: Case, thing: Object, seed: int, options: argparse.Namespace) -> Experiment:
    """The simulated shots of a case: as many good ones as in every other case."""
    detector = square_detector(
        thing.pixels, distance_m=0.2, edge_resolution_A=thing.edge_A, wavelength_A=BEAM.wavelength_A
    )
    if case.dead_panel:
        detector = without_panel(detector)
    settings = SimulateSettings(
        frames=round(options.frames / (1 - case.bad_share)), photons_per_frame=options.photons,
        background_photons=case.background * options.photons, seed=seed, **case.simulation,
    )  # fmt: skip
    return Experiment(thing.particle, BEAM, detector, settings, device=options.device)


def without_panel(detector: Detector) -> Detector:
    """The detector, one of whose eight panels (four rows of two) is dead."""
    x, y = detector.positions_m[:, 0], detector.positions_m[:, 1]
    dead = (x > 0) & (y > 0) & (y < y.max() / 2)
    return detector.with_mask(np.where(dead, PixelUse.NEVER, detector.mask))


def resolution_inv_A(correlation: NDArray[np.float64], voxel_inv_A: float, speckle: float) -> float:
    """Where the correlation, averaged over a speckle, first falls below the limit; else the last shell."""
    width = max(1, round(speckle))
    smooth = np.convolve(np.nan_to_num(correlation), np.ones(width) / width, mode="valid")
    radius = (np.arange(len(smooth)) + (width - 1) / 2) * voxel_inv_A
    first = width  # the innermost speckle is behind the beam or the same for all
    below = np.flatnonzero(smooth[first:] < LIMIT)
    if not len(below):
        return float(radius[-1])
    i = first + int(below[0])
    if i == first:
        return float(radius[first])
    share = (smooth[i - 1] - LIMIT) / (smooth[i - 1] - smooth[i])
    return float(radius[i - 1] + share * (radius[i] - radius[i - 1]))


def run_case(name: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One reconstruction and what became of it."""
    case, thing = CASES[name], make_object(options.object, options.pdb)
    experiment = make_experiment(case, thing, seed, options)
    began, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        told: dict[str, Any] = {"resolution_A": options.resolution_A, "level": options.level}
        told |= case.reconstruction | dict(options.set)
        if case.background and case.is_known:
            path = Path(folder) / "background.npy"
            np.save(path, to_numpy(experiment.background))
            told["background_file"] = str(path)
        elif case.background:
            told["background"] = "estimate"
        emc = Emc(experiment, EmcSettings(**told), seed=seed, device=options.device)
    while not emc.finished:
        step = emc.step()
        if options.verbose:
            print(
                f"  {step.iteration} stage {step.stage} beta {step.inverse_temperature:.3g} perplexity "
                f"{step.perplexity:.1f} halves {step.half_correlation:.3f} change {step.change:.3f} "
                f"rejected {np.mean(emc.best_model < 0):.3f} fluence {emc.fluence.std():.3f} "
                f"dispersion {np.round(emc.noise.dispersion[4::4], 2)}",
                file=sys.stderr,
            )
    row = {
        "case": name, "seed": seed, "frames": experiment.settings.frames, "iterations": emc.iteration,
        "reason": emc.reason, "diameter_A": emc.diameter_A,
        "seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu,
    }  # fmt: skip
    return row | compare(emc, experiment, thing)


def compare(emc: Emc, experiment: Experiment, thing: Object) -> dict[str, Any]:
    """The reconstruction against the truth."""
    volume = emc.volumes()[0]
    values, voxel = to_numpy(volume.values), emc.work.stage.voxel_inv_A
    last = int(emc.edge_inv_A / voxel)
    truth = true_intensity(thing.particle, len(values), voxel)
    shells = align_intensities(truth, values, last_shell=last).shells
    speckle = 1 / (thing.diameter_A * voxel)
    correlation = shells.correlation[: last + 1]
    columns = experiment.truth().columns()
    good = columns["truth_kind"] == ShotKind.HIT
    kept = emc.best_model >= 0
    found = good & kept
    result: dict[str, Any] = {
        "correlation": float(np.nan_to_num(correlation[round(speckle) :]).mean()),
        "q_inv_A": resolution_inv_A(correlation, voxel, speckle),
        "shells": [round(float(c), 3) if np.isfinite(c) else None for c in correlation],
    }
    result["resolution_A"] = 1 / result["q_inv_A"]
    possible = shell_correlation(truth, perfect_merge(emc, experiment, len(values))).correlation[: last + 1]
    result["photon_limit_A"] = 1 / resolution_inv_A(possible, voxel, speckle)
    true = np.asarray(columns["truth_fluence"])[found]
    if emc.estimates_fluence and true.std() > 0:
        result["fluence_pearson"] = float(np.corrcoef(emc.fluence[found], true)[0, 1])
    result["fluence_mean"] = float(emc.fluence[kept].mean())
    if not good.all() or not kept.all():
        result["rejected"] = float((~kept).mean())
        result["precision"] = float((~good & ~kept).sum() / max(1, (~kept).sum()))
        result["recall"] = float((~good & ~kept).sum() / max(1, (~good).sum()))
        for kind in (ShotKind.EMPTY, ShotKind.JUNK, ShotKind.MULTIPLE):
            own = columns["truth_kind"] == kind
            if own.any():
                result[f"recall_{kind.name.lower()}"] = float((own & ~kept).sum() / own.sum())
    return result


def perfect_merge(emc: Emc, experiment: Experiment, n: int) -> NDArray[np.float64]:
    """The good frames merged at their true orientations, background taken off, and filtered, (n, n, n).

    Over a background a frame tells the more the brighter it is: each counts by the signal's share in it.
    The filter is that of a reconstruction, which would otherwise pass its own limit.
    """
    pixels, voxel = emc.pixels, emc.work.stage.voxel_inv_A
    points = (pixels.q_inv_A / voxel).astype(np.float32)
    behind = to_numpy(experiment.background)[pixels.index].astype(np.float32)
    mean = np.maximum(pixels.correction * emc.profile(pixels.length_inv_A), 1e-30).astype(np.float32)
    sums = np.zeros((2, n, n, n, 2))
    for batch in experiment.batches(500):
        columns = {name: to_numpy(values) for name, values in batch.columns.items()}
        for half in (0, 1):
            good = np.flatnonzero(columns["truth_kind"] == ShotKind.HIT)[half::2]
            frames = to_numpy(batch.dense()).reshape(len(batch), -1)[good][:, pixels.index].astype(np.float32)
            matrices = np.swapaxes(to_matrix(columns["truth_orientation"][good]), 1, 2).astype(np.float32)
            fluence = columns["truth_fluence"][good].astype(np.float32)
            signal = fluence[:, None] * mean
            share = signal / (signal + behind)
            insert_slices(
                sums[half], points, np.ascontiguousarray(matrices), share * (frames - behind), fluence, mean,
                weights=share * signal,
            )  # fmt: skip
    halves = [both_friedel(half) for half in sums]
    total = halves[0] + halves[1]
    # Frames at single poses leave many voxels nearly empty.
    prior = prior_photons(np.inf)
    keep_signal = WienerFilter(solve(halves[0], prior), solve(halves[1], prior), total[..., 1])
    relative = keep_signal(solve(total, prior), total[..., 1], is_half=False)
    radius = np.maximum(shell_index(n), 0) * voxel
    return np.where(total[..., 1] > 0, relative * emc.profile(radius), np.nan)


def with_losses(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with their losses in per cent, against the clean run of the seed and the photon limit."""
    result = []
    for row in rows:
        losses = {"loss_to_limit": 100 * (1 - row["photon_limit_A"] / row["resolution_A"])}
        for clean in rows:
            if clean["case"] == "clean" and clean["seed"] == row["seed"]:
                losses["loss"] = 100 * (1 - clean["resolution_A"] / row["resolution_A"])
                losses["loss_of_photons"] = 100 * (1 - clean["photon_limit_A"] / row["photon_limit_A"])
        result.append(row | losses)
    return result


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean over the seeds of resolutions and losses of each case, and the worst loss."""
    result: dict[str, dict[str, float]] = {}
    for case in CASES:
        alike = [row for row in rows if row["case"] == case]
        if alike:
            names = [name for name in ("resolution_A", "photon_limit_A", *LOSSES) if name in alike[0]]
            result[case] = {name: round(float(np.mean([row[name] for row in alike])), 2) for name in names}
            if "loss" in names:
                result[case]["worst_loss"] = round(max(row["loss"] for row in alike), 2)
    return result


def run_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All cases and seeds, several at a time: a small run leaves most of a GPU to others."""
    kinds = [(name, seed, options) for seed in range(1, options.seeds + 1) for name in options.cases]
    rows = []
    with multiprocessing.get_context("spawn").Pool(options.processes, maxtasksperchild=1) as pool:
        for row in pool.imap_unordered(_run_kind, kinds):
            rows.append(row)
            shown = {
                key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()
            }
            print(shown, file=sys.stderr, flush=True)
    return sorted(with_losses(rows), key=lambda row: (list(CASES).index(row["case"]), row["seed"]))


def _run_kind(kind: tuple[str, int, argparse.Namespace]) -> dict[str, Any]:
    return run_case(*kind)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--object", choices=OBJECTS, help="default: 3iyf on the GPU, two-domain else")
    parser.add_argument("--pdb", type=Path, default=PDB, help="structure file of 3iyf")
    parser.add_argument("--frames", type=int, help="of one particle; default: 10 000 on the GPU, 1 500 else")
    parser.add_argument("--photons", type=float, help="per frame, of the particle; default: 10 000")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--resolution-A", type=float, help="to stop at; default: 12 on the GPU, else 30")
    parser.add_argument("--level", type=int, default=0, help="finest grid; default: as needed")
    parser.add_argument("--set", nargs=2, action="append", default=[], help="a setting and its value")
    parser.add_argument("--seeds", type=int, help="runs of each case; default: 3 on the GPU, 1 on the CPU")
    parser.add_argument("--processes", type=int, help="runs at a time; default: 6 on the GPU, 1 on the CPU")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    problem = zip(("object", "frames", "photons", "resolution_A"), PROBLEMS[options.device], strict=True)
    for name, value in problem:
        setattr(options, name, getattr(options, name) or value)
    options.seeds = options.seeds or (3 if on_gpu else 1)
    options.processes = options.processes or (6 if on_gpu else 1)
    began = time.perf_counter()
    with shared_card() if on_gpu else nullcontext():
        rows = run_all(options)
    text = (
        f"{options.object}, {options.frames} frames of one particle, {options.photons:g} photons each; "
        "blind; resolution where the correlation with the truth falls below 0.5; losses in per cent"
    )
    report_runs(f"dirt_{options.device}", text, began, options, summary=summary(rows), runs=rows)


if __name__ == "__main__":
    main()
