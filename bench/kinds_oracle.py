"""How well kinds of hits could be told by somebody who knows the truth: the limit for bench/kinds.py.

    python bench/kinds_oracle.py [--objects two-domain blobs] [--photons 300 1000] [--seeds 1 2]
                                 [--streams FOLDER] [--keep]

The hits are those of bench/kinds.py.  The oracle knows the shape of the particle, of each piece of debris
and of balls, and for each hit the likelihood of all of them, summed over orientations and sizes, from the
photons in bins about the beam.  Brightness says nothing to it.  All figures are shares of debris, or of
droplets, that pass when 2 % of the single hits are lost.

    both            by the ratio of both likelihoods: looks alone cannot tell more
    particle_alone  by how well the particle fits in its best orientation, when nothing of junk is known
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blind import BEAM, PDB
from kinds import DROPLET, Case, find_hits
from machine import report_runs
from orienteer.detector.detector import Detector
from orienteer.hits.polar import PolarGrid
from orienteer.hits.sphere import sphere_intensity
from orienteer.orientation.healpix import pixel_centres
from orienteer.particle.base import Particle
from orienteer.simulation.junk import junk_particles
from orienteer.simulation.truth import ShotKind
from orienteer.source.patterns import Patterns

VIEW_LEVEL, N_ANGLES = 2, 32
# Rings across a speckle, and speckles up to the edge of what is looked at.
RINGS_PER_SPECKLE, SPECKLES = 2.5, 4.0
SIZES, BALLS = (0.955, 0.985, 1.015, 1.045), np.arange(0.3, 1.5, 0.025)
LOST = 0.02
# Hits of similar brightness share one table of logarithms.
RATIO = 1.05


class Oracle:
    """Photons of hits in polar bins, and the likelihood of any particle that could have made them."""

    def __init__(
        self, detector: Detector, diameter_A: float, hits: Patterns, background: NDArray[Any]
    ) -> None:
        q_max = SPECKLES / diameter_A
        n_rings = int(SPECKLES * RINGS_PER_SPECKLE)
        self.grid = PolarGrid(detector, BEAM.wavelength_A, q_max, n_rings, N_ANGLES)
        self.photons, self.behind = self.grid.photons(hits), self.grid.background(background)
        self.brightness = np.maximum(self.photons.sum(axis=1, dtype=np.float64) - self.behind.sum(), 5.0)

    def bins(self) -> NDArray[np.float64]:
        """(4, R * A, 3) four points of each bin on the Ewald sphere, in 1/A."""
        R, A, width = self.grid.n_rings, self.grid.n_angles, self.grid.q_inv_A[1]
        points = []
        for along, around in ((0.25, 0.25), (0.25, 0.75), (0.75, 0.25), (0.75, 0.75)):
            q = np.repeat((np.arange(R) + along) * width, A)
            phi = np.tile((np.arange(A) + around) * 2 * np.pi / A, R)
            z = -BEAM.wavelength_A * q**2 / 2
            points.append(np.stack([q * np.cos(phi), q * np.sin(phi), z], axis=1))
        return np.stack(points)

    def views(self, particle: Particle, size: float = 1.0) -> NDArray[np.float64]:
        """(V, R, A) intensity of a particle, so many times as large, seen from all sides."""
        views = []
        for polar, azimuth in zip(*pixel_centres(VIEW_LEVEL, np.arange(12 * 4**VIEW_LEVEL)), strict=True):
            c, s, ca, sa = np.cos(polar), np.sin(polar), np.cos(azimuth), np.sin(azimuth)
            axes = np.array([[c * ca, c * sa, -s], [-sa, ca, 0], [s * ca, s * sa, c]])
            views.append((np.abs(particle.amplitude(size * self.bins() @ axes)) ** 2).mean(axis=0))
        return np.stack(views).reshape(-1, self.grid.n_rings, self.grid.n_angles)

    def ball(self, diameter_A: float) -> NDArray[np.float64]:
        """(1, R, A) intensity of a ball."""
        q = np.linalg.norm(self.bins(), axis=2)
        return sphere_intensity(q, diameter_A).mean(axis=0).reshape(1, self.grid.n_rings, self.grid.n_angles)

    def log_likelihood(self, views: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(N,) of the mean over views and angles, and how well the best of them fits: minus its misfit."""
        rows = np.concatenate([self.grid.turned(view) for view in views]) * self.grid.correction
        rows = (rows / rows.sum(axis=1, keepdims=True)).astype(np.float32)
        mean, misfit = np.empty((2, len(self.photons)))
        level = np.round(np.log(self.brightness) / np.log(RATIO)).astype(np.int64)
        for one in np.unique(level):
            hits = np.flatnonzero(level == one)
            expected = (RATIO**one * rows + self.behind + 1e-9).astype(np.float32)
            logarithm = np.log(expected)
            score = (self.photons[hits] @ logarithm.T).astype(np.float64) - expected.sum(axis=1)
            best = score.argmax(axis=1)
            top = score.max(axis=1, keepdims=True)
            mean[hits] = top[:, 0] + np.log(np.exp(score - top).mean(axis=1))
            rest = (self.photons[hits] - expected[best]) ** 2 - self.photons[hits]
            # Deviations in proportion to the light, weighed as the best test for them would.
            weight = (RATIO**one * rows[best] / expected[best]) ** 2
            chance = np.sqrt((2 * (weight * expected[best]) ** 2).sum(axis=1))
            misfit[hits] = (weight * rest).sum(axis=1) / chance
        return mean, -misfit


