"""The intensity that is phased: which one, and where it has nothing to say."""

from pathlib import Path

import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.run.intensity import open_intensity
from orienteer.volume.opening import write_volume
from orienteer.volume.volume import Volume


@pytest.mark.parametrize("name", ["intensity.mrc", "intensity.h5"])
def test_zero_everywhere_is_called_so(tmp_path: Path, name: str) -> None:
    write_volume(tmp_path / name, Volume(np.zeros((15, 15, 15)), 0.01, "reciprocal"))
    with pytest.raises(FileError, match="the intensity is zero everywhere"):
        open_intensity(tmp_path / name)


def test_zero_wherever_it_was_measured_is_called_so(tmp_path: Path) -> None:
    values = np.zeros((15, 15, 15))
    values[0] = np.nan
    write_volume(tmp_path / "intensity.h5", Volume(values, 0.01, "reciprocal"))
    with pytest.raises(FileError, match="the intensity is zero everywhere"):
        open_intensity(tmp_path / "intensity.h5")


def test_single_zeros_are_taken_as_never_measured(tmp_path: Path) -> None:
    values = np.ones((15, 15, 15))
    values[0, 0, :3] = 0
    write_volume(tmp_path / "intensity.mrc", Volume(values, 0.01, "reciprocal"))
    found = open_intensity(tmp_path / "intensity.mrc")
    assert found.volume.n_missing == 3
    assert found.remarks == ("3 voxels of the intensity are 0 and were taken as never measured.",)


@pytest.mark.parametrize("given", [None, 0.01, 0.02])
def test_another_size_of_voxels_than_the_file_tells_is_noted(tmp_path: Path, given: float | None) -> None:
    write_volume(tmp_path / "intensity.mrc", Volume(np.ones((15, 15, 15)), 0.01, "reciprocal"))
    found = open_intensity(tmp_path / "intensity.mrc", voxel_inv_A=given)
    assert found.volume.voxel_size[0] == pytest.approx(given or 0.01)
    note = "The file says that its voxels are 0.01 1/A; the 0.02 1/A that was given is used."
    assert found.remarks == ((note,) if given == 0.02 else ())
