"""How well single particles are told from junk in a stream: precision and recall, nothing being told.

    python bench/kinds.py [--objects virus 3iyf blobs] [--photons 300 1000] [--seeds N] [--shots N]
                          [--fluence-jitter 0.3] [--droplets 0.1] [--pdb FILE] [--keep]

One shot in ten is a hit.  Of the hits 70 % are single particles, 10 % are droplets (balls of 0.3 to 1.5
times its diameter, as bright as the particle on average, with a factor of 100 between 98 % of them), 10 %
are debris (random lumps as large as the particle and less), and 10 % are pairs that touch; without
droplets there are 15 % of each of the others.  The background has as many photons as the particle, a slope,
and a strength that varies by 10 %.  The fluence varies by 30 %, the size by 3 %.

The stream goes once through hit finding and analysis, as it would live: each hit is judged by what came
before.

    precision       of the hits called single, how many are
    recall          of the shots of single particles, how many are called single
    recall_of_hits  the same of those that were found as hits
    caught          of the debris, droplets and pairs that were found as hits, how many are not called single
    hits_per_s      through the analysis alone

The first hits are UNSURE, because nothing is known yet; counting begins with the first one that is not.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blind import BEAM, PDB
from machine import report_runs
from orienteer.detector.detector import Detector
from orienteer.detector.square import square_detector
from orienteer.hits.analysis import HitAnalysis
from orienteer.hits.finding import HitFinder
from orienteer.hits.kinds import HitKind
from orienteer.hits.settings import HitSettings
from orienteer.hits.sphere import sphere_intensity
from orienteer.particle.base import Particle
from orienteer.particle.named_bodies import random_blobs, two_domains, virus
from orienteer.particle.opening import open_structure
from orienteer.simulation.background import flat_background
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings
from orienteer.simulation.truth import ShotKind
from orienteer.source.patterns import Patterns

HITS, JUNK = 0.1, 0.3
BACKGROUND_SLOPE, BACKGROUND_JITTER, SIZE_SPREAD = 0.3, 0.1, 0.03
BATCH = 1000
DROPLET = 100  # beside the kinds of a simulation


@dataclass(frozen=True)
class Case:
    """An object on a detector that shows its speckles on three pixels each."""

    name: str
    photons: float
    seed: int

    def particle(self, pdb: Path) -> Particle:
        """What scatters."""
        match self.name:
            case "3iyf":
                return open_structure(pdb)
            case "virus":
                return virus(250.0)
            case "two-domain":
                return two_domains(180.0)
        return random_blobs(150.0, 12, 1)


def make_stream(
    case: Case, options: argparse.Namespace
) -> tuple[Detector, NDArray[np.uint16], NDArray[np.int64], NDArray[np.float64]]:
    """Detector, frames of what is not empty, its kind, and the mean background."""
    particle = case.particle(options.pdb)
    diameter_A = 2 * particle.radius_A
    detector = square_detector(
        128, pixel_size_m=0.000625, distance_m=0.000625 * 3 * diameter_A / BEAM.wavelength_A
    )
    n = int(options.shots * HITS)
    n_droplets = int(n * options.droplets)
    other = (JUNK - options.droplets) / 2 / (1 - options.droplets)
    experiment = Experiment(
        particle, BEAM, detector, SimulateSettings(
            frames=n - n_droplets, photons_per_frame=case.photons, background_photons=case.photons,
            background_slope=BACKGROUND_SLOPE, background_jitter=BACKGROUND_JITTER,
            fluence_jitter=options.fluence_jitter, size_spread=SIZE_SPREAD, seed=case.seed,
            junk_fraction=other, multiple_fraction=other,
        ), device="cpu",
    )  # fmt: skip
    shots = experiment.read()
    background = flat_background(detector, case.photons, BACKGROUND_SLOPE).astype(np.float64)
    draw = np.random.default_rng([case.seed, 1])
    round_ones = droplets(detector, diameter_A, case.photons, n_droplets, background, draw)
    frames = np.concatenate([np.asarray(shots.dense(), np.uint16), round_ones])
    kind = np.concatenate([shots.columns["truth_kind"].astype(np.int64), np.full(n_droplets, DROPLET)])
    order = draw.permutation(n)
    return detector, frames[order], kind[order], background


def droplets(
    detector: Detector, diameter_A: float, photons: float, n: int, background: NDArray[np.float64],
    draw: np.random.Generator,
) -> NDArray[np.uint16]:  # fmt: skip
    """Balls of all sizes, photons drawn."""
    q, correction = detector.q_length_inv_A(BEAM.wavelength_A), detector.correction(BEAM.polarisation)
    frames = np.empty((n, detector.n_pixels), np.uint16)
    for d in range(n):
        shape = correction * sphere_intensity(q, diameter_A * draw.uniform(0.3, 1.5))
        signal = photons * np.exp(draw.standard_normal()) * shape / shape.sum()
        frames[d] = draw.poisson(signal + strengths(1, draw)[0] * background)
    return frames


def strengths(n: int, draw: np.random.Generator) -> NDArray[np.float64]:
    """Strengths of the background with mean 1."""
    sigma = np.sqrt(np.log1p(BACKGROUND_JITTER**2))
    return np.exp(sigma * draw.standard_normal(n) - sigma**2 / 2)


def run(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """One stream from its first to its last shot."""
    detector, lit, kind_of_lit, background = make_stream(case, options)
    draw = np.random.default_rng([case.seed, 2])
    where = np.sort(draw.choice(options.shots, len(lit), replace=False))
    truth = np.full(options.shots, int(ShotKind.EMPTY))
    truth[where] = kind_of_lit
    finder = HitFinder(HitSettings(), detector.n_pixels, detector)
    analysis = HitAnalysis(HitSettings(), detector, BEAM.wavelength_A)
    analysis.look(Patterns(lit[:1]), background)  # compiles
    kind = np.full(options.shots, 255, dtype=np.uint8)  # 255: no hit
    seconds = 0.0
    for first in range(0, options.shots, BATCH):
        rows = np.arange(first, min(first + BATCH, options.shots))
        frames = draw.poisson(strengths(len(rows), draw)[:, None] * background).astype(np.uint16)
        chosen = (where >= first) & (where < first + BATCH)
        frames[where[chosen] - first] = lit[chosen]
        is_hit = finder.look(Patterns(frames))["is_hit"]
        hits = Patterns(Patterns(frames[is_hit]).sparse())
        began = time.perf_counter()
        kind[rows[is_hit]] = analysis.look(hits, finder.background)["kind"]
        seconds += time.perf_counter() - began
    return {"object": case.name, "photons": case.photons, "seed": case.seed} | figures(kind, truth, seconds)


def figures(kind: NDArray[np.uint8], truth: NDArray[np.int64], seconds: float) -> dict[str, Any]:
    """Precision and recall from the first shot that was judged."""
    n_hits = int((kind < 255).sum())
    first = int(np.flatnonzero((kind < 255) & (kind != HitKind.UNSURE))[0])
    kind, truth = kind[first:], truth[first:]
    single, is_single = kind == HitKind.SINGLE, truth == ShotKind.HIT
    is_hit = kind < 255

    def caught(*kinds: int) -> float:
        others = kind[is_hit & np.isin(truth, kinds)]
        return round(float((others != HitKind.SINGLE).mean()), 4) if len(others) else 1.0

    return {
        "precision": round(float(is_single[single].mean()), 4),
        "recall": round(float(single[is_single].mean()), 4),
        "recall_of_hits": round(float(single[is_single & is_hit].mean()), 4),
        "caught": {
            "debris": caught(ShotKind.JUNK), "droplets": caught(DROPLET), "pairs": caught(ShotKind.MULTIPLE),
            "empty": caught(ShotKind.EMPTY),
        },
        "hits": n_hits,
        "junk_share_of_hits": round(float((~is_single)[is_hit].mean()), 3),
        "first_judged_shot": first,
        "hits_per_s": round(n_hits / seconds),
    }  # fmt: skip


def main() -> None:
    """Run all cases and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--objects", nargs="+", default=["virus", "3iyf", "blobs", "two-domain"])
    parser.add_argument("--photons", nargs="+", type=float, default=[300.0, 1000.0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--shots", type=int, default=20_000)
    parser.add_argument("--fluence-jitter", type=float, default=0.3)
    parser.add_argument("--droplets", type=float, default=0.1)
    parser.add_argument("--pdb", type=Path, default=PDB)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    options.device = "cpu"
    began, rows = time.perf_counter(), []
    for name in options.objects:
        for photons in options.photons:
            for seed in range(1, options.seeds + 1):
                rows.append(run(Case(name, photons, seed), options))
                print(rows[-1], flush=True)
    problem = (
        f"{options.shots} shots of 128 x 128 pixels, one hit in ten, 30 % of the hits junk, "
        f"{100 * options.droplets:g} % droplets"
    )
    report_runs(
        "kinds" if options.droplets else "kinds_without_droplets", problem, began, options, cases=rows
    )


if __name__ == "__main__":
    main()
