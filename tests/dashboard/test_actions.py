"""What the page changes: marks beside a run, and the processes that work on runs."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest

import orienteer
from orienteer.campaign.address import apart_from_password
from orienteer.cli.live import _options, _sources
from orienteer.dashboard import marks
from orienteer.dashboard.control import live_arguments
from orienteer.dashboard.refusal import Refused
from orienteer.dashboard.roots import Roots
from orienteer.particle.named_bodies import random_blobs
from orienteer.run.run import Run
from orienteer.source.frame_tags import read_frame_tags
from orienteer.source.left_out import read_excluded

HOLDS_A_LOCK = """
import signal, sys, time
from pathlib import Path
from orienteer.run.lock import RunLock
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with RunLock(Path(sys.argv[1])):
    print("holds it", flush=True)
    time.sleep(600)
"""


def test_tags_are_given_and_taken_and_stay_beside_the_run(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    url = f"/api/runs/{made_up.run_id(client)}/tags"
    assert client.post(url, json={"add": ["good", " bright "]}).json() == {"tags": ["good", "bright"]}
    assert client.post(url, json={"add": ["<b>"], "remove": ["good"]}).json() == {"tags": ["bright", "<b>"]}
    assert json.loads((root / "virus" / "dashboard.json").read_text())["tags"] == ["bright", "<b>"]
    assert client.get("/api/runs", params={"tag": "bright"}).json()["total"] == 1


@pytest.mark.parametrize(
    "body", [{"add": [""]}, {"add": ["x" * 65]}, {"add": ["a\nb"]}, {"add": "x"}, {"more": []}]
)
def test_tags_that_are_none_are_refused(
    client: httpx.Client, made_up: SimpleNamespace, body: dict[str, object]
) -> None:
    answer = client.post(f"/api/runs/{made_up.run_id(client)}/tags", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]


def test_notes_are_added_and_kept_in_order(client: httpx.Client, made_up: SimpleNamespace) -> None:
    run = made_up.run_id(client)
    for text in ("first", "second"):
        client.post(f"/api/runs/{run}/note", json={"text": text})
    told = client.get(f"/api/runs/{run}").json()
    assert [note["text"] for note in told["notes"]] == ["first", "second"]
    assert told["note"] == "second"


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "x" * 10_001])
def test_notes_that_are_none_are_refused(client: httpx.Client, made_up: SimpleNamespace, text: str) -> None:
    answer = client.post(f"/api/runs/{made_up.run_id(client)}/note", json={"text": text})
    assert answer.status_code == 422


def test_frames_are_excluded_and_taken_back(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    run = made_up.run_id(client)
    url, large = f"/api/runs/{run}/exclude", str(2**64 - 1)
    assert client.post(url, json={"event_ids": [large, "7", "5"]}).json() == {"excluded": ["5", "7", large]}
    assert client.post(url, json={"remove": ["5"]}).json() == {"excluded": ["7", large]}
    assert client.get(f"/api/runs/{run}").json()["excluded"] == ["7", large]
    assert read_excluded(root / "virus" / "excluded.json").tolist() == [7, 2**64 - 1]


def test_frames_are_tagged_and_the_run_is_found_by_it(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    run, large = made_up.run_id(client), str(2**64 - 1)
    url = f"/api/runs/{run}/frame-tags"
    assert client.post(url, json={"event_ids": [large, "7"], "add": ["ice", " bright "]}).json() == {
        "frame_tags": {"bright": ["7", large], "ice": ["7", large]}
    }
    client.post(url, json={"event_ids": ["7"], "remove": ["ice"]})
    client.post(url, json={"event_ids": ["7", large], "remove": ["bright"]})
    assert client.get(f"/api/runs/{run}").json()["frame_tags"] == {"ice": [large]}
    assert read_frame_tags(root / "virus" / "frame_tags.json")["ice"].tolist() == [2**64 - 1]
    assert client.get("/api/runs", params={"search": "ice"}).json()["total"] == 1
    assert client.get("/api/runs", params={"search": "bright"}).json()["total"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {"event_ids": [], "add": ["x"]},
        {"event_ids": [7], "add": ["x"]},
        {"event_ids": ["7"], "add": ["\n"]},
        {"event_ids": [str(2**64)], "add": ["x"]},
        {"add": ["x"]},
    ],
)
def test_tags_of_frames_that_are_none_are_refused(
    client: httpx.Client, root: Path, made_up: SimpleNamespace, body: dict[str, object]
) -> None:
    answer = client.post(f"/api/runs/{made_up.run_id(client)}/frame-tags", json=body)
    assert answer.status_code == 422
    assert not (root / "virus" / "frame_tags.json").exists()


def test_a_damaged_list_of_tags_harms_neither_the_list_nor_the_run(
    client: httpx.Client, root: Path, tmp_path: Path, made_up: SimpleNamespace
) -> None:
    run, tags = made_up.run_id(client), root / "virus" / "frame_tags.json"
    for content in ('{"tags": [1, 2]}', "{", '{"tags": {"x": 7}}'):
        tags.write_text(content)
        assert client.get("/api/runs").json()["total"] == 1
        assert client.get(f"/api/runs/{run}").json()["frame_tags"] == {}
        answer = client.post(f"/api/runs/{run}/frame-tags", json={"event_ids": ["1"], "add": ["a"]})
        assert answer.status_code == 422
    tags.unlink()
    (tmp_path / "secret.json").write_text("{}")
    tags.symlink_to(tmp_path / "secret.json")
    answer = client.post(f"/api/runs/{run}/frame-tags", json={"event_ids": ["1"], "add": ["a"]})
    assert "outside" in answer.json()["error"]


@pytest.mark.parametrize("ids", [["-1"], ["1.5"], [7], ["9" * 30], ["x"]])
def test_ids_that_are_none_are_refused(
    client: httpx.Client, root: Path, made_up: SimpleNamespace, ids: list[object]
) -> None:
    answer = client.post(f"/api/runs/{made_up.run_id(client)}/exclude", json={"event_ids": ids})
    assert answer.status_code == 422
    assert not (root / "virus" / "excluded.json").exists()


def test_an_id_beyond_64_bits_is_refused(client: httpx.Client, made_up: SimpleNamespace) -> None:
    answer = client.post(f"/api/runs/{made_up.run_id(client)}/exclude", json={"event_ids": [str(2**64)]})
    assert answer.status_code == 422


def test_many_who_tag_at_once_lose_nothing(tmp_path: Path) -> None:
    roots = Roots([tmp_path])
    threads = [
        threading.Thread(target=marks.tag, args=(roots, tmp_path, [f"tag {k}"], [])) for k in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(json.loads((tmp_path / "dashboard.json").read_text())["tags"]) == sorted(
        f"tag {k}" for k in range(20)
    )


def test_a_folder_that_cannot_be_written_is_said(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    run = made_up.run_id(client)
    (root / "virus" / "dashboard.json").mkdir()
    assert client.post(f"/api/runs/{run}/tags", json={"add": ["x"]}).status_code == 422


def test_stopping_asks_the_process_that_holds_the_lock(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    command = [sys.executable, "-c", HOLDS_A_LOCK, str(root / "virus")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout is not None
            worker.stdout.readline()
            url = f"/api/runs/{made_up.run_id(client)}/stop"
            answer = client.post(url, json={})
            assert answer.status_code == 200
            assert str(worker.pid) in answer.json()["words"]
            assert worker.wait(timeout=60) == 0
        finally:
            worker.kill()
    assert client.post(url, json={}).status_code == 409


def test_a_lock_that_names_an_innocent_process_stops_nobody(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    """Whoever can write a lock could otherwise have any process of the user's ended."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as innocent:
        try:
            began = Path(f"/proc/{innocent.pid}/stat").read_text().rpartition(")")[2].split()[19]
            holder = {"host": os.uname().nodename, "pid": innocent.pid, "began": began}
            (root / "virus" / "lock").write_text(json.dumps(holder))
            answer = client.post(f"/api/runs/{made_up.run_id(client)}/stop", json={})
            assert answer.status_code == 409
            assert "does not hold it" in answer.json()["error"]
            assert innocent.poll() is None
        finally:
            innocent.send_signal(signal.SIGKILL)


