"""Compression filters of HDF5 files from facilities: plug-ins, errors that name missing ones, and checks.

The decoders of bitshuffle, LZ4 and Blosc trust the sizes stored in a compressed chunk, and that of bzip2
waits for an end mark that may never come: a damaged chunk crashes the process or hangs it.  Chunks are
therefore checked here before they are decoded.
"""

from __future__ import annotations

import bz2
import itertools
import math
from typing import Any

import h5py

from orienteer.compute.extras import how_to_install
from orienteer.compute.reading import COPY_AGAIN
from orienteer.errors import FileError

GZIP, SHUFFLE, FLETCHER32, LZF = 1, 2, 3, 32000
OWN_FILTERS = (GZIP, SHUFFLE, FLETCHER32, LZF)
BZIP2, BLOSC, LZ4, BITSHUFFLE = 307, 32001, 32004, 32008
_NAMES = {
    BZIP2: "bzip2",
    BLOSC: "Blosc",
    LZ4: "LZ4",
    BITSHUFFLE: "bitshuffle",
    32013: "ZFP",
    32015: "Zstandard",
    32026: "Blosc2",
}
# Total size (8 bytes) and block size (4 bytes), most significant byte first, as HDF5's LZ4 filter has them.
_CHUNK_HEADER = 12
# Bitshuffle works on groups of eight elements; what is left over is stored as it is.
_GROUP = 8


def load_filters() -> bool:
    """Register the filters of hdf5plugin; returns whether it is installed."""
    try:
        import hdf5plugin  # noqa: F401 - importing it registers the filters
    except ImportError:
        return False
    return True


def check_filters(dataset: Any, foreign: bool = False) -> None:
    """Refuse a dataset whose compression cannot be undone, naming the filter and the remedy.

    foreign : accept the filters of hdf5plugin, too, whose chunks :func:`check_chunks` checks.
    """
    pipeline = filter_pipeline(dataset)
    if len({code for code, _, _ in pipeline}) < len(pipeline):
        raise _damaged(dataset, "has the same HDF5 filter twice")
    for code, _, name in pipeline:
        if code in OWN_FILTERS:
            continue
        called = _NAMES.get(code) or name.decode("utf-8", "replace").partition(";")[0] or "unnamed"
        what = f"'{dataset.name}' is compressed with {called} (HDF5 filter {code}), which is not"
        if not foreign:
            hint = "Write it again with gzip or without compression."
            raise FileError(dataset.file.filename, f"{what} read here.", hint)
        if not h5py.h5z.filter_avail(code) and not (load_filters() and h5py.h5z.filter_avail(code)):
            hint = f"Install it: {how_to_install('files')}."
            raise FileError(dataset.file.filename, f"{what} installed.", hint)


def check_chunks(dataset: Any, rows: slice | tuple[()] = ()) -> None:
    """Refuse rows whose compressed chunks contradict themselves, before a decoder crashes on them."""
    whole_pipeline = filter_pipeline(dataset)
    pipeline = [part for part in whole_pipeline if part[0] != FLETCHER32]
    if not pipeline or pipeline[-1][0] not in (BZIP2, BLOSC, LZ4, BITSHUFFLE):
        return
    code, options, _ = pipeline[-1]
    has_checksum = len(pipeline) < len(whole_pipeline)
    n_bytes = math.prod(dataset.chunks) * dataset.dtype.itemsize
    if code == BITSHUFFLE and (len(options) < 3 or options[2] != dataset.dtype.itemsize):
        raise _damaged(dataset, f"has bitshuffle options {options}")
    if code == BITSHUFFLE and (len(options) < 5 or options[4] == 0):
        return  # shuffled only: nothing in the chunk says how long it is
    steps = dataset.chunks
    first, last, _ = (rows or slice(None)).indices(len(dataset))
    starts = [range(first // steps[0] * steps[0], last, steps[0])] if first < last else [range(0)]
    starts += [range(0, n, step) for n, step in zip(dataset.shape[1:], steps[1:], strict=True)]
    for place in itertools.product(*starts):
        skipped, content = dataset.id.read_direct_chunk(place)
        if skipped == 0 and not _is_sound(content[:-4] if has_checksum else content, n_bytes, code, dataset):
            raise _damaged(dataset, f"has a compressed chunk at {place} that contradicts itself")


def _is_sound(content: bytes, n_bytes: int, code: int, dataset: Any) -> bool:
    """Whether the sizes in a compressed chunk of ``n_bytes`` agree with each other and with its length."""
    if code == BZIP2:
        decoder = bz2.BZ2Decompressor()
        whole = len(decoder.decompress(content, n_bytes)) == n_bytes
        # The end mark may follow the last byte of data.
        return whole and (decoder.eof or (decoder.decompress(b"", 1) == b"" and decoder.eof))
    if code == BLOSC:
        return [int.from_bytes(content[at : at + 4], "little") for at in (4, 12)] == [n_bytes, len(content)]
    if len(content) < _CHUNK_HEADER or int.from_bytes(content[:8], "big") != n_bytes:
        return False
    block = int.from_bytes(content[8:_CHUNK_HEADER], "big")
    group = _GROUP * dataset.dtype.itemsize if code == BITSHUFFLE else 1
    if block < 1 or block % group:
        return False
    packed = n_bytes // group * group
    at = _CHUNK_HEADER
    for _ in range(-(-packed // block)):
        at += 4 + int.from_bytes(content[at : at + 4], "big")
        if at > len(content):
            return False
    return at + n_bytes - packed == len(content)


def filter_pipeline(dataset: Any) -> list[tuple[int, tuple[int, ...], bytes]]:
    """Code, options and name of each filter, in the order in which they were applied."""
    plist = dataset.id.get_create_plist()
    parts = (plist.get_filter(number) for number in range(plist.get_nfilters()))
    return [(code, options, name) for code, _, options, name in parts]


def _damaged(dataset: Any, what: str) -> FileError:
    return FileError(dataset.file.filename, f"'{dataset.name}' {what}.", COPY_AGAIN)
