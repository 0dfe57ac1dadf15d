"""Marks that people put on single frames during a live run: exclusions and tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.watched_file import WatchedFile
from orienteer.errors import OrienteerError
from orienteer.source.frame_tags import FRAME_TAGS, read_frame_tags
from orienteer.source.left_out import EXCLUDED, read_excluded

Say = Callable[[str], None]


class ExcludedEvents:
    """The events that are excluded in any of these folders; the lists are read again whenever they change."""

    def __init__(self, folders: Sequence[Path], say: Say) -> None:
        self._files = {WatchedFile(folder / EXCLUDED): np.zeros(0, np.uint64) for folder in folders}
        self._say, self._is_asked = say, False

    def news(self) -> NDArray[np.uint64] | None:
        """The ids (n,) at the first call, and when they may have changed since the last; None: no change.

        If a list cannot be read, this is reported, and its earlier contents stay valid.
        """
        changed = [file for file in self._files if file.has_changed()]
        for file in changed:
            try:
                found = read_excluded(file.path) if file.path.exists() else np.zeros(0, np.uint64)
            except OrienteerError as error:
                self._say(f"goes on with the excluded events that it knows: {error.message}")
            else:
                self._files[file] = found
        is_first, self._is_asked = not self._is_asked, True
        return np.unique(np.concatenate(list(self._files.values()))) if changed or is_first else None


class FrameTags:
    """The frame tags of a live run, passed on whenever they change."""

    def __init__(self, folder: Path, say: Say) -> None:
        self._file, self._say = WatchedFile(folder / FRAME_TAGS), say

    def hand_on(self, put: Callable[[dict[str, NDArray[np.uint64]]], None]) -> None:
        """Pass all tags to ``put`` if they may have changed since the last call."""
        if not self._file.has_changed():
            return
        try:
            tags = read_frame_tags(self._file.path)
        except OrienteerError as error:
            self._say(f"goes on with the tags of frames that it knows: {error.message}")
            return
        put(tags)
