"""A damaged file in the middle of a journal: told in one sentence, counted, and gone on without."""

import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import orienteer
from orienteer.errors import FileError
from orienteer.live.folder import LiveFolder
from orienteer.live.joining import join_segments
from orienteer.live.journal import Journal, JournalReader, JournalSource, Segment, read_shots
from orienteer.live.roles import note_damage
from orienteer.source.journal import LOST
from orienteer.source.sparse_photons import photons_from_dense

SHAPE, N = (2, 3), 5


def make_segment(number: int) -> Segment:
    """Five shots, the first and the last of them hits."""
    event_id = np.arange(N, dtype=np.uint64) + np.uint64(N * number)
    frames = np.full((2, 6), number + 1, dtype=np.int32)
    shots = {"event_id": event_id, "energy_J": event_id * 0.5, "fate": np.zeros(N, np.uint8)}
    sums = {"shots": N * (number + 1), "hits": 2 * (number + 1)}
    return Segment(SHAPE, shots, np.array([0, N - 1]), photons_from_dense(frames), sums)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    described = {"format": "orienteer-live", "version": 1, "source": "made up", "frame_shape": SHAPE}
    (tmp_path / "live.json").write_text(json.dumps(described))
    journal = Journal(tmp_path)
    for number in range(12):
        journal.commit(make_segment(number))
    return tmp_path


