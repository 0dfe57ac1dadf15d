"""Every flavour of HDF5 and every binary file is one thing only, under any name."""

from importlib import import_module

import h5py
import numpy as np
import pytest

import orienteer
from orienteer.detector.opening import open_detector
from orienteer.detector.square import square_detector
from orienteer.errors import FileError
from orienteer.source.opening import FORMATS, recognise, writer_for
from orienteer.source.patterns import Patterns
from orienteer.volume.hdf5 import write_volume_hdf5
from orienteer.volume.mrc import write_mrc
from orienteer.volume.opening import open_volume, recognise_volume
from orienteer.volume.volume import Volume

COUNTS = np.random.default_rng(4).poisson(1, size=(4, 16)).astype(np.int32)
ENDINGS = {
    ".cxi": "CXI",
    ".emc.h5": "Dragonfly HDF5",
    ".spinifel.h5": "SpiniFEL",
    ".h5": "Orienteer",
    ".emc": "Dragonfly EMC",
}


def write_patterns(path, ending) -> None:
    detector = square_detector(4, pixel_size_m=1e-3, distance_m=0.1)
    named = path.with_name(f"named{ending}")
    with writer_for(named, detector=detector, metadata={"wavelength_A": 1.5}) as writer:
        assert writer.format == ENDINGS[ending]
        writer.append(Patterns(COUNTS))
    named.rename(path)


def write_dragonfly_detector(path) -> None:
    with h5py.File(path, "w") as file:
        x, y = (axis.ravel().astype(float) for axis in np.meshgrid(np.arange(4) - 1.5, np.arange(4) - 1.5))
        n = np.sqrt(x**2 + y**2 + 100**2)
        file["qx"], file["qy"], file["qz"] = 50 * x / n, 50 * y / n, 50 * (100 / n - 1)
        file["corr"], file["mask"] = 100 / n**3, np.zeros(16, np.uint8)
        file["detd"], file["ewald_rad"] = 100.0, 50.0


def write_dragonfly_output(path) -> None:
    with h5py.File(path, "w") as file:
        file["intens"], file["inter_weight"] = np.zeros((1, 3, 3, 3)), np.ones((1, 3, 3, 3))
        file["orientations"], file["scale"] = np.zeros(4, np.int32), np.ones(4)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", ["data", "data.txt", "data.h5", "data.cxi", "data.emc"])
def test_patterns_are_recognised_by_exactly_one_format_under_any_name(tmp_path, ending, name) -> None:
    path = tmp_path / name
    write_patterns(path, ending)
    head = path.read_bytes()[:4096]
    hdf5 = h5py.File(path) if head.startswith(b"\x89HDF") else None
    yes = [module for module in map(import_module, FORMATS) if module.recognise(path, head, hdf5)]
    if hdf5 is not None:
        hdf5.close()
    assert [module.FORMAT_NAME for module in yes] == [ENDINGS[ending]]
    assert recognise(path) == ENDINGS[ending]
    assert np.array_equal(orienteer.open(path).read().dense(), COUNTS)
    with pytest.raises(FileError):
        open_volume(path)


@pytest.mark.parametrize("ending", [".cxi", ".spinifel.h5", ".h5"])
def test_files_that_carry_their_geometry_serve_as_geometry(tmp_path, ending) -> None:
    write_patterns(tmp_path / "data", ending)
    detector = open_detector(tmp_path / "data")
    expected = square_detector(4, pixel_size_m=1e-3, distance_m=0.1)
    assert detector.positions_m == pytest.approx(expected.positions_m, abs=1e-12)


@pytest.mark.parametrize("n_sections", [1, 2, 3])
def test_a_map_of_few_sections_is_no_emc_file(tmp_path, n_sections) -> None:
    """Its header begins with n_x, n_y, n_z, read as frames, pixels and frame type; even its size fits."""
    write_mrc(tmp_path / "map.mrc", Volume(np.ones((8, 6, n_sections), np.float32), 1.0))
    with pytest.raises(FileError, match=r"holds no patterns\.\nIt looks like a volume \(MRC\)"):
        recognise(tmp_path / "map.mrc")
    assert recognise_volume(tmp_path / "map.mrc") == "MRC"


def test_words_that_could_be_a_header_are_none_where_the_size_is_another(tmp_path) -> None:
    for frame_type in (0, 1, 2):
        (tmp_path / "other").write_bytes(np.array([8, 6, frame_type] + [0] * 400, "<i4").tobytes())
        with pytest.raises(FileError, match="holds nothing that Orienteer knows"):
            recognise(tmp_path / "other")


def test_a_cut_emc_file_is_said_to_be_one(tmp_path) -> None:
    write_patterns(tmp_path / "whole", ".emc")
    (tmp_path / "cut.emc").write_bytes((tmp_path / "whole").read_bytes()[:-4])
    with pytest.raises(FileError, match=r"cut\.emc: has \d+ bytes, but its header and lists ask for"):
        orienteer.open(tmp_path / "cut.emc")


def test_detectors_and_volumes_are_no_patterns(tmp_path) -> None:
    volume = Volume(np.zeros((3, 3, 3)), 1.0)
    write_dragonfly_detector(tmp_path / "detector.h5")
    write_dragonfly_output(tmp_path / "output_001.h5")
    write_volume_hdf5(tmp_path / "volume.h5", volume)
    write_mrc(tmp_path / "volume.mrc", volume)
    for name, remedy in {
        "detector.h5": "--geometry",
        "output_001.h5": "open_volume",
        "volume.h5": "open_volume",
        "volume.mrc": "open_volume",
    }.items():
        with pytest.raises(FileError, match=name) as caught:
            orienteer.open(tmp_path / name)
        assert remedy in caught.value.hint
    assert open_detector(tmp_path / "detector.h5").n_pixels == 16
    with pytest.raises(FileError):
        open_volume(tmp_path / "detector.h5")
    assert recognise_volume(tmp_path / "output_001.h5") == "Dragonfly output"
    assert recognise_volume(tmp_path / "volume.h5") == "Orienteer volume"
    assert recognise_volume(tmp_path / "volume.mrc") == "MRC"
