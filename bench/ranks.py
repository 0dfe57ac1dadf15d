"""What ranks cost and gain on one machine: overhead, traffic, and balance with one slow rank.

    python bench/ranks.py overhead [--rounds 3] [--keep]    2 ranks x 1 thread, 1 rank x 2 threads
    python bench/ranks.py balance [--rounds 3] [--keep]     one rank slowed, dynamic and static
    python bench/ranks.py traffic [--keep]                  what 2 ranks send in each of 6 iterations

overhead: the same iterations in turns, so that other work on the machine meets both; the ratio is that of the
medians.  Beside it stands the time of the processors, all ranks and their waiting together, which other work
on the machine changes less.  The bytes that ranks have sent are compared with those of the performance model.

traffic: the same problem; the first iteration has more to send, and in the first and the sixth sentinels are
asked.  Times do not matter.

balance: after each piece of the work of one rank (scores and merge of a tile) it sleeps twice as long as that
took, which makes it three times as slow.  Ratios are of whole iterations.  On a busy machine a rank that has
slept is served first, and nothing can be learnt; with --pause every rank waits so many seconds in each piece
of its work, the slow one three times as long, so that the cores hardly matter.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import orienteer
from machine import describe_machine, report
from orienteer.compute.ranks.mesh import Mesh
from orienteer.compute.ranks.sharing import use_threads
from orienteer.compute.ranks.world import world
from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.orienting import expectation, maximisation
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.settings import EmcSettings
from orienteer.scaling.problem import Problem
from orienteer.scaling.traffic import traffic_of
from orienteer.source.opening import writer_for

WAVELENGTH_A, DIAMETER_A, PIXELS, EDGE_A, PHOTONS = 2.5, 200.0, 33, 45.0, 1000.0
# Frames with which an iteration takes more than 5 s on two cores; for the slow rank fewer will do.
FRAMES = {"overhead": 56_000, "balance": 20_000, "traffic": 56_000}
# Sentinels and judgements come now and then; the iterations that are timed have none of them.
TIMED = (2, 3)
SLOWED = 3


def make_frames(path: Path, n_frames: int) -> None:
    detector = orienteer.square_detector(
        PIXELS, edge_resolution_A=EDGE_A, wavelength_A=WAVELENGTH_A, pixel_size_m=5e-4
    )
    experiment = orienteer.simulate(
        random_blobs(DIAMETER_A, 20, 5), orienteer.Beam(wavelength_A=WAVELENGTH_A), detector,
        orienteer.SimulateSettings(frames=n_frames, photons_per_frame=PHOTONS, seed=1), device="cpu",
    )  # fmt: skip
    with writer_for(path, like=experiment, metadata={}) as writer:
        for batch in experiment.batches():
            writer.append(batch)


def slowed(work: Callable[..., Any], factor: float, pause: float) -> Callable[..., Any]:
    """The same work, after which the rank sleeps until it has taken so many times as long, pause included."""

    def slow(*args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        found = work(*args, **options)
        time.sleep((factor - 1) * (time.perf_counter() - start) if not pause else factor * pause)
        return found

    return slow


def worker(given: argparse.Namespace) -> None:
    """Iterations on the ranks that there are; the first of them prints what they took."""
    comm = world()
    use_threads(given.threads)
    mesh = Mesh.of(comm, given.mesh, dynamic=given.balance == "dynamic")
    is_slow = given.slow and comm.share(comm.size).start == comm.size - 1
    if is_slow or given.pause:
        how = SLOWED if is_slow else 1, given.pause
        expectation._score_tile = slowed(expectation._score_tile, *how)
        maximisation._deposited = slowed(maximisation._deposited, *how)
        Deposit.add = slowed(Deposit.add, *how)  # type: ignore[method-assign]
    settings = EmcSettings(diameter_A=DIAMETER_A, level=given.level)
    emc = Emc(orienteer.open(given.file), settings, seed=1, device="cpu", mesh=mesh)
    steps, processor, model = [], [], []
    for number in range(given.steps):
        stride, asked, began = emc.annealing.stride, emc.watch, time.process_time()
        frame_bytes = 0.0 if number else emc.frames.nbytes / int(emc.frames.is_here.sum())
        steps.append(emc.step())
        processor.append(comm.sum(time.process_time() - began))
        problem = Problem(
            int((~emc.sentinel).sum()), len(emc.work.places), emc.work.n_poses, emc.work.edge_voxels,
            emc.frames.lit_share, n_halves=emc.n_halves,
        )  # fmt: skip
        sentinels = int(emc.sentinel.sum()) if emc.watch is not asked else 0
        traffic = traffic_of(
            problem, comm.size // mesh.n_groups, mesh.n_groups, stride=stride, sentinels=sentinels,
            frame_bytes=frame_bytes,
        )  # fmt: skip
        model.append(traffic.n_bytes * comm.size / 1e6 if comm.size > 1 else 0.0)
    timed = [step for step in steps if step.iteration in TIMED]
    if comm.is_first:
        sent = [step.sent_bytes / 1e6 for step in steps]
        told = {
            "seconds": [step.seconds for step in timed], "sent_MB": sent, "model_MB": model,
            "processor_seconds": float(np.median(processor[min(TIMED) - 1 :])), "poses": emc.work.n_poses,
            "edge_voxels": emc.work.edge_voxels, "pixels": len(emc.work.places),
            "nats": steps[-1].log_likelihood, "layout": emc.plan.layout,
        }  # fmt: skip
        print(json.dumps(told))


def start(n_ranks: int, *given: str) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).resolve()), "worker", *given]
    if n_ranks > 1:
        command = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(n_ranks), *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def over_model(found: dict[str, Any]) -> list[float]:
    """Bytes that were sent over those of the model, iteration by iteration."""
    return [sent / model for sent, model in zip(found["sent_MB"], found["model_MB"], strict=True)]


def in_turns(kinds: dict[str, tuple[Any, ...]], rounds: int) -> dict[str, dict[str, Any]]:
    """Each kind once in every round; seconds are all that were timed, other numbers those of the last."""
    found: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for name, (n_ranks, *given) in kinds.items():
            one = start(n_ranks, *given)
            seconds = [*found.get(name, {}).get("each", []), *one.pop("seconds")]
            found[name] = {**one, "each": seconds, "seconds": float(np.median(seconds))}
            print(name, [round(s, 2) for s in seconds], file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["overhead", "balance", "traffic", "worker"])
    parser.add_argument("--frames", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--level", type=int, default=8)
    parser.add_argument("--steps", type=int, default=max(TIMED))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--file", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mesh", default="auto")
    parser.add_argument("--balance", default="dynamic")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--pause", type=float, default=0.0)
    given = parser.parse_args()
    if given.what == "worker":
        worker(given)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "frames.h5"
        make_frames(file, given.frames or FRAMES[given.what])
        common = ("--file", str(file), "--level", str(given.level), "--pause", str(given.pause))
        if given.what == "overhead":
            found = in_turns(
                {
                    "1 rank x 2 threads": (1, *common, "--threads", "2"),
                    "2 ranks x 1 thread": (2, *common, "--mesh", "2x1"),
                },
                given.rounds,
            )
            one, two = found.values()
            summary = {
                "ratio": two["seconds"] / one["seconds"],
                "processor_ratio": two["processor_seconds"] / one["processor_seconds"],
                "sent_over_model": over_model(two),
            }
        elif given.what == "traffic":
            kinds = {"2 ranks x 1 thread": (2, *common, "--mesh", "2x1", "--steps", "6")}
            found = in_turns(kinds, 1)
            summary = {"sent_over_model": over_model(*found.values())}
        else:
            found = in_turns(
                {
                    "static": (2, *common, "--mesh", "2x1", "--slow", "--balance", "static"),
                    "dynamic": (2, *common, "--mesh", "2x1", "--slow", "--balance", "dynamic"),
                },
                given.rounds,
            )
            summary = {"gain": found["static"]["seconds"] / found["dynamic"]["seconds"]}
        summary |= {"frames": given.frames or FRAMES[given.what], "pause_s": given.pause}
    report(f"ranks_{given.what}", {**summary, **found, "machine": describe_machine()}, given.keep)


if __name__ == "__main__":
    main()
