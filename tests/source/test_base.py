"""What all sources share: choosing frames, batches, geometry and checks."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.source.base import BATCH_BYTES, FileSource, Source
from orienteer.source.patterns import Patterns


class Stored(FileSource):
    """Frames in memory that claim to come from a file."""

    format = "Stored"

    def __init__(self, frames: np.ndarray, path: Any = "run.data") -> None:
        super().__init__(path)
        self.frames, self.asked = frames, []
        self.n_frames, self.frame_shape = len(frames), frames.shape[1:]

    def _read_range(self, first: int, last: int) -> Patterns:
        self.asked.append((first, last))
        return Patterns(self.frames[first:last].reshape(last - first, self.n_pixels), np.arange(first, last))


FRAMES = np.arange(20 * 6).reshape(20, 2, 3)


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
        source.attach(SimpleNamespace(n_pixels=7, name="other", mask=None))  # type: ignore[arg-type]
    assert source.detector is None


def test_nan_is_an_error_that_names_the_frame_unless_the_mask_excludes_the_pixel() -> None:
    frames = np.zeros((5, 2, 3), dtype=np.float32)
    frames[3, 1, 2] = np.nan
    source = Stored(frames)
    with pytest.raises(FileError, match=r"run\.data: frame 3 .*pixel 5"):
        source.read()
    mask = np.zeros(6, dtype=np.uint8)
    mask[5] = 1
    source.attach(SimpleNamespace(n_pixels=6, name="d", mask=mask))  # type: ignore[arg-type]
    with pytest.raises(FileError, match="frame 3"):
        source.read(slice(2, 5))
    mask[5] = 2
    assert len(source.read()) == 5


def test_a_negative_count_is_an_error_that_names_the_frame() -> None:
    frames = FRAMES.copy()
    frames[11, 0, 1] = -4
    with pytest.raises(FileError, match=r"frame 11 has a negative count \(-4\) at pixel 1"):
        list(Stored(frames).batches(4))
