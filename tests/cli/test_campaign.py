"""The commands of a campaign: what they say, what they keep, and one sentence when something is wrong."""

import csv
import json
import math
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from orienteer.run import signals

pytest.importorskip("sqlalchemy", reason="needs SQLAlchemy: pip install 'orienteer[campaign]'")
pytest.importorskip("alembic", reason="needs alembic: pip install 'orienteer[campaign]'")

ADDRESS = "campaign.db"


@pytest.fixture
def made(run: Any) -> Any:
    assert run("campaign", "init", ADDRESS).status == 0
    return run


def test_runs_are_added_listed_tagged_noted_and_shown(made: Any, frames: Path) -> None:
    for name in ("r1.h5", "r2.h5"):
        shutil.copy(frames, name)
    added = made("campaign", "add", ADDRESS, "r1.h5", "r2.h5", "--sample", "virus", "--tag", "new", "--json")
    assert [run["name"] for run in added.json["runs"]] == ["r1", "r2"]
    assert added.json["runs"][0]["data"] == str(Path("r1.h5").absolute())
    assert made("campaign", "tag", ADDRESS, "r1", "good", "--json").json["tags"] == ["good", "new"]
    assert made("campaign", "tag", ADDRESS, "r1", "new", "--remove", "--json").json["tags"] == ["good"]
    assert made("campaign", "note", ADDRESS, "r1", "[red]steady[/]", "--author", "night").status == 0
    listed = made("campaign", "list", ADDRESS, "--search", "STEADY", "--json").json
    assert [run["name"] for run in listed["runs"]] == ["r1"]
    assert listed["n_runs"] == 2
    shown = made("campaign", "show", ADDRESS, "r1").output
    assert "[red]steady[/]" in shown  # text is shown, not obeyed
    assert made("campaign", "list", ADDRESS).output.count("virus") == 2


def test_a_reconstruction_is_added_with_what_it_found(made: Any, frames: Path, fake: Any) -> None:
    assert made("reconstruct", frames, "--out", "run", "--json").status == 0
    told = made("campaign", "add", ADDRESS, "run", "--json").json["runs"][0]
    assert told["kind"] == "emc"
    assert told["results"]["state"] == "finished"
    assert told["results"]["resolution_A"] == 25.0
    assert told["parameters"]["seed"] == 0
    assert Path(told["files"]["intensity"]).is_file()


def write_live_run(folder: Path, n: int) -> Path:
    """A live run of so many shots, all of them hits of one photon."""
    from orienteer.live.journal import Journal, Segment
    from orienteer.live.summary import Summary
    from orienteer.source.sparse_photons import photons_from_dense

    folder.mkdir(parents=True)
    (folder / "live.json").write_text(json.dumps({"format": "orienteer-live", "version": 1}))
    shots = {"event_id": np.arange(n, dtype=np.uint64), "is_hit": np.ones(n, dtype=bool)}
    photons = photons_from_dense(np.ones((n, 1), np.int32))
    Journal(folder).commit(Segment((1, 1), shots, np.arange(n), photons, Summary().as_json(), {}))
    return folder


def test_live_runs_are_added_with_their_shots_and_stay_open_while_they_are_at_work(made: Any) -> None:
    from orienteer.run.lock import RunLock
    from orienteer.source.frame_tags import tag_frames

    first, second = write_live_run(Path("day1/live"), 4), write_live_run(Path("day2/live"), 6)
    with RunLock(first):
        told = made("campaign", "add", ADDRESS, first, second, "--json").json["runs"]
    assert [run["name"] for run in told] == ["live", "day2 live"]  # the same name, but not the same run
    assert [(run["n_shots"], run["n_hits"]) for run in told] == [(4, 4), (6, 6)]
    assert [run["is_open"] for run in told] == [True, False]
    tag_frames(first, [2, 3], add=["bright"])
    again = made("campaign", "add", ADDRESS, first, "--sample", "virus", "--json").json["runs"][0]
    assert again["frame_tags"] == {"bright": 2}
    assert "frames 'bright'" in made("campaign", "show", ADDRESS, "live").output
    assert (again["name"], again["n_shots"], again["sample"]) == ("live", 4, "virus")
    assert not again["is_open"]


