"""Kill -9 a random rank at random times: every run must go on by itself and end in the uninterrupted answer.

    python bench/faults.py [--kills N] [--ranks N] [--frames N] [--iterations N] [--folder FOLDER] [--keep]

A small reconstruction by EMC is carried out by ``orienteer run`` once in peace, and then N times with a kill
at a random time, a quarter of them while it is set up.  Volumes are compared as the largest
difference relative to the largest value, orientations frame by frame.  At last a run of 4 ranks is stopped
and goes on with 2.  Asked: all of them end, volumes within 1e-5, the same orientations.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from machine import describe_machine, report
from orienteer.run.events import read_events
from orienteer.run.run import Run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--keep", action="store_true", help="write bench/results/faults_cpu.json")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "frames.h5"
    if not data.exists():
        orienteer("simulate", "two-domain", "--frames", str(given.frames), "--photons-per-frame", "2000",
                  "--set", "detector.pixels=32", "--out", str(data)).wait()  # fmt: skip
    began = time.monotonic()
    wanted = folder / "wanted"
    assert start(data, wanted, given.ranks, given.iterations).wait() == 0
    seconds = time.monotonic() - began
    draw = random.Random(given.seed)
    killed = []
    for number in range(given.kills):
        out = folder / f"killed_{number}"
        found = {
            **kill_one(data, out, given, draw, seconds),
            **difference(wanted, out),
            "began_from": [event["iteration"] for event in Run.open(out).events if "ranks" in event],
        }
        killed.append(found)
        print(found, file=sys.stderr, flush=True)
    result = {
        "machine": describe_machine(),
        "given": {name: value for name, value in vars(given).items() if name not in ("folder", "keep")},
        "seconds_in_peace": round(seconds, 1),
        "killed": killed,
        "four_on_two": four_on_two(data, folder / "fewer", wanted, given.iterations),
    }
    report("faults_cpu", result, given.keep)


def orienteer(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "orienteer", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def start(data: Path, out: Path, ranks: int, iterations: int) -> "subprocess.Popen[str]":
    return orienteer(
        "run", str(data), "--out", str(out), "--ranks", str(ranks), "--iterations", str(iterations),
        "--set", "emc.memory_GiB=0.5", "--device", "cpu",
    )  # fmt: skip


def kill_one(
    data: Path, out: Path, given: argparse.Namespace, draw: random.Random, seconds: float
) -> dict[str, Any]:
    """Kill a rank of a run at some time; when, which, what was said, and how it ended."""
    rank, at = draw.randrange(given.ranks), draw.uniform(-given.iterations / 3, given.iterations)
    job = start(data, out, given.ranks, given.iterations)
    while not ranks_of(out) and job.poll() is None:
        time.sleep(0.02)
    if at < 0:
        time.sleep(-at / given.iterations * 0.75 * seconds)
    else:
        while iteration_of(out) < int(at) and job.poll() is None:
            time.sleep(0.01)
        time.sleep(at % 1 * seconds / given.iterations / 2)
    processes = ranks_of(out)
    if rank in processes:
        os.kill(processes[rank], signal.SIGKILL)
    _, said = job.communicate()
    told = [line for line in said.splitlines() if "killed" in line or "died" in line]
    return {"rank": rank, "at_iteration": round(at, 2), "was_killed": rank in processes,
            "status": job.returncode, "told": told}  # fmt: skip


def iteration_of(out: Path) -> int:
    steps = [event for event in read_events(out / "events.jsonl") if event["event"] == "step"]
    return int(steps[-1]["iteration"]) if steps else 0


def ranks_of(out: Path) -> dict[int, int]:
    """Processes that work on a run, by rank."""
    found = {}
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"reconstruct" in words and str(out).encode() in words:
                variables = dict(
                    pair.split(b"=", 1)
                    for pair in (process / "environ").read_bytes().split(b"\0")
                    if b"=" in pair
                )
                if b"PMI_RANK" in variables:
                    found[int(variables[b"PMI_RANK"])] = int(process.name)
        except (OSError, ValueError):
            continue
    return found


def difference(wanted: Path, out: Path) -> dict[str, Any]:
    """How far a result is from another one."""
    run, peace = Run.open(out), Run.open(wanted)
    if not run.finished:
        return {"finished": False}
    one, other = peace.volumes()[0].values, run.volumes()[0].values
    is_known = np.isfinite(one) & np.isfinite(other)
    same = peace.orientations()["quaternion"] == run.orientations()["quaternion"]
    return {
        "finished": True,
        "iteration": run.iteration,
        "volume_difference": float(np.abs(one - other)[is_known].max() / np.abs(one[is_known]).max()),
        "same_missing": bool((np.isfinite(one) == np.isfinite(other)).all()),
        "other_orientations": int((~same.all(axis=1)).sum()),
    }


def four_on_two(data: Path, out: Path, wanted: Path, iterations: int) -> dict[str, Any]:
    """Stop four ranks in the middle, and let two go on."""
    job = start(data, out, 4, iterations)
    while iteration_of(out) < 2:
        assert job.poll() is None
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    job.communicate()
    first = job.returncode
    job = start(data, out, 2, iterations)
    job.communicate()
    n_ranks = [len(event["ranks"]) for event in Run.open(out).events if "ranks" in event]
    return {"status_of_four": first, "status_of_two": job.returncode, "ranks": n_ranks,
            **difference(wanted, out)}  # fmt: skip


if __name__ == "__main__":
    main()
