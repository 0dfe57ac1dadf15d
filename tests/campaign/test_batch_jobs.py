"""A reconstruction that went to Slurm is submitted once, watched, and judged by the run that it made."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orienteer.campaign import attempts, batch_jobs
from orienteer.campaign.campaign import Campaign
from orienteer.campaign.rules import Rule, put_rule
from orienteer.campaign.worker import Worker
from orienteer.cluster.job_state import JobState
from orienteer.cluster.queue import Queue

# Stands for ``orienteer submit``: notes that it was called, and leaves the record of a batch job.
SUBMIT = """
import sys
from pathlib import Path
from orienteer.cluster.records import JobRecord, append_record, now
out = next(text for text in sys.argv if text.startswith("run.out=")).partition("=")[2].strip('"')
with Path(sys.argv[2]).with_name("calls.txt").open("a") as file:
    file.write("called\\n")
append_record(Path(out), JobRecord("4711", None, "r1", now(), 1, "generic", "log", "script"))
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A queue and a run that say what a test wants."""
    script = tmp_path / "submit.py"
    script.write_text(SUBMIT)
    told = SimpleNamespace(job="PENDING", run="new", problem="", calls=tmp_path / "calls.txt")
    monkeypatch.setattr(attempts, "PROGRAM", [sys.executable, str(script)])

    def read_queue(numbers: Any, newest_s: float = 30.0) -> Queue:
        states = {number: JobState(number, told.job) for number in numbers if told.job}
        return Queue({} if told.problem else states, problem=told.problem)

    monkeypatch.setattr(batch_jobs, "read_queue", read_queue)
    monkeypatch.setattr(
        batch_jobs, "read_standing", lambda path: SimpleNamespace(state=told.run, reason="it broke")
    )
    return told


@pytest.fixture
def planned(tmp_path: Path) -> Any:
    (tmp_path / "s.toml").touch()
    with Campaign.open(tmp_path / "campaign.db", create=True) as campaign:
        rule = Rule(
            out=str(tmp_path / "out"), steps=["reconstruct"], settings=str(tmp_path / "s.toml"), where="slurm"
        )
        campaign.database.write(lambda connection: put_rule(connection, "all", rule.checked(), False))
        campaign.add_run("r1", data="r1.h5")
        yield campaign


def work_until(own: Worker, campaign: Campaign, status: str) -> dict[str, Any]:
    import time

    end = time.monotonic() + 120
    while time.monotonic() < end:
        own.look()
        job: dict[str, Any] = campaign.run("r1")["jobs"][0]
        if job["status"] == status:
            return job
        time.sleep(0.05)
    raise AssertionError(f"the job is {job['status']}")


def test_a_batch_job_is_watched_until_its_run_has_finished(planned: Campaign, slurm: Any) -> None:
    own = Worker(planned, tell=lambda _: None)
    assert work_until(own, planned, "queued")["slurm"] == ["4711"]
    heir = Worker(planned, tell=lambda _: None)  # a worker that is started anew in this process has its name
    heir._held = own._held
    for state in ("RUNNING", ""):
        slurm.job = state
        slurm.problem = "" if state else "squeue does not answer"
        assert heir.look()
        assert planned.run("r1")["jobs"][0]["status"] == "queued"
    slurm.run = "finished"
    work_until(heir, planned, "done")
    assert slurm.calls.read_text() == "called\n"


def test_a_batch_job_that_ends_before_its_run_has_failed(planned: Campaign, slurm: Any) -> None:
    own = Worker(planned, tell=lambda _: None)
    work_until(own, planned, "queued")
    slurm.job, slurm.run = "OUT_OF_MEMORY", "stopped"
    job = work_until(own, planned, "failed")
    assert job["reason"].startswith("batch job 4711 ran out of memory")


def test_a_submission_that_nobody_wrote_down_is_not_repeated(planned: Campaign, slurm: Any) -> None:
    """The worker was killed after the batch job was there and before the campaign knew its number."""
    from orienteer.cluster.records import JobRecord, append_record, now

    out = Path(str(planned.database.url.database)).parent / "out" / "r1" / "reconstruction"
    append_record(out, JobRecord("99", None, "r1", now(), 1, "generic", "log", "script"))
    job = work_until(Worker(planned, tell=lambda _: None), planned, "queued")
    assert job["slurm"] == ["99"]
    assert not slurm.calls.exists()