def test_what_no_step_could_work_on_is_not_added(made: Any, frames: Path) -> None:
    Path("thesis.txt").write_text("important")
    Path("empty.h5").touch()
    Path("letters").mkdir()
    shutil.copy("thesis.txt", "letters")
    for path, told in (("thesis.txt", "thesis.txt"), ("empty.h5", "empty"), ("letters", "holds no data")):
        refused = made("campaign", "add", ADDRESS, path)
        assert refused.status == 1
        assert told in refused.errors
    assert made("campaign", "list", ADDRESS, "--json").json["n_runs"] == 0
    shutil.copy(frames, "letters")
    assert made("campaign", "add", ADDRESS, "letters").status == 0


def test_shots_and_runs_are_exported(made: Any) -> None:
    from orienteer.campaign.campaign import Campaign

    shots = {
        "event_id": np.arange(4, dtype=np.uint64) + np.uint64(2**63),
        "is_hit": np.array([True, False, True, False]),
        "size_A": np.array([300.0, np.nan, 310.0, np.nan]),
        "voltage_V": np.arange(4.0),
    }
    with Campaign.open(ADDRESS) as campaign:
        campaign.add_run("r1")
        campaign.tag("r1", add=["=cmd()"])
        campaign.add_shots("r1", shots, segment="a")
    for ending in ("csv", "h5", "npz"):
        report = made("campaign", "export", ADDRESS, f"shots.{ending}", "--run", "r1", "--json").json
        assert report == {"file": f"shots.{ending}", "shots": 4}
    with Path("shots.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["event_id"]) for row in rows] == shots["event_id"].tolist()
    assert [row["size_A"] for row in rows] == ["300.0", "", "310.0", ""]
    with h5py.File("shots.h5") as file, np.load("shots.npz") as arrays:
        for name, column in shots.items():
            np.testing.assert_array_equal(file[name][()], column)
            np.testing.assert_array_equal(arrays[name], column)
    assert made("campaign", "export", ADDRESS, "runs.json").status == 0
    assert json.loads(Path("runs.json").read_text())["runs"][0]["n_shots"] == 4
    assert made("campaign", "export", ADDRESS, "runs.csv").status == 0
    assert "'=cmd()" in Path("runs.csv").read_text()  # which a spreadsheet does not compute
    assert made("campaign", "export", ADDRESS, "runs.xlsx").status == 1
    again = ("campaign", "export", ADDRESS, "runs.csv")
    assert "not overwritten" in made(*again).errors
    assert made(*again, "--overwrite").output.startswith("runs.csv: 1 run\n")


def test_rules_are_made_listed_switched_and_removed(made: Any) -> None:
    command = ("campaign", "rule", ADDRESS)
    assert made(*command, "--json").json["rules"] == []
    told = made(
        *command, "all", "--steps", "hits, report", "--out", "out", "--sample", "virus", "--json"
    ).json
    assert told["rules"][0]["steps"] == ["hits", "report"]
    assert told["rules"][0]["out"] == str(Path("out").absolute())
    assert not made(*command, "all", "--off", "--json").json["rules"][0]["is_on"]
    Path("rules.toml").write_text(
        '[rule.two]\nout = "b"\nsteps = ["report", ["convert", "{data}", "x.cxi"]]\n'
    )
    told = made(*command, "--file", "rules.toml", "--json").json
    assert [rule["name"] for rule in told["rules"]] == ["all", "two"]
    assert "convert" in made(*command).output
    assert len(made(*command, "all", "--remove", "--json").json["rules"]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("all", "--steps", "dance", "--out", "x"), "'dance' is no step"),
        (("all", "--steps", "report"), "out"),
        (("-all", "--steps", "report", "--out", "x"), ""),
        (("../all", "--steps", "report", "--out", "x"), "no name for a rule"),
        (("all", "--steps", "reconstruct", "--out", "x", "--where", "slurm"), "needs a settings file"),
        (("all", "--steps", "report", "--out", "x", "--settings", "none.toml"), "no such settings file"),
        (("all", "--off"), "no rule 'all'"),
        (("all",), "the rule has no steps."),
        (("--off",), "no rule is named."),
    ],
)
def test_a_rule_that_could_not_be_carried_out_is_refused(made: Any, arguments: Any, words: str) -> None:
    result = made("campaign", "rule", ADDRESS, *arguments)
    assert result.status in (1, 2)
    assert words in result.errors
    assert "defect" not in result.errors
    assert made("campaign", "rule", ADDRESS, "--json").json["rules"] == []


