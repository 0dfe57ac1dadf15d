"""The journal: segments that are whole or not there, rows that keep their numbers, hits to be followed."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import orienteer
from orienteer.errors import FileError, OrienteerError
from orienteer.live.joining import join_segments
from orienteer.live.journal import Journal, JournalSource, Segment, read_shots
from orienteer.source import journal as journal_module
from orienteer.source.journal_files import list_ranges
from orienteer.source.sparse_photons import photons_from_dense

SHAPE = (4, 5)


def make_segment(number: int, n_shots: int = 7, **columns: np.ndarray) -> Segment:
    """Shots numbered on from ``7 number``; every third one is a hit whose photons are its own number."""
    event_id = np.arange(n_shots, dtype=np.uint64) + np.uint64(7 * number)
    rows = np.flatnonzero(event_id % np.uint64(3) == 0)
    frames = np.zeros((len(rows), 20), dtype=np.int32)
    frames[np.arange(len(rows)), event_id[rows].astype(int) % 20] = 1 + event_id[rows].astype(int)
    shots = {"event_id": event_id, "energy_J": event_id * 0.5, **columns}
    return Segment(
        SHAPE,
        shots,
        rows,
        photons_from_dense(frames),
        {"counters": {"received": int(event_id[-1]) + 1}, "position": {"row": int(event_id[-1]) + 1}},
        {"finder": {"background": np.full(20, float(number)), "n": np.array(number)}},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    described = {"format": "orienteer-live", "version": 1, "source": "made up", "frame_shape": SHAPE}
    (tmp_path / "live.json").write_text(json.dumps(described))
    return tmp_path


def fill(folder: Path, n_segments: int) -> Journal:
    journal = Journal(folder)
    for number in range(journal.n_segments, journal.n_segments + n_segments):
        journal.commit(make_segment(number))
    return journal


def expected_hits(n_segments: int) -> np.ndarray:
    return np.arange(0, 7 * n_segments, 3, dtype=np.uint64)


def check(folder: Path, n_segments: int) -> None:
    """All shots and hits are there once, in order and with what belongs to them."""
    shots = read_shots(folder)
    np.testing.assert_array_equal(shots["event_id"], np.arange(7 * n_segments))
    np.testing.assert_array_equal(shots["energy_J"], 0.5 * np.arange(7 * n_segments))
    hits = JournalSource(folder).read()
    np.testing.assert_array_equal(hits.event_id, expected_hits(n_segments))
    np.testing.assert_array_equal(hits.columns["energy_J"], expected_hits(n_segments) * 0.5)
    np.testing.assert_array_equal(hits.photons, expected_hits(n_segments) + 1)
    np.testing.assert_array_equal(hits.sparse().pixel, expected_hits(n_segments) % 20)


def test_shots_and_hits_come_back_in_order(folder: Path) -> None:
    fill(folder, 5)
    check(folder, 5)


def test_a_live_run_opens_like_a_file_of_patterns(folder: Path) -> None:
    fill(folder, 3)
    source = orienteer.open(folder)
    assert source.format == "live"
    assert source.frame_shape == SHAPE
    np.testing.assert_array_equal(source.event_ids([2, 0]), expected_hits(3)[[2, 0]])
    np.testing.assert_array_equal(source.read([4, 1]).photons, expected_hits(3)[[4, 1]] + 1)


def test_new_hits_are_found_when_looked_for(folder: Path) -> None:
    journal = fill(folder, 2)
    source = JournalSource(folder)
    journal.commit(make_segment(2))
    assert len(source) == len(expected_hits(2))
    assert source.refresh() == len(expected_hits(3))
    np.testing.assert_array_equal(source.event_ids(), expected_hits(3))


def test_chosen_hits_are_read_in_few_strokes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A map takes most of the hits: files are not opened anew for every one that is left out."""
    fill(folder, 12)
    join_segments(folder, together=12, keep=0)
    source, opened = JournalSource(folder), []
    open_segment = journal_module.open_segment
    monkeypatch.setattr(
        journal_module, "open_segment", lambda path: opened.append(path) or open_segment(path)
    )
    chosen = np.array([20, 3, 5, 3, 9, 0, 27])
    hits = source.read(chosen)
    assert len(opened) == 3  # event ids, columns and photons
    np.testing.assert_array_equal(hits.event_id, expected_hits(12)[chosen])
    np.testing.assert_array_equal(hits.photons, expected_hits(12)[chosen] + 1)
    np.testing.assert_array_equal(hits.columns["energy_J"], 0.5 * expected_hits(12)[chosen])
    np.testing.assert_array_equal(source.event_ids(chosen), expected_hits(12)[chosen])
    assert len(source.read(np.zeros(0, np.int64))) == 0


def test_joined_segments_hold_the_same_rows(folder: Path) -> None:
    fill(folder, 11)
    assert join_segments(folder, together=4, keep=2) == 2
    names = [each.name for each in list_ranges(folder / "journal")]
    assert names[:2] == ["000000000-000000003.h5", "000000004-000000007.h5"]
    assert len(list((folder / "journal").iterdir())) == len(names) == 5
    check(folder, 11)
    fill(folder, 3)
    check(folder, 14)


