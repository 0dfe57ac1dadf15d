"""Grids on disk: what is written is what Dragonfly's layout says."""

from pathlib import Path

import h5py
import numpy as np

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
