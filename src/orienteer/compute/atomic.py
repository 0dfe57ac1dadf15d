"""Files that are complete or absent: written under another name, then renamed."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orienteer.errors import FileError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT)
_IN_THE_WAY = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR)


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` that replaces it when the block ends without an error.

    A writer that fails or is killed leaves the old file (or none) under the final name.  The temporary
    name starts with a dot and ends in ``.part``; one left behind by a killed process is overwritten only
    by the same process number, and may be deleted by hand.
    """
    final = Path(path)
    if final.is_dir():
        raise FileError(final, "is a directory, not a file to write.", "Give the path of a file.")
    temporary = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        if temporary.is_symlink():  # put there by somebody else: writing would follow it
            temporary.unlink()
        temporary.touch()
    except OSError as error:
        if error.errno in DISK_FULL:
            raise unwritable(final, error) from error
        raise FileError(
            final, f"cannot be written ({error.strerror}).", "Check the folder and its permissions."
        ) from error
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, final)
    except OSError as error:
        raise unwritable(final, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def unwritable(path: str | os.PathLike[str], error: OSError) -> FileError:
    """The error for a file that could not be written; it says so if the disk is full."""
    reason = " ".join((error.strerror or str(error)).split())[:200]
    # NumPy gives the text, but not the number of the error.
    if error.errno in DISK_FULL or "Not enough free space" in reason:
        what, hint = f"the disk is full ({reason})", "Make room, or write to another disk."
    elif error.errno == errno.EFBIG:
        what = f"the disk is full, or no file may be that large ({reason})"
        hint = "Write to another disk, or in smaller files; 'ulimit -f' shows the limit."
    elif error.errno in _IN_THE_WAY:
        hint = "A file is where a folder is needed, or a folder where a file is: give another path."
        return FileError(path, f"could not be written ({reason}).", hint)
    elif error.errno in _FORBIDDEN:
        return FileError(path, f"could not be written ({reason}).", "Check the folder and its permissions.")
    else:
        return FileError(path, f"could not be written ({reason}).", "Is the disk full?")
    return FileError(path, f"could not be written: {what}.", hint)
