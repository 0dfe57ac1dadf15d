"""What tells one file under a name from another that takes its place."""

from pathlib import Path


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Changes when a file is replaced; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
