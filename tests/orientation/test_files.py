"""Grids on disk: what is written is what Dragonfly's layout says."""

import errno
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.orientation.files import write_grid
from orienteer.orientation.grids import make_grid


def test_text_and_hdf5_hold_the_grid_exactly(tmp_path: Path) -> None:
    grid = make_grid("600-cell", 2)
    write_grid(tmp_path / "grid.dat", grid)
    write_grid(tmp_path / "grid.h5", grid)
    lines = (tmp_path / "grid.dat").read_text().splitlines()
    assert lines[0] == "420"
    text = np.loadtxt(lines[1:])
    with h5py.File(tmp_path / "grid.h5") as file:
        binary = file["quaternions"][()]
    np.testing.assert_array_equal(text, binary)
    np.testing.assert_array_equal(binary[:, :4], grid.quaternions)
    np.testing.assert_allclose(binary[:, 4].sum(), 1)


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(FileError, match=r"\.h5: could not be written: the disk is full"):
        write_grid(tmp_path / "grid.h5", make_grid("600-cell", 2))
    assert list(tmp_path.iterdir()) == []