@pytest.mark.parametrize(
    "text",
    [
        '[rule.a]\nout = "x"\nsteps = [["sh; rm", "x"]]\n',
        '[rule.a]\nout = "x"\nsteps = [["convert", "{__class__}"]]\n',
        '[rule.a]\nout = "x"\nsteps = ["report"]\nshell = "rm"\n',
        "[other]\n",
        "rule = 3\n",
        "[rule]\na = 3\n",
        "not toml",
    ],
)
def test_a_file_of_rules_says_what_is_wrong_with_it(made: Any, text: str) -> None:
    Path("rules.toml").write_text(text)
    result = made("campaign", "rule", ADDRESS, "--file", "rules.toml")
    assert result.status == 2, result.errors
    assert "defect" not in result.errors


def test_what_is_not_there_is_said_in_one_sentence(run: Any) -> None:
    missing = run("campaign", "list", "nothing.db", "--json")
    assert missing.status == 1
    assert missing.json["error"] == "nothing.db: there is no such campaign."
    assert not Path("nothing.db").exists()
    assert run("campaign", "init", ADDRESS).status == 0
    assert "no run 'r9'" in run("campaign", "show", ADDRESS, "r9").errors
    assert run("campaign", "add", ADDRESS, "missing.h5").status == 1
    assert "no database that a campaign" in run("campaign", "init", "mysql://host/name").errors


def test_one_is_one(made: Any, frames: Path) -> None:
    made("campaign", "add", ADDRESS, str(frames))
    assert "1 run, 0 shots, 0 hits" in made("campaign", "list", ADDRESS).output
    assert made("campaign", "note", ADDRESS, "frames", "steady").output == "frames: 1 note\n"
    assert made("campaign", "note", ADDRESS, "frames", "and bright").output == "frames: 2 notes\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_is_stopped_says_what_goes_on(
    made: Any, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def stop(*_: Any) -> None:
        os.kill(os.getpid(), number)
        time.sleep(0.01)

    monkeypatch.setattr(signals, "_heard_at_s", -math.inf)
    monkeypatch.setattr("orienteer.campaign.worker.Worker.work", stop)
    told = made("campaign", "work", ADDRESS)
    assert told.status == 128 + number
    assert told.errors == ("Stopped; steps that are running continue. The same command watches them again.\n")


def test_a_worker_carries_out_the_steps_of_a_rule(made: Any, frames: Path) -> None:
    steps = (
        '[["convert", "{data}", "{folder}/{name}.cxi"], ["inspect", "{folder}/{name}.cxi", "--no-picture"]]'
    )
    Path("rules.toml").write_text(f'[rule.all]\nout = "out"\nwatch = "*.h5"\nsettle_s = 0\nsteps = {steps}\n')
    assert made("campaign", "rule", ADDRESS, "--file", "rules.toml").status == 0
    done = made("campaign", "work", ADDRESS, "--once", "--json")
    assert [job["status"] for job in done.json["jobs"]] == ["done", "done"], done.json
    assert "inspect of frames done" in done.errors
    assert Path("out/frames/frames.cxi").is_file()
    assert "done" in made("campaign", "show", ADDRESS, "frames").output
