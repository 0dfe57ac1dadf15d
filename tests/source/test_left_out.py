"""Events that are excluded: the file that lists them, and data without them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.errors import FileError, OrienteerError
from orienteer.run.input import describe_input, input_differences
from orienteer.source.in_memory import InMemorySource
from orienteer.source.left_out import WithoutEvents, read_excluded, without_events, write_excluded
from orienteer.source.patterns import Patterns

IDS = np.array([2**64 - 1, 3, 7, 5], dtype=np.uint64)


@pytest.fixture
def source() -> InMemorySource:
    return InMemorySource(Patterns(np.arange(16).reshape(4, 4), IDS), (2, 2))


def test_ids_come_back_in_order_and_each_once(tmp_path: Path) -> None:
    write_excluded(tmp_path / "excluded.json", [7, 2**64 - 1, 7, 0])
    assert read_excluded(tmp_path / "excluded.json").tolist() == [0, 7, 2**64 - 1]


@pytest.mark.parametrize("number", [-4, 2**64, 1.5, "7", None])
def test_what_is_no_id_is_refused_and_the_list_stays(tmp_path: Path, number: Any) -> None:
    write_excluded(tmp_path / "excluded.json", [3])
    with pytest.raises(OrienteerError, match="is not an event id"):
        write_excluded(tmp_path / "excluded.json", [5, number])
    assert read_excluded(tmp_path / "excluded.json").tolist() == [3]


@pytest.mark.parametrize("ids", [[7], ["x"], ["-1"], [str(2**64)], "7", None])
def test_a_list_of_something_else_is_refused(tmp_path: Path, ids: object) -> None:
    path = tmp_path / "excluded.json"
    path.write_text(json.dumps({"format": "orienteer-excluded", "version": 1, "event_ids": ids}))
    with pytest.raises(FileError, match="event ids"):
        read_excluded(path)


def test_data_without_events_have_all_others(source: InMemorySource) -> None:
    part = without_events(source, [3, 2**64 - 1, 99])
    assert part.event_ids().tolist() == [7, 5]
    np.testing.assert_array_equal(part.read().dense(), np.arange(8, 16).reshape(2, 4))
    assert isinstance(part, WithoutEvents)
    assert part.left_out.tolist() == [3, 2**64 - 1]


def test_data_without_any_such_event_are_the_data_themselves(source: InMemorySource) -> None:
    assert without_events(source, [99]) is source


def test_everything_cannot_be_excluded(source: InMemorySource) -> None:
    with pytest.raises(OrienteerError, match="every frame"):
        without_events(source, IDS)


def test_what_is_excluded_stays_so_with_another_detector(source: InMemorySource) -> None:
    detector = orienteer.square_detector(2, pixel_size_m=1e-3, distance_m=0.1)
    part = without_events(source, [3]).with_detector(detector)
    assert isinstance(part, WithoutEvents)
    assert part.left_out.tolist() == [3]
    assert part.detector is not None


def test_a_run_notices_that_other_events_are_excluded(source: InMemorySource) -> None:
    """Even when they are as many as before."""
    first, second = (describe_input(without_events(source, [event])) for event in (3, 5))
    second["data"] = first["data"]
    assert input_differences(first, first) == []
    assert input_differences(first, second) == ["the events that are excluded"]


def test_a_run_goes_on_without_the_events_that_it_was_begun_without(tmp_path: Path) -> None:
    frames = tmp_path / "frames.h5"
    detector = orienteer.square_detector(2, pixel_size_m=1e-3, distance_m=0.1)
    with orienteer.writer_for(frames, detector=detector) as writer:
        writer.append(Patterns(np.arange(16).reshape(4, 4), IDS, {"wavelength_A": np.full(4, 2.0)}))
    part = without_events(orienteer.open(frames), [3])
    run = orienteer.Run.create(tmp_path / "run", part, {"emc": {"diameter_A": 10.0}}, seed=1, device="cpu")
    assert run.described["input"]["left_out"] == ["3"]
    assert orienteer.Run.open(tmp_path / "run").source.event_ids().tolist() == [2**64 - 1, 7, 5]
