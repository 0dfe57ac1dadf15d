"""Tags of single frames: a small file beside a run that lists the events of each tag."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.folder_lock import alone_in
from orienteer.compute.plain_json import read_described, write_json
from orienteer.compute.reading import COPY_AGAIN
from orienteer.errors import FileError, OrienteerError, SettingsError
from orienteer.source.left_out import as_event_ids, is_event_id

FRAME_TAGS = "frame_tags.json"
FORMAT, VERSION = "orienteer-frame-tags", 1
MOST_TAGGED = 100_000
LONGEST_TAG = 64


def read_frame_tags(path: str | os.PathLike[str]) -> dict[str, NDArray[np.uint64]]:
    """The event ids (n,) of each tag, sorted and without duplicates; empty if there is no file."""
    if not Path(path).exists():
        return {}
    told: Any = read_described(Path(path), "list of tagged events", FORMAT, VERSION).get("tags")
    if not isinstance(told, dict) or not all(isinstance(ids, list) for ids in told.values()):
        raise FileError(path, "does not hold a list of event ids for each tag.", COPY_AGAIN)
    if not all(isinstance(one, str) and is_event_id(one) for ids in told.values() for one in ids):
        raise FileError(path, "holds values that are not event ids.", COPY_AGAIN)
    if not all(map(_is_tag, told)):
        raise FileError(path, "holds names that are not tags.", COPY_AGAIN)
    return {tag: as_event_ids(map(int, ids)) for tag, ids in told.items()}


def tag_frames(
    folder: str | os.PathLike[str],
    event_ids: Iterable[int],
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
) -> dict[str, NDArray[np.uint64]]:
    """Add tags to events of the run in a folder and remove others; returns all tags of the run.

    A tag that no event has any more disappears.
    """
    ids, path = as_event_ids(event_ids), Path(folder) / FRAME_TAGS
    added, removed = [checked_tag(tag) for tag in add], [checked_tag(tag) for tag in remove]
    with alone_in(folder):
        tags = read_frame_tags(path)
        for tag in added:
            tags[tag] = np.union1d(tags.get(tag, ids[:0]), ids)
        for tag in removed:
            tags[tag] = np.setdiff1d(tags.get(tag, ids[:0]), ids)
        tags = {tag: tags[tag] for tag in sorted(tags) if len(tags[tag])}
        if sum(map(len, tags.values())) > MOST_TAGGED:
            raise OrienteerError(f"at most {MOST_TAGGED:,} frames of a run can be tagged.", "Tag fewer.")
        _write(path, tags)
    return tags


def checked_tag(tag: str) -> str:
    """The tag without spaces around it; an error if it is not a valid tag.

    >>> checked_tag(" bright ")
    'bright'
    """
    tag = tag.strip()
    if not _is_tag(tag):
        raise SettingsError(
            f"a tag is a word or a few, of at most {LONGEST_TAG} characters.",
            "Give a shorter one, such as good.",
        )
    return tag


def _is_tag(tag: str) -> bool:
    return 0 < len(tag) <= LONGEST_TAG and tag.isprintable() and tag == tag.strip()


def _write(path: Path, tags: Mapping[str, NDArray[np.uint64]]) -> None:
    # Ids are written as texts, because many programs handle whole numbers only up to 2^53.
    as_texts = {tag: [str(number) for number in ids.tolist()] for tag, ids in tags.items()}
    told = {"format": FORMAT, "version": VERSION, "tags": as_texts}
    write_json(path, told)
