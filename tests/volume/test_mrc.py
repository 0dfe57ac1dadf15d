"""MRC maps: the bytes on disk, checked without the library that writes them, and what is read back."""

import gzip
import struct
import warnings

import mrcfile
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.errors import FileError
from orienteer.volume.mrc import read_mrc, write_mrc
from orienteer.volume.volume import Volume


@pytest.fixture
def volume() -> Volume:
    values = np.random.default_rng(1).normal(size=(4, 5, 6)).astype(np.float32)
    return Volume(values, (1.1, 2.2, 3.3), name="three unequal axes")


def same(a: Volume, b: Volume) -> bool:
    return np.array_equal(a.values, b.values, equal_nan=True) and (
        a.voxel_size,
        a.origin,
        a.space,
        a.name,
    ) == (b.voxel_size, b.origin, b.space, b.name)


def test_the_header_bytes_say_size_voxel_and_origin_as_mrc2014_asks(tmp_path, volume) -> None:
    write_mrc(tmp_path / "map.mrc", volume)
    content = (tmp_path / "map.mrc").read_bytes()
    assert struct.unpack_from("<4i", content, 0) == (4, 5, 6, 2)  # columns x, rows y, sections z, float32
    assert struct.unpack_from("<3i", content, 16) == (-2, -2, -3)  # nstart
    assert struct.unpack_from("<3i", content, 28) == (4, 5, 6)  # sampling
    assert struct.unpack_from("<3f", content, 40) == pytest.approx((4.4, 11, 19.8))  # cell
    assert struct.unpack_from("<3f", content, 52) == (90, 90, 90)
    assert struct.unpack_from("<3i", content, 64) == (1, 2, 3)  # mapc, mapr, maps
    assert struct.unpack_from("<2i", content, 88) == (1, 0)  # a volume, no extended header
    assert struct.unpack_from("<3f", content, 196) == pytest.approx((-2.2, -4.4, -9.9))  # origin
    assert content[208:214] == b"MAP DD"
    assert len(content) == 1024 + 4 * 4 * 5 * 6
    x, y, z = 3, 1, 2
    (voxel,) = struct.unpack_from("<f", content, 1024 + 4 * (x + 4 * (y + 5 * z)))  # x is the fastest
    assert voxel == volume.values[x, y, z]
    minimum, maximum, mean = struct.unpack_from("<3f", content, 76)
    assert (minimum, maximum) == (volume.values.min(), volume.values.max())
    assert mean == pytest.approx(volume.values.mean())


def test_the_file_passes_the_validation_of_mrcfile(tmp_path, volume, capsys) -> None:
    write_mrc(tmp_path / "map.mrc", volume)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Setting the dtype")  # by mrcfile, which NumPy 2.5 warns of
        assert mrcfile.validate(tmp_path / "map.mrc"), capsys.readouterr()


