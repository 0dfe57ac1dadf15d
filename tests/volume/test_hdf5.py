"""Orienteer's volume files: exact, several models, and no flipped byte goes unseen."""

import errno
import os

import h5py
import numpy as np
import pytest

from orienteer.errors import FileError, OrienteerError
from orienteer.volume.hdf5 import read_volumes_hdf5, write_volume_hdf5
from orienteer.volume.volume import Volume


@pytest.fixture
def models() -> list[Volume]:
    random = np.random.default_rng(2)
    return [
        Volume(
            random.normal(size=(5, 6, 70)),
            (0.1, 0.2, 1 / 3),
            "reciprocal",
            (1, 2, 1e-17),
            f"class {m}",
            {"iteration": m},
        )
        for m in range(3)
    ]


def test_a_round_trip_keeps_everything(tmp_path, models) -> None:
    models[1].values[0, 0, 0] = np.nan
    write_volume_hdf5(tmp_path / "v.h5", models)
    read = read_volumes_hdf5(tmp_path / "v.h5")
    assert len(read) == 3
    for a, b in zip(read, models, strict=True):
        assert np.array_equal(a.values, b.values, equal_nan=True)
        for name in ("voxel_size", "origin", "space", "name", "metadata"):
            assert getattr(a, name) == getattr(b, name)


def test_models_on_different_grids_are_refused(tmp_path, models) -> None:
    with pytest.raises(OrienteerError, match="not on the grid"):
        write_volume_hdf5(tmp_path / "v.h5", [models[0], Volume(models[0].values, 1.0)])
    with pytest.raises(OrienteerError, match="no volume"):
        write_volume_hdf5(tmp_path / "v.h5", [])


def test_a_flipped_byte_is_found_or_changes_nothing(tmp_path, models) -> None:
    path = tmp_path / "v.h5"
    write_volume_hdf5(path, models)
    whole = path.read_bytes()
    # Everything but the voxels byte by byte, and a sample of the voxels.
    with h5py.File(path) as file:
        voxels = min(file["values"].id.get_chunk_info(m).byte_offset for m in range(3))
    places = [
        *range(0, min(voxels, 3000), 7),
        *np.random.default_rng(0).integers(len(whole), size=300).tolist(),
    ]
    for at in places:
        broken = bytearray(whole)
        broken[at] ^= 1 << at % 8
        path.write_bytes(broken)
        try:
            read = read_volumes_hdf5(path)
        except FileError as error:
            assert "v.h5" in str(error)  # noqa: PT017
        else:
            assert [repr(volume) for volume in read] == [repr(volume) for volume in models]
            for a, b in zip(read, models, strict=True):
                assert np.array_equal(a.values, b.values)
                assert a.metadata == b.metadata


def replace_models(file: h5py.File, text: str) -> None:
    del file["models"]
    file["models"] = np.array([text.encode()])


def replace_values(file: h5py.File, **new) -> None:
    del file["values"]
    file.create_dataset("values", **new)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f.__delitem__("values"), "has no 'values'"),
        (lambda f: f.attrs.__delitem__("voxel_size"), "voxel_size"),
        (lambda f: f.attrs.__setitem__("voxel_size", [1.0, -1, 1]), "not positive"),
        (lambda f: f.attrs.__setitem__("space", "elsewhere"), "real"),
        (lambda f: f.attrs.__setitem__("version", 99), "version 99"),
        (lambda f: replace_models(f, "not json"), "damaged"),
        (lambda f: replace_models(f, "[]"), "describes 0 models"),
        (lambda f: replace_models(f, "[1, 2, 3]"), "damaged"),
        (lambda f: f.attrs.__setitem__("format", "other"), "not an Orienteer volume"),
        (lambda f: replace_values(f, data=np.zeros((3, 5, 6, 7))), "float32"),
        (lambda f: replace_values(f, data=np.zeros((3, 5, 6), "f4")), "any, any, any, any"),
        (lambda f: replace_values(f, data=np.full((3, 5, 6, 7), np.inf, "f4")), "infinite"),
        (
            lambda f: replace_values(f, shape=(3, 9999, 9999, 9999), dtype="f4", chunks=(1, 9, 9, 9)),
            "declares",
        ),
        (lambda f: replace_values(f, data=[b"text"] * 3), "cannot be right"),
    ],
)
def test_a_changed_layout_is_refused(tmp_path, models, change, reason) -> None:
    path = tmp_path / "v.h5"
    write_volume_hdf5(path, models)
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(FileError, match=reason):
        read_volumes_hdf5(path)


def test_a_chunk_that_was_never_written_is_found(tmp_path, models) -> None:
    path = tmp_path / "v.h5"
    write_volume_hdf5(path, models)
    with h5py.File(path, "r+") as file:
        replace_values(file, shape=(3, 5, 6, 7), dtype="f4", chunks=(1, 5, 6, 7))
        file["values"][0] = 1
    with pytest.raises(FileError, match=r"needs 3 chunks .* stores 1"):
        read_volumes_hdf5(path)


def test_metadata_may_be_numpy_numbers_but_no_objects(tmp_path) -> None:
    write_volume_hdf5(tmp_path / "v.h5", Volume(np.zeros((2, 2, 2)), 1.0, metadata={"n": np.int64(3)}))
    assert read_volumes_hdf5(tmp_path / "v.h5")[0].metadata == {"n": 3}
    with pytest.raises(OrienteerError, match="not a text, number or flag"):
        write_volume_hdf5(tmp_path / "v.h5", Volume(np.zeros((2, 2, 2)), 1.0, metadata={"n": object()}))
    assert read_volumes_hdf5(tmp_path / "v.h5")[0].metadata == {"n": 3}


def test_a_full_disk_is_one_sentence_and_the_old_file_stays(tmp_path, models, monkeypatch) -> None:
    path = tmp_path / "v.h5"
    write_volume_hdf5(path, models[:1])
    old = path.read_bytes()

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(FileError, match=r"v\.h5: could not be written: the disk is full"):
        write_volume_hdf5(path, models)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == old
