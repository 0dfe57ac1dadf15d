"""What all sources share: choosing frames, batches, geometry and checks."""

from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.detector.detector import Detector
from orienteer.detector.square import square_detector
from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.source.base import Source
from orienteer.source.file_source import FileSource
from orienteer.source.finite_source import BATCH_BYTES
from orienteer.source.patterns import Patterns


class Stored(FileSource):
    """Frames in memory that claim to come from a file."""

    format = "Stored"

    def __init__(self, frames: np.ndarray, path: Any = "run.data") -> None:
        super().__init__(path)
        self.frames, self.asked = frames, []
        self.n_frames, self.frame_shape = len(frames), frames.shape[1:]

    def _read_frames(self, rows: slice) -> np.ndarray:
        self.asked.append((rows.start, rows.stop))
        return self.frames[rows].reshape(-1, self.n_pixels)


FRAMES = np.arange(20 * 6).reshape(20, 2, 3)
DETECTOR = square_detector((2, 3), pixel_size_m=1e-3, distance_m=0.1)


@pytest.mark.parametrize(
    "choice",
    [
        slice(None),
        slice(3, 9),
        slice(9, 3),
        slice(-4, None),
        slice(None, None, 3),
        [7],
        7,
        [19, 0, 0, -1, 5, 6],
        [],
    ],
    ids=str,
)
def test_chosen_frames_are_those_of_the_array(choice) -> None:
    read = Stored(FRAMES).read(choice)
    expected = np.atleast_1d(np.arange(20)[choice if choice != [] else slice(0)])
    np.testing.assert_array_equal(read.event_id, expected)
    np.testing.assert_array_equal(read.frames, FRAMES.reshape(20, 6)[expected])


def test_a_mask_chooses_frames() -> None:
    even = np.arange(20) % 2 == 0
    np.testing.assert_array_equal(Stored(FRAMES).read(even).event_id, np.flatnonzero(even))


@pytest.mark.parametrize("choice", [[20], [-21], [0.5], [[1, 2]], np.ones(19, bool)], ids=str)
def test_a_frame_that_is_not_there_is_an_error_with_the_file(choice) -> None:
    with pytest.raises(OrienteerError, match=r"run\.data"):
        Stored(FRAMES).read(choice)


def test_neighbouring_indices_are_read_in_one_stroke() -> None:
    source = Stored(FRAMES)
    source.read([3, 4, 5, 11, 12])
    assert source.asked == [(3, 6), (11, 13)]


def test_batches_cover_all_frames_in_order() -> None:
    sizes = [len(batch) for batch in Stored(FRAMES).batches(7)]
    assert sizes == [7, 7, 6]
    ids = np.concatenate([batch.event_id for batch in Stored(FRAMES).batches(7)])
    np.testing.assert_array_equal(ids, np.arange(20))
    with pytest.raises(OrienteerError):
        next(iter(Stored(FRAMES).batches(0)))


def test_the_default_batch_fits_in_64_mib() -> None:
    source = Stored(np.zeros((1, 512, 512), dtype=np.int32))
    assert source.frames_per_batch * 512 * 512 * 4 <= BATCH_BYTES
    assert Stored(np.zeros((1, 2**13, 2**13), dtype=np.uint8)).frames_per_batch == 1


def test_a_file_source_is_a_source() -> None:
    assert isinstance(Stored(FRAMES), Source)
    assert "20 frames of 2 x 3 pixels" in repr(Stored(FRAMES))


def test_a_detector_with_other_pixels_is_a_mismatch_with_both_numbers() -> None:
    source = Stored(FRAMES)
    with pytest.raises(GeometryMismatch, match=r"6 pixels .2 x 3.*describes 7"):
        source.with_detector(square_detector((7, 1), pixel_size_m=1e-3, distance_m=0.1))
    assert source.detector is None


@pytest.mark.parametrize(
    ("frames", "detector", "fits"),
    [
        ((100, 200), (200, 100), False),
        ((100, 200), (100, 200), True),
        ((16, 4, 8), (64, 8), True),
        ((64, 8), (16, 4, 8), True),
        ((1, 4, 8), (4, 8), True),
        ((20,), (4, 5), True),
        ((4, 5), (20,), True),
        ((1, 20), (4, 5), True),
        ((4, 5), (5, 4), False),
        ((2, 6, 4), (2, 4, 6), False),
        ((4, 5), (4, 6), False),
    ],
    ids=str,
)
def test_a_transposed_geometry_is_a_mismatch_and_a_regrouped_one_is_not(frames, detector, fits) -> None:
    source = Stored(np.zeros((1, *frames), np.int8))
    pixels = square_detector((1, int(np.prod(detector))), pixel_size_m=1e-3, distance_m=0.1)
    shaped = Detector(pixels.panels, frame_shape=detector)
    if fits:
        assert source.with_detector(shaped).detector is not None
    else:
        with pytest.raises(GeometryMismatch, match=" x ".join(map(str, detector))):
            source.with_detector(shaped)


