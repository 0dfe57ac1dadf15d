"""``orienteer plan --nodes``: what a cluster would do with the same data."""

from pathlib import Path
from typing import Any


def test_a_cluster_is_planned_by_a_model_that_says_what_it_assumes(run: Any, frames: Path) -> None:
    common = ("plan", frames, "--device", "cpu", "--resolution-A", 60)
    told = run(*common, "--nodes", 2, "--frames", 1_000_000)
    assert told.status == 0, told.errors
    words = " ".join(told.output.split())
    assert "16 on 2 nodes, each one H200" in words
    assert "1,000,000 of" in words
    assert "NDR InfiniBand (assumed)" in words
    report = run(*common, "--nodes", 3, "--gpus-per-node", 4, "--frames", 1_000_000, "--json").json
    assert report["ranks"] == 12
    assert report["problem"]["n_frames"] == 1_000_000
    assert report["seconds_per_iteration"] < report["seconds_on_one_rank"]
    slower = run(*common, "--nodes", 3, "--frames", 1_000_000, "--network", "qdr", "--json").json
    faster = run(*common, "--nodes", 3, "--frames", 1_000_000, "--network", "ndr", "--json").json
    assert slower["stages"]["collectives"] > faster["stages"]["collectives"]
    assert (
        "phase" in run(*common, "--nodes", 1, "--frames", 5000, "--method", "mtip", "--json").json["stages"]
    )


def test_more_ranks_than_frames_are_refused(run: Any, frames: Path) -> None:
    said = run("plan", frames, "--device", "cpu", "--nodes", 1000)
    assert said.status == 1
    assert "cannot share" in said.errors


def test_options_of_a_cluster_without_one_are_refused(run: Any, frames: Path) -> None:
    said = run("plan", frames, "--frames", 1000, "--machine", "cores")
    assert said.status == 2
    assert "--frames and --machine are for plans of a cluster" in said.errors
    said = run("plan", frames, "--method", "mtip")  # a plan of this machine is one of EMC
    assert said.status == 2
    assert "--method is for plans of a cluster" in said.errors
    assert "--nodes 2" in said.errors


def test_a_cluster_that_is_slower_than_one_rank_is_advised_against(run: Any, frames: Path) -> None:
    said = run("plan", frames, "--device", "cpu", "--nodes", 4, "--frames", 100)
    assert "take fewer nodes" in " ".join(said.output.split())
