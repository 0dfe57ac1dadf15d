"""Scale on paper and here: what the performance model is fitted to, and what ranks of this machine measure.

    python bench/scaling.py fit [--keep]                     iterations of several sizes on these cores
    python bench/scaling.py stages [--keep]                  what follows the orienting, in real runs
    python bench/scaling.py weak [--ranks 1 2 4] [--keep]    ranks with as many frames each, model beside it

fit: plain iterations (``time_iterations``) on the CPU, in time of the processors, so that other work on the
machine does not count.  What one core costs follows; ``orienteer.scaling.machines`` holds it.

weak: every rank of MPI has one thread and as many frames of its own.  Where there are fewer cores than ranks,
ranks share them: the time per iteration must then grow as ranks over cores, and what it grows beyond that is
the price of being many.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import orienteer
from machine import describe_machine, report
from orienteer.compute.stage_log import StageLog
from orienteer.mtip.mtip import Mtip
from orienteer.mtip.settings import MtipSettings
from orienteer.reconstruction.benchmark import time_iterations
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings

# Frames, pixels and divisions of the 600-cell.
SIZES = ((300, 1024, 4), (1200, 1024, 4), (300, 4096, 4), (300, 1024, 7), (600, 2304, 6))
REPEATS = 3
TRANSFORM_VOXELS = 96
STAGE_FRAMES = 600


def fit(options: argparse.Namespace) -> None:
    """Time iterations of several sizes on the cores of this machine."""
    runs = []
    for frames, pixels, level in SIZES:
        found = time_iterations(
            frames=frames, pixels=pixels, rotations_n=level, device="cpu", repeats=REPEATS, photons=1000.0
        )
        runs.append(
            {
                name: found[name]
                for name in (
                    "frames", "pixels", "lit_pixels_per_frame", "rotations", "edge_voxels", "layout",
                    "precision", "likelihood",
                )
            }
            | {
                "processor_seconds": found["flat"]["processor_seconds"],
                "breakdown_flat_s": found["flat"]["breakdown"],
            }
        )  # fmt: skip
    result = {
        "problem": "plain iterations of flat posteriors on the CPU; processor seconds of all threads",
        "machine": describe_machine(),
        "runs": runs,
        "transform": {"voxels": TRANSFORM_VOXELS, "processor_seconds": transform_seconds()},
        "command": "python bench/scaling.py fit --keep",
    }
    report("scaling_cpu", result, options.keep)


def stages(options: argparse.Namespace) -> None:
    """Processor seconds of what follows the orienting in real runs, and the sizes that they depend on."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.h5"
        write_frames(path, STAGE_FRAMES)
        runs = [
            steps_of(Emc(orienteer.open(path), EmcSettings(resolution_A=35.0, level=5), device="cpu"), 8),
            steps_of(Mtip(orienteer.open(path), MtipSettings(resolution_A=35.0, level=5), device="cpu"), 26),
        ]
    result = {
        "problem": f"{STAGE_FRAMES} frames of an icosahedron, 1 500 photons each, to 35 A; steps of blind runs",
        "machine": describe_machine(),
        "runs": dict(zip(("emc", "mtip"), runs, strict=True)),
        "transform": {"voxels": TRANSFORM_VOXELS, "processor_seconds": transform_seconds()},
        "command": "python bench/scaling.py stages --keep",
    }
    report("scaling_stages_cpu", result, options.keep)


def steps_of(method: Emc, n: int) -> list[dict[str, Any]]:
    """Processor seconds of the stages of each step, with its sizes."""
    found = []
    while not method.finished and len(found) < n:
        work = method.work
        with StageLog(clock=time.process_time) as log:
            method.step()
        seconds: dict[str, float] = {}
        for line in log.lines[1:]:
            seconds[line["stage"]] = seconds.get(line["stage"], 0.0) + line["seconds"]
        found.append(
            {
                "edge_voxels": work.edge_voxels, "poses": work.n_poses, "pixels": len(work.places),
                "frames": len(method.half), "halves": method.n_halves, "seconds": seconds,
            }
        )  # fmt: skip
    return found


def write_frames(path: Path, n_frames: int) -> None:
    """Frames of an icosahedron."""
    command = f"simulate icosahedron --frames {n_frames} --photons-per-frame 1500 --seed 1 --out {path}"
    subprocess.run([sys.executable, "-m", "orienteer", *command.split()], check=True, capture_output=True)


def transform_seconds() -> float:
    """Processor seconds of one real transform of a cube, the least of several."""
    import scipy.fft

    cube = np.ones((TRANSFORM_VOXELS,) * 3)
    each = []
    for _ in range(8):
        start = time.process_time()
        scipy.fft.rfftn(cube)
        each.append(time.process_time() - start)
    return min(each)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["fit", "stages"])
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    {"fit": fit, "stages": stages}[options.part](options)


if __name__ == "__main__":
    main()
