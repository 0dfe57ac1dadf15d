"""Resolution at the edge, in the corner and on rings."""

import numpy as np
import pytest

from orienteer.detector.detector import Detector
from orienteer.detector.panel import Panel
from orienteer.detector.pixel_list import pixel_list
from orienteer.detector.resolution import (
    corner_resolution_A,
    edge_resolution_A,
    refuse_no_detail,
    resolution_rings,
)
from orienteer.detector.square import square_detector
from orienteer.errors import GeometryMismatch


def resolution_at(radius_m: float, distance_m: float, wavelength_A: float) -> float:
    return wavelength_A / (2 * np.sin(np.arctan(radius_m / distance_m) / 2))


def test_edge_and_corner_of_a_square() -> None:
    detector = square_detector(128, 0.000625, 0.2)
    assert edge_resolution_A(detector, 2.6953) == pytest.approx(resolution_at(0.04, 0.2, 2.6953), rel=1e-12)
    corner = np.sqrt(2) * 63.5 * 0.000625
    assert corner_resolution_A(detector, 2.6953) == pytest.approx(
        resolution_at(corner, 0.2, 2.6953), rel=1e-12
    )


def test_the_edge_is_the_nearest_side_when_the_beam_is_off_centre() -> None:
    detector = square_detector(100, 1e-3, 0.3).moved((0.02, 0, 0))
    assert edge_resolution_A(detector, 1.0) == pytest.approx(resolution_at(0.03, 0.3, 1.0), rel=1e-9)


def test_without_the_beam_inside_there_is_no_full_ring() -> None:
    assert edge_resolution_A(square_detector(10, 1e-3, 0.3).moved((0.02, 0, 0)), 1.0) == np.inf


def test_gaps_and_the_beam_stop_do_not_count_for_the_edge() -> None:
    panels = [
        Panel(f"p{k}", (x, -0.01, 0.1), (1e-3, 0, 0), (0, 1e-3, 0), (20, 8), 160 * k)
        for k, x in enumerate((-0.01, 0.002))
    ]
    assert edge_resolution_A(Detector(panels), 1.0) == pytest.approx(resolution_at(0.01, 0.1, 1.0))


def test_masked_pixels_do_not_count_for_the_corner() -> None:
    detector = square_detector(10, 1e-3, 0.1)
    radius = np.hypot(*detector.positions_m[:, :2].T)
    inner = detector.with_mask(np.where(radius > 4e-3, 2, 0))
    assert corner_resolution_A(inner, 1.0) == pytest.approx(
        resolution_at(radius[radius <= 4e-3].max(), 0.1, 1.0)
    )
    assert corner_resolution_A(detector.with_mask(np.full(100, 2)), 1.0) == np.inf


def test_pixels_on_a_line_have_no_full_ring() -> None:
    detector = Detector(pixels=pixel_list([[x, 0, 0.1] for x in (-2e-3, -1e-3, 1e-3, 2e-3)], 1e-8))
    assert edge_resolution_A(detector, 1.0) == np.inf


@pytest.mark.parametrize("wavelength", [0.1, 1.3, 2.7, 60.0])
def test_rings_have_round_resolutions_and_the_radius_that_belongs_to_them(wavelength: float) -> None:
    detector = square_detector(64, 1e-3, 0.2)
    rings = resolution_rings(detector, wavelength)
    assert len(rings) == 4
    for ring in rings:
        assert float(f"{ring.resolution_A:.2g}") == ring.resolution_A
        assert resolution_at(ring.radius_m, 0.2, wavelength) == pytest.approx(ring.resolution_A)
        assert ring.radius_m < np.sqrt(2) * 0.032


def test_a_detector_around_the_sample_still_has_rings(box_around_the_sample: Detector) -> None:
    assert corner_resolution_A(box_around_the_sample, 2.0) == pytest.approx(1.0, rel=1e-2)
    assert all(np.isfinite(ring.radius_m) for ring in resolution_rings(box_around_the_sample, 2.0))


def test_a_detector_that_shows_no_detail_of_any_particle_is_refused() -> None:
    detector = square_detector(64, 1e-3, 0.2)
    refuse_no_detail(detector, 2.7)
    refuse_no_detail(detector.with_mask(np.full(64 * 64, 2)), 2.7)  # that is another mistake
    with pytest.raises(GeometryMismatch, match=r"no detail of any particle.*\n.*stands at 200 m"):
        refuse_no_detail(detector.moved((0, 0, 199.8)), 2.7)