def spoil(folder: Path, name: str) -> None:
    path = folder / "journal" / name
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize("spoilt", [(4,), (0,), (4, 5), (2, 9)])
def test_the_shots_of_damaged_files_keep_their_rows_and_their_hits_are_left_out(
    folder: Path, spoilt: tuple[int, ...]
) -> None:
    for number in spoilt:
        spoil(folder, f"{number:09d}.h5")
    is_lost = np.isin(np.arange(12 * N) // N, spoilt)
    shots = read_shots(folder)
    np.testing.assert_array_equal(shots["fate"] == LOST, is_lost)
    np.testing.assert_array_equal(shots["event_id"], np.where(is_lost, 0, np.arange(12 * N)))
    np.testing.assert_array_equal(np.isnan(shots["energy_J"]), is_lost)
    with pytest.warns(UserWarning, match=r"is damaged: \d+ shots, \d of them hits, are lost"):
        source = orienteer.open(folder)
    whole = [number for number in range(12) if number not in spoilt]
    hits = [N * number + row for number in whole for row in (0, N - 1)]
    np.testing.assert_array_equal(source.event_ids(), hits)
    np.testing.assert_array_equal(source.read().photons, np.repeat(6 * (np.array(whole) + 1), 2))
    reader = JournalReader(folder)
    reader.refresh()
    assert sum(span.n_shots for span in reader.damaged) == N * len(spoilt)
    assert sum(span.lost_hits or 0 for span in reader.damaged) == 2 * len(spoilt)


def test_damage_in_a_journal_whose_summaries_tell_shots_by_minute_only_is_counted_as_well(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path)
    for number in range(3):
        whole = make_segment(number)
        told = {"hits": 2 * (number + 1), "minutes": {"shots": [N] * (number + 1)}}
        journal.commit(replace(whole, summary=told))
    spoil(tmp_path, "000000001.h5")
    np.testing.assert_array_equal(read_shots(tmp_path)["fate"] == LOST, np.arange(3 * N) // N == 1)


def test_damage_behind_which_no_sums_are_told_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for number in range(3):
        journal.commit(replace(make_segment(number), summary={}))
    spoil(tmp_path, "000000001.h5")
    with pytest.raises(FileError, match=r"00000000[12]\.h5"):
        read_shots(tmp_path)


def test_damage_is_told_once_however_often_hits_are_looked_for(folder: Path, recwarn: Any) -> None:
    spoil(folder, "000000004.h5")
    source = JournalSource(folder)
    source.refresh()
    told = [str(each.message) for each in recwarn]
    assert len(told) == 1
    assert "journal/000000004.h5 is damaged: 5 shots, 2 of them hits, are lost." in told[0]


def test_a_joined_file_that_is_damaged_is_counted_by_the_one_behind_it(folder: Path) -> None:
    assert join_segments(folder, together=4, keep=2) == 2
    spoil(folder, "000000004-000000007.h5")
    shots = read_shots(folder)
    assert len(shots["fate"]) == 12 * N
    np.testing.assert_array_equal(np.flatnonzero(shots["fate"] == LOST), np.arange(4 * N, 8 * N))


def test_photons_that_cannot_be_read_are_an_error_that_says_how_to_go_on_without_them(folder: Path) -> None:
    path = folder / "journal" / "000000004.h5"
    with h5py.File(path) as file:
        chunk = file["hits/pixel"].id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset : chunk.byte_offset + chunk.size] = b"\xff" * chunk.size
    path.write_bytes(content)
    source = JournalSource(folder)
    assert len(source.read(slice(0, 8))) == 8
    with pytest.raises(FileError, match=r"000000004\.h5") as refused:
        source.read()
    assert "truncate -s 0" in refused.value.hint
    path.write_bytes(b"")
    with pytest.warns(UserWarning, match="5 shots, 2 of them hits, are lost"):
        assert len(orienteer.open(folder).read()) == 22


def test_a_file_that_cannot_be_opened_for_now_is_not_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_no_more(path: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    names = sorted((folder / "journal").iterdir())
    monkeypatch.setattr("orienteer.compute.hdf5_reading.open_hdf5_for_reading", open_no_more)
    with pytest.raises(FileError, match="Too many open files"):
        Journal(folder).restore(())
    with pytest.raises(FileError, match="Too many open files"):
        read_shots(folder)
    assert sorted((folder / "journal").iterdir()) == names


def test_beside_a_damaged_file_nothing_is_joined_and_elsewhere_everything(folder: Path) -> None:
    spoil(folder, "000000001.h5")
    assert join_segments(folder, together=4, keep=2) == 1
    names = sorted(path.name for path in (folder / "journal").iterdir())
    assert names[:5] == [f"{number:09d}.h5" for number in range(4)] + ["000000004-000000007.h5"]


def test_a_damaged_last_file_is_an_error_until_the_worker_has_set_it_aside(folder: Path) -> None:
    spoil(folder, "000000011.h5")
    with pytest.raises(FileError, match=r"000000011\.h5") as refused:
        read_shots(folder)
    assert "sets the file aside" in refused.value.hint
    restored = Journal(folder).restore(())
    assert restored is not None
    assert len(read_shots(folder)["fate"]) == 11 * N


def test_a_reader_sees_what_has_come_in_the_place_of_a_last_file_that_was_set_aside(folder: Path) -> None:
    reader = JournalReader(folder)
    reader.refresh()
    spoil(folder, "000000011.h5")
    journal = Journal(folder)
    journal.restore(())
    short = make_segment(11)
    journal.commit(
        replace(short, shots={name: column[:3] for name, column in short.shots.items()},
                hit_rows=np.array([0, 2]))
    )  # fmt: skip
    journal.commit(make_segment(12))
    reader.refresh()
    assert reader.n_shots == 11 * N + 3 + N
    assert reader.shots(["event_id"], slice(11 * N, reader.n_shots))["event_id"].tolist() == [
        *range(55, 58), *range(60, 65)
    ]  # fmt: skip


def test_a_live_run_that_goes_on_says_and_counts_what_is_lost(folder: Path) -> None:
    for number in (3, 8):
        spoil(folder, f"{number:09d}.h5")
    live = LiveFolder(folder)
    said = note_damage(live)
    assert said == {"damaged_files": 2, "lost_shots": 10, "lost_hits": 4}
    told = [json.loads(line) for line in live.log.path.read_text().splitlines()]
    assert [each["event"] for each in told] == ["damaged", "damaged"]
    assert "000000003.h5 is damaged: 5 shots" in told[0]["reason"]
