"""A map that grows while hits arrive: how many hits it takes in, when it shows something, how good it ends.

    python bench/online.py order [--orders N] [--hits N] [--finish both] [--keep]
    python bench/online.py rate [--hits N] [--per-second R] [--pixels N] [--device cuda] [--keep]

``order`` reconstructs the same hits as a batch, and growing, in several random orders of arrival.  The
resolutions are where the correlation with the true intensity falls below 0.5, and where the halves of the
data agree no more.

``rate`` lets hits arrive at a steady rate.  Its clock is the processor time that the reconstruction has used,
over the number of cores, so that the figure is that of an idle machine, whatever else runs beside; on a GPU
it is the clock on the wall.  It tells how many hits were looked at in a second, new ones and old ones, the
most that were waiting, and when the halves agreed to within a quarter of the resolution of the last round.
"""

import argparse
import os
import time
from typing import Any

import numpy as np

from machine import report_runs
from orienteer.compare.alignment import align_intensities
from orienteer.compute.arrays import DeviceName
from orienteer.compute.machine import usable_cores
from orienteer.detector.beam import Beam
from orienteer.detector.square import square_detector
from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.online.online_emc import OnlineEmc
from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.online_settings import OnlineSettings
from orienteer.simulation.experiment import simulate
from orienteer.simulation.settings import SimulateSettings
from orienteer.source.in_memory import InMemorySource
from orienteer.volume.volume import Volume

WAVELENGTH_A, DIAMETER_A = 2.5, 200.0
PARTICLE = random_blobs(DIAMETER_A, 20, 5)
# Arrival in ``order``: hits that come while a round lasts, in so many of which all hits come.
ROUND, AT_ONCE = 400, 60
# The resolution at which a map shows something, relative to the one it ends with.
SHOWS = 1.25


class Arriving(InMemorySource):
    """Frames of which the first have arrived."""

    arrived = 0

    def refresh(self) -> int:
        """The frames that are there now."""
        self.n_frames = min(self.arrived, len(self._all))
        return self.n_frames


def make_hits(n: int, n_pixels: int, edge_A: float, photons: float, device: DeviceName) -> Any:
    """Simulated hits and their detector."""
    detector = square_detector(
        n_pixels, edge_resolution_A=edge_A, wavelength_A=WAVELENGTH_A, pixel_size_m=5e-4
    )
    settings = SimulateSettings(frames=n, photons_per_frame=photons, fluence_jitter=0.3, seed=3)
    experiment = simulate(PARTICLE, Beam(wavelength_A=WAVELENGTH_A), detector, settings, device=device)
    return detector, experiment.read().to("cpu")