def test_a_run_on_another_machine_is_not_stopped_from_here(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    (root / "virus" / "lock").write_text(json.dumps({"host": "far-away", "pid": 1, "began": "1"}))
    answer = client.post(f"/api/runs/{made_up.run_id(client)}/stop", json={})
    assert answer.status_code == 409
    assert "far-away" in answer.json()["error"]


def test_what_is_finished_or_no_run_is_not_started(
    client: httpx.Client, root: Path, made_up: SimpleNamespace
) -> None:
    (root / "live").mkdir()
    (root / "live" / "live.json").write_text("{}")
    made_up.write_run(root / "live" / "map", is_finished=False)
    made_up.write_run(root / "bad")
    (root / "bad" / "run.json").write_text("{")
    client.post(f"/api/runs/{made_up.run_id(client, 'virus')}/tags", json={})
    for name in ("virus", "live/map", "bad"):
        answer = client.post(f"/api/runs/{made_up.run_id(client, name)}/start", json={})
        assert answer.status_code == 409, name


LIVE = {
    "sources": {"front": "tcp://beam:5555", "back": "/data/a=b.h5"},
    "options": {"most_events": 64, "key": "entry/data", "dense": True},
    "seed": 3, "device": "cpu", "filter": "",
}  # fmt: skip


def test_a_live_run_goes_on_by_the_command_that_its_description_tells(tmp_path: Path) -> None:
    command = live_arguments(tmp_path, LIVE, "campaign.db")
    assert command[:2] == ["orienteer", "live"]
    assert {f"--out={tmp_path}", "--seed=3", "--device=cpu", "--campaign=campaign.db"} <= set(command)
    given = [text.partition("=") for text in command[2:]]
    sources = [value for name, _, value in given if name == "--source"]
    options = [value for name, _, value in given if name == "--option"]
    assert (_sources(sources), _options(options)) == (LIVE["sources"], LIVE["options"])


def test_a_live_run_keeps_its_sample_and_no_password_stands_in_its_command(tmp_path: Path) -> None:
    """All users of a machine can read the commands of its processes."""
    address = "postgresql://beam:p%40ss@server:5433/shift"
    command = live_arguments(tmp_path, {**LIVE, "sample": "virus 1"}, address)
    assert {"--sample=virus 1", "--campaign=postgresql://beam@server:5433/shift"} <= set(command)
    assert apart_from_password(address) == ("postgresql://beam@server:5433/shift", "p@ss")
    assert apart_from_password("shift/campaign.db") == ("shift/campaign.db", "")
    assert apart_from_password("postgresql://beam@server/shift") == ("postgresql://beam@server/shift", "")
    no_campaign = live_arguments(tmp_path, {**LIVE, "sample": "virus 1"}, "")
    assert not any(text.startswith("--sample") for text in no_campaign)


@pytest.mark.parametrize(
    "change",
    [
        {"filter": "evil.py:run"},
        {"filter": None},
        {"sources": {}},
        {"sources": None},
        {"sources": {"front": 3}},
        {"sources": {"a b": "tcp://beam:1"}},
        {"options": {"--filter": "evil.py:run"}},
        {"options": {"most": {}}},
        {"seed": "1"},
        {"device": "--x"},
    ],
)
def test_a_live_run_that_would_start_a_program_of_somebody_else_is_not_started(
    tmp_path: Path, change: dict[str, object]
) -> None:
    with pytest.raises(Refused):
        live_arguments(tmp_path, {**LIVE, **change}, "")


@pytest.mark.parametrize("name", ["lock", "dashboard.log"])
def test_a_pipe_beside_a_run_makes_nobody_wait_who_starts_it(
    tmp_path: Path, made_up: SimpleNamespace, name: str
) -> None:
    run = made_up.write_run(tmp_path / "run", is_finished=False)
    with made_up.serving(tmp_path) as (_, client):
        run_id = made_up.run_id(client)
        os.mkfifo(run / name)
        assert client.post(f"/api/runs/{run_id}/start", json={}).status_code in (409, 422)
        assert client.post(f"/api/runs/{run_id}/stop", json={}).status_code in (409, 422)


def test_a_run_that_was_stopped_goes_on_to_its_end(
    tmp_path: Path, made_up: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started from the page it goes on in a process of its own, from nothing but its folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numpy.py").write_text("raise SystemExit('a program of somebody else')")
    detector = orienteer.square_detector(13, edge_resolution_A=60.0, wavelength_A=2.5, pixel_size_m=5e-4)
    experiment = orienteer.simulate(
        random_blobs(200.0, 12, 4), orienteer.Beam(wavelength_A=2.5), detector,
        orienteer.SimulateSettings(frames=30, photons_per_frame=300, seed=1), device="cpu",
    )  # fmt: skip
    with orienteer.writer_for(tmp_path / "frames.h5", like=experiment) as writer:
        writer.append(experiment.read())
    settings = {"emc": {"iterations": 3, "diameter_A": 200.0, "level": 1}}
    run = Run.create(tmp_path / "run", orienteer.open(tmp_path / "frames.h5"), settings, seed=1, device="cpu")
    steps = run.iterate()
    next(steps)
    steps.close()
    with made_up.serving(tmp_path) as (_, client):
        row = client.get("/api/runs").json()["runs"][0]
        assert row["status"] == "stopped"
        url = f"/api/runs/{row['id']}"
        assert client.post(f"{url}/start", json={}).status_code == 200
        made_up.wait_for(lambda: client.get(url).json()["status"] == "finished", 200.0)
        assert client.get(f"{url}/steps").json()["iteration"] == [1, 2, 3]
        made_up.wait_for(lambda: "Finished." in client.get(f"{url}/log").json()["text"])
    assert np.isfinite(Run.open(tmp_path / "run").orientations()["quaternion"]).all()
