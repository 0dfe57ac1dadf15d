"""Calibration against the same steps written out in NumPy, and on read-outs whose photons are known."""

import numpy as np
import pytest

from orienteer.calibration.calibration import Calibration
from orienteer.calibration.constants import Constants
from orienteer.calibration.settings import CalibrationSettings
from orienteer.compute.arrays import to_numpy
from orienteer.detector.detector import Detector
from orienteer.detector.panel import Panel
from orienteer.errors import GeometryMismatch, OrienteerError, SettingsError
from orienteer.source.patterns import Patterns

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
N_PIXELS = 600


def calibrated(raw, settings, device, constants=None, detector=None, **columns):
    patterns = Patterns(raw, columns=columns).to(device)
    return to_numpy(Calibration(settings, raw.shape[1], detector, constants)(patterns).frames)


def constants(n_stages=1):
    draw = np.random.default_rng(5)
    pedestal = draw.uniform(200, 300, (n_stages, N_PIXELS))
    gain = draw.uniform(20, 30, (n_stages, N_PIXELS)) / 4.0 ** np.arange(n_stages)[:, None]
    return Constants(pedestal.astype(np.float32), gain.astype(np.float32))


def read_out(photons, known, stage=0, offset=0.0, noise=1.0):
    draw = np.random.default_rng(6)
    pixel = np.arange(N_PIXELS)
    adu = photons * known.gain_adu[stage, pixel] + known.pedestal_adu[stage, pixel] + offset
    return np.rint(adu + draw.normal(0, noise, adu.shape)).clip(0).astype(np.uint16)


def photons_of(n=40, mean=0.3):
    return np.random.default_rng(7).poisson(mean, (n, N_PIXELS))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64])
def test_photon_counts_pass_untouched_by_default(dtype):
    patterns = Patterns(photons_of().astype(dtype))
    assert Calibration(CalibrationSettings(), N_PIXELS)(patterns) is patterns


@pytest.mark.parametrize("device", DEVICES)
def test_signal_becomes_photons_by_default_and_nan_none(device):
    photons = photons_of()
    signal = (photons + np.random.default_rng(8).uniform(-0.4, 0.4, photons.shape)).astype(np.float32)
    signal[3, 5], photons[3, 5] = np.nan, 0
    found = calibrated(signal, CalibrationSettings(), device)
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found, photons)
    kept = calibrated(signal, CalibrationSettings(count_photons=False), device)
    np.testing.assert_array_equal(kept, signal)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.int32, np.float32, np.float64])
def test_pedestal_and_gain_give_the_photons_back(device, dtype):
    known, photons = constants(), photons_of()
    found = calibrated(read_out(photons, known).astype(dtype), CalibrationSettings(), device, known)
    np.testing.assert_array_equal(found, photons)


@pytest.mark.parametrize("device", DEVICES)
def test_every_gain_stage_has_its_constants(device):
    known, photons = constants(3), photons_of(mean=4)
    stage = np.random.default_rng(9).integers(0, 3, photons.shape).astype(np.uint8)
    raw = read_out(photons, known, stage, noise=0)
    patterns = Patterns(raw, columns={"gain_stage": stage, "pulse": np.arange(len(raw))}).to(device)
    found = Calibration(CalibrationSettings(count_photons=False), N_PIXELS, constants=known)(patterns)
    np.testing.assert_allclose(to_numpy(found.frames), photons, atol=0.5)
    np.testing.assert_array_equal(
        calibrated(raw, CalibrationSettings(), device, known, gain_stage=stage),
        np.rint(to_numpy(found.frames)),
    )
    assert set(found.columns) == {"pulse"}


def test_gain_stages_may_have_the_shape_of_frames_and_must_be_told():
    known, photons = constants(2), photons_of(mean=4)
    stage = np.random.default_rng(9).integers(0, 2, photons.shape).astype(np.uint8)
    raw = read_out(photons, known, stage, noise=0)
    found = calibrated(raw, CalibrationSettings(), "cpu", known, gain_stage=stage.reshape(-1, 20, 30))
    np.testing.assert_array_equal(
        found, calibrated(raw, CalibrationSettings(), "cpu", known, gain_stage=stage)
    )
    for columns in ({}, {"gain_stage": stage[:, 0]}):
        with pytest.raises(OrienteerError, match="gain_stage"):
            calibrated(raw, CalibrationSettings(), "cpu", known, **columns)


