"""Files as they grow, as streams of events."""

import json
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.source.opening import open as open_source
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns
from orienteer.stream.growing import GrowingSource
from orienteer.stream.opening import open_stream


@pytest.mark.parametrize("name", ["frames.h5", "frames.cxi", "frames.emc"])
def test_a_complete_file_is_a_stream_that_ends(made_up, all_of, tmp_path: Path, name: str) -> None:
    sent = made_up(sparse=name.endswith("emc"))
    with writer_for(tmp_path / name, frame_shape=(16,)) as writer:
        writer.append(sent)
    source = open_stream(tmp_path / name, most_events=30)
    got = all_of(source)
    source.close()
    assert np.array_equal(got.dense(), sent.dense())
    assert source.counters.received == 100
    assert source.is_finished


def test_a_file_is_followed_and_ends_with_its_writer(made_up, all_of, tmp_path: Path) -> None:
    sent = made_up()
    path = tmp_path / "growing.h5"
    with writer_for(path, live=True, frame_shape=(16,), commit_every_s=0.0) as writer:
        writer.append(sent[:40])
        source = GrowingSource(path)
        assert len(source.next(60.0)) == 40
        assert source.next(0.05) is None
        assert not source.is_finished
        writer.append(sent[40:70])
        events = source.next(60.0)
        assert np.array_equal(events.event_id, sent.event_id[40:70])
        writer.append(sent[70:])
    assert np.array_equal(all_of(source).frames, sent.frames[70:])
    source.close()


def test_a_writer_that_was_killed_is_not_waited_for_without_end(made_up, tmp_path: Path) -> None:
    sent = made_up()
    path, copy = tmp_path / "growing.h5", tmp_path / "killed.h5"
    with writer_for(path, live=True, frame_shape=(16,), commit_every_s=0.0) as writer:
        writer.append(sent)
        copy.write_bytes(path.read_bytes())  # as it lies there when the writer is killed
    source = GrowingSource(copy, quiet_s=0.3)
    n_got = 0
    while not source.is_finished:
        events = source.next(0.2)
        n_got += 0 if events is None else len(events)
    source.close()
    assert n_got == 100


def test_a_position_is_plain_and_leads_behind_its_batch(made_up, all_of, tmp_path: Path) -> None:
    sent = made_up()
    with writer_for(tmp_path / "frames.h5", frame_shape=(16,)) as writer:
        writer.append(sent)
    source = GrowingSource(tmp_path / "frames.h5", most_events=33)
    position = json.loads(json.dumps(source.next().position))
    again = GrowingSource(tmp_path / "frames.h5")
    again.seek(position)
    assert np.array_equal(all_of(again).event_id, sent.event_id[33:])
    again.seek(position)
    assert np.array_equal(all_of(again).event_id, sent.event_id[33:])
    with pytest.raises(OrienteerError, match="not a position"):
        again.seek({"frame": "first"})


def test_a_position_in_another_file_is_refused_and_so_is_one_behind_the_end(made_up, tmp_path: Path) -> None:
    """Frames of the second file would be left out, without a word, as if they had been received."""
    sent = made_up()
    for name, n in {"first.h5": 100, "moved/first.h5": 100, "second.h5": 100, "shorter/first.h5": 20}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with writer_for(tmp_path / name, frame_shape=(16,)) as writer:
            writer.append(sent[:n])
    position = GrowingSource(tmp_path / "first.h5", most_events=33).next().position
    GrowingSource(tmp_path / "moved" / "first.h5").seek(position)
    with pytest.raises(OrienteerError, match=r"received 'first\.h5', but this is 'second\.h5'"):
        GrowingSource(tmp_path / "second.h5").seek(position)
    with pytest.raises(OrienteerError, match="has 20 frames, but 33 were received from it before"):
        GrowingSource(tmp_path / "shorter" / "first.h5").seek(position)
    GrowingSource(tmp_path / "second.h5").seek({"frame": 33})  # of a run that did not note of what


def test_what_could_not_be_read_comes_the_next_time(made_up, all_of, monkeypatch) -> None:
    source = GrowingSource(open_source(made_up()))

    def fail(**_: object) -> None:
        raise OrienteerError("the file is away.")

    with monkeypatch.context() as away:
        away.setattr(source.source, "read_columns", fail)
        with pytest.raises(OrienteerError, match="away"):
            source.next()
    assert len(all_of(source)) == 100


