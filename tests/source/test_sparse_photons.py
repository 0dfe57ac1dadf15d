"""Lists of photons against dense frames, which are their obvious form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from orienteer.errors import OrienteerError
from orienteer.source.sparse_photons import (
    SparsePhotons,
    check_photons,
    concatenate_photons,
    dense_from_photons,
    photons_from_dense,
)

SHAPES = st.tuples(st.integers(0, 12), st.integers(1, 30))
COUNTS = hnp.arrays(np.int32, SHAPES, elements=st.sampled_from([0, 0, 0, 1, 2, 70000]))


@settings(max_examples=60, deadline=None)
@given(frames=COUNTS)
def test_sparse_and_dense_are_two_views_of_the_same_counts(frames: np.ndarray) -> None:
    photons = photons_from_dense(frames)
    assert check_photons(photons) is None
    assert len(photons.pixel) == np.count_nonzero(frames)
    np.testing.assert_array_equal(dense_from_photons(photons), frames)
    np.testing.assert_array_equal(photons.photons, frames.sum(axis=1))


@settings(max_examples=60, deadline=None)
@given(frames=COUNTS, data=st.data())
def test_choosing_frames_is_the_same_in_both_views(frames: np.ndarray, data: st.DataObject) -> None:
    n_frames = len(frames)
    some = st.lists(st.integers(-n_frames, n_frames - 1), max_size=20) if n_frames else st.just([])
    choice = data.draw(
        st.one_of(
            st.slices(max(n_frames, 1)),
            some.map(lambda indices: np.array(indices, dtype=int)),
            hnp.arrays(bool, n_frames),
        )
    )
    chosen = photons_from_dense(frames)[choice]
    assert check_photons(chosen) is None
    np.testing.assert_array_equal(dense_from_photons(chosen), frames[choice])


@settings(max_examples=30, deadline=None)
@given(frames=COUNTS, cut=st.integers(0, 12))
def test_concatenating_parts_gives_the_whole(frames: np.ndarray, cut: int) -> None:
    photons = photons_from_dense(frames)
    joined = concatenate_photons([photons[:cut], photons[cut:]])
    np.testing.assert_array_equal(dense_from_photons(joined), frames)


@pytest.mark.parametrize(
    ("start", "pixel", "count", "frame", "words"),
    [
        ([0, 2, 1, 3], [0, 1, 2], [1, 1, 1], 1, "starts after it ends"),
        ([0, 1, 3], [0, 1, 9], [1, 1, 1], 1, "pixel 9 of 9"),
        ([0, 1, 3], [0, -1, 3], [1, 1, 1], 1, "pixel -1"),
        ([0, 1, 3], [0, 1, 2], [1, 1, 0], 1, "0 photons"),
        ([0, 1, 3], [5, 3, 2], [1, 1, 1], 1, "out of order"),
        ([0, 0, 2], [3, 3], [1, 1], 1, "out of order or twice"),
    ],
)
def test_a_broken_list_is_found_with_its_frame(
    start: list[int], pixel: list[int], count: list[int], frame: int, words: str
) -> None:
    photons = SparsePhotons(np.array(start), np.array(pixel), np.array(count), 9)
    found = check_photons(photons)
    assert found is not None
    assert found[0] == frame
    assert words in found[1]


def test_a_new_frame_may_start_at_a_lower_pixel() -> None:
    photons = SparsePhotons(np.array([0, 2, 2, 4]), np.array([3, 5, 0, 1]), np.ones(4, int), 9)
    assert check_photons(photons) is None


@pytest.mark.parametrize(
    ("start", "pixel", "count"),
    [
        ([], [], []),
        ([0, 3], [1, 2], [1, 1]),
        ([1, 2], [1, 2], [1, 1]),
        ([0, 2], [1, 2], [1]),
        ([0, 2], [1.0, 2.0], [1, 1]),
        ([0, 2], [1, 2], [1, 2**40]),
    ],
)
def test_lists_that_cannot_belong_together_are_an_error(start: list, pixel: list, count: list) -> None:
    with pytest.raises(OrienteerError):
        SparsePhotons(np.array(start, dtype=int), np.array(pixel), np.array(count), 9)


@pytest.mark.gpu
def test_the_gpu_gives_the_same_lists_as_the_cpu() -> None:
    import cupy

    frames = np.random.default_rng(3).poisson(0.2, (50, 40)).astype(np.int32)
    photons = photons_from_dense(cupy.asarray(frames))
    expected = photons_from_dense(frames)
    np.testing.assert_array_equal(photons.start.get(), expected.start)
    np.testing.assert_array_equal(photons.pixel.get(), expected.pixel)
    np.testing.assert_array_equal(photons.count.get(), expected.count)
    assert check_photons(photons) is None
    chosen = photons[cupy.asarray([7, 3, 49, 3])]
    np.testing.assert_array_equal(dense_from_photons(chosen).get(), frames[[7, 3, 49, 3]])
    np.testing.assert_array_equal(photons.photons.get(), frames.sum(axis=1))
    joined = concatenate_photons([photons[:20], photons[20:]])
    np.testing.assert_array_equal(dense_from_photons(joined).get(), frames)