def run(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """Shares of debris and droplets that pass."""
    detector, found = find_hits(case, options)
    particle = case.particle(options.pdb)
    diameter_A = 2 * particle.radius_A
    single = np.flatnonzero(found.truth == ShotKind.HIT)[:500]
    others = np.flatnonzero(np.isin(found.truth, (ShotKind.JUNK, DROPLET)))
    rows = np.concatenate([single, others])
    truth = found.truth[rows]
    oracle = Oracle(detector, diameter_A, Patterns(found.frames[rows]), found.background[-1])
    of_sizes = [oracle.log_likelihood(oracle.views(particle, size)) for size in SIZES]
    of_particle = np.logaddexp.reduce([ln_p for ln_p, _ in of_sizes]) - np.log(len(SIZES))
    fit = np.max([fit for _, fit in of_sizes], axis=0)
    lumps = [oracle.views(lump) for lump in junk_particles(4, particle.radius_A, case.seed)]
    balls = [oracle.ball(diameter_A * size) for size in BALLS]
    row: dict[str, Any] = {"object": case.name, "photons": case.photons, "seed": case.seed}
    for name, kind, views in (("debris", ShotKind.JUNK, lumps), ("droplets", DROPLET, balls)):
        of_junk = np.logaddexp.reduce([oracle.log_likelihood(v)[0] for v in views]) - np.log(len(views))
        row[name] = {
            "both": passing(of_particle - of_junk, truth, kind),
            "particle_alone": passing(fit, truth, kind),
        }
    return row


def passing(score: NDArray[np.float64], truth: NDArray[np.int64], kind: int) -> float:
    """Share of hits of this kind above the score that all but few single hits have."""
    return round(float((score[truth == kind] > np.quantile(score[truth == ShotKind.HIT], LOST)).mean()), 4)


def main() -> None:
    """Run all cases and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--objects", nargs="+", default=["two-domain", "blobs"])
    parser.add_argument("--photons", nargs="+", type=float, default=[300.0, 1000.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--shots", type=int, default=20_000)
    parser.add_argument("--fluence-jitter", type=float, default=0.3)
    parser.add_argument("--droplets", type=float, default=0.1)
    parser.add_argument("--pdb", type=Path, default=PDB)
    parser.add_argument("--streams", type=Path, default=None)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    options.device = "cpu"
    began, rows = time.perf_counter(), []
    for name in options.objects:
        for photons in options.photons:
            for seed in options.seeds:
                rows.append(run(Case(name, photons, seed), options))
                print(rows[-1], flush=True)
    problem = (
        f"share of junk that passes when {100 * LOST:g} % of the single hits are lost, shapes being known"
    )
    report_runs("kinds_oracle", problem, began, options, cases=rows)


if __name__ == "__main__":
    main()
