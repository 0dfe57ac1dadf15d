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
    (desk.folder / "r1.toml").write_text(
        '[run]\ndata = "sphere.h5"\nseed = 3\ndevice = "cpu"\n\n[emc]\niterations = 3\nlevel = 2\n\n'
        '[cluster]\ntime = "10min"\n'
    )
    return "r1.toml"


def test_two_ranks_of_a_job_do_a_whole_run(desk: Any, run_file: str) -> None:
    (job,) = desk.submit(run_file, "--ranks-per-node", 2)
    desk.slurm.wait_for(job, "COMPLETED", "FAILED", seconds=400)
    log = desk.log("r1", job)
    assert desk.slurm.state(job) == "COMPLETED", log
    (run,) = desk.status("r1.toml")
    assert run["state"] == "finished"
    assert run["iteration"] == 3
    shown = desk.call("status").stdout
    assert "finished" in shown
    assert (Path(desk.folder) / "r1" / "intensity.mrc").exists(), log
