"""Arrays of HDF5 files are checked before they are read."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.detector.checked_reading import as_fixed_text, read_attribute, read_dataset, read_text, reading
from orienteer.errors import FileError, OrienteerError

LAYOUTS = [
    {},
    {"chunks": (100,)},
    {"chunks": (100,), "fletcher32": True},
    {"chunks": (100,), "compression": "gzip", "shuffle": True, "fletcher32": True},
    {"chunks": (100,), "compression": "lzf"},
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("noise", [False, True])
def test_sound_data_come_back_however_they_are_stored(
    layout: dict[str, object], noise: bool, tmp_path: Path
) -> None:
    # Compressors step aside for chunks of noise, which HDF5 then stores as they are.
    values = np.random.default_rng(0).integers(0, 256 if noise else 2, 1000).astype(np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, **layout)
        file.flush()
        assert np.array_equal(read_dataset(file, "a", "i", (1000,), 1000), values)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_data_beyond_the_end_of_the_file_are_refused_before_they_are_read(
    layout: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "a", data=np.random.default_rng(0).integers(0, 2, 1000).astype(np.uint8), **layout
        )
    with h5py.File(path, "r") as file:
        dataset = file["a"].id
        start = dataset.get_chunk_info(9).byte_offset if layout else dataset.get_offset()
        list(file.attrs)
        os.truncate(path, start + 4)
        with pytest.raises(OrienteerError, match=r"beyond the end|is damaged"):
            read_dataset(file, "a", "i", (1000,), 1000)


def test_filters_that_may_crash_are_refused(tmp_path: Path) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=np.zeros(40, np.uint8), chunks=(40,), **hdf5plugin.Bitshuffle())
        with pytest.raises(OrienteerError, match="filters"):
            read_dataset(file, "a", "i", (40,), 40)


def test_text_of_fixed_length_comes_back_and_of_variable_length_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["fixed"] = as_fixed_text("Détecteur")
        file.attrs["varying"] = "Détecteur"
        file.attrs["nothing"] = h5py.Empty("f8")
        assert read_text(read_attribute(file, "fixed"), "name") == "Détecteur"
        assert read_attribute(file, "missing") is None
        with pytest.raises(OrienteerError, match="plain text"):
            read_attribute(file, "varying")
        with pytest.raises(OrienteerError, match="not a text"):
            read_text(read_attribute(file, "nothing"), "name")


@pytest.mark.parametrize("error", [OSError("bad"), KeyError("bad"), MemoryError(), OrienteerError("bad")])
def test_everything_that_a_damaged_file_causes_names_the_file(error: Exception) -> None:
    with pytest.raises(FileError, match=r"a\.h5"), reading("a.h5"):
        raise error


def test_a_defect_of_ours_is_not_blamed_on_the_file() -> None:
    with pytest.raises(AssertionError), reading("a.h5"):
        raise AssertionError
