"""Roots: the folders that the dashboard may read; nothing outside of them is ever opened.

No path comes from a request: runs are named by a hash, and files of a run by constants.  What remains are
links on the disk that lead elsewhere, and special files such as pipes; both are refused here, in one place.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from orienteer.compute.nearest import meant_instead
from orienteer.errors import FileError

MOST_JSON_BYTES = 4 << 20


class Roots:
    """The folders given to ``orienteer serve``, with links resolved once.

    folders : real paths.
    """

    def __init__(self, folders: Sequence[str | os.PathLike[str]]) -> None:
        found: list[Path] = []
        for folder in folders:
            real = Path(os.path.realpath(folder))
            if not real.is_dir():
                raise FileError(
                    folder, "is not a folder.", meant_instead(folder, "Give folders that hold runs.")
                )
            if real not in found:
                found.append(real)
        self.folders = tuple(found)

    def hold(self, path: Path) -> bool:
        """Whether a path, with all links resolved, lies within one of the roots."""
        real = Path(os.path.realpath(path))
        return any(real == root or root in real.parents for root in self.folders)

    def file(self, path: Path) -> Path:
        """The path, if it is a regular file within the roots; raises FileError if not."""
        if not self.hold(path):
            raise FileError(path, "lies outside of the folders that are served.", "Give its folder, too.")
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            raise FileError(path, "does not exist.", "Was it moved? Reload the page.") from error
        if not stat.S_ISREG(mode):  # reading a named pipe could block forever
            raise FileError(path, "is not a regular file.", "Put a file in its place.")
        return path

    def read(self, path: Path, most_bytes: int = MOST_JSON_BYTES, first: int = 0) -> bytes:
        """At most ``most_bytes`` of a file within the roots, from byte ``first`` on."""
        with self.open(path) as file:
            file.seek(first)
            return file.read(most_bytes)

    @contextmanager
    def open(self, path: Path) -> Iterator[BinaryIO]:
        """A regular file within the roots, open for reading inside the block."""
        self.file(path)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                # The file may have been replaced since it was checked.
                opened = Path(f"/proc/self/fd/{descriptor}")
                if opened.exists() and not (self.hold(opened) and opened.is_file()):
                    raise FileError(
                        path, "lies outside of the folders that are served.", "Give its folder, too."
                    )
                yield file
        except OSError as error:
            raise FileError(path, f"cannot be read ({error.strerror}).", "Check its permissions.") from error


def name_of_run(root: Path, relative: str) -> str:
    """The id of a run in requests: a hash of its path, from which no path can be made.

    >>> name_of_run(Path("/data"), "virus/run1") == name_of_run(Path("/data"), "virus/run1")
    True
    """
    return hashlib.sha256(os.fsencode(root) + b"\0" + os.fsencode(relative)).hexdigest()[:16]
