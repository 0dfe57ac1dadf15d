"""Kill -9 a reconstruction at random instants: gone on with each time, it ends in the same bits.

    python bench/kills.py [--kills N] [--frames N] [--pixels N] [--device cuda] [--keep]

``orienteer reconstruct`` goes once in peace.  Then it is begun, killed at some instant between its start and
the time that the whole would take, and begun again by the same command, until it ends by itself; and so on
with new runs until N kills have fallen.  Sums are deterministic on the GPU, as they always are on the CPU.
Asked: 20 kills, and intensities and orientations identical to the last bit.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from machine import describe_machine, report
from orienteer.run.run import Run


def main() -> None:
    """Kill and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--pixels", type=int, default=32)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--seed", type=int, default=1, help="of the instants")
    parser.add_argument("--keep", action="store_true", help="write bench/results/kills_DEVICE.json")
    given = parser.parse_args()
    draw, killed_at, runs = random.Random(given.seed), [], []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data, wanted = folder / "frames.h5", folder / "wanted"
        orienteer("simulate", "two-domain", "--frames", str(given.frames), "--photons-per-frame", "2000",
                  "--set", f"detector.pixels={given.pixels}", "--out", str(data)).wait()  # fmt: skip
        began = time.monotonic()
        status = reconstruct(data, wanted, given.device).wait()
        assert status == 0, f"the run in peace ended with status {status}"
        seconds = time.monotonic() - began
        while len(killed_at) < given.kills:
            out, kills = folder / "killed", []
            while True:
                at = draw.uniform(0, seconds)
                job = reconstruct(data, out, given.device)
                try:
                    status = job.wait(at if len(killed_at) + len(kills) < given.kills else None)
                    break
                except subprocess.TimeoutExpired:
                    job.kill()
                    job.wait()
                    kills.append(round(at, 2))
            runs.append({"kills": kills, "status": status, **difference(wanted, out)})
            print(runs[-1], file=sys.stderr, flush=True)
            killed_at += kills
            shutil.rmtree(out, ignore_errors=True)
    result = {
        "problem": f"{given.frames} frames of {given.pixels}^2 pixels, EMC, killed {len(killed_at)} times",
        "machine": describe_machine(given.device),
        "seconds_in_peace": round(seconds, 1),
        "identical": all(run["identical"] for run in runs),
        "runs": runs,
    }
    report(f"kills_{given.device}", result, given.keep)


def orienteer(*arguments: str) -> "subprocess.Popen[bytes]":
    """A command of Orienteer, silent."""
    return subprocess.Popen(
        [sys.executable, "-m", "orienteer", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def reconstruct(data: Path, out: Path, device: str) -> "subprocess.Popen[bytes]":
    """Begin a run, or go on with it."""
    return orienteer("reconstruct", str(data), "--out", str(out), "--device", device, "--deterministic")


def difference(wanted: Path, out: Path) -> dict[str, Any]:
    """Whether a run has ended in the bits of another one."""
    run, peace = Run.open(out), Run.open(wanted)
    if not run.finished:
        return {"identical": False, "finished": False}
    same_volume = np.array_equal(peace.volumes()[0].values, run.volumes()[0].values, equal_nan=True)
    one, other = peace.orientations(), run.orientations()
    columns = [name for name in one if not np.array_equal(one[name], other[name])]
    return {"identical": same_volume and not columns, "same_volume": same_volume, "other_columns": columns}


if __name__ == "__main__":
    main()