@given(
    st.tuples(*[st.integers(1, 5)] * 3),
    st.tuples(*[st.floats(1e-4, 100)] * 3),
    st.sampled_from(["real", "reciprocal"]),
    st.none() | st.tuples(*[st.floats(-1e3, 1e3)] * 3),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_a_round_trip_is_exact(tmp_path_factory, shape, voxel_size, space, origin, seed) -> None:
    path = tmp_path_factory.mktemp("mrc") / "map.mrc"
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    volume = Volume(values, voxel_size, space, origin, name="round trip")
    write_mrc(path, volume)
    assert same(read_mrc(path), volume)


@pytest.mark.parametrize("n_missing", [27, 26, 5])
def test_missing_voxels_become_zero_in_a_valid_file_that_tells_their_number(
    tmp_path, capsys, n_missing
) -> None:
    values = np.random.default_rng(1).normal(2.0, 1.0, size=27).astype(np.float32)
    values[:n_missing] = np.nan
    write_mrc(tmp_path / "map.mrc", Volume(values.reshape(3, 3, 3), 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Setting the dtype")  # by mrcfile, which NumPy 2.5 warns of
        assert mrcfile.validate(tmp_path / "map.mrc"), capsys.readouterr()
    assert np.array_equal(read_mrc(tmp_path / "map.mrc").values.ravel(), np.nan_to_num(values))
    with mrcfile.open(tmp_path / "map.mrc") as mrc:
        labels = b" ".join(bytes(label) for label in mrc.header.label)
    assert f"{n_missing} voxels were never measured".encode() in labels


def test_a_reciprocal_map_is_shown_a_thousand_times_larger_and_read_back_in_inverse_angstrom(
    tmp_path,
) -> None:
    write_mrc(tmp_path / "map.mrc", Volume(np.zeros((8, 8, 8)), 0.0025, "reciprocal"))
    with mrcfile.open(tmp_path / "map.mrc") as mrc:
        assert float(mrc.voxel_size.x) == pytest.approx(2.5)
        assert any(b"0.001 1/A" in bytes(label) for label in mrc.header.label)
    assert read_mrc(tmp_path / "map.mrc").voxel_size == (0.0025,) * 3
    assert read_mrc(tmp_path / "map.mrc").space == "reciprocal"


def test_a_voxel_size_changed_by_another_program_counts_more_than_the_label(tmp_path, volume) -> None:
    write_mrc(tmp_path / "map.mrc", volume)
    with mrcfile.open(tmp_path / "map.mrc", "r+") as mrc:
        mrc.voxel_size = 7.0
    assert read_mrc(tmp_path / "map.mrc").voxel_size == pytest.approx((7, 7, 7))


def test_a_gzip_compressed_map_is_written_and_read(tmp_path, volume) -> None:
    write_mrc(tmp_path / "map.mrc.gz", volume)
    assert gzip.decompress((tmp_path / "map.mrc.gz").read_bytes())[208:211] == b"MAP"
    assert same(read_mrc(tmp_path / "map.mrc.gz"), volume)


def by_hand(
    order=(1, 2, 3), mode=2, endian="<", extended=b"", start=(0, 0, 0), origin=(0, 0, 0), values=None
) -> bytes:
    """A map of the given axis order, byte by byte: ``values`` are in file order (section, row, column)."""
    n_section, n_row, n_column = values.shape
    size_xyz = [0, 0, 0]
    for axis, n in zip(order, (n_column, n_row, n_section), strict=True):
        size_xyz[axis - 1] = n
    head = bytearray(1024)
    struct.pack_into(f"{endian}10i", head, 0, n_column, n_row, n_section, mode, *start, *size_xyz)
    struct.pack_into(f"{endian}6f", head, 40, *(2.0 * n for n in size_xyz), 90, 90, 90)
    struct.pack_into(f"{endian}3i", head, 64, *order)
    struct.pack_into(f"{endian}2i", head, 88, 1, len(extended))
    struct.pack_into(f"{endian}3f", head, 196, *origin)
    head[208:212] = b"MAP "
    head[212:214] = b"DA" if endian == "<" else b"\x11\x11"
    return bytes(head) + extended + values.astype(values.dtype.newbyteorder(endian)).tobytes()


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 1, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2)])
def test_every_axis_order_is_turned_to_xyz(tmp_path, order) -> None:
    xyz = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    column, row, section = order
    stored = xyz.transpose(section - 1, row - 1, column - 1)
    start_xyz = (-1, 10, 100)
    start = tuple(start_xyz[axis - 1] for axis in order)
    (tmp_path / "map").write_bytes(by_hand(order, values=stored, start=start))
    read = read_mrc(tmp_path / "map")
    assert np.array_equal(read.values, xyz)
    assert read.voxel_size == (2, 2, 2)
    assert read.origin == (-2, 20, 200)  # nstart counts where origin is zero


