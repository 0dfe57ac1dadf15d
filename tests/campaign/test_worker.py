"""Rules are carried out in order and once, whoever is killed; no text of the database is ever a command."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orienteer.campaign import attempts, jobs, worker
from orienteer.campaign.campaign import Campaign
from orienteer.campaign.database import Database
from orienteer.campaign.rules import Rule, put_rule
from orienteer.campaign.worker import Worker

# Stands for the command line: notes that it was begun, waits while a file says so, and may fail.
COMMAND = """
import sys, time
from pathlib import Path
name, folder, *rest = sys.argv[1:]
folder = Path(folder)
with (folder / "begun.txt").open("a") as file:
    file.write(f"{name}\\n")
while (folder / f"hold_{name}").exists():
    time.sleep(0.05)
if (folder / f"fail_{name}").exists():
    sys.exit("Error: it does not work.")
with (folder / "done.txt").open("a") as file:
    file.write(f"{name} {' '.join(rest)}\\n")
"""
# Starts a worker for each line that it reads, at once because everything is imported, and says its number.
STARTER = """
import os, signal, sys
from orienteer.campaign import attempts, migrating
from orienteer.campaign.campaign import Campaign
from orienteer.campaign.worker import Worker
address, said, *attempts.PROGRAM = sys.argv[1:]
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in sys.stdin:
    number = os.fork()
    if number == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with open(said, "a") as file, Campaign.open(address) as campaign:
            Worker(campaign, 2, lambda words: print(words, file=file, flush=True)).work(every_s=0.1)
    print(number, flush=True)
"""
STEPS = [["convert", "{folder}", "{data}"], ["phase", "{folder}", "{name}"], ["report", "{folder}"]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps start the script above in place of ``orienteer``."""
    package = tmp_path / "stand-in" / "orienteer_stand_in.py"
    package.parent.mkdir()
    package.write_text(COMMAND)
    monkeypatch.setattr(attempts, "PROGRAM", [sys.executable, str(package)])


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """Where the steps write; none of them waits any longer when the test is over."""
    folder = tmp_path / "processed"
    yield folder
    for hold in folder.rglob("hold_*"):
        hold.unlink()


def add_rule(campaign: Campaign, out: Path, **options: Any) -> None:
    made = Rule(**{"out": str(out), "steps": STEPS, "sample": "virus", **options}).checked()
    campaign.database.write(lambda connection: put_rule(connection, "all", made, False))


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


@pytest.mark.usefixtures("command")
def test_each_new_run_of_a_sample_gets_its_steps_in_order_and_once(campaign: Campaign, out: Path) -> None:
    campaign.add_run("old", data="old.h5", sample="virus")
    add_rule(campaign, out)
    campaign.add_run("r1", data="r1.h5", sample="virus")
    campaign.add_run("r2", data="r2.h5", sample="gold")
    campaign.add_run("r3", data="r3.h5", sample="virus", is_open=True)
    said: list[str] = []
    Worker(campaign, tell=said.append).work(once=True, every_s=0.1)
    assert lines(out / "r1" / "done.txt") == ["convert r1.h5", "phase r1", "report "]
    assert [path.name for path in out.iterdir()] == ["r1"]
    assert said[0] == "convert of r1 begins"
    assert said[-1] == "report of r1 done"
    campaign.close_run("r3")
    for _ in range(2):
        Worker(campaign, tell=said.append).work(once=True, every_s=0.1)
    assert lines(out / "r3" / "begun.txt") == ["convert", "phase", "report"]
    assert lines(out / "r1" / "begun.txt") == ["convert", "phase", "report"]
    assert {job["status"] for job in campaign.overview()["jobs"]} == {"done"}


@pytest.mark.usefixtures("command")
def test_what_fails_stops_its_run_alone_and_can_be_begun_anew(campaign: Campaign, out: Path) -> None:
    add_rule(campaign, out)
    (out / "r1").mkdir(parents=True)
    (out / "r1" / "fail_phase").touch()
    for name in ("r1", "r2"):
        campaign.add_run(name, data=f"{name}.h5", sample="virus")
    Worker(campaign, at_once=2, tell=lambda _: None).work(once=True, every_s=0.1)
    found = {job["step"]: job for job in campaign.run("r1")["jobs"]}
    assert [found[name]["status"] for name in ("convert", "phase", "report")] == ["done", "failed", "waiting"]
    assert found["phase"]["reason"] == "it does not work."
    assert [job["status"] for job in campaign.run("r2")["jobs"]] == ["done"] * 3
    (out / "r1" / "fail_phase").unlink()
    assert campaign.database.write(jobs.retry_failed) == 1
    Worker(campaign, tell=lambda _: None).work(once=True, every_s=0.1)
    assert lines(out / "r1" / "begun.txt") == ["convert", "phase", "phase", "report"]
    assert [job["status"] for job in campaign.run("r1")["jobs"]] == ["done"] * 3


