"""Whatever goes wrong while a file is read or written, said as one FileError that names file and reason."""

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from orienteer.errors import FileError, GeometryMismatch, OrienteerError

# What NumPy, h5py, zipfile and the operating system raise for a file that is damaged or not what it claims.
_DAMAGE = (
    LookupError,
    ValueError,
    TypeError,
    RuntimeError,
    ArithmeticError,
    AttributeError,
    EOFError,
    SystemError,
    SyntaxError,
    BufferError,
    struct.error,
    tokenize.TokenError,
    zlib.error,
    zipfile.BadZipFile,
)
OUT_OF_MEMORY = "needs more memory than there is."


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[Path]:
    """The path; any trouble inside the block becomes a FileError that names the file and the reason.

    This is the one place where errors of h5py, NumPy and the operating system are translated.  A FileError
    passes unchanged, and any other OrienteerError gets the name of the file.
    """
    file = Path(path)
    try:
        if file.is_dir():
            raise FileError(file, "is a directory, not a data file.", "Give the path of a file.")
        if file.exists() and not file.is_file():
            # A named pipe would wait for ever, and a device has no end.
            raise FileError(file, "is not a regular file.", "Give the path of a file.")
        yield file
    except FileError:
        raise
    except OrienteerError as error:
        if str(file) in error.message:
            raise
        if isinstance(error, GeometryMismatch):
            raise GeometryMismatch(f"{file}: {error.message}", error.hint) from error
        raise FileError(file, error.message, error.hint) from error
    except FileNotFoundError as error:
        if error.filename not in (None, str(file)):
            raise FileError(file, f"needs '{error.filename}', which does not exist.") from error
        raise FileError(file, "does not exist.", "Check the path.") from error
    except PermissionError as error:
        raise FileError(
            file, "may not be read (permission denied).", "Check the permissions of the file."
        ) from error
    except MemoryError as error:
        raise FileError(file, OUT_OF_MEMORY, "Read it by batch, or select fewer frames.") from error
    except OSError as error:
        raise FileError(
            file, f"cannot be read ({one_line(error)}).", "The file may be damaged or incomplete."
        ) from error
    except _DAMAGE as error:
        raise FileError(file, f"is damaged or not what it claims to be ({one_line(error)}).") from error


@contextmanager
def writing(path: str | PathLike[str]) -> Iterator[None]:
    """Errors of h5py and the operating system while writing, as a FileError that names the file."""
    try:
        yield
    except OrienteerError:
        raise
    except OSError as error:
        raise FileError(path, f"could not be written ({one_line(error)}).", "Is the disk full?") from error


def check_holds(path: str | PathLike[str], what: str, declared_bytes: int, available_bytes: int) -> None:
    """Refuse a file that declares more data than it holds, before any memory is taken."""
    if declared_bytes > available_bytes:
        raise FileError(
            path,
            f"declares {declared_bytes} bytes of {what}, but holds at most {available_bytes}.",
            "The file is damaged or incomplete.",
        )


def one_line(error: BaseException) -> str:
    """The text of an error in one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__
