"""LinkGuard: HDF5 files may lead to other files; those that lead out of the roots are not opened.

A link, a virtual dataset or external storage inside of an HDF5 file names another file, which the HDF5
library opens by itself, and which may lead on.  So each file is looked through once, before anything of it is
read; where its names lead is looked at every time, for a link on the disk may be another one by then.
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
from orienteer.source.journal import DESCRIPTION, DETECTOR
from orienteer.source.journal_files import JOURNAL

MOST_LINKS, MOST_FILES = 10_000, 10_000
_MOST_KEPT = 100_000
_OUTSIDE = "leads to a file outside of the folders that are served."


class LinkGuard:
    """Remembers which names of other files a file holds, as long as it does not change."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._names: dict[str, tuple[Stamp, tuple[str, ...]]] = {}
        self._guard = threading.Lock()

    def file(self, path: Path) -> Path:
        """The path of a file that lies, with all that it leads to, within the roots."""
        self._roots.file(path)
        waiting, seen = [path], {path}
        while waiting:
            one = waiting.pop()
            for other in self._led_to(path, one):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
            if len(seen) > MOST_FILES:
                raise FileError(path, f"leads to more than {MOST_FILES:,} files, which no data file does.")
        return path

    def journal(self, run: Path) -> Path:
        """The folder of a live run all of whose files stay within the roots."""
        for name in (DESCRIPTION, DETECTOR):
            if (run / name).exists():
                self.file(run / name)
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

    def _led_to(self, path: Path, one: Path) -> list[Path]:
        """The files to which one leads, all within the roots.

        path : the file that was asked for, which the error names.
        """
        found = []
        for name in self._names_in(one):
            if not self._roots.hold(one.parent / name):
                raise FileError(path, _OUTSIDE, "Serve the folder of that file, too.")
            there = [place for place in _places(one, name) if place.exists()]
            if not all(self._roots.hold(place) and place.is_file() for place in there):
                raise FileError(path, _OUTSIDE, "Serve the folder of that file, too.")
            found += there
        return found

    def _names_in(self, path: Path) -> tuple[str, ...]:
        """The names of other files that a file holds."""
        now = stamp(path)
        kept = self._names.get(str(path))
        if kept is not None and kept[0] == now:
            return kept[1]
        names = _look_through(path) if is_hdf5(read_head(path)) else ()
        with self._guard:
            if len(self._names) >= _MOST_KEPT:
                self._names.clear()
            self._names[str(path)] = now, names
        return names


def _places(file: Path, name: str) -> set[Path]:
    """Wherever the HDF5 library may look for a name: beside the file, in the folder in which we were started,
    and in both by its last part alone.
    """
    folders = (file.parent, Path(os.path.realpath(file)).parent, Path.cwd())
    return {folder / part for folder in folders for part in (name, os.path.basename(name)) if part}


def _look_through(path: Path) -> tuple[str, ...]:
    """The names of other files in an HDF5 file, as they are written there."""
    from orienteer.compute.hdf5_reading import open_hdf5

    n_links, names = 0, set()

    def trouble(name: str, link: Any) -> str | None:
        """What is wrong with a link; the library goes through all of them until it is told something."""
        nonlocal n_links
        n_links += 1
        if n_links > MOST_LINKS:
            return f"holds more than {MOST_LINKS:,} things, which no data file does."
        names.update(_named(opened, name, link))
        return None if all("%" not in other for other in names) else "leads to files whose names it makes up."

    with open_hdf5(path) as opened:
        if (found := opened.visititems_links(trouble)) is not None:
            raise FileError(path, found)
    return tuple(sorted(names - {"."}))


def _named(file: Any, name: str, link: Any) -> list[str]:
    """The files that a link of an open HDF5 file names."""
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
