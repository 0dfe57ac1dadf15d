"""Where no pixel has looked, the intensity of a run has no value."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.compute.hdf5_writing import new_hdf5
from orienteer.detector.hdf5 import write_detector
from orienteer.detector.masks import PixelUse
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.run.measured_intensity import measured_intensity, pixel_range_inv_A
from orienteer.volume.volume import Volume

WAVELENGTH_A = 2.0


def a_run(folder: Path, stop: float, wavelength_A: object = WAVELENGTH_A, resolution_A: float = 0.0) -> Any:
    """A run whose detector has a beam stop of so many pixels in radius, 0.002 1/A each."""
    detector = square_detector(33, pixel_size_m=2e-4, distance_m=0.05)
    length = np.linalg.norm(detector.q_inv_A(WAVELENGTH_A), axis=1)
    mask = np.where(length < stop * 0.002, PixelUse.NEVER, PixelUse.MERGE_ONLY).astype(np.uint8)
    with new_hdf5(folder / "detector.h5", libver="latest") as file:
        write_detector(file.create_group("detector"), detector.with_mask(mask))
    volume = Volume(np.ones((21, 21, 21)), 0.002, "reciprocal")
    described = {"input": {"wavelength_A": wavelength_A}}
    settings = SimpleNamespace(resolution_A=resolution_A)
    return SimpleNamespace(path=folder, volumes=lambda: (volume,), described=described, settings=settings)


def test_the_shadow_of_the_beam_stop_has_no_value(tmp_path: Path) -> None:
    run = a_run(tmp_path, stop=5)
    assert 0.01 <= pixel_range_inv_A(run)[0] < 0.012
    values = measured_intensity(run).values
    axis = np.arange(21) - 10
    radius = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    assert np.isnan(values[radius < 4.4]).all()
    assert (values[radius > 5.5] == 1).all()


def test_beyond_the_resolution_that_was_asked_for_there_is_no_value(tmp_path: Path) -> None:
    run = a_run(tmp_path, stop=0, resolution_A=1 / 0.0162)
    values = measured_intensity(run).values
    axis = np.arange(21) - 10
    radius = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    assert np.isnan(values[radius > 8.1]).all()
    assert (values[radius <= 8.1] == 1).all()


def test_beyond_the_outermost_pixel_there_is_no_value(tmp_path: Path) -> None:
    run = a_run(tmp_path, stop=0)
    wide = Volume(np.ones((65, 65, 65)), 0.002, "reciprocal")
    run.volumes = lambda: (wide,)
    edge = pixel_range_inv_A(run)[1]
    assert 0.04 < edge < 0.05  # the corner of the detector
    values = measured_intensity(run).values
    axis = (np.arange(65) - 32) * 0.002
    length = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    np.testing.assert_array_equal(np.isnan(values), length > edge)


def test_a_detector_without_a_stop_leaves_the_intensity_as_it_is(tmp_path: Path) -> None:
    assert measured_intensity(a_run(tmp_path, stop=0)).n_missing == 0


@pytest.mark.parametrize("wavelength_A", [None, "a hash of many"])
def test_without_one_wavelength_nothing_is_known_of_the_shadow(tmp_path: Path, wavelength_A: object) -> None:
    assert measured_intensity(a_run(tmp_path, 5, wavelength_A)).n_missing == 0


def test_of_wavelengths_that_vary_the_one_that_was_used_counts(tmp_path: Path) -> None:
    run = a_run(tmp_path, 5, "a hash of many")
    run.described["input"]["wavelengths"] = {"used_A": WAVELENGTH_A}
    assert 0.01 <= pixel_range_inv_A(run)[0] < 0.012
    assert measured_intensity(run).n_missing > 0


def test_without_a_detector_nothing_is_known_of_the_shadow(tmp_path: Path) -> None:
    run = a_run(tmp_path, 5)
    (tmp_path / "detector.h5").unlink()
    assert measured_intensity(run).n_missing == 0


def test_a_model_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OrienteerError, match="1 model;"):
        measured_intensity(a_run(tmp_path, 5), 1)
