"""Orienteer's own layout keeps a detector bit for bit, and a damaged one is a FileError."""

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.detector.detector import Detector
from orienteer.detector.hdf5 import read_detector, store_detector, stored_detector, write_detector
from orienteer.detector.pixel_list import PixelList
from orienteer.detector.square import square_detector
from orienteer.errors import FileError, OrienteerError


def round_trip(detector: Detector, path: Path) -> Detector:
    with h5py.File(path, "w") as file:
        write_detector(file.create_group("detector"), detector)
    with h5py.File(path, "r") as file:
        return read_detector(file["detector"])


def test_panels_come_back_bit_for_bit(tilted_detector: Detector, tmp_path: Path) -> None:
    found = round_trip(tilted_detector, tmp_path / "d.h5")
    assert found == tilted_detector
    assert found.positions_m.tobytes() == tilted_detector.positions_m.tobytes()


def test_a_detector_has_a_file_of_its_own_or_there_is_none(tilted_detector: Detector, tmp_path: Path) -> None:
    assert stored_detector(tmp_path / "detector.h5") is None
    store_detector(tmp_path / "detector.h5", tilted_detector)
    assert stored_detector(tmp_path / "detector.h5") == tilted_detector
    assert [path.name for path in tmp_path.iterdir()] == ["detector.h5"]


def test_a_list_of_pixels_comes_back_bit_for_bit(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    pixels = PixelList(random.normal(size=(30, 3)) + np.array([0, 0, 5]), random.normal(size=(30, 3)) * 1e-8)
    detector = Detector(
        pixels=pixels, frame_shape=(5, 6), mask=random.integers(0, 3, 30), name="Détecteur à gaz"
    )
    assert round_trip(detector, tmp_path / "d.h5") == detector


def test_a_detector_of_many_panels_without_groups_comes_back(
    box_around_the_sample: Detector, tmp_path: Path
) -> None:
    assert round_trip(box_around_the_sample, tmp_path / "d.h5") == box_around_the_sample


def drop(name: str) -> Callable[[h5py.Group], None]:
    def damage(group: h5py.Group) -> None:
        del group[name]

    return damage


def put(name: str, values: object) -> Callable[[h5py.Group], None]:
    def damage(group: h5py.Group) -> None:
        del group[name]
        group[name] = values

    return damage


def mark(name: str, value: object) -> Callable[[h5py.Group], None]:
    def damage(group: h5py.Group) -> None:
        group.attrs[name] = value

    return damage


def declare(name: str, shape: tuple[int, ...]) -> Callable[[h5py.Group], None]:
    def damage(group: h5py.Group) -> None:
        del group[name]
        group.create_dataset(name, shape=shape, dtype="u1", chunks=True)

    return damage


DAMAGES = {
    "no mask": drop("mask"),
    "no panels": drop("panels"),
    "no origins": drop("panels/origin_m"),
    "mask of floats": put("mask", np.zeros(40)),
    "mask of text": put("mask", np.array([b"a"] * 40)),
    "mask too short": put("mask", np.zeros(39, np.uint8)),
    "mask with other levels": put("mask", np.full(40, 3, np.uint8)),
    "mask is a group": put("mask", h5py.SoftLink("/detector/panels")),
    "mask link to nothing": put("mask", h5py.SoftLink("/nothing")),
    "mask too large": declare("mask", (1 << 40,)),
    "efficiency of NaN": put("efficiency", np.full(40, np.nan)),
    "efficiency negative": put("efficiency", np.full(40, -1.0)),
    "origins of NaN": put("panels/origin_m", np.full((2, 3), np.nan)),
    "origins in the sample": put("panels/origin_m", np.array([[0, 0, 1], [-1e-4, -1e-4, 0]])),
    "fast steps of zero": put("panels/fast_m", np.zeros((2, 3))),
    "panels too many": put("panels/shape", np.ones((3, 2), np.int64)),
    "panels negative": put("panels/shape", np.full((2, 2), -5)),
    "panels huge": put("panels/shape", np.full((2, 2), 1 << 40)),
    "panels outside": put("panels/frame_index", np.full((2, 3), 1 << 50)),
    "panels overlapping": put("panels/frame_index", np.array([[0, 5, 1], [0, 5, 1]])),
    "names equal": put("panels/name", np.array([b"a", b"a"])),
    "names not UTF-8": put("panels/name", np.array([b"\xff\xfe", b"b"])),
    "names of numbers": put("panels/name", np.array([1, 2])),
    "frame shape negative": mark("frame_shape", [-8, 5]),
    "frame shape huge": mark("frame_shape", [1 << 40, 1 << 40]),
    "frame shape of text": mark("frame_shape", np.bytes_(b"large")),
    "frame shape of text of variable length": mark("frame_shape", "large"),
    "name of variable length": mark("name", "detector"),
    "name of numbers": mark("name", 3),
    "frame shape empty": mark("frame_shape", np.zeros(0, np.int64)),
    "version of the future": mark("version", 99),
    "version of text": mark("version", np.bytes_(b"one")),
    "collections not JSON": mark("collections", np.bytes_(b"{")),
    "collections a list": mark("collections", np.bytes_(b"[1]")),
    "another format": mark("format", np.bytes_(b"something else")),
    "format of numbers": mark("format", [1, 2]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_group_is_a_file_error_that_names_the_file(
    damage: Callable[[h5py.Group], None], tilted_detector: Detector, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        write_detector(file.create_group("detector"), tilted_detector)
        damage(file["detector"])
    with h5py.File(path, "r") as file, pytest.raises(FileError, match=r"damaged\.h5"):
        read_detector(file["detector"])


def test_no_text_of_variable_length_is_written(tilted_detector: Detector, tmp_path: Path) -> None:
    # In a damaged file the HDF5 library can run in circles for ever on such text.
    with h5py.File(tmp_path / "d.h5", "w") as file:
        write_detector(file, tilted_detector)
        kinds = [file.attrs.get_id(name).dtype.kind for name in file.attrs]
        file.visititems(
            lambda _, item: kinds.append(item.dtype.kind) if isinstance(item, h5py.Dataset) else None
        )
    assert len(kinds) > 10
    assert "O" not in kinds


def test_an_empty_name_comes_back(tmp_path: Path) -> None:
    nameless = Detector(square_detector(4, 1e-3, 0.1).panels, name="")
    assert round_trip(nameless, tmp_path / "d.h5").name == ""


def test_a_flipped_byte_in_the_data_is_found(tmp_path: Path) -> None:
    path = tmp_path / "d.h5"
    detector = square_detector(64, 1e-3, 0.1).with_efficiency(np.random.default_rng(0).uniform(size=4096))
    with h5py.File(path, "w") as file:
        write_detector(file, detector)
        offset = file["efficiency"].id.get_chunk_info(0).byte_offset
    raw = bytearray(path.read_bytes())
    raw[offset + 1000] ^= 0x10
    path.write_bytes(raw)
    with h5py.File(path, "r") as file, pytest.raises(OrienteerError, match=r"d\.h5"):
        read_detector(file)