@pytest.mark.parametrize("device", DEVICES)
def test_each_step_can_be_left_out(device):
    known, raw = constants(), read_out(photons_of(), constants())
    x, pedestal, gain = raw.astype(np.float64), known.pedestal_adu, known.gain_adu
    for asked, expected in [
        ({"subtract_pedestal": False}, x / gain),
        ({"divide_by_gain": False}, x - pedestal),
        ({}, (x - pedestal) / gain),
    ]:
        settings = CalibrationSettings(count_photons=False, **asked)
        np.testing.assert_allclose(calibrated(raw, settings, device, known), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_a_higher_threshold_counts_fewer_photons(device):
    signal = np.array([[0.2, 0.6, 0.8, 1.6, 1.8, -0.3, 7e4]], np.float32)
    found = calibrated(signal, CalibrationSettings(photon_threshold=0.7), device)
    np.testing.assert_array_equal(found, [[0, 0, 1, 1, 2, 0, 65535]])


def two_panels():
    shape = (15, 20)
    panels = [
        Panel(name, (0, 0, 0.1), (1e-4, 0, 0), (0, 1e-4, 0), shape, first_pixel=first)
        for name, first in (("a", 0), ("b", 300))
    ]
    return Detector(panels, frame_shape=(30, 20))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mean", [0.02, 0.3, 0.6])
def test_what_all_pixels_of_a_panel_have_too_much_is_taken_away(device, mean):
    known, photons = constants(), photons_of(60, mean)
    offset = np.random.default_rng(10).uniform(-25, 25, (60, 2))
    raw = read_out(photons, known, offset=np.repeat(offset, 300, axis=1), noise=3)
    with_offset = calibrated(raw, CalibrationSettings(), device, known)
    settings = CalibrationSettings(common_mode=True)
    found = calibrated(raw, settings, device, known, two_panels())
    assert (with_offset != photons).mean() > 0.2
    assert (found != photons).mean() < 1e-3
    one_panel = calibrated(raw, settings, device, known)
    assert (one_panel != photons).mean() > 0.05


@pytest.mark.parametrize("device", DEVICES)
def test_a_common_mode_is_as_wide_in_adu_as_in_photons(device):
    known, photons = constants(), photons_of(60)
    offset = np.random.default_rng(10).uniform(-25, 25, (60, 1))
    raw = read_out(photons, known, offset=offset, noise=3)
    in_photons = CalibrationSettings(common_mode=True, count_photons=False)
    in_adu = in_photons.model_copy(update={"divide_by_gain": False})
    found = calibrated(raw, in_adu, device, known) / known.gain_adu
    np.testing.assert_allclose(found, calibrated(raw, in_photons, device, known), atol=1e-4)


def test_one_gain_for_all_pixels_is_enough():
    found = calibrated(np.array([[0, 49, 51, 149]]), CalibrationSettings(adu_per_photon=100), "cpu")
    np.testing.assert_array_equal(found, [[0, 0, 1, 1]])


def test_two_gains_for_one_pixel_are_refused():
    with pytest.raises(SettingsError, match="both"):
        Calibration(CalibrationSettings(adu_per_photon=5), N_PIXELS, constants=constants())


def test_lists_of_photons_and_other_detectors_are_refused():
    calibration = Calibration(CalibrationSettings(), N_PIXELS, constants=constants())
    with pytest.raises(OrienteerError, match="counts already"):
        calibration(Patterns(Patterns(photons_of()).sparse()))
    with pytest.raises(GeometryMismatch, match="7 pixels"):
        calibration(Patterns(np.zeros((2, 7), np.uint16)))


@pytest.mark.parametrize("n_stages", [1, 2])
def test_values_of_a_stage_without_constants_are_not_taken_for_those_of_another(n_stages):
    raw = np.full((2, 6), 100, np.uint16)
    stage = np.zeros((2, 6), np.uint8)
    known = Constants(gain_adu=np.full((n_stages, 6), 10, np.float32))
    calibration = Calibration(CalibrationSettings(), 6, None, known)
    calibration(Patterns(raw, columns={"gain_stage": stage}))
    stage[1, 3] = n_stages
    with pytest.raises(OrienteerError, match=f"of gain stage {n_stages} .* constants is {n_stages}"):
        calibration(Patterns(raw, columns={"gain_stage": stage}))
