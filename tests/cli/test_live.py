"""``orienteer live`` as people use it: processes of its own, counters at the end, and signals."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import orienteer
from orienteer.cli.live import tell
from orienteer.cli.main import main
from orienteer.detector.hdf5 import write_detector
from orienteer.detector.square import square_detector
from orienteer.live.folder import LiveFolder
from orienteer.live.journal import read_shots
from orienteer.live.supervising import Supervisor
from orienteer.source.frame_tags import tag_frames
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns

N_EVENTS = 600
WAIT_S = 120


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shots of a few photons, one in ten of them with many in the middle."""
    path = tmp_path_factory.mktemp("live") / "frames.h5"
    draw = np.random.default_rng(0)
    counts = draw.poisson(0.2, (N_EVENTS, 8, 8))
    counts[::10, 2:6, 2:6] += draw.poisson(5, (N_EVENTS // 10, 4, 4))
    event_id = np.arange(N_EVENTS, dtype=np.uint64)
    with writer_for(path, frame_shape=(8, 8)) as writer:
        writer.append(
            Patterns(counts.reshape(N_EVENTS, -1), event_id, {"energy_J": 0.001 * np.arange(N_EVENTS)})
        )
    return path


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "orienteer", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def live(*words: object) -> tuple[int, str, str]:
    process = start("live", *words)
    try:
        output, messages = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    return process.returncode, output, messages


@contextmanager
def served(frames: Path, rate: float) -> Iterator[str]:
    """The address at which the frames are replayed."""
    replay = start("replay", frames, "--to", "tcp://127.0.0.1:0", "--rate", rate)
    try:
        assert replay.stderr is not None
        yield replay.stderr.readline().split()[-1]
    finally:
        replay.kill()
        replay.communicate()


def test_a_file_is_received_to_its_end_and_the_counters_add_up(frames: Path, tmp_path: Path) -> None:
    choice = tmp_path / "choice.py"
    choice.write_text("def late(columns):\n    return columns['energy_J'] > 0.0995\n")
    words = (
        "--source",
        frames,
        "--out",
        tmp_path / "run",
        "--filter",
        f"{choice}:late",
        "--no-map",
        "--json",
    )
    for _ in range(2):  # the second time nothing is left to be received
        status, output, messages = live(*words)
        assert status == 0, messages
        counters = json.loads(output)
        assert [counters[name] for name in ("received", "filtered", "dropped", "processed")] == [
            600,
            100,
            0,
            500,
        ]
        assert counters["is_finished"] is True
    np.testing.assert_array_equal(read_shots(tmp_path / "run", ["event_id"])["event_id"], np.arange(N_EVENTS))
    assert 30 <= counters["hits"] <= 60


def test_ctrl_c_keeps_what_was_received_and_the_same_command_goes_on(frames: Path, tmp_path: Path) -> None:
    pytest.importorskip("zmq", reason="needs pyzmq: pip install 'orienteer[live]'")
    with served(frames, rate=50) as address:
        words = ("--source", address, "--out", tmp_path / "run", "--no-map", "--json")
        process = start("live", *words)
        try:
            counters = tmp_path / "run" / "counters.json"
            until = time.monotonic() + WAIT_S
            while not counters.exists() and time.monotonic() < until:
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            output, messages = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()
        assert process.returncode == 130, messages
        assert "The same command continues" in messages
        received = json.loads(output)["received"]
        assert 0 < received == len(read_shots(tmp_path / "run", ["event_id"])["event_id"])
        status, output, messages = live(*words)
    assert status == 0, messages
    assert json.loads(output)["received"] == N_EVENTS
    ids = read_shots(tmp_path / "run", ["event_id"])["event_id"]
    np.testing.assert_array_equal(ids, np.arange(N_EVENTS))


def test_what_the_user_has_to_mend_ends_the_run_in_one_sentence(frames: Path, tmp_path: Path) -> None:
    """Only the worker, which looks at columns, finds out that there is no such one."""
    choice = tmp_path / "choice.py"
    choice.write_text("def late(columns):\n    return columns['nothing'] > 1\n")
    status, output, messages = live(
        "--source", frames, "--out", tmp_path / "run", "--filter", f"{choice}:late", "--no-map"
    )
    assert (status, output) == (1, "")
    assert messages.count("there is no column 'nothing'") == 1


def test_a_live_run_that_fails_says_so_in_the_last_line_of_its_log(
    frames: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Supervisor) -> None:
        raise ValueError("no room")

    monkeypatch.setattr(Supervisor, "look", fail)
    words = ["live", "--source", str(frames), "--out", str(tmp_path / "run"), "--no-map"]
    monkeypatch.setattr("sys.argv", ["orienteer", *words])
    with pytest.raises(SystemExit):
        main()
    last = json.loads((tmp_path / "run" / "events.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["reason"]) == ("failed", "ValueError: no room")


def test_without_a_source_it_says_what_to_give(run: Any, tmp_path: Path) -> None:
    result = run("live", "--out", tmp_path / "run")
    assert result.status == 2
    assert "--source" in result.errors
    assert not (tmp_path / "run").exists()


def test_a_folder_with_other_things_is_left_alone(run: Any, frames: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("important")
    result = run("live", "--source", frames, "--out", tmp_path)
    assert result.status == 1
    assert "holds other things" in result.errors
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_run_can_be_given_its_time(frames: Path, tmp_path: Path) -> None:
    pytest.importorskip("zmq", reason="needs pyzmq: pip install 'orienteer[live]'")
    words = ("--out", tmp_path / "run", "--no-map", "--json", "--seconds", 8)
    with served(frames, rate=20) as address:
        status, output, messages = live("--source", address, *words)
    assert status == 0, messages
    counters = json.loads(output)
    assert counters["is_finished"]
    assert counters["received"] < N_EVENTS


def test_events_of_two_detectors_are_matched_by_their_ids(frames: Path, tmp_path: Path) -> None:
    source = orienteer.open(frames)
    back = tmp_path / "back.h5"
    with writer_for(back, frame_shape=(8, 8)) as writer:  # it misses the first ten events
        writer.append(source.read(slice(10, None)))
    status, output, messages = live(
        "--source", f"front={frames}", "--source", f"back={back}", "--option", "most_events=50",
        "--out", tmp_path / "run", "--no-map", "--json",
    )  # fmt: skip
    assert status == 0, messages
    counters = json.loads(output)
    assert [counters[name] for name in ("received", "dropped", "processed")] == [600, 10, 590]
    described = json.loads((tmp_path / "run" / "live.json").read_text())
    assert described["frame_shape"] == [2, 8, 8]
    assert described["sources"] == {"front": str(frames), "back": str(back)}
    assert described["options"] == {"most_events": 50}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--source", "a=tcp://x:1", "--source", "a=tcp://y:1"), "two sources are called 'a'"),
        (("--source", "tcp://x:1", "--option", "most"), "expected NAME=VALUE"),
        (("--source", "tcp://x:1", "--option", "speed=3"), "there is no option 'speed'"),
        (("--source", "tcp://x:1", "--sample", "virus"), "--sample needs a campaign"),
        (("--source", "nowhere.h5"), "'nowhere.h5' is no stream, file or folder"),
        (("--source", "tcp://x:1", "--filter", "nowhere.py:none"), "nowhere.py:none' cannot be loaded"),
        (("--source", "tcp://x:1", "--geometry", "nowhere.geom"), "nowhere.geom"),
        (("--source", "tcp://x:1", "--campaign", "nowhere/c.db"), "its folder does not exist"),
        (("--source", "tcp://x:1", "--campaign", __file__), "not a database"),
    ],
)
def test_a_wrong_command_line_starts_nothing_and_is_told_once(
    words: tuple[str, ...],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("sqlalchemy", "zmq"):
        pytest.importorskip(name, reason=f"needs {name}: pip install 'orienteer[live,campaign]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["orienteer", "live", *words, "--out", "run", "--no-map"])
    with pytest.raises(SystemExit) as left:
        main()
    messages = capsys.readouterr().err
    assert left.value.code in (1, 2)
    assert messages.count(told) == 1, messages
    assert not (tmp_path / "run").exists()


def test_a_campaign_gets_every_shot_the_sample_and_the_tags(frames: Path, tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="needs SQLAlchemy: pip install 'orienteer[campaign]'")
    pytest.importorskip("alembic", reason="needs alembic: pip install 'orienteer[campaign]'")
    from orienteer.campaign.campaign import Campaign

    database, run = tmp_path / "campaign.db", tmp_path / "run"
    words = ("--source", frames, "--out", run, "--no-map", "--json")
    for _ in range(2):
        status, _, messages = live(*words, "--campaign", database, "--sample", "virus")
        assert status == 0, messages
        tag_frames(run, [3, 5], add=["bright"])  # the second time the feeder finds it
    with Campaign.open(database) as campaign:
        (told,) = campaign.runs()[1]
        assert (told["sample"], told["n_shots"], told["is_open"]) == ("virus", N_EVENTS, False)
        assert campaign.frame_tags(told["name"]) == {"bright": [3, 5]}


def test_another_geometry_is_taken_up_when_a_run_goes_on(frames: Path, tmp_path: Path) -> None:
    geometry, run = tmp_path / "detector.h5", tmp_path / "run"
    words = ("--source", frames, "--out", run, "--no-map", "--json", "--geometry", geometry)
    for distance_m in (0.2, 0.3):
        detector = square_detector(8, 0.001, distance_m)
        with h5py.File(geometry, "w") as file:
            write_detector(file.create_group("detector"), detector)
        status, _, messages = live(*words)
        assert status == 0, messages
        found = orienteer.open(run).detector
        assert found is not None
        assert found.positions_m[0, 2] == pytest.approx(distance_m)
    log = (run / "events.jsonl").read_text()
    assert log.count('"event":"detector"') == 1


def test_a_file_of_nothing_but_hits_is_told_how_to_be_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = LiveFolder(tmp_path)
    for hits, is_told in ((0, True), (3, False)):
        folder.counters.write_text(json.dumps({"received": 9, "processed": 9, "hits": hits}))
        tell(folder, as_json=False)
        assert ("hits.find=false" in capsys.readouterr().err) is is_told
