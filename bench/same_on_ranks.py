"""The same answer on any number of ranks: volumes and orientations of whole runs beside those of one rank.

    python bench/same_on_ranks.py [--device cuda] [--frames N] [--pixels N] [--cases emc mtip] [--keep]

``orienteer reconstruct --deterministic`` goes on one rank, and then on others; on a GPU all ranks share one
card.  Told are the norm of the difference of the volumes over that of the volume, the largest difference over
the largest value, and how far orientations are apart, up to half a turn about the beam where patterns do not
tell it.  Asked: volumes within 1e-5, and the same assignments.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from machine import report_runs
from orienteer.orientation.distance import angular_distance_deg
from orienteer.run.run import Run


@dataclass(frozen=True)
class Case:
    """How ranks share the work: their number, their mesh, and whether the half sets sit apart."""

    method: str
    ranks: int
    mesh: str = "auto"
    half_sets: str = "auto"


CASES = {
    "emc": [
        Case("emc", 2, "2x1", "together"), Case("emc", 2, "1x2", "together"), Case("emc", 2, "1x2", "apart"),
        Case("emc", 3, "3x1", "together"), Case("emc", 4, "2x2", "together"), Case("emc", 4, "2x2", "apart"),
    ],
    "mtip": [
        Case("mtip", 2, "2x1", "together"), Case("mtip", 2, "1x2", "apart"),
        Case("mtip", 3, "3x1", "together"), Case("mtip", 4, "2x2", "apart"),
    ],
}  # fmt: skip


def reconstruct(data: Path, out: Path, case: Case, device: str) -> float:
    """Seconds that a run takes."""
    beside_python = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside_python) if beside_python.exists() else shutil.which("mpiexec")
    assert mpiexec is not None, "needs mpiexec"
    ranks = [] if case.ranks == 1 else [mpiexec, "-n", str(case.ranks)]
    shares = [] if case.ranks == 1 else ["--mesh", case.mesh, "--half-sets", case.half_sets]
    command = [
        *ranks, sys.executable, "-m", "orienteer", "reconstruct", str(data), "--out", str(out),
        "--method", case.method, "--device", device, "--deterministic", *shares,
    ]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return time.monotonic() - began


def difference(alone: Path, out: Path) -> dict[str, Any]:
    """How far a run has come from that of one rank."""
    one, other = Run.open(alone), Run.open(out)
    volumes = zip(one.volumes(), other.volumes(), strict=True)
    errors, largest = [], []
    for a, b in volumes:
        whole, rest = np.nan_to_num(a.values), np.nan_to_num(b.values - a.values)
        errors.append(float(np.linalg.norm(rest) / np.linalg.norm(whole)))
        largest.append(float(np.abs(rest).max() / np.abs(whole).max()))
    wanted, found = (run.orientations()["quaternion"] for run in (one, other))
    angles = angular_distance_deg(wanted, found, flat_ewald=True)
    return {
        "volume_error": max(errors),
        "largest_difference": max(largest),
        "other_orientations": int(np.sum(angles > 0.02)),
        "largest_angle_deg": float(np.max(angles)),
        "identical": max(errors) == 0 and np.array_equal(wanted, found),
    }


def main() -> None:
    """Run on one rank and on others, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--pixels", type=int, default=32)
    parser.add_argument("--photons", type=float, default=2000)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument(
        "--keep", action="store_true", help="write bench/results/same_on_ranks_CASE_DEVICE.json"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data = folder / "frames.h5"
        simulate = [
            sys.executable, "-m", "orienteer", "simulate", "two-domain", "--frames", str(options.frames),
            "--photons-per-frame", str(options.photons), "--set", f"detector.pixels={options.pixels}",
            "--out", str(data),
        ]  # fmt: skip
        subprocess.run(simulate, check=True, capture_output=True)
        for method in options.cases:
            _compare(method, data, options)


def _compare(method: str, data: Path, options: argparse.Namespace) -> None:
    """One method on one rank and on others; what was found is told, and kept where that is asked for."""
    began, rows = time.perf_counter(), []
    alone = data.with_name(method)
    seconds = reconstruct(data, alone, Case(method, 1), options.device)
    for case in CASES[method]:
        out = data.with_name(f"{method}_{case.ranks}_{case.mesh}_{case.half_sets}")
        took = reconstruct(data, out, case, options.device)
        rows.append(vars(case) | {"seconds": took, "seconds_alone": seconds} | difference(alone, out))
        print(rows[-1], file=sys.stderr, flush=True)
    problem = (
        f"{options.frames} frames of {options.photons:g} photons on {options.pixels}^2 pixels, deterministic"
    )
    report_runs(
        f"same_on_ranks_{method}_{options.device}", problem, began, options,
        largest_volume_error=max(row["volume_error"] for row in rows), runs=rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