@pytest.mark.parametrize("endian", ["<", ">"])
@pytest.mark.parametrize(("mode", "dtype"), [(0, "i1"), (1, "i2"), (2, "f4"), (6, "u2"), (12, "f2")])
def test_every_mode_and_byte_order_is_read_behind_an_extended_header(tmp_path, mode, dtype, endian) -> None:
    values = np.random.default_rng(mode).integers(0, 100, size=(2, 3, 4)).astype(dtype)
    content = by_hand(
        mode=mode, endian=endian, extended=b"x" * 160, values=values, origin=(1, 2, 3), start=(9, 9, 9)
    )
    (tmp_path / "map").write_bytes(content)
    read = read_mrc(tmp_path / "map")
    assert np.array_equal(read.values, values.transpose(2, 1, 0))
    assert read.origin == (1, 2, 3)  # origin goes before nstart


def damaged(content: bytes, offset: int, code: str, *values) -> bytes:
    head = bytearray(content)
    struct.pack_into(code, head, offset, *values)
    return bytes(head)


WHOLE = by_hand(values=np.ones((3, 4, 5), np.float32))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an MRC map"),
        (WHOLE[:500], "not an MRC map"),
        (WHOLE[:-1], "declares 240 bytes of voxels, but holds at most 239"),
        (WHOLE + b"\0", "goes on after"),
        (damaged(WHOLE, 0, "<3i", 2**30, 2**30, 2**30), "declares"),
        (damaged(WHOLE, 0, "<i", -5), "declares"),
        (damaged(WHOLE, 92, "<i", 2**31 - 1), "declares"),
        (damaged(WHOLE, 92, "<i", -8), "extended header"),
        (damaged(WHOLE, 12, "<i", 4), "complex numbers"),
        (damaged(WHOLE, 12, "<i", 77), "mode 77"),
        (damaged(WHOLE, 64, "<3i", 1, 1, 3), "permutation"),
        (damaged(WHOLE, 40, "<3f", 0, 0, 0), "voxel size"),
        (damaged(WHOLE, 40, "<3f", np.nan, 1, 1), "voxel size"),
        (damaged(WHOLE, 52, "<3f", 90, 90, 120), "cell angles"),
        (damaged(WHOLE, 1024, "<f", np.inf), "infinite"),
        (gzip.compress(WHOLE, mtime=0)[:-40], "damaged"),
        (gzip.compress(WHOLE[:-4], mtime=0), "at most 236"),
    ],
)
def test_a_damaged_map_is_refused_with_its_name_and_the_reason(tmp_path, content, reason) -> None:
    path = tmp_path / "broken.mrc"
    path.write_bytes(content)
    with pytest.raises(FileError, match=reason) as caught:
        read_mrc(path)
    assert "broken.mrc" in str(caught.value)


def test_a_header_without_voxel_size_needs_one(tmp_path) -> None:
    (tmp_path / "map").write_bytes(damaged(WHOLE, 40, "<3f", 0, 0, 0))
    assert read_mrc(tmp_path / "map", voxel_size=3.0).voxel_size == (3, 3, 3)


@pytest.mark.parametrize("shape", [(4, 5, 6), (7, 7, 7), (8, 8, 8)])
def test_an_intensity_without_an_origin_has_its_centre_in_the_middle(tmp_path, shape) -> None:
    path = tmp_path / "relion.mrc"
    path.write_bytes(by_hand(values=np.ones(shape, np.float32)))
    with pytest.warns(UserWarning, match=r"relion\.mrc.*n // 2"):
        read = read_mrc(path, voxel_size=0.01, space="reciprocal")
    assert all(axis[n // 2] == 0 for axis, n in zip(read.axes(), read.shape, strict=True))
    assert read_mrc(path).origin == (0, 0, 0)  # in real space a corner is as good as any other place


def test_an_intensity_of_orienteer_keeps_an_origin_of_zero(tmp_path) -> None:
    write_mrc(tmp_path / "map.mrc", Volume(np.ones((4, 4, 4)), 0.01, "reciprocal", (0, 0, 0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_mrc(tmp_path / "map.mrc").origin == (0, 0, 0)
