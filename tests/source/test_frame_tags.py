"""Tags of frames: given, taken away, kept beside the run, whoever else does the same."""

import json
import threading
from pathlib import Path

import pytest

from orienteer.errors import FileError, OrienteerError, SettingsError
from orienteer.source import frame_tags
from orienteer.source.frame_tags import FRAME_TAGS, read_frame_tags, tag_frames

LARGEST = 2**64 - 1


def told(tags: dict[str, object]) -> dict[str, list[int]]:
    return {tag: ids.tolist() for tag, ids in tags.items()}  # type: ignore[attr-defined]


def test_tags_are_given_and_taken_away_and_found_again(tmp_path: Path) -> None:
    assert read_frame_tags(tmp_path / FRAME_TAGS) == {}
    tag_frames(tmp_path, [7, LARGEST, 7], add=[" bright ", "jet"])
    given = tag_frames(tmp_path, [3, 7], add=["good"], remove=["jet"])
    expected = {"bright": [7, LARGEST], "good": [3, 7], "jet": [LARGEST]}
    assert told(given) == told(read_frame_tags(tmp_path / FRAME_TAGS)) == expected
    assert "jet" not in tag_frames(tmp_path, [LARGEST], remove=["jet", "never given"])


@pytest.mark.parametrize("tag", ["", "  ", "x" * 65, "a\x1b[31m", "two\nlines"])
def test_what_is_no_tag_is_refused_and_changes_nothing(tmp_path: Path, tag: str) -> None:
    with pytest.raises(SettingsError, match="a tag is a word"):
        tag_frames(tmp_path, [1], add=["good", tag])
    assert not (tmp_path / FRAME_TAGS).exists()


def test_what_is_no_id_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    tag_frames(tmp_path, [3], add=["ice"])
    with pytest.raises(OrienteerError, match="-4 is not an event id"):
        tag_frames(tmp_path, [-4], add=["ice"])
    assert read_frame_tags(tmp_path / FRAME_TAGS)["ice"].tolist() == [3]


def test_too_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_tags, "MOST_TAGGED", 3)
    tag_frames(tmp_path, range(3), add=["a"])
    with pytest.raises(OrienteerError, match="at most 3 frames"):
        tag_frames(tmp_path, [9], add=["b"])
    assert told(read_frame_tags(tmp_path / FRAME_TAGS)) == {"a": [0, 1, 2]}


@pytest.mark.parametrize(
    "tags", [["a"], {"a": "7"}, {"a": [7]}, {"a": ["-1"]}, {" a": ["7"]}, {"x" * 65: ["7"]}, None]
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, tags: object) -> None:
    path = tmp_path / FRAME_TAGS
    path.write_text(json.dumps({"format": "orienteer-frame-tags", "version": 1, "tags": tags}))
    with pytest.raises(FileError, match=r"event ids|are not tags"):
        read_frame_tags(path)


def test_those_who_tag_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def tag(number: int) -> None:
        for i in range(10):
            tag_frames(tmp_path, [10 * number + i], add=["seen"])

    threads = [threading.Thread(target=tag, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_frame_tags(tmp_path / FRAME_TAGS)["seen"].tolist() == list(range(40))
