"""Scripts of jobs: what they ask for, and that bash does what they say."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from orienteer.cluster.job import Job, Work
from orienteer.cluster.script import job_script, sbatch_options
from orienteer.cluster.settings import ClusterSettings
from orienteer.cluster.site import find_site
from orienteer.errors import SettingsError


def a_job(folder: Path = Path("/data/beam time"), n_runs: int = 1) -> Job:
    works = [Work(("run", f"r{i}.toml", "--restarts", "2"), Path(f"r{i}")) for i in range(n_runs)]
    return Job.of(works, folder)


def options(job: Job | None = None, **settings: Any) -> list[str]:
    return sbatch_options(job or a_job(), ClusterSettings(**settings))


def test_a_job_asks_for_what_was_set_and_for_nothing_else() -> None:
    asked = options(nodes=4, gpus_per_node=4, time="4h", reservation="beamtime", memory_GiB_per_node=1.5)
    assert asked[:6] == [
        "--job-name=r0", "--nodes=4", "--ntasks-per-node=4", "--gpus-per-node=4", "--mem=1536M",
        "--time=04:00:00",
    ]  # fmt: skip
    assert "--reservation=beamtime" in asked
    assert not [
        option for option in asked if option.startswith(("--partition", "--account", "--qos", "--array"))
    ]


def test_ranks_follow_the_gpus_unless_they_are_given() -> None:
    assert "--ntasks-per-node=1" in options()
    assert "--ntasks-per-node=4" in options(gpus_per_node=4)
    assert "--ntasks-per-node=2" in options(gpus_per_node=4, ranks_per_node=2)


def test_options_for_special_cases_take_the_place_of_others() -> None:
    given = {"qos": "regular", "preemptible_options": ("--qos=preempt",)}
    assert "--qos=regular" in options(**given)
    assert [o for o in options(**given, preemptible=True) if "qos" in o] == ["--qos=preempt"]
    assert [o for o in options(nodes=3, options="--nodes=2-4 '--comment=a b'") if "nodes" in o] == [
        "--nodes=2-4"
    ]


def test_paths_with_blanks_are_quoted() -> None:
    assert "--chdir='/data/beam time'" in " ".join(options())


def test_several_runs_are_tasks_of_an_array() -> None:
    asked = options(a_job(n_runs=3), at_once=2)
    assert "--array=0-2%2" in asked
    assert "--output='/data/beam time/slurm/%A_%a.log'" in asked
    script = job_script(a_job(n_runs=3), find_site("generic"), ClusterSettings())
    assert "    2) orienteer run r2.toml --restarts 2 & ;;" in script


@pytest.mark.parametrize("site", ["generic", "maxwell", "perlmutter"])
@pytest.mark.parametrize("settings", [{}, {"preemptible": True}, {"environment": "env.tar.gz"}])
def test_bash_understands_the_script_of_every_site(site: str, settings: dict[str, Any]) -> None:
    found = find_site(site)
    chosen = found.settings(ClusterSettings(account="a", time="1h", **settings))
    for n_runs in (1, 3):
        script = job_script(a_job(n_runs=n_runs), found, chosen, "orienteer submit r0.toml")
        assert "{{" not in script
        assert script.splitlines()[1] == "# Made by: orienteer submit r0.toml"
        lines = script.splitlines()
        # Slurm stops to look for options at the first line that does something.
        first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
        assert not [line for line in lines[first:] if line.startswith("#SBATCH")]
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(("given", "feature"), [({}, "GPUx1"), ({"gpus_per_node": 4}, "GPUx4")])
def test_where_gpus_are_a_feature_of_nodes_nothing_else_asks_for_them(
    given: dict[str, int], feature: str
) -> None:
    site = find_site("maxwell")
    lines = job_script(a_job(), site, site.settings(ClusterSettings(**given))).splitlines()
    assert f"#SBATCH --constraint={feature}" in lines
    assert f"#SBATCH --ntasks-per-node={feature[-1]}" in lines
    assert not [line for line in lines if "gpus-per-node" in line]


def test_a_feature_that_the_user_asks_for_comes_last_and_holds() -> None:
    site = find_site("maxwell")
    script = job_script(a_job(), site, site.settings(ClusterSettings(constraint="V100")))
    asked = [line for line in script.splitlines() if "--constraint" in line]
    assert asked[-1] == "#SBATCH --constraint=V100"


STAND_IN = """#!/bin/bash
trap 'echo saved; exit 138' USR1
trap 'echo left; exit 143' TERM
echo "begun $*"
for i in $(seq 100); do sleep 0.1 & wait $!; [ -e enough ] && exit ${END:-0}; done
exit 3
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Stand-ins for the command and for Slurm, which note what they are asked."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "orienteer").write_text(STAND_IN)
    (folder / "squeue").write_text('#!/bin/sh\ncat "$(dirname "$0")/state"\n')
    (folder / "scontrol").write_text('#!/bin/sh\necho "$@" > requeued\nkill -9 $PPID\n')
    for path in folder.iterdir():
        path.chmod(0o755)
    (folder / "state").write_text("RUNNING\n")
    return folder