@pytest.mark.usefixtures("command")
def test_a_step_that_outlives_its_worker_is_found_again(campaign: Campaign, out: Path) -> None:
    """The first worker is forgotten in the middle of a step, as if it had been killed; its name is dead."""
    add_rule(campaign, out)
    (out / "r1").mkdir(parents=True)
    hold = out / "r1" / "hold_convert"
    hold.touch()
    campaign.add_run("r1", data="r1.h5", sample="virus")
    killed = Worker(campaign, tell=lambda _: None)
    killed.name = worker.name_of(worker.Holder(worker.Holder.me().host, 999_999_999, "1"))
    assert killed.look()
    said: list[str] = []
    heir = Worker(campaign, tell=said.append)
    assert heir.look()  # at once: the process of the step has hardly started
    wait_for(lambda: lines(out / "r1" / "begun.txt"))
    assert heir.look()
    assert said == []  # it is at work already
    hold.unlink()
    heir.work(once=True, every_s=0.1)
    assert lines(out / "r1" / "begun.txt") == ["convert", "phase", "report"]
    assert said[0] == "convert of r1 done"


@pytest.mark.usefixtures("command")
def test_a_step_that_was_killed_is_begun_again_but_not_for_ever(campaign: Campaign, out: Path) -> None:
    add_rule(campaign, out)
    (out / "r1").mkdir(parents=True)
    hold = out / "r1" / "hold_convert"
    hold.touch()
    campaign.add_run("r1", data="r1.h5", sample="virus")
    own = Worker(campaign, tell=lambda _: None)
    for attempt in range(1, worker.ATTEMPTS + 1):
        wait_for(lambda attempt=attempt: own.look() and len(lines(out / "r1" / "begun.txt")) == attempt)
        process = own._processes[next(iter(own._held))]
        os.killpg(process.pid, signal.SIGKILL)  # with its command
        process.wait()
    wait_for(lambda: not own.look())
    first = campaign.run("r1")["jobs"][0]
    assert first["status"] == "failed"
    assert "cut off each time" in first["reason"]
    assert len(lines(out / "r1" / "begun.txt")) == worker.ATTEMPTS


@pytest.mark.usefixtures("command")
def test_a_command_that_outlives_the_process_of_its_step_is_not_begun_beside_itself(
    campaign: Campaign, out: Path
) -> None:
    add_rule(campaign, out)
    (out / "r1").mkdir(parents=True)
    hold = out / "r1" / "hold_convert"
    hold.touch()
    campaign.add_run("r1", data="r1.h5", sample="virus")
    own = Worker(campaign, tell=lambda _: None)
    own.look()
    wait_for(lambda: lines(out / "r1" / "begun.txt"))
    process = own._processes[next(iter(own._held))]
    process.kill()
    process.wait()
    for _ in range(3):
        assert own.look()
    assert lines(out / "r1" / "begun.txt") == ["convert"]
    hold.unlink()
    own.work(once=True, every_s=0.1)
    # Nobody has seen how it ended, so it is begun once more, as a command that goes on where it was.
    assert lines(out / "r1" / "begun.txt") == ["convert", "convert", "phase", "report"]


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("command")
def test_workers_that_are_killed_at_random_do_every_step_once(address: str, out: Path) -> None:
    """Two workers at a time are killed whenever one has said something; steps outlive them."""
    with Campaign.open(address, create=True) as campaign, starter(address, out) as start_worker:
        add_rule(campaign, out)
        for i in range(2):
            campaign.add_run(f"r{i}", data=f"r{i}.h5", sample="virus")
        end = time.monotonic() + 400
        while {job["status"] for job in campaign.overview()["jobs"]} != {"done"}:
            assert time.monotonic() < end, campaign.overview()["jobs"]
            known = len(lines(out.with_name("said.txt")))
            workers = [start_worker() for _ in range(2)]
            wait_for(lambda known=known: len(lines(out.with_name("said.txt"))) > known)
            for number in workers:
                os.kill(number, signal.SIGKILL)
    for i in range(2):
        assert lines(out / f"r{i}" / "begun.txt") == ["convert", "phase", "report"]


