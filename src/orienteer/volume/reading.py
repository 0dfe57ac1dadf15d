"""Whatever goes wrong while a volume file is read, said as one FileError."""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orienteer.errors import FileError, OrienteerError

# What NumPy, h5py, gzip and the operating system raise for a file that is damaged or not what it claims.
_DAMAGE = (
    KeyError,
    ValueError,
    TypeError,
    RuntimeError,
    IndexError,
    AttributeError,
    OverflowError,
    EOFError,
    zlib.error,
)


@contextmanager
def reading_volume(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path, checked to be a file; any trouble inside the block becomes a FileError that names it."""
    file = Path(path)
    try:
        if file.is_dir():
            raise FileError(file, "is a directory, not a volume file.")
        yield file
    except FileError:
        raise
    except OrienteerError as error:
        raise FileError(file, error.message, error.hint) from error
    except FileNotFoundError as error:
        raise FileError(file, "does not exist.", "Check the path.") from error
    except PermissionError as error:
        raise FileError(file, "may not be read.", "Check the permissions of the file.") from error
    except MemoryError as error:
        raise FileError(file, "is larger than the memory of this machine.") from error
    except OSError as error:
        raise FileError(
            file, f"cannot be read ({_one_line(error)}).", "The file is damaged or incomplete."
        ) from error
    except _DAMAGE as error:
        raise FileError(file, f"is damaged or not a volume ({_one_line(error)}).") from error


def check_fits(path: Path, declared_bytes: int, available_bytes: int) -> None:
    """Refuse a file that declares more data than it holds, before any memory is taken."""
    if declared_bytes > available_bytes:
        raise FileError(
            path,
            f"declares {declared_bytes} bytes of voxels, but holds {available_bytes}.",
            "The file is damaged or incomplete.",
        )


def _one_line(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__
