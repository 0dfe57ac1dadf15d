"""Patterns: one storage, two views, rows that stay together."""

import numpy as np
import pytest

from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.source.patterns import Patterns, SparsePhotons, concatenate, first_bad_frame


def example(n_frames: int = 6, n_pixels: int = 5, seed: int = 0) -> Patterns:
    random = np.random.default_rng(seed)
    frames = random.poisson(0.5, (n_frames, n_pixels)).astype(np.int32)
    columns = {
        "wavelength_A": random.normal(size=n_frames),
        "truth_orientation": random.normal(size=(n_frames, 4)),
    }
    return Patterns(frames, np.arange(100, 100 + n_frames, dtype=np.uint64), columns)


def sparse(patterns: Patterns) -> Patterns:
    return Patterns(patterns.sparse(), patterns.event_id, patterns.columns)


@pytest.mark.parametrize("form", [lambda p: p, sparse], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "choice",
    [slice(1, 4), slice(None, None, -2), [4, 0, 0], np.array([True, False, True, False, False, True]), 2, -1],
    ids=str,
)
def test_a_row_keeps_its_id_and_columns(form, choice) -> None:
    patterns = form(example())
    rows = np.atleast_1d(np.arange(len(patterns))[choice])
    chosen = patterns[choice]
    np.testing.assert_array_equal(chosen.event_id, 100 + rows)
    np.testing.assert_array_equal(chosen.dense(), patterns.dense()[rows])
    np.testing.assert_array_equal(
        chosen.columns["truth_orientation"], patterns.columns["truth_orientation"][rows]
    )
    assert chosen.is_sparse == patterns.is_sparse


def test_an_index_outside_and_a_mask_of_wrong_length_are_index_errors() -> None:
    with pytest.raises(IndexError):
        example()[6]
    with pytest.raises(IndexError):
        example()[np.array([True, False])]


def test_iterating_gives_batches_of_one() -> None:
    assert [len(one) for one in example(3)] == [1, 1, 1]


def test_photons_are_the_sums_of_the_frames() -> None:
    patterns = example()
    np.testing.assert_array_equal(patterns.photons, patterns.frames.sum(axis=1))
    np.testing.assert_array_equal(sparse(patterns).photons, patterns.photons)
    signal = Patterns(np.array([[0.5, np.nan, 1.0]], dtype=np.float32))
    np.testing.assert_array_equal(signal.photons, [1.5])


def test_many_bright_pixels_do_not_overflow_the_sum() -> None:
    assert Patterns(np.full((1, 3), 2**31 - 1, dtype=np.int32)).photons[0] == 3 * (2**31 - 1)


def test_signal_has_no_photon_list_and_says_what_to_do() -> None:
    with pytest.raises(OrienteerError, match="rint"):
        Patterns(np.zeros((2, 3), dtype=np.float32)).sparse()


def test_counts_too_large_for_a_photon_list_are_an_error() -> None:
    with pytest.raises(OrienteerError, match="more than"):
        Patterns(np.array([[2**40]])).sparse()


@pytest.mark.parametrize("seed", [0, 1])
def test_parts_join_to_the_whole(seed: int) -> None:
    patterns = example(seed=seed)
    for form in (lambda p: p, sparse):
        joined = concatenate([form(patterns[:2]), form(patterns[2:2]), form(patterns[2:])])
        np.testing.assert_array_equal(joined.dense(), patterns.dense())
        np.testing.assert_array_equal(joined.event_id, patterns.event_id)
        np.testing.assert_array_equal(joined.columns["wavelength_A"], patterns.columns["wavelength_A"])
    mixed = concatenate([patterns[:2], sparse(patterns[2:])])
    assert not mixed.is_sparse
    np.testing.assert_array_equal(mixed.dense(), patterns.dense())


def test_parts_that_do_not_fit_together_are_an_error() -> None:
    with pytest.raises(GeometryMismatch):
        concatenate([example(n_pixels=5), example(n_pixels=6)])
    with pytest.raises(OrienteerError, match="wavelength_A"):
        concatenate([example(), Patterns(example().frames, columns={"truth_orientation": np.zeros((6, 4))})])
    with pytest.raises(OrienteerError, match="empty"):
        concatenate([])