def against_truth_A(volume: Volume) -> float:
    """Full-period resolution at which the correlation with the true intensity falls below 0.5."""
    n, voxel = len(volume.values), float(volume.voxel_size[0])
    axis = (np.arange(n) - n // 2) * voxel
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    transform = SampledTransform.from_particle(PARTICLE, 1.8 * n / 2 * voxel)
    truth = transform.intensity(points.astype(np.float32), np.eye(3, dtype=np.float32)[None])
    shells = align_intensities(truth.reshape(n, n, n).astype(np.float32), volume.values).shells
    below = np.flatnonzero(np.nan_to_num(shells.correlation[2:]) < 0.5)
    first = 2 + (below[0] if len(below) else len(shells.radius) - 3)
    # Between two shells the correlation falls evenly.
    high, low = shells.correlation[first - 1 : first + 1]
    part = (high - 0.5) / max(high - low, 1e-6) if len(below) and np.isfinite(low) else 1.0
    return float(1 / (voxel * (shells.radius[first - 1] + np.clip(part, 0, 1))))


def grow(source: Arriving, options: argparse.Namespace) -> dict[str, Any]:
    """A growing reconstruction of all frames, some more of which come with every round."""
    online = OnlineSettings(first_hits=200, round_hits=ROUND, finish=options.finish)
    method = OnlineEmc(source, EmcSettings(), online, seed=1, device=options.device)
    last: Any = None
    n_rounds = 0
    while not method.finished:
        source.arrived += AT_ONCE
        method.look(source.arrived >= len(source._all))
        if method.has_work:
            last = method.step()
            n_rounds += last.n_round < last.n_hits or last.n_new > 0
    return {"rounds": n_rounds, **_figures(last, method.volumes()[0])}


def _figures(step: Any, volume: Volume) -> dict[str, Any]:
    return {
        "steps": step.iteration,
        "truth_A": round(against_truth_A(volume), 2),
        "halves_A": round(step.agrees_to_A, 2),
        "log_likelihood": round(step.log_likelihood, 2),
    }


def order(options: argparse.Namespace) -> dict[str, Any]:
    """Batch, and growing in several orders of arrival."""
    detector, patterns = make_hits(options.hits, 24, 45.0, 600, options.device)
    source = InMemorySource(patterns, detector.frame_shape).with_detector(detector)
    emc = Emc(source, EmcSettings(), seed=1, device=options.device)
    while not emc.finished:
        step = emc.step()
    batch = _figures(step, emc.volumes()[0])
    print("batch", batch, flush=True)
    grown = []
    for seed in range(options.orders):
        chosen = patterns[np.random.default_rng(seed).permutation(len(patterns))]
        grown.append(grow(Arriving(chosen, detector.frame_shape).with_detector(detector), options))
        print("order", seed, grown[-1], flush=True)
    worst = {
        name: round(max(abs(each[name] / batch[name] - 1) for each in grown), 4)
        for name in ("truth_A", "halves_A")
    }
    spread = {
        name: round(max(e[name] for e in grown) / min(e[name] for e in grown) - 1, 4)
        for name in ("truth_A", "halves_A")
    }
    return {"batch": batch, "grown": grown, "largest_difference": worst, "spread_of_orders": spread}


def rate(options: argparse.Namespace) -> dict[str, Any]:
    """Hits that arrive steadily, while the map grows."""
    detector, patterns = make_hits(options.hits, options.pixels, 25.0, 600, options.device)
    source = Arriving(patterns, detector.frame_shape).with_detector(detector)
    method = OnlineEmc(source, EmcSettings(), OnlineSettings(finish="no"), seed=1, device=options.device)
    began = _clock(options.device)
    rounds = []
    idle = 0.0  # nothing is computed until enough hits are there: the clock goes on without work
    while method.arrivals.n_seen < options.hits:
        now = _clock(options.device) - began + idle
        source.arrived = int(now * options.per_second)
        method.look(False)
        if not method.has_work:
            idle += 0.1
            continue
        step = method.step()
        now = _clock(options.device) - began + idle
        source.arrived = int(now * options.per_second)
        waiting = min(source.arrived, options.hits) - method.arrivals.n_seen
        rounds.append(
            {
                "at_s": round(now, 1),
                "looked_at": step.n_round,
                "hits": step.n_hits,
                "new": step.n_new,
                "waiting": waiting,
                "stage": step.stage,
                "halves_A": step.agrees_to_A and round(step.agrees_to_A, 1),
                "poses_per_frame": round(step.perplexity, 1),
            }
        )
        print(rounds[-1], flush=True)
    seconds = _clock(options.device) - began + idle
    shown = [each for each in rounds if each["halves_A"]]
    first = next((e for e in shown if e["halves_A"] <= SHOWS * shown[-1]["halves_A"]), None)
    return {
        "arrived_per_s": options.per_second,
        "looked_at_per_s": round(sum(each["looked_at"] for each in rounds) / (seconds - idle), 1),
        "all_taken_in_after_s": round(seconds, 1),
        "most_waiting": max(each["waiting"] for each in rounds),
        "first_map_at": first,
        "rounds": rounds,
    }


def _clock(device: str) -> float:
    """Seconds of this process on an idle machine with as many cores."""
    if device == "cuda":
        return time.perf_counter()
    times = os.times()
    return (times.user + times.system) / usable_cores()


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("order", "rate"))
    parser.add_argument("--hits", type=int, default=1500)
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--per-second", type=float, default=100.0)
    parser.add_argument("--pixels", type=int, default=128)
    parser.add_argument("--finish", choices=("continue", "both"), default="continue")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--keep", action="store_true", help="write bench/results/online_WHAT_DEVICE.json")
    options = parser.parse_args()
    began = time.perf_counter()
    figures = (order if options.what == "order" else rate)(options)
    problem = f"{options.hits} hits of {PARTICLE!r}"
    report_runs(f"online_{options.what}_{options.device}", problem, began, options, **figures)


if __name__ == "__main__":
    main()
