"""Shot rows that a campaign takes per second from several processes, and how soon one of a million opens.

    python bench/campaign.py [--writers 4] [--seconds 20] [--rows 1000] [--shots 1000000] [--runs 1000]
                             [--keep]

Each writer is a process that adds segments of ``rows`` shots with twelve columns to a run of its own, as the
feeder of a live run does.  What counts are the rows that were committed between the first and the last commit
of all writers.  PostgreSQL is a server on this machine that waits for its disk, started and stopped here.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from machine import describe_machine, report
from orienteer.campaign.campaign import Campaign

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "campaign"))
from postgres_server import programs, running_server

COLUMNS = (
    "time_s", "photons", "n_lit", "hit_score", "size_A", "brightness", "fit_quality", "wavelength_A",
    "pulse_energy_J",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rows", type=int, default=1000, help="shots of a segment")
    parser.add_argument("--shots", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--keep", action="store_true", help="write bench/results/campaign_cpu.json")
    parser.add_argument("--write-to", nargs=2, metavar=("ADDRESS", "RUN"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write_to:
        write(*given.write_to, given.rows, given.seconds)
        return
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "writers": given.writers,
        "rows_of_a_segment": given.rows,
        "shots": given.shots,
        "runs": given.runs,
    }
    with tempfile.TemporaryDirectory() as folder:
        result["sqlite"] = measure(str(Path(folder) / "campaign.db"), given)
    if programs() is not None:
        with running_server(is_durable=True) as server:
            result["postgresql"] = measure(server.make_database("campaign"), given)
    report("campaign_cpu", result, given.keep)


def measure(address: str, given: argparse.Namespace) -> dict[str, float]:
    """Rows per second and seconds to open, of one database."""
    with Campaign.open(address, create=True) as campaign:
        for i in range(given.writers):
            campaign.add_run(f"writer {i}")
    command = [sys.executable, __file__, "--rows", str(given.rows), "--seconds", str(given.seconds)]
    started = [
        subprocess.Popen([*command, "--write-to", address, f"writer {i}"], stdout=subprocess.PIPE, text=True)
        for i in range(given.writers)
    ]
    times = [tuple(map(float, process.communicate()[0].split())) for process in started]
    seconds = max(last for _, last, _ in times) - min(first for first, _, _ in times)
    rows = int(sum(n for *_, n in times))
    with Campaign.open(address) as campaign:
        assert campaign.overview()["n_shots"] == rows
        fill(campaign, given.shots - rows, given.runs)
    return {"rows_per_s": round(rows / seconds), "rows": rows, **opening(address)}


def write(address: str, run: str, n: int, seconds: float) -> None:
    """Add segments for so long; print when the first began, when the last was there, and how many rows."""
    with Campaign.open(address) as campaign:
        began = time.time()
        i = 0
        while time.time() - began < seconds:
            campaign.add_shots(run, shots(n, i * n), segment=f"{i:09d}")
            i += 1
        print(began, time.time(), i * n)


def shots(n: int, first: int) -> dict[str, Any]:
    """Made-up shots, a tenth of them hits."""
    number = np.arange(first, first + n)
    random = np.random.default_rng(first)
    columns: dict[str, Any] = {name: random.normal(100, 10, n) for name in COLUMNS}
    is_hit = number % 10 == 0
    columns["size_A"][~is_hit] = np.nan
    return {
        **columns,
        "event_id": number.astype(np.uint64),
        "is_hit": is_hit,
        "kind": is_hit.astype(np.uint8),
    }


def fill(campaign: Campaign, n_shots: int, n_runs: int) -> None:
    """So many more shots in so many runs."""
    each = max(1, n_shots // n_runs)
    for i in range(n_runs):
        campaign.add_run(f"r{i:04d}", data=f"raw/r{i:04d}.h5", sample=f"sample {i % 7}")
        if n_shots > 0:
            campaign.add_shots(f"r{i:04d}", shots(each, i * each), segment="all")


def opening(address: str) -> dict[str, float]:
    """Seconds until a campaign is open and its first page is there, and of what a page asks for then."""
    began = time.perf_counter()
    with Campaign.open(address) as campaign:
        found = campaign.overview()
        campaign.runs()
        opened = time.perf_counter() - began
        largest = campaign.runs(sort="-n_shots", limit=1)[1][0]
        asked = {
            "search_s": lambda: campaign.runs(search="r09"),
            "run_s": lambda: campaign.run(largest["name"]),
            "histogram_of_a_run_s": lambda: campaign.histogram("size_A", largest["name"]),
            "histogram_of_all_s": lambda: campaign.histogram("size_A"),
        }
        times = {}
        for name, question in asked.items():
            began = time.perf_counter()
            question()
            times[name] = round(time.perf_counter() - began, 3)
    return {"n_shots": found["n_shots"], "open_s": round(opened, 3), **times}


if __name__ == "__main__":
    main()
