"""Files that are whole or not there: written under another name, then renamed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orienteer.errors import FileError


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
        temporary.touch()
    except OSError as error:
        raise FileError(
            final, f"cannot be written ({error.strerror}).", "Check the folder and its permissions."
        ) from error
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, final)
    except OSError as error:
        raise FileError(
            final, f"could not be written ({error.strerror or error}).", "Is the disk full?"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
