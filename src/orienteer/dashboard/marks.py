"""Marks: tags, notes and excluded frames that somebody gives a run on the page, kept beside the run."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orienteer.compute.atomic import atomic_path, unwritable
from orienteer.dashboard.refusal import Refused
from orienteer.dashboard.roots import Roots
from orienteer.dashboard.rows import MARKS, read_json
from orienteer.errors import FileError
from orienteer.report.plain_values import as_tables, as_texts
from orienteer.source.left_out import EXCLUDED, read_excluded, write_excluded

MOST_TAGS, MOST_NOTES, MOST_EXCLUDED = 100, 1000, 100_000
_MOST_BYTES = 8 << 20


def tag(roots: Roots, run: Path, add: Iterable[str], remove: Iterable[str]) -> list[str]:
    """Give a run tags and take others away; those that it has then."""

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
    path = run / EXCLUDED
    if not path.exists():
        return []
    if roots.file(path).stat().st_size > _MOST_BYTES:
        raise FileError(path, f"is larger than {_MOST_BYTES >> 20} MiB, which the page cannot show.")
    found: list[int] = read_excluded(path).tolist()
    return found


def exclude(roots: Roots, run: Path, add: Iterable[int], remove: Iterable[int]) -> list[int]:
    """Exclude events, and take others back; those that are excluded then."""
    with _alone(run):
        found = sorted({*excluded(roots, run), *add} - set(remove))
        if len(found) > MOST_EXCLUDED:
            raise Refused(422, f"At most {MOST_EXCLUDED:,} frames can be excluded one by one.")
        write_excluded(run / EXCLUDED, found)
    return found


def _change(roots: Roots, run: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Read the marks, change them and put them back, while nobody else does."""
    with _alone(run):
        marks = change(read_json(roots, run / MARKS))
        with atomic_path(run / MARKS) as temporary:
            temporary.write_text(json.dumps(marks, indent=1) + "\n", encoding="ascii")
    return marks


@contextmanager
def _alone(run: Path) -> Iterator[None]:
    """Inside the block no other thread or dashboard writes beside the run."""
    try:
        descriptor = os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise unwritable(run, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
