"""LinkGuard: HDF5 files may lead to other files; those that lead out of the roots are not opened.

A link, a virtual dataset or external storage inside of an HDF5 file names another file, which the HDF5
library opens by itself.  So each file is looked through once, before anything of it is read.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from orienteer.compute.reading import is_hdf5, read_head
from orienteer.dashboard.cache import Stamp, stamp
from orienteer.dashboard.roots import Roots
from orienteer.errors import FileError
from orienteer.source.journal_files import JOURNAL

MOST_LINKS = 10_000
_MOST_KEPT = 100_000


class LinkGuard:
    """Remembers which files were found to stay within the roots, as long as they do not change."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._good: dict[str, Stamp] = {}
        self._guard = threading.Lock()

    def file(self, path: Path) -> Path:
        """The path of a file that lies, with all that it leads to, within the roots."""
        self._roots.file(path)
        now = stamp(path)
        if self._good.get(str(path)) != now:
            if is_hdf5(read_head(path)):
                self._look_through(path)
            with self._guard:
                if len(self._good) >= _MOST_KEPT:
                    self._good.clear()
                self._good[str(path)] = now
        return path

    def journal(self, run: Path) -> Path:
        """The folder of a live run all of whose segments stay within the roots."""
        folder = run / JOURNAL
        if folder.is_dir():
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".h5") and not entry.name.startswith("."):
                        self._segment(Path(entry.path))
        return run

    def _segment(self, path: Path) -> None:
        try:
            self.file(path)
        except FileError:
            if path.exists():  # else it was joined to others meanwhile
                raise

    def _look_through(self, path: Path) -> None:
        from orienteer.compute.hdf5_reading import open_hdf5

        n_links = 0

        def trouble(name: str, link: Any) -> str | None:
            """What is wrong with a link; the library goes through all of them until it is told something."""
            nonlocal n_links
            n_links += 1
            if n_links > MOST_LINKS:
                return f"holds more than {MOST_LINKS:,} things, which no data file does."
            others = [other for other in _led_to(opened, name, link) if other != "."]
            if all(self._roots.hold(path.parent / other) for other in others):
                return None
            return "leads to a file outside of the folders that are served."

        with open_hdf5(path) as opened:
            if (found := opened.visititems_links(trouble)) is not None:
                raise FileError(path, found)


def _led_to(file: Any, name: str, link: Any) -> list[str]:
    """The files that a link of an open HDF5 file leads to, as they are written there."""
    import h5py

    if isinstance(link, h5py.ExternalLink):
        return [str(link.filename)]
    if not isinstance(link, h5py.HardLink):
        return []  # a soft link leads to a name in the same file, which is looked at by itself
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        return []
    virtual = [str(source.file_name) for source in found.virtual_sources()] if found.is_virtual else []
    return virtual + [os.fsdecode(part[0]) for part in found.external or ()]
