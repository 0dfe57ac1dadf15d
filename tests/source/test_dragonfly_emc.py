"""Dragonfly's binary files, checked against bytes written and read by hand from the description."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.errors import FileError, OrienteerError
from orienteer.source import dragonfly_emc
from orienteer.source.dragonfly_emc import EmcSource, Writer
from orienteer.source.patterns import Patterns


def sparse_bytes(frames, shuffle=None, spare=()) -> bytes:
    """Type 0, frame by frame and number by number, as slow as it is plain."""
    ones, multi, place_ones, place_multi, count_multi = [], [], [], [], []
    for frame in frames:
        single = [p for p, n in enumerate(frame) if n == 1]
        several = [p for p, n in enumerate(frame) if n > 1]
        if shuffle is not None:
            shuffle.shuffle(single)
            shuffle.shuffle(several)
        ones.append(len(single))
        multi.append(len(several))
        place_ones += single
        place_multi += several
        count_multi += [int(frame[p]) for p in several]
    header = [len(frames), len(frames[0]), 0, *spare]
    words = header + [0] * (256 - len(header)) + ones + multi + place_ones + place_multi + count_multi
    return struct.pack(f"<{len(words)}i", *words)


def dense_bytes(frames, frame_type) -> bytes:
    code = {1: "i", 2: "d"}[frame_type]
    header = struct.pack("<256i", len(frames), len(frames[0]), frame_type, *[0] * 253)
    return header + struct.pack(f"<{np.size(frames)}{code}", *np.ravel(frames).tolist())


@pytest.fixture
def counts() -> np.ndarray:
    return np.random.default_rng(1).poisson(0.7, size=(7, 12))


def test_photon_lists_are_read_frame_by_frame(tmp_path, counts) -> None:
    (tmp_path / "a.emc").write_bytes(sparse_bytes(counts))
    source = EmcSource(tmp_path / "a.emc")
    assert (len(source), source.n_pixels, source.is_sparse) == (7, 12, True)
    assert np.array_equal(source.read().dense(), counts)
    assert np.array_equal(source.read(slice(2, 5)).dense(), counts[2:5])
    assert source.read(slice(2, 5)).event_id.tolist() == [2, 3, 4]
    assert np.array_equal(source.read([6, 0, 3]).dense(), counts[[6, 0, 3]])


def test_unsorted_lists_and_used_spare_words_are_accepted(tmp_path, counts) -> None:
    content = sparse_bytes(counts, np.random.default_rng(2), spare=[123, -7, 55])
    (tmp_path / "a.emc").write_bytes(content)
    assert np.array_equal(EmcSource(tmp_path / "a.emc").read().dense(), counts)


@pytest.mark.parametrize(("frame_type", "dtype"), [(1, np.int32), (2, np.float64)])
def test_dense_frames_are_read(tmp_path, counts, frame_type, dtype) -> None:
    frames = counts if frame_type == 1 else counts - 0.25
    (tmp_path / "a.emc").write_bytes(dense_bytes(frames, frame_type))
    source = EmcSource(tmp_path / "a.emc")
    read = source.read(slice(1, 4)).dense()
    assert read.dtype == dtype
    assert np.array_equal(read, frames[1:4])
    assert sum(len(batch) for batch in source.batches(3)) == 7


@pytest.mark.parametrize(("kind", "frame_type"), [("sparse", 0), ("integer", 1), ("float", 2)])
def test_the_writer_makes_the_described_bytes(tmp_path, counts, kind, frame_type) -> None:
    with Writer(tmp_path / "a.emc", frame_type=kind) as writer:
        writer.append(Patterns(counts[:3]))
        writer.append(Patterns(Patterns(counts[3:]).sparse()))
    expected = sparse_bytes(counts) if frame_type == 0 else dense_bytes(counts, frame_type)
    assert (tmp_path / "a.emc").read_bytes() == expected
    assert [file.name for file in tmp_path.iterdir()] == ["a.emc"]


@pytest.mark.parametrize(
    ("frames", "frame_type"),
    [
        (np.zeros((3, 100), np.int32), 0),
        (np.full((3, 100), 5, np.uint8), 1),
        (np.full((3, 100), 0.5, np.float32), 2),
        (Patterns(np.full((3, 4), 9)).sparse(), 0),
    ],
)
def test_the_frame_type_follows_from_the_data(tmp_path, frames, frame_type) -> None:
    with Writer(tmp_path / "a.emc") as writer:
        writer.append(Patterns(frames))
    source = EmcSource(tmp_path / "a.emc")
    assert source.frame_type == frame_type
    assert np.array_equal(source.read().dense(), Patterns(frames).dense())


@given(
    st.lists(st.lists(st.sampled_from([0, 0, 0, 1, 2, 2**31 - 1]), min_size=5, max_size=5), max_size=8),
    st.integers(1, 4),
)
@settings(max_examples=40, deadline=None)
def test_a_round_trip_is_exact_whatever_the_batches(tmp_path_factory, frames, size) -> None:
    path = tmp_path_factory.mktemp("emc") / "a.emc"
    counts = np.array(frames, dtype=np.int64).reshape(-1, 5)
    with Writer(path, frame_shape=(5,), frame_type="sparse") as writer:
        for first in range(0, len(counts), size):
            writer.append(Patterns(counts[first : first + size]))
    source = EmcSource(path)
    assert np.array_equal(source.read().dense(), counts)
    assert all(np.array_equal(batch.dense(), counts[i : i + 1]) for i, batch in enumerate(source.batches(1)))


def test_signal_and_large_counts_are_not_squeezed_into_int32(tmp_path) -> None:
    with (
        pytest.raises(OrienteerError, match="too large for int32"),
        Writer(tmp_path / "a", frame_type="integer") as writer,
    ):
        writer.append(Patterns(np.full((1, 3), 2**31)))
    with pytest.raises(OrienteerError, match="signal"), Writer(tmp_path / "a", frame_type="sparse") as writer:
        writer.append(Patterns(np.full((1, 3), 0.5)))
    with pytest.raises(OrienteerError, match="not one of"):
        Writer(tmp_path / "a", frame_type="dense")
    assert not list(tmp_path.iterdir())


def test_an_error_leaves_the_old_file_and_no_other(tmp_path, counts) -> None:
    (tmp_path / "a.emc").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), Writer(tmp_path / "a.emc", frame_type="sparse") as writer:
        writer.append(Patterns(counts))
        raise ZeroDivisionError
    assert (tmp_path / "a.emc").read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.emc"]


def test_the_writer_says_what_is_lost() -> None:
    assert {"event ids", "columns", "detector"} <= set(Writer.lost_on_write)


def changed(content: bytes, offset: int, *words: int) -> bytes:
    broken = bytearray(content)
    struct.pack_into(f"<{len(words)}i", broken, offset, *words)
    return bytes(broken)


WHOLE = sparse_bytes([[1, 0, 2], [0, 1, 3]])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (WHOLE[:-1], "bytes"),
        (WHOLE + bytes(4), "bytes"),
        (WHOLE[:1028], "declares"),
        (changed(WHOLE, 0, 2**31 - 1), "declares"),
        (changed(WHOLE, 4, 2**31 - 1), "more than any detector"),
        (changed(WHOLE, 1024, -1), "negative number of lit pixels"),
        (changed(WHOLE, 1040, 3), "lights pixel 3 of 3"),
        (changed(WHOLE, 1040, -1), "lights pixel -1"),
        (changed(WHOLE, 1044, 2), "twice"),
        (changed(WHOLE, 1056, 0), "0 photons"),
        (dense_bytes([[1, 2], [3, -4]], 1), "frame 1 has a negative count"),
        (dense_bytes([[1.0, np.nan]], 2), "not a finite number"),
        (dense_bytes([[1, 2]], 1)[:-1], "bytes"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(tmp_path, content, reason) -> None:
    from orienteer.compute.reading import reading

    path = tmp_path / "broken.emc"
    path.write_bytes(content)
    assert dragonfly_emc.recognise(path, content[:4096], None)
    with pytest.raises(FileError, match=reason) as caught, reading(path):
        EmcSource(path).read()
    assert "broken.emc" in str(caught.value)


def test_other_files_are_not_taken_for_emc(tmp_path) -> None:
    for head in (b"", bytes(1024), b"text " * 300, changed(WHOLE, 8, 3), changed(WHOLE, 0, -1), WHOLE[:1000]):
        assert not dragonfly_emc.recognise(tmp_path / "a", head, None)


def test_opening_a_huge_file_reads_only_its_header(tmp_path) -> None:
    path = tmp_path / "huge.emc"
    n_frames, n_pixels = 25_000, 1_000_000
    with path.open("wb") as file:  # 100 GB, of which the disk holds one page
        file.write(struct.pack("<3i", n_frames, n_pixels, 1))
        file.truncate(1024 + 4 * n_frames * n_pixels)
    source = EmcSource(path)
    assert (len(source), source.n_pixels) == (n_frames, n_pixels)
    assert source.read([n_frames - 1]).photons.tolist() == [0]
