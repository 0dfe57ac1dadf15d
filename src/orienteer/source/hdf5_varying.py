"""Rows of variable length in HDF5 files, read with checks that the HDF5 library does not make.

Such a dataset holds references (length, address, number) into "global heaps".  In a damaged file the library
follows them blindly: it asks for gigabytes, or walks a heap of zeros for ever.  So this module reads
references and heaps itself, and compares every length with what the file really holds.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_reading import read_array
from orienteer.compute.reading import COPY_AGAIN
from orienteer.errors import FileError

_REFERENCE = np.dtype([("length", "<u4"), ("address", "<u8"), ("number", "<u4")])
_HEAP_HEADER = np.dtype([("signature", "S4"), ("version", "u1"), ("spare", "V3"), ("size", "<u8")])
_OBJECT_HEADER = np.dtype([("number", "<u2"), ("uses", "<u2"), ("spare", "V4"), ("size", "<u8")])


def read_varying(dataset: h5py.Dataset, rows: slice) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The rows ``rows.start:rows.stop`` of a 1D dataset: length of each, and all values one after another.

    The values have the dtype of the rows; text comes as its bytes.
    """
    path = Path(dataset.file.filename)
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    dtype = np.dtype(np.uint8 if is_text else h5py.check_vlen_dtype(dataset.dtype))
    references = _read_references(path, dataset, rows)
    lengths = references["length"].astype(np.int64)
    pieces = []
    with path.open("rb") as file:
        heaps = _Heaps(path, file, dataset.file.userblock_size)
        for length, address, number in references.tolist():
            if length:
                pieces.append(heaps.piece(address, number, length * dtype.itemsize))
    return lengths, np.frombuffer(b"".join(pieces), dtype).astype(dtype.newbyteorder("="), copy=False)


def read_texts(dataset: h5py.Dataset, rows: slice) -> NDArray[np.str_]:
    """Rows of a 1D dataset of text, of fixed or variable length, as an array of text."""
    kind = h5py.check_string_dtype(dataset.dtype)
    if kind is not None and kind.length is not None:
        return np.array(
            [bytes(text).decode("utf-8", "replace") for text in read_array(dataset, rows)], dtype=np.str_
        )
    lengths, values = read_varying(dataset, rows)
    pieces = np.split(values, np.cumsum(lengths)[:-1]) if len(lengths) else []
    return np.array(
        [piece.tobytes().rstrip(b"\0").decode("utf-8", "replace") for piece in pieces], dtype=np.str_
    )


class _Heaps:
    """The global heaps of a file; each is read once."""

    def __init__(self, path: Path, file: BinaryIO, base: int) -> None:
        self._path, self._file, self._base = path, file, base
        self._size = os.fstat(file.fileno()).st_size
        self._objects: dict[int, dict[int, bytes]] = {}

    def piece(self, address: int, number: int, n_bytes: int) -> bytes:
        """The first bytes of one object."""
        if address not in self._objects:
            self._objects[address] = self._read(address)
        found = self._objects[address].get(number, b"")
        if n_bytes > len(found):
            self._refuse(f"a row of {n_bytes} bytes, but only {len(found)} are stored")
        return found[:n_bytes]

    def _read(self, address: int) -> dict[int, bytes]:
        self._file.seek(min(self._base + address, self._size))
        head = self._file.read(_HEAP_HEADER.itemsize)
        if len(head) < _HEAP_HEADER.itemsize or not head.startswith(b"GCOL"):
            self._refuse(f"a row at byte {address}, where none is stored")
        size = int(np.frombuffer(head, _HEAP_HEADER)[0]["size"])
        if size > self._size - self._base - address:
            self._refuse(f"{size} bytes of rows at byte {address}, beyond the end of the file")
        heap = head + self._file.read(size - len(head)) if size > len(head) else head
        objects, at = {}, len(head)
        while at + _OBJECT_HEADER.itemsize <= len(heap):
            number, _, _, n_bytes = np.frombuffer(heap, _OBJECT_HEADER, 1, at)[0].tolist()
            at += _OBJECT_HEADER.itemsize
            if number == 0:  # the rest is free
                break
            objects[number] = heap[at : at + n_bytes]
            at += -(-n_bytes // 8) * 8
        return objects

    def _refuse(self, what: str) -> None:
        raise FileError(self._path, f"refers to {what}.", COPY_AGAIN)


def _read_references(path: Path, dataset: h5py.Dataset, rows: slice) -> NDArray[Any]:
    """The references of the rows, straight from where the dataset is stored."""
    if dataset.ndim != 1 or dataset.file.id.get_create_plist().get_sizes() != (8, 8):
        raise FileError(path, f"stores '{dataset.name}' in a form that Orienteer does not read.")
    n_rows = rows.stop - rows.start
    if n_rows == 0:
        return np.zeros(0, _REFERENCE)
    layout = dataset.id.get_create_plist().get_layout()
    if layout == h5py.h5d.CONTIGUOUS and dataset.id.get_offset() is not None:
        offset = dataset.id.get_offset() + rows.start * _REFERENCE.itemsize
        references = np.fromfile(path, _REFERENCE, n_rows, offset=offset)
    elif layout == h5py.h5d.CHUNKED:
        chunk = dataset.chunks[0]
        first = rows.start // chunk * chunk
        chunks = [_read_chunk(path, dataset, place, chunk) for place in range(first, rows.stop, chunk)]
        references = np.concatenate(chunks)[rows.start - first : rows.stop - first]
    else:
        raise FileError(path, f"stores '{dataset.name}' in a form that Orienteer does not read.")
    if len(references) != n_rows:
        raise FileError(path, f"ends before row {rows.stop} of '{dataset.name}'.", "The file is incomplete.")
    return references


def _read_chunk(path: Path, dataset: h5py.Dataset, first: int, n_rows: int) -> NDArray[Any]:
    skipped, content = dataset.id.read_direct_chunk((first,))
    n_bytes = n_rows * _REFERENCE.itemsize
    pipeline = dataset.id.get_create_plist()
    for number in reversed(range(pipeline.get_nfilters())):
        code = pipeline.get_filter(number)[0]
        if skipped >> number & 1:
            continue
        if code == h5py.h5z.FILTER_DEFLATE:
            content = zlib.decompressobj().decompress(content, n_bytes)
        elif code == h5py.h5z.FILTER_FLETCHER32:
            content = content[:-4]
        elif code == h5py.h5z.FILTER_SHUFFLE:
            content = np.frombuffer(content, np.uint8).reshape(_REFERENCE.itemsize, -1).T.tobytes()
        else:
            raise FileError(
                path,
                f"compresses '{dataset.name}' with filter {code}, which is not supported for such rows.",
                "Write it again without this filter: h5repack -f NONE IN OUT",
            )
    if len(content) != n_bytes:
        raise FileError(path, f"holds {len(content)} of {n_bytes} bytes of '{dataset.name}'.", COPY_AGAIN)
    return np.frombuffer(content, _REFERENCE)
