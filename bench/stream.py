"""Frames per second through Orienteer's own ZeroMQ stream, from a file to another process, and their cost.

    python bench/stream.py [--seconds S] [--rate HZ] [--side PIXELS] [--frames N] [--sparse] [--keep]

Asked of 2 cores: 128 x 128 frames (uint16) at 2 000 frames per second without a loss, with room left for
calibration and hit finding.  The replayer is a process of its own that reads a compressed file in a loop;
this process takes every batch and adds up its pixels, so that every byte is read.  First the stream runs as
fast as it can, then at the rate asked for.  Seconds of processor time say what is left on a shared machine,
where seconds of the clock do not.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from machine import describe_machine, report
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns
from orienteer.stream.opening import open_stream


def write_frames(path: Path, n_frames: int, side: int) -> None:
    """Frames of a weak particle on a background: 0.2 photons per pixel."""
    rng = np.random.default_rng(1)
    with writer_for(path, frame_shape=(side, side)) as writer:
        for first in range(0, n_frames, 500):
            ids = np.arange(first, min(first + 500, n_frames))
            writer.append(Patterns(rng.poisson(0.2, (len(ids), side * side)).astype(np.uint16), ids))


@contextmanager
def replayed(path: Path, *options: str) -> Iterator[tuple[int, str]]:
    """A replay in its own process: its number and its address."""
    command = [sys.executable, "-m", "orienteer", "replay", str(path), "--to", "tcp://127.0.0.1:*", "--loop"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        yield process.pid, process.stderr.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_MiB(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def listen(replayer: int, address: str, seconds: float, rate_hz: float | None) -> dict[str, Any]:
    """Take events for so long; every id must come once, in order of the laps."""
    source = open_stream(address)
    n_breaks, n_events, total, last = 0, 0, 0, -1
    pids = {"replayer": replayer, "listener": os.getpid()}
    source.next(10.0)  # both sides are warm
    began = time.perf_counter()
    used = {name: processor_seconds(pid) for name, pid in pids.items()}
    before: dict[str, float] = {}
    first, most_behind = None, 0.0
    while (elapsed := time.perf_counter() - began) < seconds:
        events = source.next(1.0)
        if events is None:
            continue
        ids = events.event_id.astype(np.int64)
        first = int(ids[0]) if first is None else first
        n_breaks += int((np.diff(ids, prepend=ids[0] - 1 if last < 0 else last) != 1).sum())
        last = int(ids[-1])
        n_events += len(ids)
        total += int(events.patterns().photons.sum())
        if elapsed > seconds / 5 and not before:
            before = {name: resident_MiB(pid) for name, pid in pids.items()}
        if rate_hz is not None:
            most_behind = max(most_behind, elapsed - n_events / rate_hz)
    elapsed = time.perf_counter() - began
    result = {
        "seconds": round(elapsed, 1),
        "events": n_events,
        "events_per_s": round(n_events / elapsed),
        "lost_or_double": n_breaks,
        "malformed": source.counters.malformed,
        "most_s_behind": round(most_behind, 2),
        "processor_s_per_1000_events": {
            name: round(1000 * (processor_seconds(pid) - used[name]) / max(1, n_events), 4)
            for name, pid in pids.items()
        },
        "memory_growth_MiB": {
            name: round(resident_MiB(pid) - before.get(name, 0.0), 1) for name, pid in pids.items()
        },
    }
    source.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=2000.0)
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("--frames", type=int, default=4000)
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.h5"
        write_frames(path, options.frames, options.side)
        dense = [] if options.sparse else ["--dense"]
        with replayed(path, *dense) as place:
            fastest = listen(*place, min(20.0, options.seconds), None)
        with replayed(path, *dense, "--rate", str(options.rate)) as place:
            at_rate = listen(*place, options.seconds, options.rate)
    result = {
        "machine": describe_machine(),
        "frame": f"{options.side} x {options.side}",
        "as_fast_as_it_can": fastest,
        f"at_{options.rate:g}_Hz": at_rate,
    }
    report("stream_cpu", result, options.keep)


if __name__ == "__main__":
    main()