@pytest.mark.parametrize(
    ("frames", "arguments", "words"),
    [
        (np.zeros(3), {}, "shape"),
        (np.zeros((2, 3), dtype=complex), {}, "complex"),
        (np.zeros((2, 3)), {"event_id": np.arange(3)}, "event_id"),
        (np.zeros((2, 3)), {"event_id": np.array([-1, 2])}, "an event id is -1"),
        (np.zeros((2, 3)), {"event_id": np.array([0.5, 2])}, "event ids"),
        (np.zeros((2, 3)), {"columns": {"fluence": np.zeros(3)}}, "fluence"),
        (np.zeros((2, 3)), {"columns": {"fluence": np.float64(3)}}, "fluence"),
    ],
)
def test_rows_that_do_not_match_are_an_error(frames: np.ndarray, arguments: dict, words: str) -> None:
    with pytest.raises(OrienteerError, match=words):
        Patterns(frames, **arguments)


def test_patterns_cannot_be_changed() -> None:
    patterns = example()
    with pytest.raises(AttributeError):
        patterns.frames = np.zeros((6, 5))  # type: ignore[misc]
    with pytest.raises(TypeError):
        patterns.columns["x"] = np.zeros(6)  # type: ignore[index]
    assert "x" in patterns.with_columns(x=np.zeros(6)).columns


def test_the_first_bad_frame_is_named() -> None:
    counts = np.zeros((3, 4), dtype=np.int32)
    assert first_bad_frame(Patterns(counts)) is None
    counts[1, 2] = -3
    assert first_bad_frame(Patterns(counts)) == (1, "has a negative count (-3) at pixel 2")
    signal = np.full((3, 4), -0.5, dtype=np.float32)
    assert first_bad_frame(Patterns(signal)) is None
    signal[2, 1] = np.nan
    assert first_bad_frame(Patterns(signal)) == (
        2,
        "has a value that is not a finite number (nan) at pixel 1",
    )


def test_pixels_that_are_never_used_may_hold_anything() -> None:
    never = np.array([False, True, False, False])
    signal = np.zeros((3, 4), dtype=np.float32)
    signal[:, 1] = np.nan
    assert first_bad_frame(Patterns(signal), never) is None
    assert first_bad_frame(Patterns(signal), ~never) is not None
    counts = np.array([[0, -1, 0, 0]], dtype=np.int16)
    assert first_bad_frame(Patterns(counts), never) is None


def test_the_repr_is_one_line_with_the_facts() -> None:
    text = repr(sparse(example()))
    assert "\n" not in text
    assert "6 frames x 5 pixels" in text
    assert "wavelength_A" in text
    assert isinstance(sparse(example()).frames, SparsePhotons)


@pytest.mark.gpu
@pytest.mark.parametrize("form", [lambda p: p, sparse], ids=["dense", "sparse"])
def test_patterns_travel_to_the_gpu_and_back(form) -> None:
    patterns = form(example())
    there = patterns.to("cuda")
    assert there.is_on_gpu
    assert isinstance(there.event_id, np.ndarray)
    back = there[np.array([3, 1])].to("cpu")
    np.testing.assert_array_equal(back.dense(), patterns.dense()[[3, 1]])
    np.testing.assert_array_equal(back.event_id, patterns.event_id[[3, 1]])
    np.testing.assert_array_equal(concatenate([there, there]).to("cpu").dense()[6:], patterns.dense())
    np.testing.assert_array_equal(there.photons.get(), patterns.photons)
    assert first_bad_frame(there) is None


def test_lists_are_taken_as_arrays_and_rows_of_different_length_are_refused() -> None:
    np.testing.assert_array_equal(Patterns([[1, 2], [3, 0]]).dense(), [[1, 2], [3, 0]])
    with pytest.raises(OrienteerError, match="frames cannot be made into an array"):
        Patterns([[1, 2], [3]])
    with pytest.raises(OrienteerError, match="event ids cannot be made into an array"):
        Patterns([[1, 2], [3, 0]], [[1], [1, 2]])
    with pytest.raises(OrienteerError, match="column 'x' cannot be made into an array"):
        Patterns([[1, 2], [3, 0]], columns={"x": [[1], [1, 2]]})
    for wrong in (None, 3, "text", [["a", "b"]], [1, 2]):
        with pytest.raises(OrienteerError, match="frames "):
            Patterns(wrong)
