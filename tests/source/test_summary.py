"""The summary of a data set: sums by an obvious loop, sparse and dense alike, masked pixels left out."""

import numpy as np
import pytest

import orienteer
from orienteer.detector.masks import PixelUse
from orienteer.detector.square import square_detector
from orienteer.source.patterns import Patterns
from orienteer.source.summary import Summary, blocks_to_look_at, radial_profile, summarise

DETECTOR = square_detector(16, pixel_size_m=0.001, distance_m=0.1, beam_stop_radius_pixels=3)
COUNTS = np.random.default_rng(1).poisson(0.3, (9, 256)).astype(np.int32)


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_agree_with_an_obvious_loop_and_leave_masked_pixels_out(sparse: bool) -> None:
    frames = Patterns(COUNTS).sparse() if sparse else COUNTS
    patterns = Patterns(frames, columns={"wavelength_A": np.full(9, 2.5)})
    source = orienteer.open(patterns, geometry=DETECTOR)
    summary = summarise(source, source.batches(4))
    used = DETECTOR.mask != PixelUse.NEVER
    assert summary.photons.tolist() == [int(frame[used].sum()) for frame in COUNTS]
    assert summary.lit_pixels.tolist() == [int((frame[used] > 0).sum()) for frame in COUNTS]
    np.testing.assert_array_equal(summary.total[used], COUNTS.sum(0)[used])
    assert summary.wavelength_A == 2.5
    assert summary.missing == {}
    report = summary.as_report()
    assert report["mask"]["never"] == int((~used).sum()) > 0
    assert sum(report["lit_pixels_histogram"]["frames"]) == 9


def test_what_nobody_knows_is_said_to_be_missing() -> None:
    summary = summarise(orienteer.open(COUNTS), orienteer.open(COUNTS).batches())
    assert tuple(summary.missing) == ("detector", "wavelength_A")
    assert summary.as_report()["resolution_edge_A"] is None


def summary_saying(wavelengths_A: list[float]) -> Summary:
    patterns = Patterns(COUNTS[: len(wavelengths_A)], columns={"wavelength_A": np.array(wavelengths_A)})
    source = orienteer.open(patterns, geometry=DETECTOR)
    return summarise(source, source.batches())


def test_a_wavelength_in_another_unit_is_a_problem_and_is_not_used() -> None:
    summary = summary_saying([2.7e-10] * 4)
    assert "2.7e-10 m are 2.7 A. Multiply the column" in summary.as_report()["missing"]["wavelength_A"]
    assert summary.wavelength_A is None
    assert summary.as_report()["resolution_edge_A"] is None


@pytest.mark.parametrize("nothing", [0.0, np.nan])
def test_frames_that_do_not_say_their_wavelength_are_counted(nothing: float) -> None:
    summary = summary_saying([2.7, nothing, nothing, 2.7])
    assert "2 of 4 frames have no wavelength" in summary.as_report()["missing"]["wavelength_A"]
    assert summary.wavelength_A == 2.7


def test_an_empty_data_set_has_an_empty_summary() -> None:
    source = orienteer.open(COUNTS[:0])
    summary = summarise(source, source.batches())
    assert len(summary.photons) == 0
    assert summary.as_report()["photons_per_frame"] == {}


@pytest.mark.parametrize(
    ("n_frames", "n_wanted"), [(0, 5), (1, 1), (1000, 10), (1000, 999), (1000, 5000), (70_000, 10_000)]
)
def test_blocks_lie_inside_do_not_overlap_and_hold_what_was_asked_for(n_frames: int, n_wanted: int) -> None:
    blocks = blocks_to_look_at(n_frames, n_wanted)
    frames = [i for block in blocks for i in range(block.start, block.stop)]
    assert frames == sorted(set(frames))
    assert all(0 <= i < n_frames for i in frames)
    assert len(frames) == min(n_wanted, n_frames)


def test_the_radial_profile_of_a_function_of_q_is_that_function() -> None:
    length = DETECTOR.q_length_inv_A(2.0)
    q, mean = radial_profile(length, DETECTOR, 2.0, n_shells=20)
    seen = np.isfinite(mean)
    width = q[1] - q[0]
    assert seen.sum() > 10
    assert np.abs(mean[seen] - q[seen]).max() <= width / 2
