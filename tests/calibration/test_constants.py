"""Constants: measured from dark frames, and as they are read from files."""

import h5py
import numpy as np
import pytest

from orienteer.calibration.constants import Constants, measure_pedestal, read_constants, write_constants
from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.source.patterns import Patterns


def test_a_pedestal_is_the_mean_of_dark_frames_whatever_a_few_cosmic_rays_do():
    draw = np.random.default_rng(1)
    level = draw.uniform(900, 1100, 200)
    dark = np.rint(draw.normal(level, 5, (400, 200)))
    dark[draw.random(dark.shape) < 0.01] += 4000
    found = measure_pedestal(Patterns(dark.astype(np.uint16)))
    np.testing.assert_allclose(found.pedestal_adu[0], level, atol=1.5)
    assert abs(np.mean(found.pedestal_adu[0] - level)) < 0.1
    np.testing.assert_allclose(found.noise_adu.mean(), 5, rtol=0.05)


def test_pixels_are_measured_some_at_a_time_and_each_by_itself():
    draw = np.random.default_rng(3)
    dark = draw.normal(100, 5, (9, 5000)).astype(np.float32)
    whole, last = measure_pedestal(Patterns(dark)), measure_pedestal(Patterns(dark[:, 4090:]))
    np.testing.assert_array_equal(whole.pedestal_adu[:, 4090:], last.pedestal_adu)
    np.testing.assert_array_equal(whole.noise_adu[:, 4090:], last.noise_adu)


def test_pixels_that_always_show_the_same_have_no_noise():
    found = measure_pedestal(Patterns(np.full((3, 4), 7)))
    np.testing.assert_array_equal(found.pedestal_adu, np.full((1, 4), 7))
    np.testing.assert_array_equal(found.noise_adu, np.zeros((1, 4)))


def test_one_dark_frame_is_refused():
    with pytest.raises(OrienteerError, match="1 dark frames"):
        measure_pedestal(Patterns(np.zeros((1, 4))))


def test_constants_come_back_from_a_file_as_they_were(tmp_path):
    draw = np.random.default_rng(2)
    given = Constants(*(draw.uniform(1, 9, (3, 20)).astype(np.float32) for _ in range(3)))
    write_constants(tmp_path / "constants.h5", given)
    found = read_constants(tmp_path / "constants.h5", 20)
    for name in ("pedestal_adu", "gain_adu", "noise_adu"):
        np.testing.assert_array_equal(getattr(found, name), getattr(given, name))


def test_stages_come_before_the_rows_of_a_frame(tmp_path):
    with h5py.File(tmp_path / "made.h5", "w") as file:
        file["gain_adu"] = np.arange(1, 25).reshape(2, 3, 4)
    found = read_constants(tmp_path / "made.h5", 12)
    np.testing.assert_array_equal(found.gain_adu, np.arange(1, 25).reshape(2, 12))


def test_constants_in_the_shape_of_a_frame_are_one_stage(tmp_path):
    with h5py.File(tmp_path / "made.h5", "w") as file:
        file["gain_adu"] = np.arange(1, 13).reshape(3, 4)
    found = read_constants(tmp_path / "made.h5", 12)
    np.testing.assert_array_equal(found.gain_adu, np.arange(1, 13)[None])
    assert found.pedestal_adu is None


@pytest.mark.parametrize(
    ("name", "values", "error", "words"),
    [
        ("pedestal_adu", np.zeros(7), GeometryMismatch, "12 pixels"),
        ("pedestal_adu", np.zeros((12, 3)), GeometryMismatch, "12 pixels"),
        ("gain_adu", np.zeros(12), FileError, "not positive"),
        ("offset", np.zeros(12), FileError, "neither"),
    ],
)
def test_files_with_wrong_constants_are_refused(tmp_path, name, values, error, words):
    with h5py.File(tmp_path / "made.h5", "w") as file:
        file[name] = values
    with pytest.raises(error, match=words):
        read_constants(tmp_path / "made.h5", 12)
