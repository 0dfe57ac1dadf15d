"""Handing in jobs: in a row, all or none, with a record that is found again."""

from pathlib import Path

import pytest

from orienteer.cluster import slurm
from orienteer.cluster.job import Job, Work, job_name
from orienteer.cluster.limits import Partition, check_limits
from orienteer.cluster.records import read_records
from orienteer.cluster.settings import ClusterSettings
from orienteer.cluster.slurm import SlurmError
from orienteer.cluster.submission import dependency, submit_job
from orienteer.errors import SettingsError

# Gives numbers from 1 on, as many as the file "most" says; notes what it was told.
SBATCH = """#!/bin/sh
cd {folder}
echo "$@" >> told
number=$(wc -l < told)
[ $number -gt $(cat most) ] && echo "sbatch: error: Submission failed: Job violates policy" >&2 && exit 1
cat > script
echo "$number;cluster"
"""


@pytest.fixture
def slurm_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "sbatch").write_text(SBATCH.format(folder=folder))
    (folder / "scancel").write_text(f'#!/bin/sh\necho "$@" >> {folder}/taken_back\n')
    for name in ("sbatch", "scancel"):
        (folder / name).chmod(0o755)
    (folder / "most").write_text("100")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def a_job(folder: Path, n_runs: int = 1) -> Job:
    return Job.of([Work(("run", f"r{i}.toml"), Path("runs") / f"r{i}") for i in range(n_runs)], folder)


def test_a_job_is_recorded_in_the_folder_of_its_run(tmp_path: Path, slurm_there: Path) -> None:
    taken = submit_job(a_job(tmp_path), "#!/bin/bash\n", ClusterSettings(nodes=3), ["4711"])
    assert taken.numbers == ("1",)
    (record,) = read_records(tmp_path / "runs" / "r0")
    assert record == taken.records[0]
    assert (record.number, record.nodes, record.after) == ("1", 3, ("4711",))
    assert record.log == str(tmp_path / "runs" / "r0" / "slurm" / "1.log")
    assert Path(record.script).read_text() == "#!/bin/bash\n" == (slurm_there / "script").read_text()
    assert (slurm_there / "told").read_text() == "--parsable --dependency=afterok:4711\n"


def test_jobs_in_a_row_wait_for_all_before_them_to_be_cut_off(tmp_path: Path, slurm_there: Path) -> None:
    submit_job(a_job(tmp_path), "#!/bin/bash\n", ClusterSettings(chain=3))
    assert (slurm_there / "told").read_text().splitlines() == [
        "--parsable",
        "--parsable --dependency=afternotok:1 --kill-on-invalid-dep=yes",
        "--parsable --dependency=afternotok:1:2 --kill-on-invalid-dep=yes",
    ]
    assert [record.number for record in read_records(tmp_path / "runs" / "r0")] == ["1", "2", "3"]


def test_each_run_of_an_array_has_its_task(tmp_path: Path, slurm_there: Path) -> None:
    submit_job(a_job(tmp_path, 2), "#!/bin/bash\n", ClusterSettings())
    (record,) = read_records(tmp_path / "runs" / "r1")
    assert record.number == "1_1"
    assert record.log == str(tmp_path / "runs" / "slurm" / "1_1.log")


def test_a_row_that_is_refused_in_the_middle_is_taken_back_whole(tmp_path: Path, slurm_there: Path) -> None:
    (slurm_there / "most").write_text("2")
    with pytest.raises(SlurmError, match=r"Slurm does not accept this job: .*Job violates policy"):
        submit_job(a_job(tmp_path), "#!/bin/bash\n", ClusterSettings(chain=3))
    assert (slurm_there / "taken_back").read_text() == "1 2\n"
    assert not (tmp_path / "runs" / "r0").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Could not establish a configuration source", "Log in to a machine of the cluster"),
        ("Unable to contact slurm controller (connect failure)", "Log in to a machine of the cluster"),
        ("Batch job submission failed: Invalid account", "Change what is asked for under [cluster]"),
    ],
)
def test_a_slurm_that_is_away_is_not_mended_by_other_settings(
    words: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise SlurmError(f"sbatch: {words}")

    monkeypatch.setattr(slurm, "call", refuse)
    with pytest.raises(SlurmError) as refused:
        slurm.submit("#!/bin/bash\n")
    assert told in refused.value.hint


def test_a_refusal_keeps_what_was_in_the_folder(tmp_path: Path, slurm_there: Path) -> None:
    (slurm_there / "most").write_text("0")
    (tmp_path / "runs" / "r0").mkdir(parents=True)
    (tmp_path / "runs" / "r0" / "run.json").touch()
    with pytest.raises(SlurmError):
        submit_job(a_job(tmp_path), "#!/bin/bash\n", ClusterSettings())
    assert [path.name for path in (tmp_path / "runs" / "r0").iterdir()] == ["run.json"]


def test_torn_lines_of_the_records_are_left_out(tmp_path: Path, slurm_there: Path) -> None:
    submit_job(a_job(tmp_path), "#!/bin/bash\n", ClusterSettings())
    with (tmp_path / "runs" / "r0" / "slurm" / "jobs.jsonl").open("a") as file:
        file.write('{"job": "2"}\n[]\n{"job": "3", "ta')
    assert [record.number for record in read_records(tmp_path / "runs" / "r0")] == ["1"]


@pytest.mark.parametrize("text", ["", "job", "afterok:", "before:7", "7;rm"])
def test_what_is_no_job_cannot_come_first(text: str) -> None:
    with pytest.raises(SettingsError, match="this is not a job"):
        dependency([text])


def test_a_name_is_one_that_slurm_takes() -> None:
    assert job_name("  ") == "orienteer"
    assert job_name("größe 3/a") == "größe-3-a"


PARTITIONS = [
    Partition("short", True, True, 4, 3600),
    Partition("long", False, True, 2, 86400),
    Partition("endless", False, True, 1, None),
    Partition("closed", False, False, 8, None),
]


@pytest.mark.parametrize(
    "good",
    [
        {"nodes": 4, "time": "1h"},
        {"partition": "short,long", "time": "1d"},
        {"partition": "endless", "time": "9d"},
        {"partition": "closed,short", "time": "1h"},
    ],
)
def test_what_a_partition_can_give_is_not_refused(good: dict[str, object]) -> None:
    check_limits(ClusterSettings(**good), PARTITIONS)
    check_limits(ClusterSettings(nodes=99), [])


def test_no_partition_is_meant_where_the_one_for_all_is_down() -> None:
    partitions = [Partition("usual", True, False, 4, None), *PARTITIONS[1:]]
    with pytest.raises(SettingsError, match="usual: it is down") as caught:
        check_limits(ClusterSettings(), partitions)
    assert caught.value.hint == "These are up: endless, long."
    with pytest.raises(SettingsError) as caught:
        check_limits(ClusterSettings(), partitions[:1])
    assert caught.value.hint == "No other is up either: ask the staff of the cluster."


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"partition": "logn"}, "no such partition"),
        ({"partition": "short,elsewhere"}, "--partition elsewhere"),
        ({"nodes": 5}, "short has 4"),
        ({"time": "2h"}, "short gives at most 01:00:00"),
        ({"partition": "long", "nodes": 3}, "long has 2"),
        ({"partition": "closed"}, "--partition closed: it is down, and starts no job"),
        ({"partition": "closed,short", "nodes": 5}, "short has 4"),
    ],
)
def test_what_no_partition_can_give_is_refused(bad: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        check_limits(ClusterSettings(**bad), PARTITIONS)
