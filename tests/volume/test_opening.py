"""A volume is recognised by its content under any name, and everything else is refused in words."""

import h5py
import numpy as np
import pytest

from orienteer.errors import FileError, OrienteerError
from orienteer.volume.dragonfly import write_dragonfly_cube
from orienteer.volume.hdf5 import write_volume_hdf5
from orienteer.volume.mrc import write_mrc
from orienteer.volume.opening import open_volume, open_volumes, recognise_volume, write_volume
from orienteer.volume.volume import Volume

VOLUME = Volume(np.arange(125.0).reshape(5, 5, 5), 0.5, "reciprocal")


def write_output(path, volume) -> None:
    with h5py.File(path, "w") as file:
        file["intens"] = volume.values[None].astype(float)


WRITERS = {
    "MRC": write_mrc,
    "Orienteer volume": write_volume_hdf5,
    "Dragonfly cube": write_dragonfly_cube,
    "Dragonfly output": write_output,
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", ["volume", "volume.bin", "volume.mrc", "volume.h5", "volume.txt"])
def test_a_volume_is_recognised_under_any_name(tmp_path, kind, name) -> None:
    WRITERS[kind](tmp_path / name, VOLUME)
    assert recognise_volume(tmp_path / name) == kind
    read = open_volume(tmp_path / name, voxel_size=0.5)
    assert np.array_equal(read.values, VOLUME.values)
    assert (read.voxel_size, read.origin, read.space) == (VOLUME.voxel_size, VOLUME.origin, VOLUME.space)


@pytest.mark.parametrize("name", ["v.mrc", "v.map", "v.ccp4", "v.MRC", "v.mrc.gz", "v.h5", "v.hdf5"])
def test_the_name_picks_the_format_to_write(tmp_path, name) -> None:
    write_volume(tmp_path / name, VOLUME)
    assert np.array_equal(open_volume(tmp_path / name).values, VOLUME.values)


def test_an_unknown_name_is_refused_before_anything_is_written(tmp_path) -> None:
    with pytest.raises(OrienteerError, match=r"'\.xyz'"):
        write_volume(tmp_path / "v.xyz", VOLUME)
    assert not list(tmp_path.iterdir())


def test_one_of_several_models_is_picked(tmp_path) -> None:
    write_volume_hdf5(tmp_path / "v.h5", [VOLUME, VOLUME.with_values(VOLUME.values + 1)])
    assert len(open_volumes(tmp_path / "v.h5")) == 2
    assert open_volume(tmp_path / "v.h5", model=1).values[0, 0, 0] == 1
    with pytest.raises(FileError, match="holds 2 models"):
        open_volume(tmp_path / "v.h5", model=2)


def test_what_is_no_volume_is_refused(tmp_path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("a text of some length")
    with h5py.File(tmp_path / "frames.h5", "w") as file:
        file["entry_1/data"] = 1
    for name, reason in {
        "empty": "has 0 bytes",
        "text": "not a volume",
        "frames.h5": "entry_1",
        "absent": "does not exist",
        ".": "is a directory",
    }.items():
        with pytest.raises(FileError, match=reason) as caught:
            open_volume(tmp_path / name)
        assert str(tmp_path) in str(caught.value)


def test_a_file_that_may_not_be_read_is_a_file_error(tmp_path, monkeypatch) -> None:
    write_mrc(tmp_path / "v.mrc", VOLUME)

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(FileError, match="may not be read"):
        open_volume(tmp_path / "v.mrc")


@pytest.mark.parametrize("kind", WRITERS)
def test_a_damaged_volume_is_a_file_error_or_has_the_right_shape(tmp_path, kind) -> None:
    path = tmp_path / "volume"
    WRITERS[kind](path, VOLUME)
    whole = path.read_bytes()
    for seed in range(120):
        random = np.random.default_rng(seed)
        broken = bytearray(whole)
        if seed % 3 == 0:
            broken = broken[: random.integers(len(whole))]
        else:
            n = 1 if seed % 3 == 1 else 16
            at = int(random.integers(min(len(whole), 2048)))
            broken[at : at + n] = random.bytes(n)
        path.write_bytes(broken)
        try:
            volume = open_volume(path, voxel_size=0.5)
        except FileError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            assert np.prod(volume.shape) <= max(len(whole), 1000)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_voxel_size_that_is_given_counts_and_the_centre_stays(tmp_path, kind) -> None:
    WRITERS[kind](tmp_path / "volume", VOLUME)
    read = open_volume(tmp_path / "volume", voxel_size=0.125)
    assert (read.voxel_size, read.origin) == ((0.125,) * 3, (-0.25,) * 3)
