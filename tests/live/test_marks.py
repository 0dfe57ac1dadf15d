"""Excluded events and tags of frames reach the processes of a live run when somebody changes them."""

from pathlib import Path
from typing import Any

from orienteer.live.marks import ExcludedEvents, FrameTags
from orienteer.source.frame_tags import FRAME_TAGS, tag_frames
from orienteer.source.left_out import EXCLUDED, write_excluded


def test_excluded_events_of_both_folders_are_told_once(tmp_path: Path) -> None:
    growing = tmp_path / "map"
    growing.mkdir()
    said: list[str] = []
    excluded = ExcludedEvents((tmp_path, growing), said.append)
    first = excluded.news()  # also nothing is news to a process that goes on from another's state
    assert first is not None
    assert not len(first)
    assert excluded.news() is None
    write_excluded(tmp_path / EXCLUDED, [7, 3])
    write_excluded(growing / EXCLUDED, [2**64 - 1, 7])
    told = excluded.news()
    assert told is not None
    assert told.tolist() == [3, 7, 2**64 - 1]
    assert excluded.news() is None
    write_excluded(tmp_path / EXCLUDED, [])
    told = excluded.news()
    assert told is not None
    assert told.tolist() == [7, 2**64 - 1]
    (growing / EXCLUDED).unlink()
    told = excluded.news()
    assert told is not None
    assert not len(told)
    assert not said


def test_a_damaged_list_is_told_and_what_it_said_before_holds(tmp_path: Path) -> None:
    said: list[str] = []
    excluded = ExcludedEvents((tmp_path,), said.append)
    write_excluded(tmp_path / EXCLUDED, [7])
    excluded.news()
    (tmp_path / EXCLUDED).write_text("{")
    told = excluded.news()
    assert told is not None
    assert told.tolist() == [7]
    assert len(said) == 1
    assert "excluded events" in said[0]
    assert excluded.news() is None
    assert len(said) == 1


def test_tags_are_handed_on_when_they_change(tmp_path: Path) -> None:
    said: list[str] = []
    handed: list[dict[str, Any]] = []
    tags = FrameTags(tmp_path, said.append)

    def put(found: Any) -> None:
        handed.append({tag: ids.tolist() for tag, ids in found.items()})

    tags.hand_on(put)
    tag_frames(tmp_path, [5, 6], add=["bright"])
    tags.hand_on(put)
    tags.hand_on(put)
    (tmp_path / FRAME_TAGS).write_text("[]")
    tags.hand_on(put)
    tag_frames_again = tmp_path / FRAME_TAGS
    tag_frames_again.unlink()
    tags.hand_on(put)
    assert handed == [{"bright": [5, 6]}, {}]
    assert len(said) == 1
