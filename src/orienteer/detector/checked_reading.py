"""Reading HDF5 that may be damaged: every array is checked before it is allocated."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.errors import FileError, OrienteerError

_KINDS = {"f": "floating-point", "i": "integer", "S": "fixed-length text"}
_DAMAGE_HINT = "The file is damaged or was written by something else; make it again."

# What h5py, NumPy and the operating system raise for a file that is damaged or not what it claims.
_DAMAGE = (
    OSError,
    RuntimeError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    SystemError,
)
# Superblock version 3 has a flag, in byte 11, for a file that is being written live.
_VERSION, _FLAGS, _LIVE = 8, 11, 0x04
LARGEST_TEXT_BYTES = 1 << 20
_COMPRESSORS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_LZF}
_FILTERS = {*_COMPRESSORS, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[None]:
    """Everything that a damaged file makes fail inside the block becomes a FileError that names the file."""
    try:
        yield
    except FileError:
        raise
    except OrienteerError as error:
        raise FileError(path, error.message, error.hint) from error
    except _DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileError(path, f"cannot be read ({reason[:200]}).", _DAMAGE_HINT) from error
    except MemoryError as error:
        raise FileError(path, "needs more memory than this machine has.", _DAMAGE_HINT) from error


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """The file, open for reading without a lock, also while it is being written live."""
    with reading(path):
        with path.open("rb") as raw:
            head = raw.read(16)
        live = len(head) == 16 and head[_VERSION] >= 3 and bool(head[_FLAGS] & _LIVE)
        with h5py.File(path, "r", locking=False, swmr=live) as file:
            yield file


def read_dataset(
    group: h5py.Group, name: str, kinds: str, shape: tuple[int | None, ...] | None, largest: int
) -> NDArray[Any]:
    """A dataset as an array, once its kind, shape and size are what the caller expects.

    kinds : letters of the kinds allowed: "f" floats, "i" signed or unsigned integers, "S" fixed-length bytes.
    shape : expected shape, None for a length that is free; None altogether for any shape.
    largest : most entries that are read.
    """
    dataset = group.get(name)
    where = f"{group.name.rstrip('/')}/{name}"
    if not isinstance(dataset, h5py.Dataset):
        raise OrienteerError(f"the dataset '{where}' is missing.", _DAMAGE_HINT)
    kind = "i" if dataset.dtype.kind == "u" else dataset.dtype.kind
    if kind not in kinds:
        wanted = " or ".join(_KINDS[letter] for letter in kinds)
        raise OrienteerError(f"'{where}' holds {dataset.dtype}; expected {wanted} values.", _DAMAGE_HINT)
    if dataset.shape is None or (
        shape is not None
        and (
            len(shape) != len(dataset.shape)
            or any(n is not None and n != have for n, have in zip(shape, dataset.shape, strict=True))
        )
    ):
        wanted = str(tuple("any" if n is None else n for n in shape or ())).replace("'any'", "n")
        raise OrienteerError(f"'{where}' has shape {dataset.shape}; expected {wanted}.", _DAMAGE_HINT)
    # A chunk is decompressed whole, so its declared size matters as much as the dataset's.
    entries = max(dataset.size, prod(dataset.chunks or (0,)))
    if entries > largest or entries * dataset.dtype.itemsize > 16 * largest + (1 << 20):
        raise OrienteerError(
            f"'{where}' declares {entries} entries, more than the {largest} expected.", _DAMAGE_HINT
        )
    _check_stored(dataset, where)
    values = np.asarray(dataset[()])
    if kind == "f" and not np.all(np.isfinite(values)):
        raise OrienteerError(f"'{where}' holds values that are not finite.", _DAMAGE_HINT)
    return values


def _check_stored(dataset: h5py.Dataset, where: str) -> None:
    """Refuse what the HDF5 library would follow to a crash: data outside of the file, impossible filters."""
    file_bytes = os.path.getsize(dataset.file.filename)
    plist = dataset.id.get_create_plist()
    if plist.get_layout() != h5py.h5d.CHUNKED:
        offset = dataset.id.get_offset()
        if offset is not None and offset + dataset.nbytes > file_bytes:
            raise OrienteerError(f"'{where}' reaches beyond the end of the file.", _DAMAGE_HINT)
        return
    filters = [plist.get_filter(k)[0] for k in range(plist.get_nfilters())]
    unknown = [code for code in filters if code not in _FILTERS]
    if unknown or len(set(filters)) < len(filters):
        raise OrienteerError(
            f"'{where}' has the HDF5 filters {filters}, which are not read here.", _DAMAGE_HINT
        )
    raw_bytes = prod(dataset.chunks) * dataset.dtype.itemsize

    def check(chunk: h5py.h5d.StoreInfo) -> None:
        # A compressor steps aside for a chunk that does not shrink; the mask says so.
        active = {code for k, code in enumerate(filters) if not chunk.filter_mask >> k & 1}
        smallest = largest = raw_bytes + (4 if h5py.h5z.FILTER_FLETCHER32 in active else 0)
        if active & _COMPRESSORS:
            smallest, largest = 5, largest + raw_bytes // 100 + 1024
        inside = chunk.byte_offset is not None and chunk.byte_offset + chunk.size <= file_bytes
        if not inside or not smallest <= chunk.size <= largest:
            raise OrienteerError(f"a chunk of '{where}' is damaged.", _DAMAGE_HINT)

    dataset.id.chunk_iter(check)


def read_attribute(group: h5py.Group, name: str) -> NDArray[Any] | None:
    """An attribute of numbers or fixed-length text as an array; None where there is none.

    Text of variable length is never read: it lies in a heap of the file in which the HDF5 library can run in
    circles for ever when the heap is damaged.
    """
    if name not in group.attrs:
        return None
    attribute = h5py.h5a.open(group.id, name.encode())
    kind = attribute.get_type()
    is_text = isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()
    if not is_text and not isinstance(kind, h5py.h5t.TypeIntegerID | h5py.h5t.TypeFloatID):
        raise OrienteerError(
            f"the attribute '{name}' of '{group.name}' holds no numbers or plain text.", _DAMAGE_HINT
        )
    if prod(attribute.shape or ()) * kind.get_size() > LARGEST_TEXT_BYTES:
        raise OrienteerError(f"the attribute '{name}' of '{group.name}' is too large.", _DAMAGE_HINT)
    return np.asarray(group.attrs[name])


def read_text(value: Any, what: str) -> str:
    """Fixed-length HDF5 text (one bytes value, or an array of one) as str."""
    text = np.asarray(value)
    if text.shape != () or text.dtype.kind != "S":
        raise OrienteerError(f"{what} is not a text.", _DAMAGE_HINT)
    return bytes(text[()]).decode("utf-8")


def as_fixed_text(texts: str | list[str]) -> NDArray[np.bytes_]:
    """Text as fixed-length UTF-8 bytes, which :func:`read_text` turns back."""
    encoded = [text.encode("utf-8") for text in ([texts] if isinstance(texts, str) else texts)]
    array = np.array(encoded, dtype=f"S{max(1, *(len(text) for text in encoded))}")
    return array.reshape(()) if isinstance(texts, str) else array
