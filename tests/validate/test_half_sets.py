"""Halves by a hash of the event: stable, disjoint, read by batch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import orienteer
from orienteer.errors import OrienteerError
from orienteer.reconstruction.model.halves import half_of_events, sentinels_of_events
from orienteer.run.input import describe_input
from orienteer.source.base import Source
from orienteer.source.in_memory import InMemorySource
from orienteer.source.part import PartOfSource
from orienteer.source.patterns import Patterns
from orienteer.validate.half_sets import SENTINEL, part_of_events, split

EVENTS = np.arange(7000, 9000, dtype=np.uint64)


def source_of(events: Any, n_pixels: int = 6) -> InMemorySource:
    frames = (np.asarray(events)[:, None] * 7 + np.arange(n_pixels)) % 251
    columns = {"wavelength_A": np.asarray(events) / 1e3}
    return InMemorySource(Patterns(frames.astype(np.uint8), np.asarray(events), columns))


@given(st.permutations(list(range(40))))
def test_a_frame_keeps_its_half_in_any_order(order: list[int]) -> None:
    events = EVENTS[:40]
    assert np.array_equal(part_of_events(events[order], 0.1), part_of_events(events, 0.1)[order])


def splitmix(number: int, salt: int) -> int:
    """The hash of an event in whole numbers of any size."""
    x = (number + 0x9E3779B97F4A7C15 * (salt + 1)) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def test_halves_are_the_same_on_every_machine() -> None:
    events = [0, 1, 2, 3, 12345, 2**63, 2**64 - 1]
    found = part_of_events(np.array(events, dtype=np.uint64))
    assert found.tolist() == [splitmix(event, 2) >> 40 & 1 for event in events]
    assert found.tolist() == [1, 0, 0, 0, 1, 1, 0]


def test_a_frame_that_was_stored_twice_lies_in_one_half() -> None:
    parts = split(source_of(np.repeat(EVENTS[:50], 2)), 0.1)
    names = [set(part.event_ids().tolist()) for part in parts]
    assert not names[0] & names[1]
    assert not (names[0] | names[1]) & names[2]


def test_the_halves_are_about_equal_and_know_nothing_of_the_halves_inside_a_run() -> None:
    part = part_of_events(EVENTS, 0.1)
    assert 0.07 < np.mean(part == SENTINEL) < 0.13
    merged = part != SENTINEL
    assert 0.47 < part[merged].mean() < 0.53
    for other in (half_of_events(EVENTS), sentinels_of_events(EVENTS, 0.5)):
        assert abs(np.corrcoef(part[merged], other[merged])[0, 1]) < 0.06


def test_all_frames_lie_in_one_part_and_more_sentinels_move_no_other_frame() -> None:
    few, many = part_of_events(EVENTS, 0.02), part_of_events(EVENTS, 0.2)
    stayed = many != SENTINEL
    assert np.array_equal(few[stayed], many[stayed])
    assert sum(len(part) for part in split(source_of(EVENTS))) == len(EVENTS)


def test_a_part_is_a_source_with_the_frames_and_names_of_the_whole() -> None:
    whole = source_of(EVENTS[:100])
    half = split(whole, 0.05).half_2
    assert isinstance(half, Source)
    wanted = whole.read(half.places)
    for got in (half.read(), half.read(np.arange(len(half)))):
        assert np.array_equal(got.frames, wanted.frames)
        assert np.array_equal(got.event_id, wanted.event_id)
        assert np.array_equal(got.columns["wavelength_A"], wanted.columns["wavelength_A"])
    assert np.array_equal(half.read([5, 2, 2]).event_id, wanted.event_id[[5, 2, 2]])
    assert len(half.read([])) == 0
    first = half.read_columns(["wavelength_A"], slice(3))["wavelength_A"]
    assert np.array_equal(first, EVENTS[half.places[:3]] / 1e3)
    joined = np.concatenate([batch.frames for batch in half.batches(7)])
    assert np.array_equal(joined, wanted.frames)
    with pytest.raises(OrienteerError, match="half 2"):
        half.read([len(half)])


def test_a_part_streams_and_never_reads_the_whole_at_once() -> None:
    whole = source_of(EVENTS)
    asked: list[int] = []
    read = whole.read

    def watched(frames: Any = slice(None)) -> Patterns:
        got = read(frames)
        asked.append(len(got))
        return got

    whole.read = watched  # type: ignore[method-assign]
    half = split(whole).half_1
    n = sum(len(batch) for batch in half.batches(10))
    assert n == len(half)
    assert max(asked) < 60
    # Neighbours come with one read, and little is read in vain.
    assert len(asked) < n / 4
    assert sum(asked) < 3 * n


def test_halves_of_a_file_are_no_copies_and_differ_for_a_run(tmp_path: Path) -> None:
    with orienteer.writer_for(tmp_path / "frames.h5", frame_shape=(2, 3)) as writer:
        writer.append(source_of(EVENTS[:60]).read())
    parts = split(orienteer.open(tmp_path / "frames.h5"))
    described = [describe_input(part) for part in parts]
    assert described[0]["data"] != described[1]["data"]
    assert [p.name for p in tmp_path.iterdir()] == ["frames.h5"]
    assert np.array_equal(parts.half_1.read().event_id, EVENTS[:60][parts.half_1.places])


def test_data_that_cannot_be_parted_are_refused() -> None:
    with pytest.raises(OrienteerError, match="one would be empty"):
        split(source_of(EVENTS[:1]))


def test_a_part_takes_the_detector_of_the_whole() -> None:
    detector = orienteer.square_detector(4, edge_resolution_A=50.0, wavelength_A=2.5, pixel_size_m=1e-3)
    frames = Patterns(np.ones((20, 16), np.uint8), EVENTS[:20])
    half: PartOfSource = split(InMemorySource(frames, (4, 4))).half_1
    assert half.detector is None
    assert half.with_detector(detector).detector is detector
    assert len(half.with_detector(detector)) == len(half)
