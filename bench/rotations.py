"""Rotation grids: the time to make 400 200 rotations on one core, and how evenly the grids cover.

Run with ``python bench/rotations.py``; ``--keep`` writes bench/results/rotations.json.
"""

import argparse
import time

import numpy as np

from machine import describe_machine, report
from orienteer.orientation.grids import make_grid
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import random_uniform
from orienteer.orientation.six_hundred_cell import covering_bound_deg, six_hundred_cell

# Covering radius by random probes, rms distance and closest pair in degrees, measured before with other code.
KNOWN = {
    ("600-cell", 4): (13.1, 8.1, 17.5),
    ("super-fibonacci", 3240): (14.4, 8.7, 10.4),
    ("hopf", 2): (12.4, 7.3, 12.7),
    ("600-cell", 8): (6.5, 4.1, 8.6),
    ("super-fibonacci", 25680): (7.1, 4.3, 4.6),
    ("hopf", 3): (6.4, 3.7, 6.1),
    ("600-cell", 10): (5.3, 3.2, 6.9),
    ("super-fibonacci", 50100): (5.9, 3.5, 3.9),
}


def seconds_to_make(n: int, repeats: int) -> list[float]:
    """Processor time of all threads for each making of the grid with weights; the first makes all tables."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        six_hundred_cell(n)
        seconds.append(round(time.process_time() - start, 4))
    return seconds


def evenness(grid: PoseGrid) -> dict[str, object]:
    """Covering radius, exact and as random probes see it, rms distance, closest pair, and known values."""
    _, probed_deg = grid.nearest(random_uniform(50_000, seed=1))
    covering_deg, rms_deg, closest_deg = KNOWN[grid.kind, grid.level]
    return {
        "kind": grid.kind,
        "level": grid.level,
        "rotations": len(grid),
        "covering_radius_deg": round(grid.covering_radius_deg, 3),
        "probed_radius_deg": round(float(probed_deg.max()), 3),
        "rms_to_nearest_deg": round(float(np.sqrt(np.mean(probed_deg**2))), 3),
        "closest_pair_deg": round(grid.closest_pair_deg, 3),
        "known": {
            "probed_radius_deg": covering_deg,
            "rms_to_nearest_deg": rms_deg,
            "closest_pair_deg": closest_deg,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write bench/results/rotations.json")
    keep = parser.parse_args().keep

    seconds = seconds_to_make(20, repeats=5)
    grid = six_hundred_cell(20)
    coarse = six_hundred_cell(10)
    start = time.process_time()
    coarse.fine()
    refine_seconds = time.process_time() - start
    children = np.diff(coarse.child_start)
    result = {
        "problem": "600-cell grid n = 20 (400 200 rotations) with quadrature weights, seconds of one core",
        "machine": describe_machine(),
        "rotations": len(grid),
        "seconds": {"first": seconds[0], "median": float(np.median(seconds)), "all": seconds},
        "goal_seconds": 2.0,
        "error": {"weights_sum_minus_one": float(abs(grid.weights.sum() - 1))},
        "covering_radius_deg": round(grid.covering_radius_deg, 4),
        "covering_bound_deg": round(covering_bound_deg(20), 4),
        "children": {
            "problem": "order the 400 200 poses of n = 20 below the 50 100 of n = 10",
            "seconds": round(refine_seconds, 3),
            "fewest": int(children.min()),
            "mean": round(float(children.mean()), 3),
            "most": int(children.max()),
        },
        "icosahedral_orbits_of_n_10": len(coarse.reduced("I")),
        "evenness": [evenness(make_grid(kind, level)) for kind, level in KNOWN],
    }
    report("rotations", result, keep)


if __name__ == "__main__":
    main()
