"""A folder of runs: files appear, grow, cannot be read yet, and every event comes once."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns
from orienteer.stream.base import NoAnswer
from orienteer.stream.events import Events
from orienteer.stream.folder import FolderSource
from orienteer.stream.growing import GrowingSource
from orienteer.stream.opening import open_stream


def write(path: Path, patterns: Patterns, **options: object) -> None:
    path.parent.mkdir(exist_ok=True)
    with writer_for(path, frame_shape=(patterns.n_pixels,), **options) as writer:
        writer.append(patterns)


def named(first: int, n: int = 10) -> Patterns:
    ids = np.arange(first, first + n, dtype=np.uint64)
    return Patterns(np.repeat(ids[:, None], 6, axis=1).astype(np.uint16), ids)


def test_all_runs_of_a_folder_come_in_the_order_of_their_names(tmp_path: Path, all_of) -> None:
    write(tmp_path / "r0002" / "a.h5", named(20))
    write(tmp_path / "r0001" / "a.cxi", named(0))
    write(tmp_path / "r0001" / "b.h5", named(10))
    source = open_stream(tmp_path, follow=False, most_events=4)
    got = all_of(source)
    assert got.event_id.tolist() == list(range(30))
    assert np.array_equal(got.frames[:, 0], got.event_id)
    assert source.counters.received == 30


def test_files_that_appear_and_grow_are_taken_in(tmp_path: Path) -> None:
    write(tmp_path / "b.h5", named(0))
    source = FolderSource(tmp_path)
    assert len(source.next(60.0)) == 10
    assert source.next(0.01) is None
    with writer_for(tmp_path / "a.h5", live=True, frame_shape=(6,), commit_every_s=0.0) as writer:
        writer.append(named(100, 5))
        first = source.next(60.0)
        writer.append(named(105, 5))
        second = source.next(60.0)
    assert first.event_id.tolist() == list(range(100, 105))
    assert second.event_id.tolist() == list(range(105, 110))
    assert not source.is_finished


def test_a_restart_goes_on_in_every_file(tmp_path: Path) -> None:
    for k in range(3):
        write(tmp_path / f"{k}.h5", named(10 * k))
    source = FolderSource(tmp_path, most_events=4)
    got = [source.next(60.0) for _ in range(5)]
    position = json.loads(json.dumps(got[-1].position))
    write(tmp_path / "00.h5", named(100))  # sorts before what was read already
    again = FolderSource(tmp_path, follow=False)
    again.seek(position)
    ids = np.concatenate([events.event_id for events in got]).tolist()
    while not again.is_finished:
        if (events := again.next(60.0)) is not None:
            ids += events.event_id.tolist()
    assert sorted(ids) == [*range(30), *range(100, 110)]


def test_frames_without_ids_are_named_after_their_file(tmp_path: Path, all_of) -> None:
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, np.ones((4, 3, 2), np.uint16))
    one = all_of(FolderSource(tmp_path, follow=False))
    other = all_of(FolderSource(tmp_path, follow=False))
    assert len(np.unique(one.event_id)) == 8
    assert np.array_equal(one.event_id, other.event_id)


def test_a_seek_in_the_same_process_gives_again_what_lies_behind(tmp_path: Path, all_of) -> None:
    write(tmp_path / "a.h5", named(0))
    source = FolderSource(tmp_path, follow=False, most_events=4)
    position = source.next(60.0).position
    assert len(all_of(source)) == 6
    source.seek(position)
    assert all_of(source).event_id.tolist() == list(range(4, 10))


def test_a_file_that_always_grows_lets_others_have_their_turn(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("orienteer.stream.growing._LOOK_EVERY_S", 0.0)  # a batch takes longer than that
    write(tmp_path / "b.h5", named(1000))
    with writer_for(tmp_path / "a.h5", live=True, frame_shape=(6,), commit_every_s=0.0) as writer:
        writer.append(named(0, 5))
        source = FolderSource(tmp_path)
        first: list[int] = []
        for k in range(1, 5):
            writer.append(named(5 * k, 5))  # while the batch before is worked on
            first.append(int(source.next(60.0).event_id[0]))
    assert 1000 in first


def test_frames_that_could_not_be_read_come_when_they_can(tmp_path: Path, monkeypatch) -> None:
    write(tmp_path / "a.h5", named(0))
    write(tmp_path / "b.h5", named(10))
    source = FolderSource(tmp_path)
    read, n_failures = GrowingSource._take, 0

    def fail_at_first(self: GrowingSource, last: int) -> Events:
        nonlocal n_failures
        if "a.h5" in self.name and n_failures < 2:
            n_failures += 1
            raise FileError(self.name, "is away.")
        return read(self, last)

    monkeypatch.setattr(GrowingSource, "_take", fail_at_first)
    ids: list[int] = []
    until = time.monotonic() + 60
    while len(ids) < 20 and time.monotonic() < until:
        if (events := source.next(1.0)) is not None:
            ids += events.event_id.tolist()
    assert sorted(ids) == list(range(20))
    assert n_failures == 2
    assert not source.skipped


def test_a_file_that_became_shorter_is_left_out_and_named(tmp_path: Path) -> None:
    write(tmp_path / "a.h5", named(0))
    source = FolderSource(tmp_path)
    assert len(source.next(60.0)) == 10
    write(tmp_path / "a.h5", named(100, 3))
    until = time.monotonic() + 60
    while not source.skipped and time.monotonic() < until:
        assert source.next(0.1) is None
    assert "10 were taken" in source.skipped["a.h5"]


def test_an_event_in_two_files_comes_once(tmp_path: Path, all_of) -> None:
    write(tmp_path / "a.h5", named(0))
    write(tmp_path / "b.h5", named(5))
    source = FolderSource(tmp_path, follow=False)
    assert all_of(source).event_id.tolist() == list(range(15))
    assert source.counters.duplicates == 5


def test_a_file_that_cannot_be_read_yet_is_taken_when_it_can(tmp_path: Path) -> None:
    write(tmp_path / "whole.h5", named(0))
    content = (tmp_path / "whole.h5").read_bytes()
    (tmp_path / "part.h5").write_bytes(content[: len(content) // 2])
    write(tmp_path / "wide.h5", Patterns(np.ones((2, 7), np.uint16)))
    (tmp_path / "whole.h5").unlink()
    write(tmp_path / "a.h5", named(50))
    source = FolderSource(tmp_path)
    assert source.next(60.0).event_id.tolist() == list(range(50, 60))
    assert source.next(0.01) is None
    assert set(source.skipped) == {"part.h5", "wide.h5"}
    (tmp_path / "part.h5").write_bytes(content)
    assert source.next(60.0).event_id.tolist() == list(range(10))
    assert set(source.skipped) == {"wide.h5"}


def test_a_folder_without_patterns_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "notes.h5").write_bytes(b"no HDF5")
    with pytest.raises(NoAnswer, match=r"notes\.h5"):
        FolderSource(tmp_path, connect_s=0.1)
    with pytest.raises(FileError, match="not a folder"):
        FolderSource(tmp_path / "nowhere")


def test_a_quiet_folder_ends_when_asked_to(tmp_path: Path, all_of) -> None:
    write(tmp_path / "a.h5", named(0))
    assert len(all_of(FolderSource(tmp_path, quiet_s=0.3))) == 10
