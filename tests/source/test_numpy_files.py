"""NumPy's own files as frames."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import orienteer
from orienteer.errors import FileError, OrienteerError
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns

FRAMES = np.random.default_rng(0).poisson(1, (12, 3, 4))


@pytest.mark.parametrize("dtype", ["<i2", ">i2", "u1", ">f8", "<f4", "bool", "f2"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed])
def test_arrays_saved_by_numpy_are_read_as_they_are(tmp_path: Path, dtype: str, order: str, save) -> None:
    array = np.asarray(FRAMES.astype(dtype), order=order)
    with (tmp_path / "a").open("wb") as file:
        save(file, array)
    source = orienteer.open(tmp_path / "a")
    assert source.frame_shape == (3, 4)
    np.testing.assert_array_equal(source.read().dense(), array.reshape(12, 12))
    np.testing.assert_array_equal(source.read(slice(5, 8)).dense(), array.reshape(12, 12)[5:8])
    assert source.read().dense().dtype.isnative


def test_columns_and_ids_stand_beside_the_frames(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", frames=FRAMES, event_id=np.arange(12) + 7, fluence=np.arange(12.0))
    read = orienteer.open(tmp_path / "a.npz").read([3])
    assert read.event_id[0] == 10
    assert read.columns["fluence"][0] == 3.0


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_event_ids_below_0_are_refused(tmp_path: Path, save) -> None:
    """They would otherwise become enormous numbers, which nobody finds again."""
    save(tmp_path / "a.npz", frames=FRAMES, event_id=np.arange(12) - 5)
    source = orienteer.open(tmp_path / "a.npz")
    for read in (source.event_ids, source.read):
        with pytest.raises(FileError, match=r"a\.npz: an event id is -5; expected whole numbers from 0"):
            read()


def test_an_archive_we_write_is_read_by_numpy(tmp_path: Path) -> None:
    patterns = Patterns(FRAMES.reshape(12, 12), columns={"fluence": np.arange(12.0)})
    with writer_for(tmp_path / "a.npz", frame_shape=(3, 4)) as writer:
        writer.append(patterns)
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["frames"], FRAMES)
        np.testing.assert_array_equal(archive["fluence"], np.arange(12.0))
    with writer_for(tmp_path / "a.npy", frame_shape=(3, 4)) as writer:
        writer.append(patterns[:5])
        writer.append(patterns[5:])
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), FRAMES)


def save_archive(path: Path, **arrays: np.ndarray) -> None:
    with path.open("wb") as file:
        np.savez(file, **arrays)


@pytest.mark.parametrize(
    "arrays",
    [
        {"frames": FRAMES, "fluence": np.zeros(11)},
        {"frames": FRAMES, "event_id": np.zeros(11, int)},
        {"frames": FRAMES, "fluence": np.float64(1)},
        {"frames": FRAMES[:, 0, 0]},
        {"frames": np.zeros((3, 0))},
        {"frames": FRAMES.astype(complex)},
        {"frames": np.array([["a", "b"]])},
        {"pixel": np.zeros(3, int), "count": np.ones(3, int)},
        {
            "start": np.array([0, 3]),
            "pixel": np.arange(3),
            "count": np.ones(2, int),
            "frame_shape": np.array([4]),
        },
        {
            "start": np.array([0, 4]),
            "pixel": np.arange(3),
            "count": np.ones(3, int),
            "frame_shape": np.array([4]),
        },
        {
            "start": np.array([0, 3, 1]),
            "pixel": np.arange(3),
            "count": np.ones(3, int),
            "frame_shape": np.array([4]),
        },
        {
            "start": np.array([0, 3]),
            "pixel": np.arange(3),
            "count": np.ones(3, int),
            "frame_shape": np.array([2]),
        },
        {
            "start": np.array([0, 3]),
            "pixel": np.arange(3),
            "count": np.zeros(3, int),
            "frame_shape": np.array([4]),
        },
        {
            "start": np.array([0, 3]),
            "pixel": np.arange(3),
            "count": np.ones(3, int),
            "frame_shape": np.array([-4]),
        },
        {
            "start": np.array([0, 3]),
            "pixel": np.arange(3),
            "count": np.ones(3, int),
            "frame_shape": np.array(4),
        },
    ],
)
def test_archives_that_do_not_fit_together_are_refused(tmp_path: Path, arrays: dict) -> None:
    save_archive(tmp_path / "a.npz", **arrays)
    with pytest.raises(FileError, match=r"a\.npz"):
        orienteer.open(tmp_path / "a.npz").read()


def test_python_objects_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[print, len]], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="object"):
        orienteer.open(tmp_path / "a.npy")


def test_a_declared_shape_that_is_not_there_is_refused_before_allocation(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", FRAMES.astype(np.int32))
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(
        content.replace(b"(12, 3, 4)", b"(2000000000000, 3, 4)"[: 10 + 11], 1)[: len(content)]
    )
    with pytest.raises(FileError, match="declares"):
        orienteer.open(tmp_path / "a.npy")
    (tmp_path / "a.npy").write_bytes(content + b"more")
    with pytest.raises(FileError, match="4 bytes more"):
        orienteer.open(tmp_path / "a.npy")


def test_a_bomb_in_an_archive_is_refused(tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_BZIP2) as archive,
        archive.open("frames.npy", "w") as member,
    ):
        np.lib.format.write_array(member, np.zeros((40, 1000, 100), np.uint8))
    with pytest.raises(FileError, match="declares"):
        orienteer.open(tmp_path / "a.npz")


def test_a_column_with_a_taken_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OrienteerError, match="start"), writer_for(tmp_path / "a.npz") as writer:
        writer.append(Patterns(np.zeros((2, 3), int), columns={"start": np.zeros(2)}))
