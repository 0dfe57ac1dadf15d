"""Dragonfly's sparse HDF5: variable-length lists as its own writer makes them."""

import h5py
import numpy as np
import pytest

from orienteer.compute.reading import reading
from orienteer.errors import FileError, OrienteerError
from orienteer.source.dragonfly_hdf5 import DragonflyHdf5Source, Writer, recognise
from orienteer.source.patterns import Patterns

COUNTS = np.random.default_rng(5).poisson(0.6, size=(9, 20))


def write_as_dragonfly(path, frames) -> None:
    with h5py.File(path, "w") as file:
        kind = h5py.vlen_dtype(np.int32)
        file["num_pix"] = np.array([frames.shape[1]], np.int32)
        ones = file.create_dataset("place_ones", (len(frames),), kind, chunks=(1,))
        multi = file.create_dataset("place_multi", (len(frames),), kind, chunks=(1,))
        count = file.create_dataset("count_multi", (len(frames),), kind, chunks=(1,))
        for d, frame in enumerate(frames):
            ones[d] = np.flatnonzero(frame == 1)[::-1]
            multi[d] = np.flatnonzero(frame > 1)
            count[d] = frame[frame > 1]


def test_lists_are_read_and_sorted(tmp_path) -> None:
    write_as_dragonfly(tmp_path / "p.h5", COUNTS)
    with h5py.File(tmp_path / "p.h5") as file:
        assert recognise(tmp_path, b"", file)
    with DragonflyHdf5Source(tmp_path / "p.h5") as source:
        assert (len(source), source.n_pixels) == (9, 20)
        assert np.array_equal(source.read().dense(), COUNTS)
        assert np.array_equal(source.read([8, 1]).dense(), COUNTS[[8, 1]])
        assert source.read(slice(3, 4)).event_id.tolist() == [3]


@pytest.mark.parametrize("size", [1, 2, 9])
def test_a_round_trip_is_exact_whatever_the_batches(tmp_path, size) -> None:
    with Writer(tmp_path / "p.h5") as writer:
        for first in range(0, 9, size):
            writer.append(Patterns(COUNTS[first : first + size]))
    with DragonflyHdf5Source(tmp_path / "p.h5") as source:
        assert np.array_equal(source.read().dense(), COUNTS)
    with h5py.File(tmp_path / "p.h5") as file:
        assert file["num_pix"].shape == (1,)
        assert file["num_pix"].dtype == np.int32
        assert h5py.check_vlen_dtype(file["place_ones"].dtype) == np.int32
        assert file["count_multi"][0].tolist() == COUNTS[0][COUNTS[0] > 1].tolist()


def test_a_file_without_frames_is_a_file(tmp_path) -> None:
    with Writer(tmp_path / "p.h5", frame_shape=(4, 5)):
        pass
    with DragonflyHdf5Source(tmp_path / "p.h5") as source:
        assert len(source.read()) == 0
        assert source.n_pixels == 20


def test_signal_is_refused(tmp_path) -> None:
    with pytest.raises(OrienteerError, match="signal"), Writer(tmp_path / "p.h5") as writer:
        writer.append(Patterns(np.full((2, 3), 0.5)))
    assert not list(tmp_path.iterdir())


def replaced(file: h5py.File, name: str, data) -> None:
    del file[name]
    file[name] = data


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f.__delitem__("count_multi"), "count_multi"),
        (lambda f: replaced(f, "num_pix", np.array([0], np.int32)), "declares 0 pixels"),
        (lambda f: replaced(f, "num_pix", np.array([2**31 - 1], np.int32)), "declares 2147483647 pixels"),
        (lambda f: replaced(f, "num_pix", np.array([], np.int32)), "damaged"),
        (lambda f: replaced(f, "num_pix", 1.5), "num_pix"),
        (lambda f: replaced(f, "num_pix", np.array([3], np.int32)), "lights pixel"),
        (lambda f: replaced(f, "place_ones", np.zeros(9, np.int32)), "variable-length"),
        (lambda f: f["place_multi"].__setitem__(2, np.arange(3, dtype=np.int32)), "frame 2 lists different"),
        (lambda f: f["count_multi"].__setitem__(0, -COUNTS[0][COUNTS[0] > 1].astype(np.int32)), "photons"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, change, reason) -> None:
    path = tmp_path / "broken.h5"
    write_as_dragonfly(path, COUNTS)
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(FileError, match=reason) as caught, reading(path):
        DragonflyHdf5Source(path).read()
    assert "broken.h5" in str(caught.value)
