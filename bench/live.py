"""A detector stream through calibration, hit finding and the journal: rate, loss and memory over time.

    python bench/live.py [--seconds S] [--rate HZ] [--pixels N] [--frames N] [--map] [--keep]

Frames of a simulated particle, one shot in ten a hit, are replayed over ZeroMQ, dense and in a loop, at a
fixed rate into ``orienteer live``.  Measured: events per second over the time of the stream, how far the
worker is behind what was due, events lost (ids without a row), resident memory of the processes, and with
``--map`` hits per second into the online reconstruction.  Memory and how far behind are kept every ten
seconds, the longest times without an event with what the run has told of them.  Asked: 2 000 frames of
128 x 128 per second without a loss for 10 minutes, and flat memory, on two cores.
"""

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machine import describe_machine, report
from orienteer.live.journal import read_shots
from orienteer.live.summary import live_summary
from orienteer.run.events import read_events
from orienteer.source.opening import open as open_source
from orienteer.source.opening import writer_for

# Memory of the beginning is that of libraries and caches that fill once.
_SETTLED_S = 30.0
_FLAT_MiB_PER_MINUTE = 1.0
# "live" starts the others, and joins the files of the journal.
_ROLES = ("worker", "map", "live")
_SERIES_EVERY_S = 10.0
# The longest times without an event that are kept, and from how many seconds on.
_MOST_STALLS, _LEAST_STALL_S = 8, 0.5
Samples = list[tuple[float, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=float, default=2000)
    parser.add_argument("--pixels", type=int, default=128)
    parser.add_argument("--frames", type=int, default=4000, help="frames of a lap of the replay")
    parser.add_argument("--map", action="store_true")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--keep", action="store_true", help="write bench/results/live.json")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="live-"))
    folder.mkdir(parents=True, exist_ok=True)
    frames, run = folder / f"frames_{given.pixels}.h5", folder / "run"
    if not frames.exists():
        simulate(frames, given.pixels, given.frames)
    shutil.rmtree(run, ignore_errors=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
    replay = orienteer(
        "replay", str(frames), "--to", address, "--rate", f"{given.rate:g}", "--loop", "--dense"
    )
    live = orienteer(
        "live", "--source", address, "--out", str(run), "--seconds", f"{given.seconds:g}", "--json",
        "--map" if given.map else "--no-map", "--set", "emc.symmetry=I", "--set", "online.finish=no",
    )  # fmt: skip
    try:
        memory = watch(live, run, given.seconds + (120 if given.map else 60))
    finally:
        for process in (live, replay):
            process.kill()
            process.wait()
    result = {
        "machine": describe_machine(),
        "asked": {"frames_per_s": 2000, "lost": 0, "memory": f"< {_FLAT_MiB_PER_MINUTE} MiB per minute"},
        **measure(run, memory, given.rate),
    }
    report("live", result, given.keep)
    if given.folder is None:
        shutil.rmtree(folder, ignore_errors=True)


def measure(run: Path, memory: dict[str, Samples], rate_hz: float) -> dict[str, Any]:
    """What the journal and the memory over time say."""
    shots = read_shots(run, ["event_id", "received_s"])
    summary = live_summary(run, with_powder=False)
    received_s = shots["received_s"]
    lasted_s = float(received_s[-1] - received_s[0])
    n, ids = len(received_s), shots["event_id"]
    # The replay makes events due at a fixed rate from the first question on.
    behind_s = (received_s - received_s[0]) - np.arange(n) / rate_hz
    return {
        "seconds": round(lasted_s, 1),
        "rate_asked_hz": rate_hz,
        "frames_per_s": round(n / lasted_s, 1),
        "counters": summary["counters"],
        "adds_up": summary["counters"]["received"]
        == sum(summary["counters"][name] for name in ("filtered", "dropped", "processed")),
        "lost": int(ids.max()) + 1 - len(np.unique(ids)) if n else None,
        "twice": n - len(np.unique(ids)),
        "behind_s": {"median": round(float(np.median(behind_s)), 3), "most": round(float(behind_s.max()), 3)},
        "behind_at_the_end_s": round(float(behind_s[-1]), 3),
        "stalls": stalls(run, received_s, behind_s),
        "hits": summary["hits"],
        "hits_per_s": round(summary["hits"] / lasted_s, 1),
        "kinds": summary["kinds"],
        "memory": {role: slope(samples) for role, samples in memory.items() if samples},
        "series": {
            "every_s": _SERIES_EVERY_S,
            "most_behind_s": series(received_s - received_s[0], behind_s, np.max, 2),
            "median_MiB": {
                role: series(*np.array(samples).T, np.median, 1)
                for role, samples in memory.items()
                if samples
            },
        },
        "map": of_map(run, float(received_s[0]), float(received_s[-1])),
    }


def of_map(run: Path, first_s: float, last_s: float) -> dict[str, Any] | None:
    """Hits that the map has taken in by the end of the stream and later, and when it has had them all."""
    steps = [e for e in read_events(run / "map" / "events.jsonl") if e["event"] == "step"]
    if not steps:
        return None
    at_s = [datetime.fromisoformat(step["time"]).timestamp() - first_s for step in steps]
    hits = [step["n_hits"] for step in steps]
    in_time = [n for n, t in zip(hits, at_s, strict=True) if t <= last_s - first_s]
    has_all_s = next(t for n, t in zip(hits, at_s, strict=True) if n == hits[-1])
    return {
        "first_map_after_s": round(at_s[0], 1),
        "first_map_of_hits": hits[0],
        "hits_by_the_end_of_the_stream": in_time[-1] if in_time else 0,
        "hits_in_the_end": hits[-1],
        "had_all_after_s": round(has_all_s, 1),
        "hits_per_s": round(hits[-1] / has_all_s, 1),
    }


def series(
    t_s: NDArray[np.float64], values: NDArray[np.float64], of: Callable[..., Any], digits: int
) -> list[float | None]:
    """One number for each ten seconds of the values (N,) at these times; None where there is none."""
    bins = (t_s / _SERIES_EVERY_S).astype(np.int64)
    of_bins = (values[bins == k] for k in range(int(bins.max()) + 1))
    return [round(float(of(some)), digits) if len(some) else None for some in of_bins]


def stalls(run: Path, received_s: NDArray[np.float64], behind_s: NDArray[np.float64]) -> list[dict[str, Any]]:
    """The longest times without an event: when, how far behind they left the worker, and what it was at."""
    told = [
        (event["ended_s"], event["reason"])
        for event in read_events(run / "events.jsonl")
        if event["event"] == "slow"
    ]
    pauses_s = np.diff(received_s)
    longest = np.argsort(-pauses_s, kind="stable")[:_MOST_STALLS]
    return [
        {
            "at_s": round(float(received_s[k] - received_s[0]), 1),
            "seconds": round(float(pauses_s[k]), 2),
            "behind_s": round(float(behind_s[k + 1]), 2),
            "told": [words for t_s, words in told if received_s[k] <= t_s <= received_s[k + 1]],
        }
        for k in longest[pauses_s[longest] > _LEAST_STALL_S]
    ]


def slope(samples: Samples) -> dict[str, float]:
    """First, last and greatest resident memory in MiB, and its rise per minute after the beginning."""
    t_s, MiB = np.array(samples).T
    settled = t_s > min(_SETTLED_S, t_s[-1] / 2)
    rise = np.polyfit(t_s[settled] / 60, MiB[settled], 1)[0] if settled.sum() > 2 else np.nan
    return {
        "settled_MiB": round(float(MiB[settled][0]), 1),
        "last_MiB": round(float(MiB[-1]), 1),
        "most_MiB": round(float(MiB.max()), 1),
        "MiB_per_minute": round(float(rise), 3),
    }


def watch(live: subprocess.Popen[bytes], run: Path, seconds: float) -> dict[str, Samples]:
    """Resident memory (MiB) of the processes of a live run over time (s), until it ends."""
    began = time.monotonic()
    samples: dict[str, Samples] = {role: [] for role in _ROLES}
    while live.poll() is None and time.monotonic() - began < seconds:
        started = {e.get("role"): e.get("pid") for e in read_events(run / "events.jsonl") if e.get("pid")}
        started["live"] = live.pid
        for role in _ROLES:
            with suppress(OSError, ValueError, IndexError):
                pages = int(Path(f"/proc/{started.get(role)}/statm").read_text().split()[1])
                if pages:  # one that has ended, and is not yet taken leave of, has none
                    samples[role].append((time.monotonic() - began, pages * 4096 / 2**20))
        time.sleep(1)
    return samples


def simulate(path: Path, pixels: int, n_frames: int) -> None:
    """Shots of a virus-like particle over a background, one in ten a hit, numbered from 0."""
    settings = ["particle.structure=virus", "particle.diameter_A=300", "beam.photon_energy_eV=4600",
                f"detector.pixels={pixels}", "detector.edge_resolution_A=20", "simulate.empty_fraction=0.9",
                "simulate.photons_per_frame=3000", "simulate.background_photons=800",
                "simulate.fluence_jitter=0.3"]  # fmt: skip
    words = [word for each in settings for word in ("--set", each)]
    named = path.with_name("named.h5")
    if status := orienteer("simulate", "--frames", str(n_frames), "--out", str(named), *words).wait():
        sys.exit(f"the simulation left with {status}")
    source = open_source(named)
    with writer_for(path, like=source) as writer:
        writer.append(source.read().with_event_ids(np.arange(n_frames, dtype=np.uint64)))
    named.unlink()


def orienteer(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "orienteer", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main()