@contextmanager
def starter(address: str, out: Path) -> Iterator[Callable[[], int]]:
    """A function that starts a worker and gives its number; all of them have ended after the block."""
    start = [sys.executable, "-c", STARTER, address, str(out.with_name("said.txt")), *attempts.PROGRAM]
    process = subprocess.Popen(
        start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def begin() -> int:
        process.stdin.write("one more\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    try:
        yield begin
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.usefixtures("command")
def test_what_a_rule_watches_for_becomes_a_run_when_it_is_whole(
    campaign: Campaign, out: Path, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    add_rule(campaign, out, watch=str(raw / "*.h5"), settle_s=100, steps=[["convert", "{folder}", "{data}"]])
    names = ["-rf $(touch owned);.h5", "r1.h5", "r2.h5"]
    for name in names:
        (raw / name).touch()
    for name in names[:2]:
        os.utime(raw / name, (0, 0))
    Worker(campaign, tell=lambda _: None).work(once=True, every_s=0.1)
    total, found = campaign.runs(sort="name")
    assert total == 2
    assert [run["name"] for run in found] == ["r1", "rf _(touch owned)_"]
    assert {run["sample"] for run in found} == {"virus"}
    for run in found:
        assert lines(out / run["name"] / "done.txt") == [f"convert {run['data']}"]
    assert not list(tmp_path.rglob("owned"))
    os.utime(raw / "r2.h5", (0, 0))
    Worker(campaign, tell=lambda _: None).work(once=True, every_s=0.1)
    assert campaign.runs()[0] == 3


def test_only_one_of_many_takes_a_job(address: str, out: Path) -> None:
    import threading

    with Campaign.open(address, create=True) as campaign:
        add_rule(campaign, out)
        for i in range(5):
            campaign.add_run(f"r{i}", data="x.h5", sample="virus")
        campaign.database.write(jobs.plan_jobs)
        taken: list[int] = []

        def take(name: str) -> None:
            own = Database(campaign.database.url)
            while (job := own.write(lambda c: jobs.claim_job(c, name, lambda _: False))) is not None:
                taken.append(job.id)
            own.close()

        threads = [threading.Thread(target=take, args=(f"host {i} 1",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == len(set(taken)) == 5


def test_a_worker_whose_job_was_taken_over_changes_nothing_of_it(campaign: Campaign, out: Path) -> None:
    """It may have slept, or been cut off, longer than its claim held."""
    add_rule(campaign, out)
    campaign.add_run("r1", data="x.h5", sample="virus")
    write = campaign.database.write
    write(jobs.plan_jobs)
    late = write(lambda c: jobs.claim_job(c, "late 1", lambda _: False))
    heir = write(lambda c: jobs.claim_job(c, "heir 2", lambda name: name == "late 1"))
    assert late is not None
    assert heir is not None
    assert late.id == heir.id
    assert not write(lambda c: jobs.begin_attempt(c, late))
    assert not write(lambda c: jobs.end_job(c, late, "failed", "It took too long."))
    assert write(lambda c: jobs.begin_attempt(c, heir))
    assert write(lambda c: jobs.end_job(c, heir, "done"))


def test_a_rule_is_for_runs_that_are_added_later_whatever_the_clocks_say(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The machines of a beam time have clocks of their own: one ahead, and one behind."""
    write, rule = campaign.database.write, Rule(out=str(tmp_path), steps=["hits"])
    times_s = {"early": 1_700_000_900.0, "rule": 1_700_000_000.0, "late": 1_699_999_000.0}

    def at(name: str) -> None:
        monkeypatch.setattr(time, "time", lambda: times_s[name])

    at("early")
    campaign.add_run("early", data="early.h5")
    at("rule")
    write(lambda connection: put_rule(connection, "routine", rule, also_old=False))
    at("late")
    campaign.add_run("late", data="late.h5")
    campaign.add_run_at(tmp_path / "later.h5", is_folder=False)
    write(jobs.plan_jobs)
    assert {job["run"] for job in write(jobs.list_jobs)} == {"late", "later"}
