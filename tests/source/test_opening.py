"""Opening by content, arrays as sources, and writers by ending."""

import os
from pathlib import Path

import numpy as np
import pytest

import orienteer
from orienteer.detector.square import square_detector
from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.source.opening import format_names, recognise, writer_for
from orienteer.source.patterns import Patterns


def test_an_array_is_a_source() -> None:
    frames = np.arange(24).reshape(4, 2, 3)
    source = orienteer.open(frames)
    assert source.frame_shape == (2, 3)
    assert len(source) == 4
    np.testing.assert_array_equal(source.read([3]).dense(), frames[3].reshape(1, 6))
    assert len(orienteer.open(np.zeros((0, 2, 3)))) == 0


def test_patterns_and_sources_are_sources() -> None:
    patterns = Patterns(np.eye(3, dtype=int), columns={"fluence": np.arange(3.0)})
    source = orienteer.open(patterns)
    assert source.column_names == ("fluence",)
    assert orienteer.open(source) is source


@pytest.mark.parametrize("wrong", [np.zeros(4), 7, None, [1, 2]], ids=str)
def test_what_holds_no_frames_is_an_error(wrong: object) -> None:
    with pytest.raises(OrienteerError):
        orienteer.open(wrong)  # type: ignore[arg-type]


def test_a_detector_is_attached_and_must_fit() -> None:
    frames = np.zeros((3, 4, 5), dtype=int)
    detector = square_detector((4, 5), pixel_size_m=1e-3, distance_m=0.1)
    assert orienteer.open(frames, geometry=detector).detector is detector
    with pytest.raises(GeometryMismatch, match="20 pixels"):
        orienteer.open(frames, geometry=square_detector(4, pixel_size_m=1e-3, distance_m=0.1))


def test_a_geometry_file_is_opened(tmp_path: Path) -> None:
    detector = square_detector((4, 5), pixel_size_m=1e-3, distance_m=0.1)
    with writer_for(tmp_path / "with.h5", detector=detector) as writer:
        writer.append(Patterns(np.zeros((2, 20), dtype=int)))
    source = orienteer.open(np.zeros((3, 20), dtype=int), geometry=tmp_path / "with.h5")
    assert source.detector is not None
    np.testing.assert_array_equal(source.detector.positions_m, detector.positions_m)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.h5", b"", "has 0 bytes"),
        ("notes.txt", b"Beamtime notes, day 2\n", "holds nothing that Orienteer knows"),
        ("noise.cxi", bytes(range(256)) * 20, "holds nothing that Orienteer knows"),
        ("picture.npy", b"\x89PNG\r\n\x1a\n" + bytes(100), "holds nothing that Orienteer knows"),
        ("archive.npz", b"PK\x03\x04" + bytes(26) + b"x.txt", "holds nothing that Orienteer knows"),
        ("cut.h5", b"\x89HDF\r\n\x1a\n", "cut.h5"),
    ],
)
def test_other_files_are_refused_by_name_and_reason(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileError, match=words) as caught:
        orienteer.open(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        orienteer.open(tmp_path / "missing.h5")
    with pytest.raises(FileError, match="is a directory"):
        recognise(tmp_path)


def test_pipes_and_devices_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(FileError, match="not a regular file"):
            orienteer.open(path)


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "locked.npy"
    np.save(path, np.zeros((2, 3)))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)  # root may read everything, so the refusal is played
    with pytest.raises(FileError, match=r"locked\.npy: may not be read"):
        orienteer.open(path)


def test_the_ending_or_the_name_chooses_the_writer(tmp_path: Path) -> None:
    assert writer_for(tmp_path / "a.H5").format == "Orienteer"
    assert writer_for(tmp_path / "a.npy").format == "NumPy array"
    assert writer_for(tmp_path / "a.npz").format == "NumPy archive"
    assert writer_for(tmp_path / "a.npz", "orienteer").format == "Orienteer"
    with pytest.raises(FileError, match=r"a\.docx.*ending"):
        writer_for(tmp_path / "a.docx")
    with pytest.raises(OrienteerError, match="'Excel' is not known"):
        writer_for(tmp_path / "a.h5", "Excel")
    with pytest.raises(OrienteerError, match="does not take live"):
        writer_for(tmp_path / "a.npy", live=True)


def test_all_formats_have_their_own_name() -> None:
    names = format_names()
    assert len(set(names)) == len(names)


def test_writing_into_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    for options in ({}, {"live": True}, {"append": True}):
        with pytest.raises(FileError, match="nowhere"), writer_for(tmp_path / "nowhere" / "a.h5", **options):
            pass
