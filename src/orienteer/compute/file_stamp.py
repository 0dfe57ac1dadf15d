"""A stamp that shows whether a file has been replaced by another of the same name."""

from pathlib import Path


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Inode and time of the file, which change when it is replaced; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
