"""FileSource: frames in a file; every error in reading names the file."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from orienteer.compute.reading import reading
from orienteer.source.finite_source import FiniteSource, Result


class FileSource(FiniteSource):
    """A source over one file.  Whatever goes wrong while it is read becomes a FileError."""

    path: Path

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__()
        self.path = Path(path)

    def _attempt(self, read: Callable[[], Result]) -> Result:
        with reading(self.path):
            return read()
