"""Scale on paper and here: what the performance model is fitted to, and what ranks of this machine measure.

    python bench/scaling.py fit [--keep]                     iterations of several sizes on these cores
    python bench/scaling.py stages [--keep]                  what follows the orienting, in real runs
    python bench/scaling.py links [--keep]                   sums between ranks of this machine
    python bench/scaling.py weak [--ranks 1 2 4] [--keep]    ranks with as many frames each, model beside it

fit: plain iterations (``time_iterations``) on the CPU, in time of the processors, so that other work on the
machine does not count.  What one core costs follows; ``orienteer.scaling.machines`` holds it.

weak: every rank of MPI has one thread and as many frames of its own, in a mesh of as many groups ("1xN"), or
of one group that shares orientations ("Nx1").  Two clocks are read.  The wall clock is right on a machine
that is otherwise idle and has a core per rank; where there are fewer cores, ranks take turns, and time must
grow as ranks over cores.  The time of the processors without waiting is the work of a rank whoever else uses
the machine: what it grows with the number of ranks is work that is done more than once.
"""

import argparse
import json
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
from orienteer.scaling.machines import MACHINES
from orienteer.scaling.network import summed
from orienteer.scaling.prediction import predict
from orienteer.scaling.problem import Problem
from orienteer.scaling.traffic import traffic_of

# Frames, pixels and divisions of the 600-cell.
SIZES = ((300, 1024, 4), (1200, 1024, 4), (300, 4096, 4), (300, 1024, 7), (600, 2304, 6))
REPEATS = 3
TRANSFORM_VOXELS = 96
STAGE_FRAMES = 600
WEAK = {"frames": 500, "pixels": 33, "level": 5, "steps": 6}


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
        "problem": f"{STAGE_FRAMES} frames of an icosahedron, 1 500 photons each, to 35 A; blind steps",
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


def weak(options: argparse.Namespace) -> None:
    """Iterations of 1, 2, 4, ... ranks that have as many frames each, model beside it."""
    runs = []
    for n in options.ranks:
        for mesh in dict.fromkeys((f"1x{n}", f"{n}x1")):
            command = ["mpiexec", "-n", str(n), sys.executable, __file__, "rank", "--mesh", mesh]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
            print(json.dumps(runs[-1]), file=sys.stderr)
    result = {
        "problem": f"{WEAK['frames']} frames of {WEAK['pixels']} x {WEAK['pixels']} pixels for every rank, "
        f"600-cell n = {WEAK['level']}; median of {WEAK['steps'] - 1} iterations after the first",
        "machine": describe_machine(),
        "runs": runs,
        "command": "python bench/scaling.py weak --keep",
    }
    report("scaling_weak_cpu", result, options.keep)


def rank(options: argparse.Namespace) -> None:
    """What every rank of ``weak`` does; the first prints what all have found."""
    from orienteer.compute.ranks.mesh import Mesh
    from orienteer.compute.ranks.sharing import use_threads
    from orienteer.compute.ranks.world import world
    from orienteer.particle.named_bodies import random_blobs
    from orienteer.source.in_memory import InMemorySource

    comm = world()
    use_threads(1)
    mesh = Mesh.of(comm, options.mesh)
    detector = orienteer.square_detector(
        WEAK["pixels"], edge_resolution_A=30.0, wavelength_A=2.5, pixel_size_m=5e-4
    )
    experiment = orienteer.simulate(
        random_blobs(200.0, 12, 4), orienteer.Beam(wavelength_A=2.5), detector,
        orienteer.SimulateSettings(frames=WEAK["frames"] * comm.size, photons_per_frame=1000.0, seed=3),
        device="cpu",
    )  # fmt: skip
    source = InMemorySource(experiment.read(), detector.frame_shape).with_detector(detector)
    # Sentinels and junk are looked for now and then only: every iteration is to do the same.
    settings = EmcSettings(diameter_A=200.0, level=WEAK["level"], sentinels=0.0, reject_junk=False)
    emc = Emc(source, settings, seed=1, device="cpu", mesh=mesh)
    wall, busy, sent = [], [], []
    for _ in range(WEAK["steps"]):
        work, before, start = emc.work, mesh.sent_bytes, time.perf_counter()
        with StageLog(clock=time.process_time) as log:
            begun = time.process_time()
            emc.step()
            spent = time.process_time() - begun
        wall.append(time.perf_counter() - start)
        waited = sum(line["seconds"] for line in log.lines if line["stage"] == "wait")
        busy.append(spent - waited)
        sent.append(mesh.sent_bytes - before)
    found = comm.gather((wall[1:], busy[1:], sent[1:]))
    problem = Problem(
        len(emc.half), len(work.places), work.n_poses, work.edge_voxels, emc.frames.lit_share,
        n_halves=emc.n_halves,
    )  # fmt: skip
    size = comm.size // mesh.n_groups
    model = predict(problem, MACHINES["cores"], size, mesh.n_groups)
    model_sent = traffic_of(problem, size, mesh.n_groups, stride=8)
    if comm.is_first:
        result = {
            "ranks": comm.size,
            "mesh": options.mesh,
            "frames": problem.n_frames,
            "pixels": problem.n_pixels,
            "rotations": problem.n_poses,
            "edge_voxels": problem.edge_voxels,
            "wall_seconds": float(np.median([np.median(each[0]) for each in found])),
            "work_seconds": float(np.median([np.median(each[1]) for each in found])),
            "sent_bytes": float(np.mean([each[2][0] for each in found])),
            "model_work_seconds": model.seconds - model.stages["collectives"],
            "model_collectives_seconds": model.stages["collectives"],
            "model_sent_bytes": model_sent.n_bytes,
        }
        print(json.dumps(result))


def links(options: argparse.Namespace) -> None:
    """Latency and bandwidth of sums between ranks of this machine, the best of several."""
    found = []
    for n in (2, 4):
        command = ["mpiexec", "-n", str(n), sys.executable, __file__, "link"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    result = {
        "problem": "sums of 8 bytes and of 32 MB over ranks of one machine; the best of 40 and of 10",
        "machine": describe_machine(),
        "runs": found,
        "command": "python bench/scaling.py links --keep",
    }
    report("scaling_links_cpu", result, options.keep)


def link(_: argparse.Namespace) -> None:
    """What every rank of ``links`` does."""
    from orienteer.compute.ranks.world import world

    comm = world()
    small, large = np.ones(1), np.ones(4_000_000)
    seconds = {}
    for name, array, repeats in (("small", small, 40), ("large", large, 10)):
        each = []
        for _ in range(repeats):
            comm.max(0.0)  # all begin together
            start = time.perf_counter()
            comm.sum(array)
            each.append(time.perf_counter() - start)
        seconds[name] = min(each)
    slowest = {name: max(comm.gather(value)) for name, value in seconds.items()}
    if comm.is_first:
        messages = summed(0.0, comm.size).messages
        sent = summed(large.nbytes, comm.size).n_bytes
        print(
            json.dumps(
                {
                    "ranks": comm.size,
                    "latency_s": slowest["small"] / messages,
                    "bandwidth": sent / (slowest["large"] - slowest["small"]),
                }
            )
        )


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
    parser.add_argument("part", choices=["fit", "stages", "weak", "rank", "links", "link"])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--mesh", default="auto")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    {
        "fit": fit,
        "stages": stages,
        "weak": weak,
        "rank": rank,
        "links": links,
        "link": link,
    }[options.part](options)


if __name__ == "__main__":
    main()
