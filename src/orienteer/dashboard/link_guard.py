"""LinkGuard: HDF5 files may refer to other files; a file that leads out of the roots is not opened.

A link, a virtual dataset or external storage in an HDF5 file names another file, which the HDF5 library opens
by itself, and which may refer to further files.  So each file is searched for such names once, before
anything of it is read.  Where the names lead is checked every time, because links on the disk may change.
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
_OUTSIDE = "refers to a file outside of the folders that are served."


class LinkGuard:
    """Checks files, and remembers which other files each names as long as it does not change."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._names: dict[str, tuple[Stamp, tuple[str, ...]]] = {}
        self._guard = threading.Lock()

    def file(self, path: Path) -> Path:
        """The path, if the file and all that it refers to lie within the roots; raises FileError if not."""
        self._roots.file(path)
        waiting, seen = [path], {path}
        while waiting:
            one = waiting.pop()
            for other in self._led_to(path, one):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
            if len(seen) > MOST_FILES:
                raise FileError(path, f"refers to more than {MOST_FILES:,} files, which no data file does.")
        return path

    def journal(self, run: Path) -> Path:
        """The folder of a live run, if all of its files stay within the roots; raises FileError if not."""
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
            if path.exists():  # otherwise it was joined with others meanwhile
                raise

    def _led_to(self, path: Path, one: Path) -> list[Path]:
        """The files to which file ``one`` refers; raises FileError if any is outside of the roots.

        path : the file that was asked for, to be named in the error.
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
        """The names of other files in a file."""
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
    """All places where the HDF5 library may look for a name: beside the file and in the working folder, each
    with the whole name and with its last part alone.
    """
    folders = (file.parent, Path(os.path.realpath(file)).parent, Path.cwd())
    return {folder / part for folder in folders for part in (name, os.path.basename(name)) if part}


def _look_through(path: Path) -> tuple[str, ...]:
    """The names of other files in an HDF5 file, as they are written there."""
    from orienteer.compute.hdf5_reading import open_hdf5

    n_links, names = 0, set()

    def trouble(name: str, link: Any) -> str | None:
        """What is wrong with a link; None lets the library continue with the next one."""
        nonlocal n_links
        n_links += 1
        if n_links > MOST_LINKS:
            return f"holds more than {MOST_LINKS:,} objects, which no data file does."
        names.update(_named(opened, name, link))
        return None if all("%" not in other for other in names) else "refers to files by name patterns (%)."

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
        return []  # a soft link leads to a name in the same file, which is checked on its own
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        return []
    virtual = [str(source.file_name) for source in found.virtual_sources()] if found.is_virtual else []
    return virtual + [os.fsdecode(part[0]) for part in found.external or ()]