def test_a_reader_goes_on_when_files_are_joined_under_its_hands(folder: Path) -> None:
    fill(folder, 9)
    source = JournalSource(folder)
    join_segments(folder, together=4, keep=1)
    np.testing.assert_array_equal(source.event_ids(), expected_hits(9))
    np.testing.assert_array_equal(source.read().photons, expected_hits(9) + 1)


def test_a_join_that_was_killed_half_way_counts_nothing_twice(folder: Path) -> None:
    fill(folder, 9)
    small = {path.name: path.read_bytes() for path in (folder / "journal").iterdir()}
    join_segments(folder, together=4, keep=1)
    for name, content in small.items():  # killed before the small ones were removed
        (folder / "journal" / name).write_bytes(content)
    check(folder, 9)
    join_segments(folder, together=4, keep=1)
    assert len(list((folder / "journal").iterdir())) == 3
    check(folder, 9)


def test_a_join_stops_when_it_is_no_longer_wanted(folder: Path) -> None:
    fill(folder, 9)
    assert join_segments(folder, together=4, keep=1, is_wanted=lambda: False) == 0
    assert len(list((folder / "journal").iterdir())) == 9
    check(folder, 9)


def test_columns_that_some_segments_lack_read_as_missing_before_and_after_they_are_joined(
    folder: Path,
) -> None:
    """Segments without a hit have no sizes; a run of few hits is joined all the same."""
    journal = fill(folder, 2)
    journal.commit(make_segment(2, laser=np.ones(7), lit=np.ones(7, dtype=np.int16)))
    journal.commit(make_segment(3, laser=np.ones(7), lit=np.ones(7, dtype=np.int16)))
    for n_files in (4, 1):
        if n_files == 1:
            assert join_segments(folder, together=4, keep=0) == 1
        assert len(list_ranges(folder / "journal")) == n_files
        shots = read_shots(folder, ["laser", "lit", "event_id"])
        np.testing.assert_array_equal(np.isnan(shots["laser"]), np.arange(28) < 14)
        np.testing.assert_array_equal(shots["lit"], np.arange(28) >= 14)
        check(folder, 4)


def test_segments_in_which_a_column_is_of_another_type_are_not_joined(folder: Path) -> None:
    journal = fill(folder, 1)
    journal.commit(make_segment(1, energy_J=np.arange(7, 14, dtype=np.int64)))
    assert join_segments(folder, together=2, keep=0) == 0
    assert len(read_shots(folder)["event_id"]) == 14


def test_a_worker_goes_on_from_the_last_segment(folder: Path) -> None:
    fill(folder, 3)
    restored = Journal(folder).restore(("finder", "analysis"))
    assert restored is not None
    assert restored.number == 2
    assert restored.summary["position"] == {"row": 21}
    np.testing.assert_array_equal(restored.state["finder"]["background"], np.full(20, 2.0))
    assert restored.state["finder"]["n"] == 2
    assert restored.state["analysis"] == {}


def test_an_empty_journal_has_nothing_to_go_on_from(folder: Path) -> None:
    assert Journal(folder).restore(("finder",)) is None
    assert read_shots(folder, ["event_id"])["event_id"].shape == (0,)
    assert len(JournalSource(folder)) == 0


def test_a_damaged_last_segment_is_set_aside_and_written_again(folder: Path) -> None:
    fill(folder, 3)
    path = folder / "journal" / "000000002.h5"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    journal = Journal(folder)
    restored = journal.restore(("finder",))
    assert restored is not None
    assert restored.number == 1
    assert [each.name for each in restored.set_aside] == ["damaged-000000002.h5"]
    journal.commit(make_segment(2))
    check(folder, 3)


def test_a_segment_of_a_later_orienteer_is_not_taken_for_damaged(folder: Path) -> None:
    fill(folder, 2)
    with h5py.File(folder / "journal" / "000000001.h5", "r+") as file:
        file.attrs["format_version"] = 99
    with pytest.raises(FileError, match="has version 99"):
        Journal(folder).restore(("finder",))
    assert (folder / "journal" / "000000001.h5").exists()


def test_what_a_killed_worker_left_half_written_is_no_segment(folder: Path) -> None:
    fill(folder, 2)
    (folder / "journal" / ".000000002.h5.123.part").write_bytes(b"half")
    check(folder, 2)
    fill(folder, 1)
    assert not list((folder / "journal").glob(".*.part"))
    check(folder, 3)


def test_a_missing_segment_is_told(folder: Path) -> None:
    fill(folder, 4)
    (folder / "journal" / "000000001.h5").unlink()
    with pytest.raises(FileError, match="lacks segment 1"):
        JournalSource(folder)


def test_an_unknown_column_is_told(folder: Path) -> None:
    fill(folder, 1)
    with pytest.raises(OrienteerError, match="no column 'size_A'"):
        read_shots(folder, ["size_A"])


def test_shots_can_be_read_from_any_row_on(folder: Path) -> None:
    fill(folder, 3)
    np.testing.assert_array_equal(read_shots(folder, ["event_id"], first=12)["event_id"], np.arange(12, 21))
    assert len(read_shots(folder, ["event_id"], first=99)["event_id"]) == 0


def test_a_run_that_has_received_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "live.json").write_text(json.dumps({"format": "orienteer-live", "version": 1}))
    with pytest.raises(FileError, match="not received anything yet"):
        JournalSource(tmp_path)
