"""A small file that others replace now and then, looked at again only when they have."""

from __future__ import annotations

from pathlib import Path


class WatchedFile:
    """A file and whether it is another one than when it was last asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[int, ...] | None = None

    def has_changed(self) -> bool:
        """Whether it has come, gone or been replaced since the last time; one that never was has not."""
        try:
            facts = self.path.stat()
            found: tuple[int, ...] | None = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        except OSError:
            found = None
        has_changed, self._known = found != self._known, found
        return has_changed
