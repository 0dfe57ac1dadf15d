"""Jobs on a real Slurm: taken, arrays, chains, sent away, cancelled; what they do stands in for a run."""

import tarfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.xdist_group("slurm"), pytest.mark.timeout(300)]
FAR = 10_000  # no job of these tests comes so far


def test_a_job_is_taken_found_again_and_done(desk: Any) -> None:
    file = desk.run_file("r1", goal=15)
    shown = desk.call("submit", file, "--name", "a first try", "--yes")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("#!/bin/bash\n# Made by: orienteer submit r1.toml")
    job = shown.stdout.partition("Submitted job ")[2].partition(".")[0]
    desk.slurm.wait_for(job, "RUNNING", "COMPLETED")
    (run,) = desk.status("r1")
    assert run["jobs"][0]["number"] == job
    assert run["jobs"][0]["name"] == "a-first-try"
    assert desk.slurm.wait_for(job, "COMPLETED")
    assert desk.number("r1") == 15
    assert "goes on from 0" in desk.log("r1", job)
    assert desk.status()[0]["jobs"][0]["slurm"]["words"] == "ended well"
    assert (desk.folder / "r1" / "slurm" / f"{job}.sh").read_text() in shown.stdout


def test_several_runs_are_an_array_with_a_record_each(desk: Any) -> None:
    files = [desk.run_file(name, goal=3) for name in ("r1", "r2")]
    (job,) = desk.submit(*files, "--over", "run.seed=1,2", "--at-once", 2)
    for task in range(4):
        desk.slurm.wait_for(f"{job}_{task}", "COMPLETED")
    runs = {run["path"]: run for run in desk.status()}
    assert sorted(runs) == ["r1-seed-1", "r1-seed-2", "r2-seed-1", "r2-seed-2"]
    assert [run["jobs"][0]["number"] for _, run in sorted(runs.items())] == [f"{job}_{i}" for i in range(4)]
    assert all(desk.number(name) == 3 for name in runs)
    log = Path(runs["r2-seed-1"]["jobs"][0]["log"])
    assert (
        "run r2.toml --set run.seed=1 --set run.out=r2-seed-1 --restarts 2 --notice-s 120 goes on from 0"
        in log.read_text()
    )


def test_jobs_in_a_row_go_on_where_one_was_cut_off_and_the_rest_is_dropped_at_the_end(desk: Any) -> None:
    first, second, third = desk.submit(desk.run_file("r1", goal=FAR), "--chain", 3)
    desk.wait_until(lambda: desk.number("r1") > 2, "the first job")
    states = {job["number"]: job["slurm"] for job in desk.status("r1")[0]["jobs"]}
    assert states[second]["words"] == "waits: comes after another job"
    goal = desk.come_nearer("r1")
    # What Slurm does by itself shortly before the time of a job is up.
    desk.slurm.call("scancel", "--signal=USR1", "--batch", first)
    desk.slurm.wait_for(first, "FAILED")
    assert "stopped by a notice" in desk.log("r1", first)
    desk.slurm.wait_for(second, "COMPLETED")
    assert desk.number("r1") == goal
    assert "goes on from 0" not in desk.log("r1", second)
    desk.slurm.wait_for(third, "CANCELLED")
    assert not (desk.folder / "r1" / "slurm" / f"{third}.log").exists()


@pytest.mark.slow
def test_slurm_tells_a_job_before_its_time_is_up_and_the_next_goes_on(desk: Any) -> None:
    file = desk.run_file("r1", goal=FAR)
    first, second = desk.submit(file, "--time", "1min", "--notice-s", 10, "--chain", 2)
    desk.wait_until(lambda: desk.number("r1") > 5, "the first job")
    desk.slurm.wait_for(first, "FAILED", "TIMEOUT", seconds=200)
    assert "stopped by a notice" in desk.log("r1", first)
    assert desk.slurm.wait_for(second, "RUNNING") == "RUNNING"
    desk.slurm.call("scancel", second)


