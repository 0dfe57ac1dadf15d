"""SpiniFEL's fields: the wavelength follows from the curvature, the geometry from the wavelength."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.detector.detector import Detector
from orienteer.detector.spinifel import spinifel_geometry, spinifel_wavelength_A, write_spinifel_group
from orienteer.detector.square import square_detector
from orienteer.errors import FileError

WAVELENGTH_A = 2.6953086


def write_reference(path: Path, dtype: str = "f4", axes_first: bool = False, **changes: object) -> None:
    """A file as Skopi's square detector of 16 pixels, 0.08 m, 0.2 m would give: (panel, y, x), x fastest."""
    x, y = np.meshgrid((np.arange(16) + 0.5) * 0.005 - 0.04, (np.arange(16) + 0.5) * 0.005 - 0.04)
    position = np.stack([x, y, np.full_like(x, 0.2)], axis=-1)
    distance = np.linalg.norm(position, axis=-1)
    s = (position / distance[..., None] - [0, 0, 1]) / (WAVELENGTH_A * 1e-10)
    fields = {
        "pixel_position_reciprocal": (np.moveaxis(s[None], -1, 0) if axes_first else s[None]).astype(dtype),
        "solid_angle": (0.005**2 * 0.2 / distance**3)[None].astype(dtype),
        "polarization": (1 - (x / distance) ** 2)[None].astype(dtype),
    }
    with h5py.File(path, "w") as file:
        for name, values in (fields | changes).items():
            if values is not None:
                file[name] = values
        file.attrs["det_distance"] = 0.2


@pytest.mark.parametrize("axes_first", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_square_detector_of_skopi_is_found_again(dtype: str, axes_first: bool, tmp_path: Path) -> None:
    write_reference(tmp_path / "a.h5", dtype, axes_first)
    expected = square_detector(16, 0.005, 0.2)
    with h5py.File(tmp_path / "a.h5") as file:
        assert spinifel_wavelength_A(file) == pytest.approx(
            WAVELENGTH_A, rel=1e-5 if dtype == "f4" else 1e-12
        )
        detector = spinifel_geometry(file).detector
    assert detector.frame_shape == (1, 16, 16)
    assert len(detector.panels) == 1
    assert detector.efficiency is None
    tolerance = 1e-6 if dtype == "f4" else 1e-15
    assert np.allclose(detector.positions_m, expected.positions_m, rtol=0, atol=tolerance)


def test_a_round_trip_keeps_geometry_mask_and_correction(tmp_path: Path) -> None:
    detector = square_detector(12, 1e-3, 0.05, beam_stop_radius_pixels=2)
    detector = detector.with_efficiency(np.linspace(0.5, 1, 144))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        write_spinifel_group(file, detector, WAVELENGTH_A)
        found = spinifel_geometry(file).detector
        assert file["pixel_index_map"][0, 3, 5].tolist() == [5, 3]
    assert np.allclose(found.positions_m, detector.positions_m, rtol=0, atol=1e-15)
    assert np.allclose(found.correction(), detector.correction(), rtol=1e-13)
    assert np.array_equal(found.mask, detector.mask)


def test_tilted_panels_with_gaps_keep_directions_and_correction(
    tilted_detector: Detector, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        write_spinifel_group(file, tilted_detector, 1.5)
        found = spinifel_geometry(file).detector
    assert np.allclose(found.directions, tilted_detector.directions, atol=1e-14)
    assert np.allclose(found.correction(), tilted_detector.correction(), rtol=1e-12)
    assert np.array_equal(found.covered, tilted_detector.covered)


def test_a_flat_file_needs_the_wavelength(tmp_path: Path) -> None:
    write_reference(tmp_path / "a.h5", "f8")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["pixel_position_reciprocal"][..., 2] = 0
        with pytest.raises(FileError, match="flat"):
            spinifel_geometry(file)
        detector = spinifel_geometry(file, wavelength_A=WAVELENGTH_A).detector
    assert np.allclose(detector.positions_m, square_detector(16, 0.005, 0.2).positions_m)


def test_a_wavelength_that_contradicts_the_curvature_is_an_error_that_names_the_right_one(
    tmp_path: Path,
) -> None:
    write_reference(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(FileError, match=r"belongs to 2\.695"):
        spinifel_geometry(file, wavelength_A=1.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pixel_position_reciprocal": np.zeros((1, 4, 4, 2))}, "shape"),
        ({"pixel_position_reciprocal": np.zeros((1, 4, 4, 3), int)}, "int64"),
        ({"pixel_position_reciprocal": np.full((1, 4, 4, 3), np.nan)}, "finite"),
        ({"pixel_position_reciprocal": np.ones((1, 16, 16, 3))}, "flat|Ewald"),
        ({"solid_angle": np.ones((1, 3, 3))}, "solid_angle"),
        ({"solid_angle": -np.ones((1, 16, 16))}, "solid_angle"),
        ({"mask": np.full((1, 16, 16), 9)}, "levels"),
    ],
)
def test_damaged_fields_are_file_errors(changes: dict[str, object], words: str, tmp_path: Path) -> None:
    write_reference(tmp_path / "a.h5", **changes)  # type: ignore[arg-type]
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(FileError, match=words):
        spinifel_geometry(file)


def test_without_solid_angles_the_spacing_gives_the_area(tmp_path: Path) -> None:
    write_reference(tmp_path / "a.h5", "f8", solid_angle=None)
    with h5py.File(tmp_path / "a.h5") as file:
        detector = spinifel_geometry(file, distance_m=1.0).detector
    assert detector.distance_m == 1.0
    assert np.allclose(detector.solid_angle_sr, square_detector(16, 0.005, 0.2).solid_angle_sr, rtol=1e-9)
