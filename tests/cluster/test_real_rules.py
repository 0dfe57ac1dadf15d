"""Rules of a campaign on a real Slurm: each step once, also when the worker that looks after it is killed."""

import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="needs SQLAlchemy: pip install 'orienteer[campaign]'")
pytest.importorskip("alembic", reason="needs alembic: pip install 'orienteer[campaign]'")

from orienteer.campaign.campaign import Campaign
from orienteer.cluster.records import read_records

pytestmark = [pytest.mark.xdist_group("slurm"), pytest.mark.timeout(600)]
SETTINGS = """\
[run]
device = "cpu"
[emc]
iterations = 3
level = 4
[cluster]
site = "generic"
nodes = 1
time = "10min"
"""


def call(desk: Any, *words: object) -> None:
    done = desk.call(*words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def ruled(desk: Any) -> Any:
    """A desk with a rule for spheres, and a run of them."""
    (desk.folder / "s.toml").write_text(SETTINGS)
    frames = ("--frames", 40, "--photons-per-frame", 500, "--set", "detector.pixels=24")
    call(desk, "simulate", "sphere", *frames, "--out", "r1.h5")
    call(desk, "campaign", "init", "c.db")
    steps = ("--steps", "reconstruct,report", "--where", "slurm", "--settings", "s.toml", "--out", "worked")
    call(desk, "campaign", "rule", "c.db", "spheres", "--sample", "sphere", *steps)
    call(desk, "campaign", "add", "c.db", "r1.h5", "--sample", "sphere")
    return desk


def start_worker(desk: Any) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "orienteer", "campaign", "work", "c.db", "--once", "--every-s", "0.5"]
    return subprocess.Popen(command, cwd=desk.folder, env=desk.environment, stdin=subprocess.DEVNULL)


def test_a_rule_reconstructs_by_a_batch_job_once_although_its_worker_is_killed(ruled: Any) -> None:
    folder = ruled.folder / "worked" / "r1" / "reconstruction"
    worker = start_worker(ruled)
    try:
        ruled.wait_until(lambda: folder.is_dir() and read_records(folder), "the submission")
        worker.kill()
        worker.wait()
        worker = start_worker(ruled)
        assert worker.wait(400) == 0
    finally:
        worker.kill()
        worker.wait()
    with Campaign.open(ruled.folder / "c.db") as campaign:
        told = campaign.run("r1")
    jobs = sorted(told["jobs"], key=lambda job: str(job["step"]))
    words = [(job["step"], job["status"], job["reason"]) for job in jobs]
    assert words == [("reconstruct", "done", ""), ("report", "done", "")], words
    (record,) = read_records(folder)
    assert jobs[0]["slurm"] == [record.number]
    assert ruled.slurm.state(record.number) == "COMPLETED"
    assert (folder / "report.html").exists()
    assert told["results"]


@pytest.mark.slow
def test_a_batch_job_that_is_cancelled_is_a_step_that_failed_and_can_be_asked_for_again(ruled: Any) -> None:
    folder = ruled.folder / "worked" / "r1" / "reconstruction"
    worker = start_worker(ruled)
    try:
        (record,) = ruled.wait_until(lambda: folder.is_dir() and read_records(folder), "the submission")
        ruled.slurm.call("scancel", record.number)
        assert worker.wait(300) == 0
    finally:
        worker.kill()
        worker.wait()
    with Campaign.open(ruled.folder / "c.db") as campaign:
        (job,) = (job for job in campaign.run("r1")["jobs"] if job["step"] == "reconstruct")
    assert (job["status"], "was cancelled" in job["reason"]) == ("failed", True), job["reason"]
    call(ruled, "campaign", "work", "c.db", "--once", "--again")
    with Campaign.open(ruled.folder / "c.db") as campaign:
        assert {job["status"] for job in campaign.run("r1")["jobs"]} == {"done"}
    assert len(read_records(folder)) == 2
