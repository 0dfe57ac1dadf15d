"""Background: its sum, its slope, and bad files."""

from pathlib import Path

import numpy as np
import pytest

from orienteer.detector.square import square_detector
from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.simulation.background import checked_background, flat_background, read_background

DETECTOR = square_detector(20, pixel_size_m=0.004, distance_m=0.2, beam_stop_radius_pixels=2)


def test_a_flat_background_sums_to_its_photons_on_used_pixels() -> None:
    background = flat_background(DETECTOR, 120)
    assert background.sum() == pytest.approx(120, rel=1e-5)
    assert np.ptp(background[DETECTOR.mask < 2]) == 0
    assert not background[DETECTOR.mask == 2].any()


def test_a_slope_rises_along_x_and_keeps_the_sum() -> None:
    picture = flat_background(DETECTOR, 120, slope=0.5).reshape(20, 20)
    assert picture.sum() == pytest.approx(120, rel=1e-5)
    assert picture[0, -1] / picture[0, 0] == pytest.approx(1.5 / 0.5, rel=1e-4)
    np.testing.assert_array_equal(picture[0], picture[-1])


def test_a_background_from_a_file_is_checked(tmp_path: Path) -> None:
    good = tmp_path / "background.npy"
    np.save(good, np.ones((20, 20)))
    assert read_background(str(good), DETECTOR).sum() == (DETECTOR.mask < 2).sum()
    np.save(good, np.ones((20, 21)))
    with pytest.raises(GeometryMismatch, match=r"\(20, 21\)"):
        read_background(str(good), DETECTOR)
    (tmp_path / "text.npy").write_text("no array")
    for path in (tmp_path / "text.npy", tmp_path / "missing.npy", tmp_path):
        with pytest.raises(FileError, match=path.name):
            read_background(str(path), DETECTOR)


@pytest.mark.parametrize("value", [np.nan, -1.0, np.inf])
def test_a_background_that_is_no_photons_is_refused(value: float) -> None:
    values = np.ones(400)
    values[0] = value
    with pytest.raises(OrienteerError, match="background"):
        checked_background(values, DETECTOR)