def started(folder: Path, programs: Path, **settings: Any) -> "subprocess.Popen[str]":
    """The script, as Slurm would start it on its first node."""
    site = programs / "site.sh"
    site.write_text('#!/bin/bash\n{{options}}\n{{environment}}\nexport PATH="$PROGRAMS:$PATH"\n{{work}}\n')
    script = job_script(a_job(folder), find_site(str(site)), ClusterSettings(**settings))
    (folder / "job.sh").write_text(script)
    environment = {**os.environ, "PROGRAMS": str(programs), "SLURM_JOB_ID": "7"}
    return subprocess.Popen(
        ["bash", "job.sh"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def begun(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    time.sleep(0.2)  # the script is told what it waits for right after it has begun it
    return line


@pytest.mark.parametrize("preemptible", [False, True])
def test_a_job_ends_as_its_command_does(tmp_path: Path, programs: Path, preemptible: bool) -> None:
    process = started(tmp_path, programs, preemptible=preemptible)
    assert begun(process) == "begun run r0.toml --restarts 2\n"
    (tmp_path / "enough").touch()
    assert process.wait(30) == 0
    assert not (tmp_path / "requeued").exists()


@pytest.mark.parametrize(
    ("number", "said", "status"), [(signal.SIGUSR1, "saved", 138), (signal.SIGTERM, "left", 143)]
)
def test_a_notice_reaches_the_command_and_the_job_leaves_with_it(
    tmp_path: Path, programs: Path, number: int, said: str, status: int
) -> None:
    process = started(tmp_path, programs)
    begun(process)
    process.send_signal(number)
    rest, _ = process.communicate(timeout=30)
    assert rest.split() == [said]
    assert process.returncode == status
    assert not (tmp_path / "requeued").exists()


def test_a_preemptible_job_queues_again_after_a_notice(tmp_path: Path, programs: Path) -> None:
    process = started(tmp_path, programs, preemptible=True)
    begun(process)
    process.send_signal(signal.SIGUSR1)
    process.wait(30)
    assert (tmp_path / "requeued").read_text() == "requeue 7\n"


def test_a_preemptible_job_that_was_cancelled_does_not_queue_again(tmp_path: Path, programs: Path) -> None:
    (programs / "state").write_text("COMPLETING\n")
    process = started(tmp_path, programs, preemptible=True)
    begun(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert not (tmp_path / "requeued").exists()


def test_a_time_that_the_notice_uses_up_is_refused() -> None:
    with pytest.raises(SettingsError, match="has too little time to work"):
        ClusterSettings(time="3min")
    assert ClusterSettings(time="3min", notice_s=30).time == "3min"


@pytest.mark.parametrize("word", ["gpu; rm -rf /", "a b", "$(id)", "x\ny", "'"])
def test_values_cannot_carry_anything_into_a_script(word: str) -> None:
    with pytest.raises(SettingsError, match="signs of the shell"):
        ClusterSettings(partition=word)