def test_a_job_that_is_sent_away_queues_again_and_goes_on(desk: Any) -> None:
    file = desk.run_file("r1", goal=FAR)
    (job,) = desk.submit(file, "--preemptible", "--partition", "guests", "--nodes", 2, "--exclusive")
    desk.wait_until(lambda: desk.number("r1") > 5, "the job of a guest")
    goal = desk.come_nearer("r1")
    desk.slurm.send_guests_away()
    desk.slurm.wait_for(job, "COMPLETED", seconds=200)
    assert desk.number("r1") == goal
    log = desk.log("r1", job)
    assert log.count("goes on from") == 2
    assert "stopped by Slurm" in log  # within the time that Slurm leaves to those it sends away


def test_a_cancelled_job_stays_cancelled_and_status_says_so(desk: Any) -> None:
    file = desk.run_file("r1", goal=FAR)
    (job,) = desk.submit(file, "--preemptible", "--partition", "guests")
    desk.wait_until(lambda: desk.number("r1") > 2, "the job")
    desk.slurm.call("scancel", job)
    desk.slurm.wait_for(job, "CANCELLED")
    assert desk.status()[0]["jobs"][0]["slurm"]["words"] == "was cancelled"
    shown = desk.call("status", "--all")
    assert "was cancelled" in shown.stdout
    assert "its log: " in shown.stderr


def test_a_run_gets_no_second_job_beside_one_that_waits_or_works(desk: Any) -> None:
    file = desk.run_file("r1", goal=FAR)
    (job,) = desk.submit(file)
    again = desk.call("submit", file)
    assert again.returncode == 1
    assert f"this run has a job already: {job}" in again.stderr
    (behind,) = desk.submit(file, "--after", f"afterany:{job}")
    assert desk.slurm.wait_for(behind, "PENDING") == "PENDING"
    desk.slurm.call("scancel", job, behind)


def test_what_slurm_refuses_is_told_in_its_words_and_leaves_nothing(desk: Any) -> None:
    refused = desk.call("submit", desk.run_file("r1", goal=1), "--constraint", "nosuchfeature")
    assert refused.returncode == 1
    assert "Slurm does not accept this job: " in refused.stderr
    assert "feature" in refused.stderr.lower()
    assert not (desk.folder / "r1").exists()


@pytest.mark.slow
def test_a_job_that_loses_a_node_queues_again_and_goes_on(desk: Any) -> None:
    (job,) = desk.submit(desk.run_file("r1", goal=FAR), "--nodes", 2)
    desk.wait_until(lambda: desk.number("r1") > 5, "the job")
    desk.slurm.lose_node("node2")
    try:
        desk.slurm.wait_for(job, "PENDING")
        desk.come_nearer("r1")
    finally:
        desk.slurm.start_node("node2")
    desk.slurm.wait_for(job, "COMPLETED")
    log = desk.log("r1", job)
    assert log.count("goes on from") == 2, log
    assert log.count("goes on from 0") == 1, log


def test_an_archive_is_sent_to_the_nodes_used_there_and_removed(desk: Any) -> None:
    file = desk.run_file("r1", goal=3)
    node = desk.folder / "node"
    node.mkdir()
    program = desk.folder / "programs" / "orienteer"
    with tarfile.open(desk.folder / "env.tar.gz", "w:gz") as archive:
        archive.add(program, "bin/orienteer")
    program.unlink()  # what runs is what was sent
    options = ("--environment", "env.tar.gz", "--node-folder", node, "--site", "generic", "--nodes", 2)
    (job,) = desk.submit(file, *options)
    desk.slurm.wait_for(job, "COMPLETED", "FAILED")
    assert desk.number("r1") == 3, desk.log("r1", job)
    assert list(node.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--partition", "bach"), "Did you mean 'batch'?"),
        (("--nodes", 3), "batch has 2"),
        (("--time", "5h"), "gives at most 04:00:00"),
    ],
)
def test_what_the_cluster_cannot_give_is_refused_before_a_job_is_handed_in(
    desk: Any, option: tuple[object, ...], said: str
) -> None:
    refused = desk.call("submit", desk.run_file("r1", goal=1), *option)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert not (desk.folder / "r1").exists()