def test_a_detector_makes_another_source_and_leaves_the_first_as_it_was() -> None:
    source = Stored(FRAMES)
    other = source.with_detector(DETECTOR)
    assert source.detector is None
    assert other.detector is DETECTOR
    assert np.array_equal(other.read([3]).frames, source.read([3]).frames)


class Named(Stored):
    """Frames with names and columns; it refuses to read frames."""

    stored_columns = ("score", "spectrum")

    def _read_frames(self, rows: slice) -> np.ndarray:
        raise AssertionError("frames were read")

    def _read_event_ids(self, rows: slice) -> np.ndarray:
        return np.arange(20, dtype=np.uint64)[rows] + 100

    def _read_columns(self, names, rows: slice) -> dict[str, np.ndarray]:
        columns = {"score": np.arange(20.0), "spectrum": np.arange(40.0).reshape(20, 2)}
        return {name: columns[name][rows] for name in names}


@pytest.mark.parametrize("choice", [slice(None), slice(4, 9), [7, 2, 2], [], np.arange(20) > 15], ids=str)
def test_names_and_columns_are_read_without_frames(choice) -> None:
    source = Named(FRAMES)
    expected = np.arange(20)[choice if not isinstance(choice, list) else np.array(choice, int)]
    ids = source.event_ids(choice)
    assert ids.dtype == np.uint64
    assert ids.tolist() == (expected + 100).tolist()
    columns = source.read_columns(frames=choice)
    assert set(columns) == {"score", "spectrum"}
    assert columns["score"].tolist() == expected.tolist()
    assert columns["spectrum"].shape == (len(expected), 2)
    assert set(source.read_columns(["score"], choice)) == {"score"}
    with pytest.raises(OrienteerError, match=r"no column 'scores'"):
        source.read_columns(["scores"])


def test_frames_without_names_are_numbered_and_say_so() -> None:
    source = Stored(FRAMES)
    assert source.event_ids([5, 3]).tolist() == [5, 3]
    assert not source.read([5, 3]).has_event_ids
    assert source.n_frames == source.refresh() == 20


def test_the_wavelength_that_is_given_holds_and_a_note_tells_what_the_data_say() -> None:
    patterns = Patterns(FRAMES.reshape(20, 6))
    assert orienteer.open(patterns, wavelength_A=2.5).read_columns()["wavelength_A"].tolist() == [2.5] * 20
    known = np.where(np.arange(20) < 5, 1.5, np.nan)
    with pytest.warns(UserWarning, match=r"say a wavelength of 1\.5 A; 2\.5 A is used"):
        source = orienteer.open(patterns.with_columns(wavelength_A=known), wavelength_A=2.5)
    assert source.read().columns["wavelength_A"].tolist() == [2.5] * 20
    assert source.column_names == ("wavelength_A",)


def test_nan_is_an_error_that_names_the_frame_unless_the_mask_excludes_the_pixel() -> None:
    frames = np.zeros((5, 2, 3), dtype=np.float32)
    frames[3, 1, 2] = np.nan
    source = Stored(frames)
    with pytest.raises(FileError, match=r"run\.data: frame 3 .*pixel 5"):
        source.read()
    for level, is_read in ((1, False), (2, True)):
        mask = np.array([0, 0, 0, 0, 0, level], dtype=np.uint8)
        masked = source.with_detector(DETECTOR.with_mask(mask))
        if is_read:
            assert len(masked.read()) == 5
        else:
            with pytest.raises(FileError, match="frame 3"):
                masked.read(slice(2, 5))


def test_a_negative_count_is_an_error_that_names_the_frame() -> None:
    frames = FRAMES.copy()
    frames[11, 0, 1] = -4
    with pytest.raises(FileError, match=r"frame 11 has a negative count \(-4\) at pixel 1"):
        list(Stored(frames).batches(4))
