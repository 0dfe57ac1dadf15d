"""Calibration and hit finding: shots per second of one core or GPU, and how well hits are told from others.

    python bench/hits.py [--device cuda] [--shots N] [--seeds N] [--keep]

Rates are of 128 x 128 pixels in batches of 512 (``--batch``), by the time of the processor on the CPU and by
the clock on the GPU, where frames lie on it already.  Raw frames are uint16; each pixel has a pedestal and
a gain of its own.

For the quality, one shot in ten is a hit, 30 % of which are junk or several particles, and the background has
as many photons as the particle.  The stream goes once through the finder, as it would live.

    recall    of the shots of single particles, how many are hits: all of them, and those after the warm-up
    false     of the hits, how many are empty shots
    weakest   score of the weakest single hit but 1 %, in standard deviations of empty shots
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from blind import BEAM
from machine import report_runs
from orienteer.calibration.calibration import Calibration
from orienteer.calibration.constants import Constants
from orienteer.calibration.settings import CalibrationSettings
from orienteer.compute.arrays import import_cupy
from orienteer.detector.square import square_detector
from orienteer.hits.finding import HitFinder
from orienteer.hits.settings import HitSettings
from orienteer.particle.named_bodies import virus
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings
from orienteer.simulation.truth import ShotKind
from orienteer.source.patterns import Patterns

SIDE, DIAMETER_A = 128, 400.0
GAIN_ADU, PEDESTAL_ADU, NOISE_ADU = 30.0, 100.0, 3.0
CASES: dict[str, dict[str, float]] = {
    "1000 photons": {"photons_per_frame": 1000},
    "100 photons": {"photons_per_frame": 100},
    "30 photons": {"photons_per_frame": 30},
    "300 photons, varying fluence": {"photons_per_frame": 300, "fluence_jitter": 0.5},
    "300 photons, varying background": {"photons_per_frame": 300, "background_jitter": 0.3},
    "300 photons, both": {"photons_per_frame": 300, "fluence_jitter": 0.5, "background_jitter": 0.5},
    "300 photons, 60 % hits": {"photons_per_frame": 300, "background_jitter": 0.3, "empty_fraction": 0.4},
    "300 photons, 1 % hits": {"photons_per_frame": 300, "background_jitter": 0.3, "empty_fraction": 0.99},
}


def rate(work: Callable[[Patterns], Any], batches: list[Patterns], device: str) -> float:
    """Shots per second, after one turn that compiles and learns; the best of three turns."""
    clock = time.process_time if device == "cpu" else time.perf_counter

    def turn() -> float:
        start = clock()
        for batch in batches:
            work(batch)
        if device == "cuda":
            import_cupy().cuda.Device().synchronize()  # type: ignore[union-attr]
        return clock() - start

    turn()
    return round(sum(map(len, batches)) / min(turn() for _ in range(3)))


def rates(options: argparse.Namespace) -> dict[str, float]:
    """Shots per second of every step, and of calibration and finding together."""
    draw = np.random.default_rng(1)
    n_pixels = SIDE * SIDE
    photons = draw.poisson(0.06, (options.shots, n_pixels)).astype(np.uint16)
    photons[::10] += draw.poisson(0.06, photons[::10].shape).astype(np.uint16)
    known = Constants(
        draw.normal(PEDESTAL_ADU, 5, (1, n_pixels)).astype(np.float32),
        draw.normal(GAIN_ADU, 1, (1, n_pixels)).astype(np.float32),
    )
    noise = draw.normal(0, NOISE_ADU, photons.shape)
    raw = np.rint(photons * known.gain_adu + known.pedestal_adu + noise).clip(0).astype(np.uint16)

    def batches(frames: np.ndarray) -> list[Patterns]:
        return [
            Patterns(frames[first : first + options.batch]).to(options.device)
            for first in range(0, len(frames), options.batch)
        ]

    plain = Calibration(CalibrationSettings(), n_pixels, constants=known)
    common = Calibration(CalibrationSettings(common_mode=True), n_pixels, constants=known)
    found = {
        "calibration": rate(plain, batches(raw), options.device),
        "calibration with common mode": rate(common, batches(raw), options.device),
        "finding": rate(HitFinder(HitSettings(), n_pixels).look, batches(photons), options.device),
    }
    for name, calibration in (("both", plain), ("both with common mode", common)):
        finder = HitFinder(HitSettings(), n_pixels)
        found[name] = rate(lambda b, c=calibration, f=finder: f.look(c(b)), batches(raw), options.device)
    if options.device == "cpu":
        lists = [Patterns(batch.sparse()) for batch in batches(photons)]
        found["finding in lists of photons"] = rate(HitFinder(HitSettings(), n_pixels).look, lists, "cpu")
    return found


def quality(case: dict[str, float], seed: int, options: argparse.Namespace) -> dict[str, float]:
    """One stream from its first to its last shot."""
    hits = 1 - case.get("empty_fraction", 0.9)
    settings = SimulateSettings(
        frames=options.shots, seed=seed, background_photons=case["photons_per_frame"],
        empty_fraction=1 - hits, junk_fraction=0.2 * hits, multiple_fraction=0.1 * hits,
        **{name: value for name, value in case.items() if name != "empty_fraction"},
    )  # fmt: skip
    detector = square_detector(
        SIDE, pixel_size_m=0.000625, distance_m=0.000625 * 3 * DIAMETER_A / BEAM.wavelength_A
    )
    patterns = Experiment(virus(DIAMETER_A), BEAM, detector, settings, device="cpu").read()
    finder = HitFinder(HitSettings(), patterns.n_pixels, detector)
    found = [finder.look(patterns[i : i + 100]) for i in range(0, len(patterns), 100)]
    is_hit, score = (np.concatenate([part[name] for part in found]) for name in ("is_hit", "hit_score"))
    kind = patterns.columns["truth_kind"]
    is_single = kind == ShotKind.HIT
    late = np.arange(len(kind)) >= HitSettings().warm_up_shots
    return {
        "recall": float(is_hit[is_single].mean()),
        "recall_after_warm_up": float(is_hit[is_single & late].mean()),
        "false": float((kind[is_hit] == ShotKind.EMPTY).mean()),
        "false_after_warm_up": float((kind[is_hit & late] == ShotKind.EMPTY).mean()),
        "weakest": float(np.percentile(score[is_single & late], 1)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--shots", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="write bench/results/hits_DEVICE.json")
    options = parser.parse_args()
    began = time.perf_counter()
    shots_per_second = rates(options)
    runs = {
        name: [quality(case, seed, options) for seed in range(options.seeds)]
        for name, case in CASES.items()
        if options.device == "cpu"
    }
    means = {
        name: {key: round(float(np.mean([run[key] for run in of_case])), 4) for key in of_case[0]}
        for name, of_case in runs.items()
        if of_case
    }
    problem = f"calibration and hit finding, {SIDE} x {SIDE} pixels, {options.shots} shots, one core or GPU"
    report_runs(
        f"hits_{options.device}", problem, began, options, shots_per_second=shots_per_second, quality=means
    )


if __name__ == "__main__":
    main()
