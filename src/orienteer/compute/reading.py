"""Any error while a file is read or written becomes one FileError that names the file and the reason."""

import gzip
import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from orienteer.compute.atomic import unwritable
from orienteer.compute.nearest import meant_instead
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
Content: TypeAlias = io.BufferedReader | gzip.GzipFile
OUT_OF_MEMORY = "needs more memory than there is."
# What to do about a file that is not as it was written.
COPY_AGAIN = "The file is damaged or incomplete: copy it again from where it was made, or make it anew."
HEAD_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 20
HDF5_SIGNATURE, _GZIP_SIGNATURE = b"\x89HDF\r\n\x1a\n", b"\x1f\x8b"


@contextmanager
def reading(path: str | PathLike[str], what: str = "data file") -> Iterator[Path]:
    """The path; any trouble inside the block becomes a FileError that names the file and the reason.

    This is the one place where errors of h5py, NumPy and the operating system are translated.  A FileError
    passes unchanged, and any other OrienteerError gets the name of the file.

    what : what the file was expected to be, in words.
    """
    file = Path(path)
    try:
        if file.is_dir():
            raise FileError(file, f"is a directory, not a {what}.", "Give the path of a file.")
        if file.exists() and not file.is_file():
            # A named pipe would wait for ever, and a device has no end.
            raise FileError(file, "is not a regular file.", "Give the path of a file.")
        yield file
    except FileError as error:
        error.hint = error.hint or _advice(what)
        raise
    except OrienteerError as error:
        error.hint = error.hint or _advice(what)
        if str(file) in error.message:
            raise
        if isinstance(error, GeometryMismatch):
            raise GeometryMismatch(f"{file}: {error.message}", error.hint) from error
        raise FileError(file, error.message, error.hint) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        if error.filename not in (None, str(file)):
            raise FileError(
                file,
                f"needs '{error.filename}', which does not exist.",
                "Put that file there.",
            ) from error
        raise FileError(file, "does not exist.", meant_instead(file, "Check the path.")) from error
    except PermissionError as error:
        raise FileError(
            file, "may not be read (permission denied).", "Check the permissions of the file."
        ) from error
    except MemoryError as error:
        raise FileError(file, OUT_OF_MEMORY, "Read fewer frames at a time; is the file damaged?") from error
    except OSError as error:
        raise FileError(file, f"cannot be read ({one_line(error)}).", COPY_AGAIN) from error
    except _DAMAGE as error:
        raise FileError(file, f"is damaged or no {what} ({one_line(error)}).", _advice(what)) from error


@contextmanager
def writing(path: str | PathLike[str]) -> Iterator[None]:
    """Errors of h5py and the operating system while writing, as a FileError that names the file."""
    try:
        yield
    except OrienteerError:
        raise
    except OSError as error:
        raise unwritable(path, error) from error


def read_head(path: str | PathLike[str], what: str = "data file", unpack: bool = False) -> bytes:
    """The first 64 KiB of a regular file that is not empty; else a FileError that says what it is.

    unpack : decompress the file first if it is gzip compressed.
    """
    with reading(path, what) as file:
        with open_unpacked(file) if unpack else file.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
        if not head:
            raise FileError(
                file,
                "has 0 bytes: the program or copy that wrote it was interrupted.",
                "Write or copy it again.",
            )
    return head


def _advice(what: str) -> str:
    """What to do about a file whose content cannot be right, if nothing better is known."""
    return f"Is it a whole {what}? Copy it again from where it was made, or give another file."


def is_hdf5(head: bytes) -> bool:
    """Whether the HDF5 signature is at the start or behind a user block of 512, 1024, ... bytes."""
    return any(head.startswith(HDF5_SIGNATURE, at) for at in (0, *(1 << power for power in range(9, 16))))


@contextmanager
def open_unpacked(path: Path) -> Iterator[Content]:
    """The content of a file, decompressed when the file is gzip compressed."""
    with path.open("rb") as file:
        is_packed = file.read(2) == _GZIP_SIGNATURE
        file.seek(0)
        with gzip.open(file) if is_packed else nullcontext(file) as stream:
            yield stream


def read_at_most(stream: Content, n_bytes: int) -> bytes:
    """The first bytes of a stream; memory is allocated only as they arrive."""
    blocks: list[bytes] = []
    while n_bytes > 0 and (block := stream.read(min(n_bytes, _BLOCK_BYTES))):
        blocks.append(block)
        n_bytes -= len(block)
    return b"".join(blocks)


def check_holds(path: str | PathLike[str], what: str, declared_bytes: int, available_bytes: int) -> None:
    """Refuse a file that declares more data than it holds, before any memory is taken."""
    if declared_bytes > available_bytes:
        raise FileError(
            path,
            f"declares {declared_bytes} bytes of {what}, but holds at most {available_bytes}.",
            COPY_AGAIN,
        )


def one_line(error: BaseException) -> str:
    """The text of an error in one line of at most 200 characters."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())[:200] or type(error).__name__


def refuse_newer(path: str | PathLike[str], version: int, newest: int) -> None:
    """Refuse a file whose layout is newer than this Orienteer.

    >>> refuse_newer("run.json", 2, 2)
    >>> refuse_newer("run.json", 3, 2)
    Traceback (most recent call last):
    orienteer.errors.FileError: run.json: has version 3; this Orienteer reads up to 2.
    Update Orienteer.
    """
    if version > newest:
        raise FileError(
            path, f"has version {version}; this Orienteer reads up to {newest}.", "Update Orienteer."
        )
