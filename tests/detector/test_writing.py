"""A detector is written in the format that the ending or the user names."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from orienteer.detector.crystfel_geom import read_crystfel
from orienteer.detector.opening import open_detector, recognise_detector
from orienteer.detector.square import square_detector
from orienteer.detector.writing import write_detector_file
from orienteer.errors import FileError, OrienteerError

DETECTOR = square_detector(8, 1e-3, 0.1, beam_stop_radius_pixels=2)


@pytest.mark.parametrize(
    ("name", "form", "expected"),
    [
        ("a.h5", None, "Orienteer"),
        ("a.HDF5", None, "Orienteer"),
        ("a.geom", None, "CrystFEL"),
        ("a.dat", None, "Dragonfly text"),
        ("a.h5", "dragonfly hdf5", "Dragonfly HDF5"),
        ("a.h5", "SpiniFEL", "SpiniFEL"),
        ("a", "crystfel", "CrystFEL"),
    ],
)
def test_what_is_written_is_that_format_and_opens_again(
    name: str, form: str | None, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    assert write_detector_file(path, DETECTOR, form, wavelength_A=2.0) == expected
    assert recognise_detector(path) == expected
    found = open_detector(path, pixel_size_m=1e-3)
    assert np.allclose(found.positions_m, DETECTOR.positions_m, rtol=0, atol=1e-15)
    assert np.array_equal(found.mask, DETECTOR.mask)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_the_wavelength_goes_into_the_geometry_as_photon_energy(tmp_path: Path) -> None:
    write_detector_file(tmp_path / "a.geom", DETECTOR, wavelength_A=2.0)
    assert read_crystfel(tmp_path / "a.geom").photon_energy_eV == pytest.approx(6199.2099, rel=1e-7)


@pytest.mark.parametrize(
    ("name", "form"), [("a.png", None), ("a.h5", "TIFF"), ("a.h5", "spinifel"), ("no/a.h5", None)]
)
def test_what_cannot_be_written_is_said_and_leaves_no_file(
    name: str, form: str | None, tmp_path: Path
) -> None:
    with pytest.raises(OrienteerError):
        write_detector_file(tmp_path / name, DETECTOR, form)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["Orienteer", "Dragonfly HDF5", "SpiniFEL"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(FileError, match=r"\.h5: could not be written: the disk is full"):
        write_detector_file(tmp_path / "a.h5", DETECTOR, form, wavelength_A=2.0)
    assert list(tmp_path.iterdir()) == []
