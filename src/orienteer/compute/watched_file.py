"""Shows when a small file that others replace has changed, so that it is read again only then."""

from __future__ import annotations

from pathlib import Path


class WatchedFile:
    """A file, and whether it has changed since the last call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[int, ...] | None = None

    def has_changed(self) -> bool:
        """Whether it has appeared, vanished or changed since the last call; False if it never existed."""
        try:
            facts = self.path.stat()
            found: tuple[int, ...] | None = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        except OSError:
            found = None
        has_changed, self._known = found != self._known, found
        return has_changed
