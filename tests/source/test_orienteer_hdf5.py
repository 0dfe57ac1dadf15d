"""Orienteer's own files: exact, checked, growing in place, readable meanwhile."""

from pathlib import Path

import h5py
import numpy as np
import pytest

import orienteer
from orienteer.errors import FileError, OrienteerError
from orienteer.source.opening import writer_for
from orienteer.source.orienteer_hdf5 import OrienteerHdf5Source
from orienteer.source.patterns import Patterns, concatenate


def example(n_frames: int = 30, seed: int = 0, is_sparse: bool = True) -> Patterns:
    random = np.random.default_rng(seed)
    frames = Patterns(random.poisson(0.2, (n_frames, 20)).astype(np.int32))
    columns = {
        "fluence_per_um2": random.normal(size=n_frames),
        "truth_spectrum_eV": random.normal(size=(n_frames, 2, 3)).astype(np.float32),
        "is_hit": random.random(n_frames) < 0.5,
        "phase": np.exp(1j * random.normal(size=n_frames)),
        "sample": np.array([f"virus µ{i % 3}" for i in range(n_frames)]),
        "tag": np.array([b"a", b"bc"] * (n_frames // 2)),
    }
    return Patterns(
        frames.sparse() if is_sparse else frames.frames, random.integers(0, 2**63, n_frames), columns
    )


def same(a: Patterns, b: Patterns) -> bool:
    arrays = [
        (a.dense(), b.dense()),
        (a.event_id, b.event_id),
        *((a.columns[n], b.columns[n]) for n in b.columns),
    ]
    return set(a.columns) == set(b.columns) and all(
        x.dtype == y.dtype and np.array_equal(x, y) for x, y in arrays
    )


@pytest.mark.parametrize("is_sparse", [True, False])
def test_columns_of_every_kind_come_back_bit_for_bit(tmp_path: Path, is_sparse: bool) -> None:
    patterns = example(is_sparse=is_sparse)
    with writer_for(tmp_path / "a.h5", frame_shape=(4, 5)) as writer:
        writer.append(patterns)
    with orienteer.open(tmp_path / "a.h5") as source:
        assert source.is_sparse == is_sparse
        assert source.frame_shape == (4, 5)
        assert same(source.read(), patterns)


def test_dense_counts_can_be_stored_sparse_and_back(tmp_path: Path) -> None:
    patterns = example(is_sparse=False)
    with writer_for(tmp_path / "a.h5", storage="sparse") as writer:
        writer.append(patterns)
    assert orienteer.open(tmp_path / "a.h5").is_sparse
    with writer_for(tmp_path / "b.h5", storage="dense") as writer:
        writer.append(orienteer.open(tmp_path / "a.h5").read())
    source = orienteer.open(tmp_path / "b.h5")
    assert not source.is_sparse
    assert same(source.read(), patterns)


def test_every_dataset_has_a_checksum_and_no_text_of_variable_length(tmp_path: Path) -> None:
    from orienteer.detector.square import square_detector

    detector = square_detector((4, 5), pixel_size_m=1e-3, distance_m=0.1)
    with writer_for(tmp_path / "a.h5", detector=detector, metadata={"seed": 4}) as writer:
        writer.append(example())
    unchecked, varying = [], []

    def look(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            if not item.fletcher32:
                unchecked.append(name)
            if item.dtype.kind == "O":
                varying.append(name)
        varying.extend(f"{name}@{key}" for key in item.attrs if item.attrs.get_id(key).dtype.kind == "O")

    with h5py.File(tmp_path / "a.h5") as file:
        look("/", file)
        file.visititems(look)
    assert unchecked == []
    assert varying == []


def test_frames_go_behind_those_of_an_existing_file(tmp_path: Path) -> None:
    first, second = example(seed=1), example(seed=2)
    path = tmp_path / "a.h5"
    for part in (first, second):
        with writer_for(path, append=True) as writer:
            writer.append(part)
    assert same(orienteer.open(path).read(), concatenate([first, second]))
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


def test_a_reader_follows_a_live_file(tmp_path: Path) -> None:
    parts = [example(seed=seed) for seed in range(4)]
    path = tmp_path / "live.h5"
    path.write_bytes(b"an older file")
    with writer_for(path, live=True, commit_every_s=1e9) as writer:
        writer.append(parts[0])
        writer.commit()
        source = OrienteerHdf5Source(path)
        assert source.is_live
        assert len(source) == 30
        for n_parts, part in enumerate(parts[1:], start=2):
            writer.append(part)
            assert source.refresh() == 30 * (n_parts - 1)  # appended, not committed
            writer.commit()
            assert writer.n_committed == 30 * n_parts
            assert source.refresh() == 30 * n_parts
            assert same(source.read(), concatenate(parts[:n_parts]))
    source.refresh()
    assert not source.is_live
    assert same(source.read(), concatenate(parts))


def test_frames_are_committed_by_the_clock(tmp_path: Path) -> None:
    with writer_for(tmp_path / "live.h5", live=True, commit_every_s=0.0) as writer:
        writer.append(example())
        assert writer.n_committed == 30


def test_an_error_while_appending_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with writer_for(path) as writer:
        writer.append(example(seed=1))
    with pytest.raises(ZeroDivisionError), writer_for(path, append=True, commit_every_s=1e9) as writer:
        writer.append(example(seed=2))
        raise ZeroDivisionError
    assert same(orienteer.open(path).read(), example(seed=1))
    with writer_for(path, append=True) as writer:
        writer.append(example(seed=3))
    assert same(orienteer.open(path).read(), concatenate([example(seed=1), example(seed=3)]))


def test_two_writers_cannot_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with writer_for(path, live=True) as writer:
        writer.append(example())
        with pytest.raises(FileError, match="being written"), writer_for(path, append=True):
            pass
        writer.append(example(seed=1))
    assert len(orienteer.open(path)) == 60


def test_a_source_open_in_this_program_must_be_closed_before_appending(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with writer_for(path) as writer:
        writer.append(example())
    source = orienteer.open(path)
    with pytest.raises(FileError, match="is being read in this program"), writer_for(path, append=True):
        pass
    source.close()
    with writer_for(path, append=True) as writer:
        writer.append(example(seed=1))


def test_ids_that_the_file_has_already_are_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with writer_for(path) as writer:
        writer.append(example(seed=1))
    again = example(seed=2)
    ids = again.event_id.copy()
    ids[7] = example(seed=1).event_id[3]
    with (
        pytest.raises(FileError, match=f"a.h5: already has a frame with event id {ids[7]}"),
        writer_for(path, append=True) as writer,
    ):
        writer.append(again.with_event_ids(ids))
    assert same(orienteer.open(path).read(), example(seed=1))


@pytest.mark.parametrize("where", ["in one batch", "held back", "behind a commit"])
def test_ids_that_stand_twice_in_new_frames_are_refused(tmp_path: Path, where: str) -> None:
    with (
        pytest.raises(FileError, match="already has a frame with event id 4"),
        writer_for(tmp_path / "a.h5", live=where == "behind a commit", commit_every_s=0.0) as writer,
    ):
        counts = np.ones((3, 20), np.int32)
        if where == "in one batch":
            writer.append(Patterns(counts, np.array([4, 9, 4])))
        else:
            writer.append(Patterns(counts, np.array([4, 9, 6])))
            writer.append(Patterns(counts, np.array([1, 2, 4])))


def test_frames_without_names_are_numbered_on(tmp_path: Path) -> None:
    path, counts = tmp_path / "a.h5", np.ones((3, 20), np.int32)
    for first in (0, 6):
        with writer_for(path, append=True) as writer:
            writer.append(Patterns(counts))
            writer.append(Patterns(counts))
        assert orienteer.open(path).event_ids().tolist() == list(range(first + 6))
    with writer_for(path, append=True) as writer:
        writer.append(Patterns(counts, np.array([100, 50, 70])))
        writer.append(Patterns(counts))
    assert orienteer.open(path).event_ids(slice(12, None)).tolist() == [100, 50, 70, 101, 102, 103]
    with (
        pytest.raises(OrienteerError, match="cannot be numbered after"),
        writer_for(tmp_path / "b.h5") as writer,
    ):
        writer.append(Patterns(counts[:1], np.array([2**64 - 1], np.uint64)))
        writer.append(Patterns(counts))


def test_a_source_with_another_detector_may_be_refreshed_beside_the_first(tmp_path: Path) -> None:
    from orienteer.detector.square import square_detector

    path, detector = tmp_path / "a.h5", square_detector((4, 5), pixel_size_m=1e-3, distance_m=0.1)
    with writer_for(path, frame_shape=(4, 5), live=True, commit_every_s=0.0) as writer:
        writer.append(example(seed=1))
        first = orienteer.open(path)
        second = orienteer.open(first, geometry=detector)
        writer.append(example(seed=2))
        assert second.refresh() == 60
        assert second.detector is detector
        assert len(first.read()) == 30
        assert first.refresh() == 60
        assert first.detector is None
        first.close()
        second.close()


def test_other_files_and_other_frames_cannot_be_appended_to(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 20)))
    with (
        pytest.raises(FileError, match="NumPy array"),
        writer_for(tmp_path / "a.npy", "Orienteer", append=True),
    ):
        pass
    with writer_for(tmp_path / "a.h5") as writer:
        writer.append(example())
    with (
        pytest.raises(FileError, match=r"\(20,\)"),
        writer_for(tmp_path / "a.h5", append=True, frame_shape=(3, 3)),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p.with_columns(extra=np.zeros(30)), "extra"),
        (lambda p: Patterns(p.frames, p.event_id, {}), "fluence_per_um2"),
        (lambda p: p.with_columns(fluence_per_um2=np.zeros(30, complex)), "fluence_per_um2"),
        (lambda p: p.with_columns(fluence_per_um2=np.zeros((30, 2))), "fluence_per_um2"),
        (lambda p: p.with_columns(sample=np.array(["much longer than before" * 4] * 30)), "sample"),
        (lambda p: Patterns(p.dense().astype(np.float64), p.event_id, p.columns), "signal"),
    ],
)
def test_a_batch_unlike_the_first_is_refused(tmp_path: Path, change, words: str) -> None:
    with pytest.raises(OrienteerError, match=words), writer_for(tmp_path / "a.h5") as writer:
        writer.append(example())
        writer.append(change(example(seed=1)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("columns", [{"a/b": np.zeros(30)}, {"": np.zeros(30)}, {"o": np.array([None] * 30)}])
def test_a_column_that_cannot_be_stored_is_refused(tmp_path: Path, columns: dict) -> None:
    with pytest.raises(OrienteerError), writer_for(tmp_path / "a.h5") as writer:
        writer.append(Patterns(example().frames, columns=columns))


def test_metadata_must_be_text_and_numbers(tmp_path: Path) -> None:
    with (
        pytest.raises(OrienteerError, match="metadata"),
        writer_for(tmp_path / "a.h5", metadata={"x": object()}) as writer,
    ):
        writer.append(example())


def test_a_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    with writer_for(tmp_path / "a.h5") as writer:
        writer.append(example())
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file.attrs["format_version"] = 2
    with pytest.raises(FileError, match="version 2"):
        orienteer.open(tmp_path / "a.h5")


def test_a_closed_source_says_so(tmp_path: Path) -> None:
    with writer_for(tmp_path / "a.h5") as writer:
        writer.append(example())
    with orienteer.open(tmp_path / "a.h5") as source:
        pass
    with pytest.raises(FileError, match="closed"):
        source.read()


def test_memory_does_not_grow_with_the_number_of_frames(tmp_path: Path) -> None:
    import resource

    batch = Patterns(example(2000).frames, columns=example(2000).columns)
    peaks_kib = []
    for n_batches in (10, 100):
        with writer_for(tmp_path / "a.h5") as writer:
            for _ in range(n_batches):
                writer.append(batch)
        source = orienteer.open(tmp_path / "a.h5")
        assert sum(len(part) for part in source.batches(4000)) == 2000 * n_batches
        source.close()
        peaks_kib.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peaks_kib[1] - peaks_kib[0] < 40 * 1024


def test_a_file_that_is_refused_is_not_left_open(tmp_path: Path) -> None:
    """HDF5 would take the next file for it that is written to the same place, whoever keeps the error."""
    source = orienteer.open(np.ones((4, 3, 5), np.uint8))
    with writer_for(tmp_path / "frames.h5", like=source) as writer:
        for patterns in source.batches():
            writer.append(patterns)
    with h5py.File(tmp_path / "frames.h5", "r+") as file:
        file["committed"][0] = -1
    with pytest.raises(FileError, match="declares -1 frames") as refused:
        OrienteerHdf5Source(tmp_path / "frames.h5")
    names = [h5py.File(each).filename for each in h5py.h5f.get_obj_ids(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE)]
    assert str(tmp_path / "frames.h5") not in names, refused
