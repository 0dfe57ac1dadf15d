"""How fast the dashboard answers: many runs, many shots, a large volume, and many strangers.

    python bench/dashboard.py [--runs 1000] [--shots 1000000] [--edge 256] [--requests 2000] [--keep]

The server is a process of its own, as users start it; times are those of a client, of whole answers.  "first"
is the first answer after the start, which reads every run; "warm" the median of later ones.  Strangers send
requests without a token, from other sites, with wrong names, paths that climb and bodies that are too large;
every one is to be refused.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from machine import describe_machine, report
from orienteer.campaign.campaign import Campaign
from orienteer.live.journal import Journal, Segment
from orienteer.live.summary import Summary
from orienteer.run.orientations_file import write_orientations
from orienteer.source.sparse_photons import SparsePhotons
from orienteer.volume.opening import write_volume
from orienteer.volume.volume import Volume

REPEATS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=100, help="of every run")
    parser.add_argument("--shots", type=int, default=1_000_000)
    parser.add_argument("--edge", type=int, default=256, help="voxels of a volume along an edge")
    parser.add_argument("--requests", type=int, default=2000, help="of strangers")
    parser.add_argument("--keep", action="store_true", help="write bench/results/dashboard_cpu.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_runs(folder / "runs", given.runs, given.steps, given.edge)
        write_campaign(folder / "campaign.db", folder / "runs", given.runs, given.shots)
        write_live(folder / "runs" / "live", given.shots)
        command = [
            sys.executable, "-m", "orienteer", "serve", str(folder / "runs"), "--campaign",
            str(folder / "campaign.db"), "--port", "0", "--json", "--log", str(folder / "refused.log"),
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                told = first_json(server)
                result = {
                    "machine": describe_machine(),
                    "runs": given.runs,
                    "shots": given.shots,
                    "seconds": answers(told, folder / "runs" / "run_0000", given.edge),
                    "strangers": strangers(told, given.requests),
                    "refusals_noted": count_lines(folder),
                    "server_memory_MiB": memory_MiB(server.pid),
                }
            finally:
                server.terminate()
    report("dashboard_cpu", result, given.keep)


def first_json(server: Any) -> dict[str, Any]:
    """What the server prints at its start."""
    text = ""
    while not text.endswith("}\n"):
        text += server.stdout.readline()
    return dict(json.loads(text))


def write_runs(folder: Path, n_runs: int, n_steps: int, edge: int) -> None:
    """Runs with logs as EMC leaves them; the first has results as well."""
    radial = {name: [0.5] * 60 for name in ("q_inv_A", "intensity", "half_correlation")}
    for number in range(n_runs):
        path = folder / f"day_{number % 5}" / f"run_{number:04d}" if number else folder / "run_0000"
        path.mkdir(parents=True)
        lines = [
            {"event": "step", "iteration": k + 1, "log_likelihood": -1e3 + k, "agrees_to_A": 30.0,
             "seconds": 1.0, "radial": radial}
            for k in range(n_steps)
        ]  # fmt: skip
        (path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        described = {
            "format": "orienteer-run", "version": 1, "run_id": f"{number}", "method": "emc", "seed": 1,
            "device": "cpu", "settings_hash": "", "input": {"path": None, "frames": 1000 + number},
        }  # fmt: skip
        (path / "run.json").write_text(json.dumps(described))
    rng = np.random.default_rng(1)
    first = folder / "run_0000"
    write_volume(first / "intensity.h5", Volume(rng.random((edge,) * 3) + 0.1, 0.01, "reciprocal"))
    quaternions = rng.normal(size=(100_000, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    ids = np.arange(len(quaternions), dtype=np.uint64)
    write_orientations(first / "orientations.h5", {"event_id": ids, "quaternion": quaternions})


def write_campaign(path: Path, folder: Path, n_runs: int, n_shots: int) -> None:
    """A campaign that knows all runs, and the shots of ten of them."""
    rng = np.random.default_rng(2)
    with Campaign.open(path, create=True) as campaign:
        for number in range(n_runs):
            place = f"day_{number % 5}/run_{number:04d}" if number else "run_0000"
            campaign.add_run(f"run {number}", folder=folder / place, sample=f"sample {number % 7}")
        for number in range(10):
            for segment in range(10):
                n = n_shots // 100
                columns = {
                    "event_id": np.arange(n, dtype=np.uint64) + np.uint64((number * 10 + segment) * n),
                    "is_hit": rng.random(n) < 0.1,
                    "size_A": rng.normal(300, 20, n),
                }
                campaign.add_shots(f"run {number}", columns, f"{segment:09d}")


def write_live(folder: Path, n_shots: int) -> None:
    """A live run of so many shots in a hundred segments, every tenth shot a hit."""
    folder.mkdir()
    described = {"format": "orienteer-live", "version": 1, "source": "made up", "frame_shape": [128, 128]}
    (folder / "live.json").write_text(json.dumps(described))
    (folder / "counters.json").write_text(json.dumps({"processed": n_shots, "hits": n_shots // 10}))
    journal, summary, n = Journal(folder), Summary(), n_shots // 100
    rows = np.arange(0, n, 10)
    start = np.arange(len(rows) + 1, dtype=np.int64) * 100
    pixel = np.tile(np.arange(0, 16_384, 164, dtype=np.int32)[:100], len(rows))
    photons = SparsePhotons(start, pixel, np.ones(len(pixel), np.int32), 128 * 128)
    for segment in range(100):
        ids = np.arange(n, dtype=np.uint64) + np.uint64(segment * n)
        summary.counters.received = summary.counters.processed = (segment + 1) * n
        summary.add(ids, rows, np.full(len(rows), 300.0), ["single"] * len(rows), 1e9 + segment)
        shots = {"event_id": ids, "size_A": np.full(n, 300.0), "hit_score": np.ones(n)}
        powder = {"powder": {"hits": np.ones(128 * 128), "background": np.ones(128 * 128)}}
        journal.commit(Segment((128, 128), shots, rows, photons, summary.as_json(), powder))


def answers(told: dict[str, Any], first_run: Path, edge: int) -> dict[str, dict[str, float]]:
    """Seconds of every kind of question."""
    headers = {"Authorization": f"Bearer {told['token']}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{told['port']}", headers=headers, timeout=600) as client:
        measured = {"list of runs": timed(lambda: client.get("/api/runs"))}
        client.get("/api/runs")
        time.sleep(3)  # what was just written is looked at more often
        measured["list of runs, later"] = timed(lambda: client.get("/api/runs"), pause_s=1.1)
        measured["search"] = timed(lambda: client.get("/api/runs", params={"search": "sample 3 run_00"}))
        runs = client.get("/api/runs", params={"search": first_run.name}).json()["runs"]
        url = f"/api/runs/{runs[0]['id']}"
        live = client.get("/api/runs", params={"search": "live"}).json()["runs"][0]["id"]
        last = client.get(f"/api/live/{live}").json()["recent_hits"]
        measured["live"] = timed(lambda: client.get(f"/api/live/{live}"))
        measured["powder"] = timed(lambda: client.get(f"/api/live/{live}/powder"))
        measured["a hit of all shots"] = timed(lambda: client.get(f"/api/runs/{live}/frame/{last[0]}"))
        measured["campaign"] = timed(lambda: client.get("/api/campaign"))
        shots = {"column": "size_A", "bins": 100}
        measured["histogram of one run"] = timed(
            lambda: client.get("/api/campaign/shots", params={**shots, "run": "run 3"})
        )
        measured["histogram of all shots"] = timed(lambda: client.get("/api/campaign/shots", params=shots), 3)
        measured["steps"] = timed(lambda: client.get(f"{url}/steps"))
        measured[f"volume of {edge}³ voxels"] = timed(lambda: client.get(f"{url}/volume"))
        measured["coverage by 100 000 frames"] = timed(lambda: client.get(f"{url}/coverage"))
    return measured


def timed(
    ask: Callable[[], httpx.Response], repeats: int = REPEATS, pause_s: float = 0.0
) -> dict[str, float]:
    seconds = []
    for _ in range(repeats):
        time.sleep(pause_s)
        began = time.perf_counter()
        ask().raise_for_status()
        seconds.append(time.perf_counter() - began)
    return {
        "first": round(seconds[0], 4),
        "warm": round(statistics.median(seconds[1:]), 4),
        "worst": round(max(seconds[1:]), 4),
    }


def strangers(told: dict[str, Any], n: int) -> dict[str, Any]:
    """Requests that must all be refused, by kind: how many were served, and the status of the others.

    Those of other sites, of other names, with large bodies and with paths that climb know the token, as a
    browser does in which the dashboard is open.
    """
    rng = random.Random(3)
    token = {"Authorization": f"Bearer {told['token']}", "X-Orienteer": "1"}
    climbs = ("/static/../../run.json", "/static/%2e%2e/%2e%2e/run.json", "/api/runs/..%2f..%2fetc%2fpasswd")
    run = "/api/runs/0123456789abcdef"

    def name() -> str:
        return f"{rng.getrandbits(40):x}.org"

    kinds: dict[str, Callable[[httpx.Client], httpx.Response]] = {
        "no token": lambda client: client.get(rng.choice(("/", "/api/runs", "/static/index.html", *climbs))),
        "wrong token": lambda client: client.get(
            "/api/runs", headers={"Authorization": f"Bearer {rng.getrandbits(256):x}"}
        ),
        "other site": lambda client: client.post(
            f"{run}/stop", json={}, headers={**token, "Origin": f"http://{name()}"}
        ),
        "other name": lambda client: client.get("/api/runs", headers={**token, "Host": name()}),
        "large body": lambda client: client.post(f"{run}/note", content=b"x" * 70_000, headers=token),
        "climbing path": lambda client: client.get(rng.choice(climbs), headers=token),
        "random path": lambda client: client.get("/" + rng.randbytes(20).hex(), headers=token),
    }
    found: dict[str, Counter[int]] = {kind: Counter() for kind in kinds}
    with httpx.Client(base_url=f"http://127.0.0.1:{told['port']}", timeout=600) as client:
        for number in range(n):
            kind = list(kinds)[number % len(kinds)]
            found[kind][kinds[kind](client).status_code] += 1
    served = sum(count for counts in found.values() for status, count in counts.items() if status < 400)
    return {"requests": n, "served": served, "status": {kind: dict(counts) for kind, counts in found.items()}}


def count_lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.glob("refused.log*"))


def memory_MiB(pid: int) -> float:
    """The most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024, 1)


if __name__ == "__main__":
    main()