def test_small_data_come_first_and_frames_only_as_chosen(made_up, tmp_path: Path, monkeypatch) -> None:
    sent = made_up()
    with writer_for(tmp_path / "frames.h5", frame_shape=(16,)) as writer:
        writer.append(sent)
    source = GrowingSource(tmp_path / "frames.h5")
    read: list[int] = []
    monkeypatch.setattr(source.source, "read", lambda rows: read.extend(rows) or sent[rows])
    events = source.next()
    assert np.array_equal(events.columns["pulse_energy_J"], sent.columns["pulse_energy_J"])
    assert not read
    events.patterns(np.array([5, 90]))
    assert read == [5, 90]


def test_events_that_stand_twice_in_a_file_come_once(tmp_path: Path) -> None:
    ids = np.array([1, 2, 3, 2, 4], np.uint64)
    source = GrowingSource(open_source(Patterns(np.arange(10).reshape(5, 2), ids)))
    events = source.next()
    assert events.event_id.tolist() == [1, 2, 3, 4]
    assert events.patterns().frames[:, 0].tolist() == [0, 2, 4, 8]
    assert source.counters.duplicates == 1


def grow(file: h5py.File, places: dict[str, np.ndarray]) -> None:
    for place, values in places.items():
        dataset = file[place]
        dataset.resize(len(dataset) + len(values), axis=0)
        dataset[-len(values) :] = values
        dataset.flush()


FRAMES, IDS, ENERGY = "entry_1/instrument_1/detector_1/data", "entry_1/event_id", "entry_1/pulse_energy"


@pytest.fixture
def swmr(tmp_path: Path):
    """A CXI file that a facility writes in HDF5's mode of a single writer and many readers."""
    with h5py.File(tmp_path / "run.cxi", "w", libver="latest") as file:
        file.create_dataset(FRAMES, (0, 4, 4), np.uint16, maxshape=(None, 4, 4), chunks=(4, 4, 4))
        file.create_dataset(IDS, (0,), np.uint64, maxshape=(None,), chunks=(16,))
        file.create_dataset(ENERGY, (0,), np.float64, maxshape=(None,), chunks=(16,))
        file["cxi_version"] = 160
        file.swmr_mode = True
        yield file


def test_a_cxi_file_is_followed_while_a_facility_writes_it(swmr: h5py.File) -> None:
    rng = np.random.default_rng(0)
    frames = rng.poisson(2.0, (60, 4, 4)).astype(np.uint16)
    energy = rng.random(60)
    source = GrowingSource(swmr.filename, follow=True)
    assert source.next(0.01) is None
    got: list[Patterns] = []
    for first in range(0, 60, 20):
        rows = slice(first, first + 20)
        grow(swmr, {FRAMES: frames[rows], IDS: np.arange(first, first + 20), ENERGY: energy[rows]})
        events = source.next(60.0)
        assert len(events) == 20
        got.append(events.patterns())
    source.close()
    assert np.array_equal(np.concatenate([one.frames for one in got]), frames.reshape(60, 16))
    assert np.array_equal(np.concatenate([one.event_id for one in got]), np.arange(60))
    assert np.array_equal(np.concatenate([one.columns["pulse_energy_J"] for one in got]), energy)


def test_frames_of_a_cxi_file_wait_for_their_columns(swmr: h5py.File) -> None:
    grow(swmr, {FRAMES: np.ones((8, 4, 4), np.uint16), IDS: np.arange(8)})
    source = GrowingSource(swmr.filename, follow=True)
    assert source.next(0.3) is None
    grow(swmr, {ENERGY: np.arange(3.0)})
    events = source.next(60.0)
    assert events.event_id.tolist() == [0, 1, 2]
    assert events.columns["pulse_energy_J"].tolist() == [0.0, 1.0, 2.0]
    source.close()


def test_a_cxi_file_is_read_soundly_while_another_process_writes_it(tmp_path: Path) -> None:
    path, n_frames = tmp_path / "run.cxi", 1000
    script = Path(__file__).with_name("swmr_writer_script.py")
    writer = subprocess.Popen([sys.executable, str(script), str(path), str(n_frames)])
    until = time.monotonic() + 120
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.005)
    source = GrowingSource(path, follow=True)
    ids: list[int] = []
    while len(ids) < n_frames and time.monotonic() < until:
        if (events := source.next(1.0)) is not None:
            patterns = events.patterns()
            assert (patterns.frames == patterns.event_id[:, None]).all()
            assert np.array_equal(patterns.columns["pulse_energy_J"], 0.5 * patterns.event_id)
            ids += patterns.event_id.tolist()
    writer.wait(60)
    source.close()
    assert ids == list(range(n_frames))
