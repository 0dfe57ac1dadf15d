"""Alignment of densities: known rotations, shifts and hands found again, and the time of each; FSC of 256³.

    python bench/compare.py [--cases 50] [--device auto] [--keep]

Densities of 65³ voxels, half of them mirror images, each turned and shifted at random:

blobs             Gaussian balls at random places
chain             a random walk of 800 carbon atoms, detail up to the edge of the transform
helix             a screw whose weight grows from one end to the other
nearly symmetric  two twisted rings of six balls, of which one is a tenth heavier
nearly achiral    balls in a plane and one small ball beside it
noisy             blobs, and in both densities noise half as strong as they are
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from machine import describe_machine, report
from orienteer.compare.densities import align_densities
from orienteer.compare.fsc import fourier_shell_correlation
from orienteer.compare.structure_density import density_of
from orienteer.compute.arrays import choose_device, namespace_of_device, to_device
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import random_uniform
from orienteer.particle.named_bodies import random_blobs
from orienteer.particle.scatterers import element_table
from orienteer.particle.structure import Structure, blobs
from orienteer.volume.volume import Volume

N, VOXEL_A = 65, 2.0
GOAL_DEG, GOAL_SECONDS = 0.3, 10.0


def chain(draw: np.random.Generator) -> Structure:
    steps = draw.normal(size=(800, 3))
    walk = np.cumsum(1.5 * steps / np.linalg.norm(steps, axis=1, keepdims=True), axis=0)
    walk *= 35 / np.linalg.norm(walk - walk.mean(axis=0), axis=1).max()
    count = len(walk)
    return Structure(
        walk - walk.mean(axis=0),
        np.zeros(count, int),
        element_table(["C"]),
        np.ones(count),
        np.full(count, 30.0),
    )


def helix(draw: np.random.Generator) -> Structure:
    turn = np.linspace(0, draw.uniform(4, 8) * np.pi, 40)
    places = np.stack([18 * np.cos(turn), 18 * np.sin(turn), np.linspace(-28, 28, 40)], axis=1)
    return blobs(places, np.linspace(0.8, 1.2, 40), 3.5)


def nearly_symmetric(draw: np.random.Generator) -> Structure:
    angle = np.arange(6) * np.pi / 3
    twist = draw.uniform(0.15, 0.4)
    rings = [
        np.stack([r * np.cos(angle + t), r * np.sin(angle + t), np.full(6, z)], axis=1)
        for r, t, z in ((26, 0, 8), (18, twist, -10))
    ]
    weights = np.ones(12)
    weights[draw.integers(12)] = 1.1
    return blobs(np.concatenate(rings), weights, 5.0)


def nearly_achiral(draw: np.random.Generator) -> Structure:
    places = draw.uniform(-25, 25, (10, 3))
    places[:, 2] = 0
    places[-1] = [10, 5, 12]
    weights = np.ones(10)
    weights[-1] = 0.3
    return blobs(places, weights, 4.5)


KINDS = {
    "blobs": lambda draw: random_blobs(float(draw.uniform(60, 90)), 12, int(draw.integers(1000))),
    "chain": chain,
    "helix": helix,
    "nearly symmetric": nearly_symmetric,
    "nearly achiral": nearly_achiral,
    "noisy": lambda draw: random_blobs(90.0, 12, int(draw.integers(1000))),
}


def density(body: Structure, noise: float, draw: np.random.Generator) -> NDArray[np.float64]:
    """The density of a body in the box, with noise of a strength relative to it."""
    values = np.asarray(density_of(body, N, VOXEL_A).values, np.float64)
    return values + noise * values.std() * draw.normal(size=values.shape)


def one_case(number: int, device: str) -> dict[str, object]:
    """A density and a moved one, aligned: errors and seconds."""
    from dataclasses import replace

    draw = np.random.default_rng([7, number])
    kind = list(KINDS)[number % len(KINDS)]
    body = KINDS[kind](draw)
    turn, shift, hand = random_uniform(1, draw)[0], draw.uniform(-10, 10, 3), int(draw.choice([1, -1]))
    moved = replace(body, positions_A=hand * body.positions_A).rotated(turn).translated(shift)
    noise = 0.5 if kind == "noisy" else 0.0
    pair = [Volume(to_device(density(b, noise, draw), device), VOXEL_A) for b in (moved, body)]
    start, work = time.perf_counter(), time.process_time()
    found = align_densities(*pair)
    return {
        "kind": kind,
        "rotation_error_deg": round(float(angular_distance_deg(found.quaternion, turn)), 4),
        "shift_error_A": round(float(np.linalg.norm(found.shift_A - shift)), 4),
        "hand_right": found.hand == hand,
        "correlation": round(float(found.correlation), 5),
        "other_hand_correlation": round(float(found.other_hand_correlation), 5),
        "seconds": round(time.perf_counter() - start, 2),
        "processor_seconds": round(time.process_time() - work, 2),
    }


def seconds_of_fsc(device: str, n: int = 256) -> float:
    """The shortest of several runs."""
    xp = namespace_of_device(device)
    draw = np.random.default_rng(1)
    a, b = (xp.asarray(draw.normal(size=(n, n, n)).astype(np.float32)) for _ in range(2))
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        fourier_shell_correlation(a, b)  # ends with sums on the CPU
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    device = choose_device(options.device)
    cases = []
    for number in range(options.first, options.first + options.cases):
        cases.append(one_case(number, device))
        print(number, cases[-1], flush=True)
    worst = {
        kind: {
            "cases": len(own),
            "worst_rotation_deg": max(case["rotation_error_deg"] for case in own),
            "worst_shift_A": max(case["shift_error_A"] for case in own),
            "hands_right": sum(case["hand_right"] for case in own),
        }
        for kind in KINDS
        if (own := [case for case in cases if case["kind"] == kind])
    }
    result = {
        "problem": f"{len(cases)} pairs of densities of {N}^3 voxels aligned in rotation, shift and hand",
        "machine": describe_machine(device),
        "seconds": {
            "median": float(np.median([case["seconds"] for case in cases])),
            "most": max(case["seconds"] for case in cases),
            "goal": GOAL_SECONDS,
        },
        # Of all cores together: what a busy machine does not change.
        "processor_seconds": {
            "median": float(np.median([case["processor_seconds"] for case in cases[1:] or cases])),
            "most": max(case["processor_seconds"] for case in cases[1:] or cases),
        },
        "error": {
            "worst_rotation_deg": max(case["rotation_error_deg"] for case in cases),
            "goal_deg": GOAL_DEG,
            "wrong_hands": sum(not case["hand_right"] for case in cases),
        },
        "by_kind": worst,
        "fsc_256_seconds": round(seconds_of_fsc(device), 5),
    }
    report(f"compare_{device}", result, options.keep)


if __name__ == "__main__":
    main()
