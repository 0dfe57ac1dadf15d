"""Seconds from ``mpiexec`` to the first iteration, for 1, 2 and 4 ranks, and what they are spent on.

    python bench/startup.py [--ranks 1 2 4] [--repeats N] [--frames N] [--keep]

A run says when it was begun ("started": settings read, data opened and hashed, first estimates made) and when
its first step was done and how long that took; the first step begins at the difference.  "python" is an empty
program started in the same way, "mpi" one that only joins its ranks.  The least of all repeats counts: what
is more is the load of the machine.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from machine import describe_machine, report
from orienteer.run.events import read_events
from orienteer.run.launch import launcher

JOIN = "from orienteer.run.crew import crew; crew()"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--keep", action="store_true", help="write bench/results/startup_cpu.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "frames.h5"
        simulate = ["simulate", "two-domain", "--frames", str(given.frames), "--photons-per-frame", "1000"]
        carry_out(1, ["-m", "orienteer", *simulate, "--set", "detector.pixels=64", "--out", str(data)])
        measured: dict[int, list[dict[str, float]]] = {n: [] for n in given.ranks}
        for repeat in range(given.repeats):
            for n in given.ranks:  # side by side, so that all meet the same load
                measured[n].append(measure(n, data, folder / f"run_{repeat}_{n}"))
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "frames": given.frames,
        "repeats": given.repeats,
        "seconds": {
            str(n): {part: round(min(each[part] for each in found), 2) for part in found[0]}
            for n, found in measured.items()
        },
    }
    report("startup_cpu", result, given.keep)


def measure(n: int, data: Path, out: Path) -> dict[str, float]:
    """Seconds from the start of n ranks to each of these."""
    began = time.monotonic()
    carry_out(n, ["-c", "pass"])
    python = time.monotonic() - began
    began = time.monotonic()
    carry_out(n, ["-c", JOIN])
    mpi = time.monotonic() - began
    began_at = time.time()
    command = ["reconstruct", str(data), "--out", str(out), "--iterations", "1", "--device", "cpu"]
    carry_out(n, ["-m", "orienteer", *command])
    started, step = (event for event in read_events(out / "events.jsonl") if event["event"] != "finished")
    begun_s, done_s = (
        datetime.fromisoformat(event["time"]).timestamp() - began_at for event in (started, step)
    )
    return {"python": python, "mpi": mpi, "run_begun": begun_s, "first_step": done_s - step["seconds"]}


def carry_out(n: int, arguments: list[str]) -> None:
    front = launcher(n) if n > 1 else []
    subprocess.run([*front, sys.executable, *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    main()
