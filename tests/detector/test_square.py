"""The square detector is symmetric about the beam and as large as it is asked to be."""

import numpy as np
import pytest

from orienteer.detector.beam import Beam
from orienteer.detector.resolution import edge_resolution_A
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError


@pytest.mark.parametrize("n", [2, 5, 64])
def test_pixel_centres_are_symmetric_about_the_beam(n: int) -> None:
    positions = square_detector(n, 1e-3, 0.1).positions_m.reshape(n, n, 3)
    assert np.allclose(positions[::-1, ::-1, :2], -positions[..., :2], atol=1e-17)
    assert np.allclose(positions[0, :, 0], (np.arange(n) + 0.5) * 1e-3 - n * 1e-3 / 2)


def test_x_runs_along_the_fast_axis() -> None:
    positions = square_detector(4, 1e-3, 0.1).positions_m.reshape(4, 4, 3)
    assert (np.diff(positions[..., 0], axis=1) > 0).all()
    assert (np.diff(positions[..., 1], axis=0) > 0).all()


def test_the_edge_resolution_sets_the_pixel_size_or_the_distance() -> None:
    wavelength = Beam(photon_energy_eV=4600).wavelength_A
    for given in ({"distance_m": 0.2}, {"pixel_size_m": 5e-4}):
        detector = square_detector(128, edge_resolution_A=12.0, wavelength_A=wavelength, **given)
        assert edge_resolution_A(detector, wavelength) == pytest.approx(12.0, rel=1e-12)
    # By hand: the middle of a side sees 2 theta with |q| = 2 sin(theta) / lambda.
    half_width = 64 * 5e-4
    two_theta = np.arctan(half_width / detector.distance_m)
    assert wavelength / (2 * np.sin(two_theta / 2)) == pytest.approx(12.0)


def test_the_beam_stop_is_never_used_and_corners_are_merged_only() -> None:
    detector = square_detector(20, 1e-3, 0.1, beam_stop_radius_pixels=3, corners="merge_only")
    radius = np.hypot(*detector.positions_m[:, :2].T) / 1e-3
    assert np.array_equal(detector.mask, np.where(radius < 3, 2, np.where(radius > 10, 1, 0)))
    assert set(detector.mask) == {0, 1, 2}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"pixel_size_m": 1e-3},
        {"pixel_size_m": 1e-3, "distance_m": 0.1, "edge_resolution_A": 5.0},
        {"pixel_size_m": 1e-3, "edge_resolution_A": 5.0},
        {"pixel_size_m": -1e-3, "distance_m": 0.1},
        {"pixel_size_m": 1e-3, "edge_resolution_A": 1.0, "wavelength_A": 2.7},
        {"pixel_size_m": 1e-3, "distance_m": 0.1, "corners": "round"},
        {"n_pixels": 0, "pixel_size_m": 1e-3, "distance_m": 0.1},
    ],
)
def test_an_undetermined_or_impossible_square_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(OrienteerError):
        square_detector(**arguments)  # type: ignore[arg-type]
