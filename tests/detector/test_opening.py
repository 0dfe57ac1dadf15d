"""Geometry files are recognised by their content, and what is wrong with one is said."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.detector.crystfel_write import write_crystfel_geom
from orienteer.detector.detector import Detector
from orienteer.detector.dragonfly import write_dragonfly_hdf5, write_dragonfly_text
from orienteer.detector.hdf5 import write_detector
from orienteer.detector.opening import open_detector, recognise_detector
from orienteer.detector.spinifel import write_spinifel_group
from orienteer.detector.square import square_detector
from orienteer.errors import FileError

PIXEL_M, DISTANCE_M = 1e-3, 0.1
DETECTOR = square_detector(16, PIXEL_M, DISTANCE_M, beam_stop_radius_pixels=2, name="square")


def write_own(path: Path, detector: Detector) -> None:
    with h5py.File(path, "w") as file:
        write_detector(file, detector)


def write_own_data(path: Path, detector: Detector) -> None:
    with h5py.File(path, "w", userblock_size=1024) as file:
        file["frames"] = np.zeros((3, detector.n_pixels))
        write_detector(file.create_group("detector"), detector)


def write_spinifel(path: Path, detector: Detector) -> None:
    with h5py.File(path, "w") as file:
        write_spinifel_group(file, detector, 2.0)


WRITERS = {
    "own": (write_own, "Orienteer"),
    "own data": (write_own_data, "Orienteer"),
    "geom": (write_crystfel_geom, "CrystFEL"),
    "dragonfly text": (write_dragonfly_text, "Dragonfly text"),
    "dragonfly hdf5": (write_dragonfly_hdf5, "Dragonfly HDF5"),
    "spinifel": (write_spinifel, "SpiniFEL"),
}


@pytest.mark.parametrize("name", ["right", "wrong.jpg", "d.geom", "d.h5", "d.dat"])
@pytest.mark.parametrize("form", WRITERS)
def test_every_format_is_recognised_under_any_name(form: str, name: str, tmp_path: Path) -> None:
    write, known_as = WRITERS[form]
    write(tmp_path / name, DETECTOR)  # type: ignore[operator]
    assert recognise_detector(tmp_path / name) == known_as
    found = open_detector(tmp_path / name, pixel_size_m=PIXEL_M)
    assert np.allclose(found.positions_m, DETECTOR.positions_m, rtol=0, atol=1e-15)
    assert np.array_equal(found.mask, DETECTOR.mask)


def test_the_wrong_things_are_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "latin").write_bytes(b"caf\xe9 = \xff\xfe")
    (tmp_path / "settings.toml").write_text("[detector]\npixels = 128\ndistance_m = 0.2\n")
    (tmp_path / "prose").write_text("Dear reader,\nthis is a letter.\n")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["data"] = np.zeros(3)
    (tmp_path / "cut.h5").write_bytes((tmp_path / "other.h5").read_bytes()[:300])
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    for name, words in {
        "missing": "does not exist",
        "": "is a directory",
        "empty": "has 0 bytes",
        "binary": "binary",
        "latin": "no known geometry format",
        "settings.toml": "no known geometry format",
        "prose": "no known geometry format",
        "other.h5": "holds no detector",
        "cut.h5": "cannot be read",
        "loop": "loop",
        "pipe": "not a regular file",
        "nul\0": "nul",
    }.items():
        with pytest.raises(FileError, match=words) as caught:
            open_detector(tmp_path / name)
        assert str(tmp_path) in str(caught.value)


def test_a_file_that_is_being_written_live_opens(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "live.h5", "w", libver="latest", locking=False) as file:
        file.create_dataset("frames", (0, 256), "u2", maxshape=(None, 256))
        write_detector(file.create_group("detector"), DETECTOR)
        file.swmr_mode = True
        assert open_detector(tmp_path / "live.h5") == DETECTOR


def test_a_file_without_permission_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.geom"
    path.write_text("clen = 1")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    # Root may read everything, so the refusal is put in by hand.
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileError, match=r"secret\.geom: may not be read"):
        open_detector(path)
