"""Run folders that were written by hand, and a dashboard that serves them from a thread."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the page needs: pip install 'orienteer[web]'")
pytest.importorskip("uvicorn", reason="the page needs: pip install 'orienteer[web]'")

import httpx

from orienteer.dashboard.serving import Server
from orienteer.run.orientations_file import write_orientations
from orienteer.volume.opening import write_volume
from orienteer.volume.volume import Volume

TOKEN = "a-token-that-only-tests-know-123456"
FIRST_EVENT = 2**63 + 11  # more than JavaScript can count


def step_line(iteration: int, **facts: Any) -> dict[str, Any]:
    """A line of a log as a step leaves it."""
    return {
        "event": "step", "time": "2026-01-02T03:04:05.000+00:00", "iteration": iteration,
        "log_likelihood": -1000.0 + iteration, "agrees_to_A": 30.0, "resolution_A": 25.0, "stage": 1,
        "n_stages": 2, "radial": {"q_inv_A": [0.01, 0.02], "half_correlation": [0.9, 0.4]}, **facts,
    }  # fmt: skip


def write_run(path: Path, n_steps: int = 3, is_finished: bool = True, **facts: Any) -> Path:
    """The small files of a run."""
    path.mkdir(parents=True, exist_ok=True)
    described = {
        "format": "orienteer-run", "version": 1, "run_id": path.name, "created": "2026-01-02T03:04:05+00:00",
        "method": "emc", "seed": 1, "device": "cpu", "settings_hash": "", "versions": {"orienteer": "0"},
        "input": {"path": None, "frames": 40}, **facts,
    }  # fmt: skip
    (path / "settings.toml").write_text('[emc]\nsymmetry = "C1"\n')
    lines = [{"event": "started"}, *(step_line(k + 1) for k in range(n_steps))]
    lines += [{"event": "finished", "reason": "It is over."}] if is_finished else []
    (path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (path / "run.json").write_text(json.dumps(described))
    return path


def write_results(path: Path, edge: int = 12, n_frames: int = 40) -> None:
    """Two intensities, a density, orientations, a validation and a report."""
    rng = np.random.default_rng(1)
    volumes = [Volume(rng.random((edge,) * 3) + 1, 0.01, "reciprocal") for _ in range(2)]
    write_volume(path / "intensity.h5", volumes)
    write_volume(path / "density.mrc", Volume(rng.random((edge,) * 3), 2.0))
    quaternions = rng.normal(size=(n_frames, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    ids = np.arange(n_frames, dtype=np.uint64) + np.uint64(FIRST_EVENT)
    columns = {"event_id": ids, "quaternion": quaternions, "fluence": rng.random(n_frames)}
    write_orientations(path / "orientations.h5", columns, 3)
    (path / "report.html").write_text("<!doctype html><script>1</script>")
    (path / "validation").mkdir(exist_ok=True)
    said = {
        "format": "orienteer-validation", "version": 1, "run_id": path.name, "resolution_A": 21.0,
        "statement": "Two halves agree to 21 A.", "fsc": {"q_inv_A": [0.01, 0.02], "corrected": [1.0, 0.5]},
    }  # fmt: skip
    (path / "validation" / "validation.json").write_text(json.dumps(said))


@contextmanager
def serving(*roots: Path, **options: Any) -> Iterator[tuple[Server, httpx.Client]]:
    """A dashboard in a thread, and a client that knows its token and speaks as the page does."""
    server = Server(roots, port=0, token=TOKEN, **options)
    thread = threading.Thread(target=server.run)
    thread.start()
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Orienteer": "1"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=headers, timeout=60) as client:
            yield server, client
    finally:
        server.stop()
        thread.join(timeout=30)
        server.close()


def ask(port: int, request: bytes, is_whole: bool = True) -> bytes:
    """The answer to bytes; those that are no whole request may have none."""
    answer = b""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    # A server that has seen enough closes the connection while we still speak or listen.
    with connection, suppress(TimeoutError, ConnectionError):
        connection.sendall(request)
        connection.settimeout(60 if is_whole else 0.2)
        while block := connection.recv(1 << 16):
            answer += block
    return answer


@pytest.fixture(scope="session")
def made_up() -> SimpleNamespace:
    """The functions above, for tests that need more than one folder or server."""
    return SimpleNamespace(
        token=TOKEN, first_event=FIRST_EVENT, step_line=step_line, write_run=write_run,
        write_results=write_results, serving=serving, run_id=run_id, wait_for=wait_for, ask=ask,
    )  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one run that has everything."""
    write_results(write_run(tmp_path / "root" / "virus"))
    return tmp_path / "root"


@pytest.fixture
def client(root: Path, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of a dashboard over ``root``."""
    with serving(root, log=tmp_path / "refused.log") as (_, client):
        yield client


def run_id(client: httpx.Client, search: str = "") -> str:
    """What the dashboard calls the first run that fits."""
    return str(client.get("/api/runs", params={"search": search}).json()["runs"][0]["id"])


def wait_for(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so; it takes as long as a loaded machine takes."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)
