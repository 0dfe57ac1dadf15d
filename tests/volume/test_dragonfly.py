"""Dragonfly's volumes: raw cubes and output files."""

import h5py
import numpy as np
import pytest

from orienteer.errors import FileError, OrienteerError
from orienteer.volume.dragonfly import read_dragonfly_cube, read_dragonfly_output, write_dragonfly_cube
from orienteer.volume.volume import Volume


def test_a_cube_is_read_in_c_order_and_written_back_exactly(tmp_path) -> None:
    values = np.random.default_rng(3).normal(size=(5, 5, 5)).astype(np.float32)
    values.astype("<f8").tofile(tmp_path / "intensity.bin")
    volume = read_dragonfly_cube(tmp_path / "intensity.bin", voxel_size=0.002)
    assert np.array_equal(volume.values, values)
    assert volume.space == "reciprocal"
    assert volume.axes()[0][2] == 0
    write_dragonfly_cube(tmp_path / "again.bin", volume)
    assert (tmp_path / "again.bin").read_bytes() == (tmp_path / "intensity.bin").read_bytes()


@pytest.mark.parametrize("n_bytes", [0, 8 * 27 - 1, 8 * 64, 8 * 27 + 8])
def test_a_length_that_is_no_odd_cube_is_refused(tmp_path, n_bytes) -> None:
    (tmp_path / "cube.bin").write_bytes(bytes(n_bytes))
    with pytest.raises(FileError, match="not the size of a float64 cube with an odd edge"):
        read_dragonfly_cube(tmp_path / "cube.bin", 1.0)


def test_a_cube_needs_its_voxel_size_and_refuses_infinities(tmp_path) -> None:
    np.full(27, np.inf).tofile(tmp_path / "cube.bin")
    with pytest.raises(FileError, match="how large a voxel"):
        read_dragonfly_cube(tmp_path / "cube.bin")
    with pytest.raises(FileError, match="infinite"):
        read_dragonfly_cube(tmp_path / "cube.bin", 1.0)


def test_only_odd_cubes_are_written(tmp_path) -> None:
    for shape in [(4, 4, 4), (3, 3, 5)]:
        with pytest.raises(OrienteerError, match="odd edge"):
            write_dragonfly_cube(tmp_path / "cube.bin", Volume(np.zeros(shape), 1.0))
    assert not list(tmp_path.iterdir())


def test_the_modes_of_an_output_file_are_volumes(tmp_path) -> None:
    intens = np.random.default_rng(4).random((2, 3, 3, 3))
    with h5py.File(tmp_path / "output_001.h5", "w") as file:
        file["intens"] = intens
        file["scale"] = np.ones(10)
    first, second = read_dragonfly_output(tmp_path / "output_001.h5", 0.001)
    assert np.array_equal(second.values, intens[1].astype(np.float32))
    assert first.name == "mode 0"


def test_2d_models_and_other_files_are_refused(tmp_path) -> None:
    with h5py.File(tmp_path / "flat.h5", "w") as file:
        file["intens"] = np.zeros((2, 3, 3))
    with pytest.raises(FileError, match="2D models"):
        read_dragonfly_output(tmp_path / "flat.h5", 1.0)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(FileError, match="no 'intens'"):
        read_dragonfly_output(tmp_path / "other.h5", 1.0)
