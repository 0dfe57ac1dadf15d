"""A real reconstruction as a batch job on a real Slurm, from submission to the last step."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.xdist_group("slurm"), pytest.mark.timeout(600)]


@pytest.fixture
def run_file(desk: Any) -> str:
    made = desk.call(
        "simulate", "sphere", "--frames", 40, "--photons-per-frame", 500, "--set", "detector.pixels=24",
        "--out", "sphere.h5",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return write_run_file(desk, iterations=3)


def write_run_file(desk: Any, iterations: int) -> str:
    (desk.folder / "r1.toml").write_text(
        f'[run]\ndata = "sphere.h5"\nseed = 3\ndevice = "cpu"\n\n[emc]\niterations = {iterations}\n'
        'level = 4\n\n[cluster]\nnodes = 2\ntime = "10min"\nnotice_s = 10\n'
    )
    return "r1.toml"


def test_ranks_on_two_nodes_do_a_whole_run(desk: Any, run_file: str) -> None:
    (job,) = desk.submit(run_file)
    desk.slurm.wait_for(job, "COMPLETED", "FAILED", seconds=400)
    log = desk.log("r1", job)
    assert desk.slurm.state(job) == "COMPLETED", log
    (run,) = desk.status("r1.toml")
    assert run["state"] == "finished"
    assert run["iteration"] == 3
    shown = desk.call("status").stdout
    assert "finished" in shown
    assert (Path(desk.folder) / "r1" / "intensity.mrc").exists(), log


@pytest.mark.slow
def test_a_run_that_is_sent_away_saves_queues_again_and_finishes(desk: Any, run_file: str) -> None:
    write_run_file(desk, iterations=60)
    (job,) = desk.submit(run_file, "--preemptible", "--partition", "guests", "--exclusive")
    events = desk.folder / "r1" / "events.jsonl"
    desk.wait_until(lambda: events.exists() and events.read_text().count('"event":"step"') >= 2, "two steps")
    desk.slurm.send_guests_away()
    desk.slurm.wait_for(job, "COMPLETED", "FAILED", "TIMEOUT", seconds=400)
    log = desk.log("r1", job)
    assert "The same command resumes the run" in log, log
    (run,) = desk.status("r1")
    assert run["state"] == "finished", log
    numbers = [int(line.split()[1]) for line in log.splitlines() if line.startswith("step ")]
    assert numbers == sorted(set(numbers)), log  # no step was done twice


@pytest.mark.slow
def test_ranks_of_a_packed_environment_do_a_whole_run(desk: Any, run_file: str) -> None:
    packed = desk.call("pack", "--out", "env.tar")
    assert packed.returncode == 0, packed.stderr
    node = desk.folder / "node"
    node.mkdir()
    options = ("--environment", "env.tar", "--node-folder", node, "--ranks-per-node", 2, "--nodes", 1)
    (job,) = desk.submit(run_file, *options)
    desk.slurm.wait_for(job, "COMPLETED", "FAILED", seconds=500)
    log = desk.log("r1", job)
    assert desk.slurm.state(job) == "COMPLETED", log
    events = (desk.folder / "r1" / "events.jsonl").read_text()
    assert '"event":"finished"' in events, log
    assert list(node.iterdir()) == []
