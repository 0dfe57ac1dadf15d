"""Frames over a pixel list: the right pixels in the right order, masks obeyed, sums exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.errors import OrienteerError
from orienteer.likelihood import reading_frames
from orienteer.likelihood.frames import FrameBatch, scored_stop
from orienteer.source.patterns import Patterns
from orienteer.source.sparse_photons import check_photons, dense_from_photons, photons_from_dense

N_ALL, N_LIST, N_SCORED = 60, 41, 23


def counts(n_frames: int = 7, seed: int = 1, largest: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, largest + 1, (n_frames, N_ALL)) * (rng.random((n_frames, N_ALL)) < 0.3)


def pixel_list(seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).permutation(N_ALL)[:N_LIST]


def dense_of(batch: FrameBatch) -> np.ndarray:
    return batch.dense if batch.photons is None else dense_from_photons(batch.photons)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_the_list_pixels_come_in_list_order_from_either_storage(stored: str, layout: str) -> None:
    frames, pixels = counts(), pixel_list()
    patterns = Patterns(frames if stored == "dense" else photons_from_dense(frames))
    batch = FrameBatch.prepare(patterns, pixels, N_SCORED, "cpu", layout)
    expected = frames[:, pixels]
    np.testing.assert_array_equal(dense_of(batch), expected)
    assert batch.missing is None
    assert (len(batch), batch.n_pixels, batch.n_scored) == (7, N_LIST, N_SCORED)
    np.testing.assert_array_equal(batch.photons_total, expected.sum(1))
    np.testing.assert_array_equal(batch.scored_photons, expected[:, :N_SCORED].sum(1))
    np.testing.assert_array_equal(batch.squares, (expected[:, :N_SCORED] ** 2).sum(1))
    assert batch.squares.dtype == batch.scored_photons.dtype == batch.photons_total.dtype == np.float64
    if batch.photons is not None:
        assert check_photons(batch.photons) is None
        stop = scored_stop(batch.photons, N_SCORED)
        np.testing.assert_array_equal(stop - batch.photons.start[:-1], (expected[:, :N_SCORED] > 0).sum(1))


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_what_a_frame_forbids_is_missing_and_holds_nothing(stored: str, layout: str) -> None:
    frames, pixels = counts() + 1, pixel_list()
    mask = np.random.default_rng(3).choice([0, 0, 0, 1, 2], frames.shape).astype(np.uint8)
    mask[2] = 0
    patterns = Patterns(
        frames if stored == "dense" else photons_from_dense(frames), None, {"frame_mask": mask}
    )
    batch = FrameBatch.prepare(patterns, pixels, N_SCORED, "cpu", layout)
    # Merge-only in a frame forbids a pixel that would be scored, and leaves those that are only merged.
    forbidden = mask[:, pixels] >= np.where(np.arange(N_LIST) < N_SCORED, 1, 2)
    np.testing.assert_array_equal(dense_from_photons(batch.missing), forbidden)
    expected = np.where(forbidden, 0, frames[:, pixels])
    np.testing.assert_array_equal(dense_of(batch), expected)
    np.testing.assert_array_equal(batch.scored_photons, expected[:, :N_SCORED].sum(1))


@pytest.mark.parametrize(
    ("largest", "dtype"), [(255, "u1"), (256, "u2"), (65535, "u2"), (65536, "f4"), (2**24 + 1, "f4")]
)
def test_dense_counts_take_the_bytes_they_need(largest: int, dtype: str) -> None:
    frames = counts()
    frames[3, pixel_list()[0]] = largest
    batch = FrameBatch.prepare(Patterns(frames), pixel_list(), N_SCORED, "cpu", "dense")
    assert batch.dense.dtype == dtype
    assert batch.dense.max() == np.float32(largest)
    assert batch.photons_total[3] == frames[3, pixel_list()].sum()


@given(seed=st.integers(0, 1000), first=st.integers(-8, 8), last=st.integers(-8, 8))
@settings(max_examples=20, deadline=None)
def test_choosing_frames_equals_preparing_the_chosen(seed: int, first: int, last: int) -> None:
    frames = counts(seed=seed)
    mask = (np.random.default_rng(seed).random(frames.shape) < 0.1).astype(np.uint8) * 2
    patterns = Patterns(frames, None, {"frame_mask": mask})
    chosen = [slice(first, last), np.random.default_rng(seed).integers(0, 7, 5), frames[:, 0] > 0]
    for layout in ("dense", "sparse"):
        whole = FrameBatch.prepare(patterns, pixel_list(), N_SCORED, "cpu", layout)
        for index in chosen:
            part = whole[index]
            np.testing.assert_array_equal(dense_of(part), dense_of(whole)[index])
            np.testing.assert_array_equal(part.squares, whole.squares[index])
            if whole.missing is not None:
                np.testing.assert_array_equal(
                    dense_from_photons(part.missing), dense_from_photons(whole.missing)[index]
                )


def test_frames_without_photons_and_no_frames_at_all() -> None:
    for layout in ("dense", "sparse"):
        dark = FrameBatch.prepare(Patterns(np.zeros((3, N_ALL), int)), pixel_list(), N_SCORED, "cpu", layout)
        assert dark.photons_total.tolist() == [0, 0, 0]
        none = FrameBatch.prepare(Patterns(counts()[:0]), pixel_list(), N_SCORED, "cpu", layout)
        assert len(none) == 0
        assert len(none[:0]) == 0


def test_signal_stays_float_and_has_no_lists() -> None:
    signal = np.random.default_rng(5).normal(size=(4, N_ALL))
    batch = FrameBatch.prepare(Patterns(signal), pixel_list(), N_SCORED, "cpu", "dense")
    np.testing.assert_array_equal(batch.dense, signal[:, pixel_list()].astype(np.float32))
    with pytest.raises(OrienteerError, match="dense layout"):
        FrameBatch.prepare(Patterns(signal), pixel_list(), N_SCORED, "cpu", "sparse")


def test_values_that_are_no_counts_name_their_event_and_masked_ones_do_not_matter() -> None:
    signal = np.ones((4, N_ALL))
    pixels = pixel_list()
    signal[2, pixels[4]] = np.nan
    with pytest.raises(OrienteerError, match="event 72 has a value that is not a finite number"):
        FrameBatch.prepare(Patterns(signal, np.arange(70, 74)), pixels, N_SCORED, "cpu")
    unused = np.setdiff1d(np.arange(N_ALL), pixels)
    signal[2, pixels[4]], signal[:, unused] = 1, np.nan
    assert (
        FrameBatch.prepare(Patterns(signal), pixels, N_SCORED, "cpu").photons_total.tolist() == [N_LIST] * 4
    )
    mask = np.zeros(signal.shape, np.uint8)
    mask[2, pixels[4]], signal[2, pixels[4]] = 2, np.nan
    batch = FrameBatch.prepare(Patterns(signal, None, {"frame_mask": mask}), pixels, N_SCORED, "cpu")
    assert batch.photons_total.tolist() == [N_LIST, N_LIST, N_LIST - 1, N_LIST]
    with pytest.raises(OrienteerError, match="event 0 has a negative count"):
        FrameBatch.prepare(Patterns(np.full((1, N_ALL), -1)), pixels, N_SCORED, "cpu")


@pytest.mark.parametrize(
    ("pixels", "n_scored", "words"),
    [([0, 1, 1], 2, "twice"), ([0, N_ALL], 1, "leaves"), ([-1, 0], 1, "leaves"), ([0, 1], 3, "do not fit"),
     ([0.0, 1.0], 1, "integers")],
)  # fmt: skip
def test_a_pixel_list_that_cannot_be_is_refused(pixels: list[float], n_scored: int, words: str) -> None:
    with pytest.raises(OrienteerError, match=words):
        FrameBatch.prepare(Patterns(counts()), np.array(pixels), n_scored, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_frames_on_the_gpu_equal_those_on_the_cpu(stored: str, layout: str) -> None:
    import cupy

    frames, pixels = counts(), pixel_list()
    mask = (np.random.default_rng(1).random(frames.shape) < 0.1).astype(np.uint8) * 2
    patterns = Patterns(
        frames if stored == "dense" else photons_from_dense(frames), None, {"frame_mask": mask}
    )
    on_cpu = FrameBatch.prepare(patterns, pixels, N_SCORED, "cpu", layout)
    for place in (patterns, patterns.to("cuda")):
        on_gpu = FrameBatch.prepare(place, pixels, N_SCORED, "cuda", layout)
        assert on_gpu.is_on_gpu
        np.testing.assert_array_equal(cupy.asnumpy(dense_of(on_gpu)), dense_of(on_cpu))
        np.testing.assert_array_equal(
            cupy.asnumpy(dense_from_photons(on_gpu.missing)), dense_from_photons(on_cpu.missing)
        )
        for name in ("scored_photons", "photons_total", "squares"):
            np.testing.assert_array_equal(getattr(on_gpu, name).get(), getattr(on_cpu, name))
        assert len(on_gpu[np.array([2, 0])]) == 2
    if layout == "dense":
        assert on_gpu.dense.dtype == np.float16
        assert FrameBatch.prepare(patterns, pixels, N_SCORED, "cuda", compact=True).dense.dtype == np.uint8


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_batch_of_copied_arrays_is_the_same_batch(layout: str, masked: bool) -> None:
    mask = np.random.default_rng(3).choice([0, 0, 2], (7, N_ALL)).astype(np.uint8)
    patterns = Patterns(counts(), None, {"frame_mask": mask} if masked else {})
    batch = FrameBatch.prepare(patterns, pixel_list(), N_SCORED, "cpu", layout)
    copied = batch.with_arrays([array.copy() for array in batch.arrays])
    assert (copied.dense is None, copied.missing is None) == (layout == "sparse", not masked)
    for old, new in zip(batch.arrays, copied.arrays, strict=True):
        assert new is not old
        assert new.dtype == old.dtype
        np.testing.assert_array_equal(new, old)
    np.testing.assert_array_equal(dense_of(copied), dense_of(batch))
    np.testing.assert_array_equal(copied.squares, batch.squares)


@pytest.mark.parametrize("largest", [5, 300, 70_000])
def test_lists_become_the_dense_frames_that_would_have_been_read(largest: int) -> None:
    frames = counts(largest=largest)
    read, listed = (
        FrameBatch.prepare(Patterns(frames), pixel_list(), N_SCORED, "cpu", layout)
        for layout in ("dense", "sparse")
    )
    spread = listed.in_layout("dense")
    assert spread.photons is None
    assert spread.dense.dtype == read.dense.dtype
    np.testing.assert_array_equal(spread.dense, read.dense)
    assert listed.in_layout("sparse") is listed
    assert read.in_layout("dense") is read


@pytest.mark.parametrize("masked", [False, True])
def test_lists_in_host_memory_are_read_as_those_of_any_device(masked: bool) -> None:
    rng = np.random.default_rng(5)
    photons = photons_from_dense(rng.poisson(0.2, (40, 300)).astype(np.uint16))
    pixels = rng.permutation(300)[:200]
    forbidden = (rng.random((40, 200)) < 0.1).astype(np.uint8) if masked else None
    expected = reading_frames._photons_over(photons, pixels, forbidden)
    found, sums = reading_frames._host_photons_over(photons, pixels, forbidden, 150)
    for name in ("start", "pixel", "count"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(sums, reading_frames._sums_of_photons(expected, 150))
