"""Marks: tags, notes and exclusions that users put on a run or its frames, kept in the folder of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orienteer.compute.folder_lock import alone_in
from orienteer.compute.plain_json import write_json
from orienteer.dashboard.refusal import Refused
from orienteer.dashboard.roots import Roots
from orienteer.dashboard.rows import MARKS, read_json
from orienteer.errors import FileError
from orienteer.report.plain_values import as_tables, as_texts
from orienteer.source.frame_tags import FRAME_TAGS, read_frame_tags, tag_frames
from orienteer.source.left_out import EXCLUDED, read_excluded, write_excluded

MOST_TAGS, MOST_NOTES, MOST_EXCLUDED = 100, 1000, 100_000
_MOST_BYTES = 8 << 20


def tag(roots: Roots, run: Path, add: Iterable[str], remove: Iterable[str]) -> list[str]:
    """Add tags to a run and remove others; returns the tags that it has then."""

    def change(marks: dict[str, Any]) -> dict[str, Any]:
        left = [text for text in as_texts(marks.get("tags")) if text not in set(remove)]
        tags = list(dict.fromkeys([*left, *add]))
        if len(tags) > MOST_TAGS:
            raise Refused(422, f"A run has at most {MOST_TAGS} tags.")
        return {**marks, "tags": tags}

    return as_texts(_change(roots, run, change)["tags"])


def note(roots: Roots, run: Path, text: str) -> None:
    """Add a note to a run."""

    def change(marks: dict[str, Any]) -> dict[str, Any]:
        notes = [dict(one) for one in as_tables(marks.get("notes"))]
        notes.append({"time": datetime.now(UTC).isoformat(timespec="seconds"), "text": text})
        return {**marks, "notes": notes[-MOST_NOTES:], "note": text}

    _change(roots, run, change)


def notes(roots: Roots, run: Path) -> list[dict[str, Any]]:
    """The notes of a run, the oldest first."""
    return [dict(one) for one in as_tables(read_json(roots, run / MARKS).get("notes"))]


def excluded(roots: Roots, run: Path) -> list[int]:
    """The events that were excluded, in order."""
    if not (path := run / EXCLUDED).exists():
        return []
    found: list[int] = read_excluded(_small(roots, path)).tolist()
    return found


def exclude(roots: Roots, run: Path, add: Iterable[int], remove: Iterable[int]) -> list[int]:
    """Exclude events, and include others again; returns all that are excluded then."""
    with alone_in(run):
        found = sorted({*excluded(roots, run), *add} - set(remove))
        if len(found) > MOST_EXCLUDED:
            raise Refused(422, f"At most {MOST_EXCLUDED:,} frames can be excluded one by one.")
        write_excluded(run / EXCLUDED, found)
    return found


def frame_tags(roots: Roots, run: Path) -> dict[str, list[int]]:
    """By tag, the events that have it, in order."""
    if not (path := run / FRAME_TAGS).exists():
        return {}
    return {tag: ids.tolist() for tag, ids in read_frame_tags(_small(roots, path)).items()}


def tag_events(
    roots: Roots, run: Path, event_ids: Iterable[int], add: Iterable[str], remove: Iterable[str]
) -> dict[str, list[int]]:
    """Add tags to events of a run and remove others; returns all tags of its events."""
    if (path := run / FRAME_TAGS).exists():
        _small(roots, path)
    return {tag: ids.tolist() for tag, ids in tag_frames(run, event_ids, add, remove).items()}


def _small(roots: Roots, path: Path) -> Path:
    """The path, if it may be read and is small enough to be shown; raises FileError if not."""
    if roots.file(path).stat().st_size > _MOST_BYTES:
        raise FileError(
            path,
            f"is larger than {_MOST_BYTES >> 20} MiB, which the page cannot show.",
            "Copy the folder of the run again.",
        )
    return path


def _change(roots: Roots, run: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Read the marks, change them and write them back, under a lock."""
    with alone_in(run):
        marks = change(read_json(roots, run / MARKS))
        write_json(run / MARKS, marks)
    return marks
