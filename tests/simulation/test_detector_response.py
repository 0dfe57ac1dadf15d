"""The integrating detector: gain, switching, noise, saturation, dead pixels."""

import numpy as np
import pytest

from orienteer.detector.detector import Detector
from orienteer.detector.panel import Panel
from orienteer.errors import OrienteerError
from orienteer.simulation.detector_response import DetectorResponse, dead_pixels

EVENTS = np.arange(4)


def test_an_ideal_detector_returns_the_photons() -> None:
    photons = np.arange(40, dtype=np.int32).reshape(4, 10)
    response = DetectorResponse(gain_adu=20)
    adu, stage, saturated = response.read_out(photons, 0, EVENTS)
    assert not saturated.any()
    np.testing.assert_array_equal(adu, 20.0 * photons)
    assert not stage.any()
    np.testing.assert_array_equal(response.calibrate(adu, stage), photons)


def test_pixels_switch_gain_at_the_thresholds() -> None:
    response = DetectorResponse(60, 0, (50, 1000), (1 / 30, 1 / 600))
    photons = np.array([[10, 50, 51, 1000, 1001, 5000]], np.float32)
    adu, stage, _ = response.read_out(photons, 0, EVENTS[:1])
    assert stage.tolist() == [[0, 0, 1, 1, 2, 2]]
    np.testing.assert_array_equal(adu, np.round([[600, 3000, 102, 2000, 100.1, 500]]))
    np.testing.assert_allclose(response.calibrate(adu, stage), photons, rtol=1e-2)


def test_noise_has_its_width_and_grows_in_photons_after_switching() -> None:
    response = DetectorResponse(100, 5, (50,), (0.1,))
    low, stage, _ = response.read_out(np.zeros((4, 20_000), np.float32), 1, EVENTS)
    assert low.std() == pytest.approx(5, rel=0.02)
    high, high_stage, _ = response.read_out(np.full((4, 20_000), 60, np.float32), 1, EVENTS)
    assert response.calibrate(high, high_stage).std() == pytest.approx(0.5, rel=0.03)
    assert response.calibrate(low, stage).std() == pytest.approx(0.05, rel=0.03)


def test_saturation_cuts_the_signal_off() -> None:
    response = DetectorResponse(10, 0, (100,), (0.1,), saturation_photons=2000)
    adu, stage, saturated = response.read_out(np.array([[1999, 2000, 1e6]], np.float32), 0, EVENTS[:1])
    assert saturated.tolist() == [[False, True, True]]
    np.testing.assert_allclose(response.calibrate(adu, stage), [[1999, 2000, 2000]])


def test_dead_pixels_are_a_share_and_whole_panels() -> None:
    panels = [
        Panel(
            name,
            origin_m=(0.1 * i, 0, 1),
            fast_m=(1e-3, 0, 0),
            slow_m=(0, 1e-3, 0),
            shape=(50, 50),
            first_pixel=2500 * i,
        )
        for i, name in enumerate(("a", "b"))
    ]
    detector = Detector(panels, frame_shape=(2, 50, 50))
    some = dead_pixels(detector, 0.1, (), seed=3)
    assert some.mean() == pytest.approx(0.1, abs=0.03)
    np.testing.assert_array_equal(some, dead_pixels(detector, 0.1, (), seed=3))
    panel = dead_pixels(detector, 0, ("b",), seed=3)
    assert panel[2500:].all()
    assert not panel[:2500].any()
    with pytest.raises(OrienteerError, match="'c'"):
        dead_pixels(detector, 0, ("c",), seed=3)
