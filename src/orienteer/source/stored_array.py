"""One NumPy array inside a file, read by rows without loading the rest."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.reading import check_holds
from orienteer.errors import FileError

NPY_MAGIC = b"\x93NUMPY"
_PADDED_HEADER_BYTES = 256


@dataclass(frozen=True)
class StoredArray:
    """Where the values of an array lie in a file.

    path : the file.
    offset : first byte of the values.
    dtype, shape, is_fortran : as the header of the array declares them.
    """

    path: Path
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes that the values take."""
        return math.prod(self.shape) * self.dtype.itemsize

    def rows(self, first: int, last: int) -> NDArray[Any]:
        """Rows ``first:last`` in memory, in the byte order of this machine."""
        shape = (last - first, *self.shape[1:])
        if math.prod(shape) == 0:
            return np.empty(shape, self.dtype.newbyteorder("="))
        if self.is_fortran:
            stored = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, "F")
            return np.ascontiguousarray(stored[first:last], dtype=self.dtype.newbyteorder("="))
        row = math.prod(self.shape[1:])
        values = np.fromfile(
            self.path,
            self.dtype,
            row * (last - first),
            offset=self.offset + first * row * self.dtype.itemsize,
        )
        if len(values) != row * (last - first):
            raise FileError(
                self.path,
                f"ends in the middle of row {first + len(values) // row}.",
                "Copy the file again; it is not complete.",
            )
        return values.reshape(shape).astype(self.dtype.newbyteorder("="), copy=False)

    def all(self) -> NDArray[Any]:
        """The whole array."""
        return self.rows(0, len(self)) if self.shape else self._scalar()

    def _scalar(self) -> NDArray[Any]:
        values = np.fromfile(self.path, self.dtype, 1, offset=self.offset)
        return values.reshape(()).astype(self.dtype.newbyteorder("="), copy=False)


def read_npy_header(
    file: IO[bytes], path: Path, n_bytes: int, kinds: str, what: str = "the array"
) -> StoredArray:
    """The array whose ``.npy`` data start here and take ``n_bytes``, which its header must match exactly.

    Python objects are never read.
    """
    begin = file.tell()
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise FileError(
            path,
            f"holds {what} in version {version} of the NumPy format, which Orienteer does not read.",
            "Save it again with a plain array of numbers (np.save).",
        )
    read_header = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    shape, is_fortran, dtype = read_header(file)
    if dtype.kind not in kinds or dtype.fields is not None or dtype.itemsize == 0:
        raise FileError(
            path,
            f"holds {what} of type {dtype}, which Orienteer does not read.",
            "Save it again with a plain array of numbers (np.save).",
        )
    if any(n < 0 for n in shape):
        raise FileError(path, f"declares {what} of shape {shape}.")
    stored = StoredArray(path, file.tell(), dtype, tuple(int(n) for n in shape), bool(is_fortran))
    available = n_bytes - (file.tell() - begin)
    check_holds(path, what, stored.nbytes, available)
    if stored.nbytes < available:
        raise FileError(path, f"holds {available - stored.nbytes} bytes more than {what} of shape {shape}.")
    return stored


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The 256 bytes that go before the values, padded so that the number of rows may change later."""
    text = f"{{'descr': {np.lib.format.dtype_to_descr(dtype)!r}, 'fortran_order': False, 'shape': {shape}, }}"
    n_text = _PADDED_HEADER_BYTES - len(NPY_MAGIC) - 4
    return NPY_MAGIC + b"\x01\x00" + n_text.to_bytes(2, "little") + text.ljust(n_text - 1).encode() + b"\n"


def file_bytes(file: IO[bytes]) -> int:
    """Bytes of an open file."""
    return os.fstat(file.fileno()).st_size
