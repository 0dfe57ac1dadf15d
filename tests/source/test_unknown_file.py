"""Files that hold no patterns are told for what they are, in the same words by every command."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.cli.recognition import kind_of
from orienteer.errors import FileError
from orienteer.source.opening import recognise


def told(path: Path) -> FileError:
    """What is said of a file, by whoever opens it."""
    with pytest.raises(FileError) as as_patterns:
        recognise(path)
    with pytest.raises(FileError) as as_anything:
        kind_of(path)
    assert str(as_patterns.value) == str(as_anything.value)
    return as_patterns.value


def test_a_foreign_hdf5_file_is_told_by_its_largest_data_sets(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "stack.h5", "w") as file:
        file["run/images"] = np.zeros((5, 8, 6), np.uint16)
        file["run/time"] = np.arange(5.0)
        file["gain"], file["names"] = 2.0, ["a", "b"]
        file["around"] = h5py.SoftLink("/run")
        file["elsewhere"] = h5py.ExternalLink("absent.h5", "/")
        file["run/again"] = file["run"]
    error = told(tmp_path / "stack.h5")
    assert error.reason == "holds nothing that Orienteer knows."
    assert "images (5 x 8 x 6 uint16)" in error.hint
    assert (
        "time (5 float64), names (2 text) and 1 other: if these are frames, copy them to a NumPy"
        in error.hint
    )
    assert "CXI" in error.hint
    assert "damaged" not in str(error)


def test_hdf5_without_any_data_set_is_told_so(tmp_path: Path) -> None:
    h5py.File(tmp_path / "bare.h5", "w").close()
    assert told(tmp_path / "bare.h5").hint.startswith("It is HDF5 without any data set.")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("notes.h5", b"Beamtime notes\nday 2\n", "By its name it should be HDF5, but it is text."),
        ("noise.cxi", bytes(range(256)) * 20, "By its name it should be HDF5, which it is not."),
        ("frames.npz", b"no", "By its name it should be NumPy archive, but it is text."),
        ("notes.txt", b"day 2\n", "Orienteer reads patterns (CXI,"),
    ],
)
def test_what_a_name_promises_in_vain_is_told(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert told(tmp_path / name).hint.startswith(words)


def test_a_structure_is_told_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "virus.pdb").write_text("HEADER    VIRUS\n")
    with pytest.raises(FileError, match=r"holds no patterns\.\nIt looks like a structure \(PDB\)"):
        recognise(tmp_path / "virus.pdb")
