"""Compressed chunks: sound ones pass, and every damage is seen before a decoder can crash on it."""

import h5py
import numpy as np
import pytest

from orienteer.compute.hdf5_filters import check_chunks, check_filters
from orienteer.errors import FileError

hdf5plugin = pytest.importorskip(
    "hdf5plugin", reason="hdf5plugin is not installed: pip install 'orienteer[files]'"
)

FRAMES = np.random.default_rng(1).poisson(0.1, size=(5, 33, 301)).astype(np.int16)
CODECS = {
    "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
    "bitshuffle-lz4": hdf5plugin.Bitshuffle(cname="lz4"),
    "bitshuffle-blocks": hdf5plugin.Bitshuffle(nelems=256, cname="lz4"),
    "bitshuffle-zstd": hdf5plugin.Bitshuffle(cname="zstd"),
    "lz4": hdf5plugin.LZ4(),
    "lz4-blocks": hdf5plugin.LZ4(nbytes=4096),
    "zstd": hdf5plugin.Zstd(),
    "blosc": hdf5plugin.Blosc(),
    "bzip2": hdf5plugin.BZip2(),
}


def write(path, codec, **more) -> h5py.File:
    file = h5py.File(path, "w")
    file.create_dataset("data", data=FRAMES, **more, **dict(codec))
    file.flush()
    return file


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("chunks", [(1, 33, 301), (2, 10, 301), (5, 7, 50)])
@pytest.mark.parametrize("more", [{}, {"fletcher32": True}], ids=["plain", "checksum"])
def test_sound_chunks_pass(tmp_path, codec, chunks, more) -> None:
    with write(tmp_path / "a.h5", CODECS[codec], chunks=chunks, **more) as file:
        check_filters(file["data"], foreign=True)
        for rows in (slice(0, 5), slice(1, 2), slice(4, 5), slice(3, 3)):
            check_chunks(file["data"], rows)
        assert np.array_equal(file["data"][()], FRAMES)


@pytest.mark.parametrize(
    "codec", ["bitshuffle-lz4", "bitshuffle-blocks", "bitshuffle-zstd", "lz4", "lz4-blocks"]
)
@pytest.mark.parametrize("offset", [0, 3, 7, 8, 10, 11, 12, 13])
def test_a_changed_size_is_seen_or_harmless(tmp_path, codec, offset) -> None:
    path = tmp_path / "a.h5"
    with write(path, CODECS[codec], chunks=(1, 33, 301)) as file:
        at = file["data"].id.get_chunk_info(2).byte_offset + offset
    content = bytearray(path.read_bytes())
    content[at] ^= 0x55
    path.write_bytes(content)
    with h5py.File(path) as file:
        check_chunks(file["data"], slice(0, 2))
        try:
            check_chunks(file["data"], slice(0, 5))
        except FileError as error:
            assert "chunk at (2, 0, 0)" in str(error)  # noqa: PT017
        else:  # a block may call itself larger than it is: nothing comes of it, or the decoder sees it
            assert offset in (8, 10, 11)
            try:
                assert np.array_equal(file["data"][2], FRAMES[2])
            except OSError as error:
                assert "filter" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("codec", "offset"), [("blosc", 4), ("blosc", 7), ("blosc", 12), ("bzip2", 0), ("bzip2", 40)]
)
def test_damage_that_asks_for_memory_or_never_ends_is_seen(tmp_path, codec, offset) -> None:
    path = tmp_path / "a.h5"
    with write(path, CODECS[codec], chunks=(1, 33, 301)) as file:
        at = file["data"].id.get_chunk_info(2).byte_offset + offset
    content = bytearray(path.read_bytes())
    content[at] ^= 0x55
    path.write_bytes(content)
    with h5py.File(path) as file, pytest.raises((FileError, OSError)):
        check_chunks(file["data"], slice(0, 5))
