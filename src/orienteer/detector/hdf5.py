"""Orienteer's own layout of a detector in an HDF5 group; it keeps everything, bit for bit.

Attributes of the group: ``format`` = "orienteer detector", ``version`` = 1, ``name``, ``frame_shape`` and,
when there are any, ``collections`` (JSON: collection -> list of groups).  All text is fixed-length UTF-8: the
HDF5 library can hang on text of variable length in a damaged file.

Datasets, all with Fletcher-32 checksums (P pixels, K panels):

=============================  =================  ==========================================================
``mask``                       (P,) uint8         0 orient and merge, 1 merge only, 2 never
``efficiency``                 (P,) float64       only when the detector has one
``panels/name``                (K,) text          fixed-length UTF-8
``panels/groups``              (K,) text          outermost first, separated by "/"
``panels/origin_m``            (K, 3) float64     outer corner of pixel (0, 0)
``panels/fast_m``              (K, 3) float64     step to the next pixel along the fast axis
``panels/slow_m``              (K, 3) float64     step to the next pixel along the slow axis
``panels/shape``               (K, 2) int64       n_slow, n_fast
``panels/frame_index``         (K, 3) int64       flat index of pixel (0, 0), slow stride, fast stride
``pixels/positions_m``         (P, 3) float64     instead of panels: pixel centres
``pixels/area_vectors_m2``     (P, 3) float64     instead of panels: normals as long as the area
=============================  =================  ==========================================================
"""

import json
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_reading import get_group, open_hdf5, read_numbers, read_text, read_whole
from orienteer.compute.hdf5_writing import new_hdf5
from orienteer.compute.reading import reading
from orienteer.detector.detector import Detector
from orienteer.detector.panel import LARGEST_N_PIXELS, Panel
from orienteer.detector.pixel_list import PixelList
from orienteer.errors import FileError, OrienteerError

FORMAT = "orienteer detector"
VERSION = 1
GROUP = "detector"
LARGEST_N_PANELS = 1 << 16


def write_detector(group: h5py.Group, detector: Detector) -> None:
    """Write the detector into an empty HDF5 group."""
    group.attrs["format"] = fixed_text(FORMAT)
    group.attrs["version"] = VERSION
    group.attrs["name"] = fixed_text(detector.name)
    group.attrs["frame_shape"] = np.array(detector.frame_shape, dtype=np.int64)
    if detector.collections:
        text = json.dumps({name: list(groups) for name, groups in detector.collections.items()})
        group.attrs["collections"] = fixed_text(text)
    _write(group, "mask", detector.mask)
    if detector.efficiency is not None:
        _write(group, "efficiency", detector.efficiency)
    if detector.pixels is not None:
        _write(group, "pixels/positions_m", detector.pixels.positions_m)
        _write(group, "pixels/area_vectors_m2", detector.pixels.area_vectors_m2)
        return
    panels = detector.panels
    _write(group, "panels/name", fixed_text([panel.name for panel in panels]))
    _write(group, "panels/groups", fixed_text(["/".join(panel.groups) for panel in panels]))
    for field in ("origin_m", "fast_m", "slow_m"):
        _write(group, f"panels/{field}", np.stack([getattr(panel, field) for panel in panels]))
    _write(group, "panels/shape", np.array([panel.shape for panel in panels], dtype=np.int64))
    index = [(panel.first_pixel, panel.slow_stride, panel.fast_stride) for panel in panels]
    _write(group, "panels/frame_index", np.array(index, dtype=np.int64))


def read_detector(group: h5py.Group) -> Detector:
    """The detector in an HDF5 group that :func:`write_detector` wrote; a FileError if it is damaged."""
    path = group.file.filename
    with reading(path):
        if not holds_detector(group):
            raise FileError(
                path,
                f"the group '{group.name}' holds no Orienteer detector.",
                "Give a geometry with --geometry: CrystFEL .geom, Dragonfly or Orienteer.",
            )
        version = int(read_numbers(group, "version", "iu"))
        if version != VERSION:
            raise FileError(
                path,
                f"the detector has layout version {version}; this Orienteer reads {VERSION}.",
                "Update Orienteer.",
            )
        frame_shape = _read_frame_shape(group)
        n_pixels = prod(frame_shape)
        mask = read_whole(group, "mask", "iu", (n_pixels,), LARGEST_N_PIXELS)
        efficiency = (
            read_whole(group, "efficiency", "f", (n_pixels,), LARGEST_N_PIXELS)
            if "efficiency" in group
            else None
        )
        by_pixel = "pixels" in group
        return Detector(
            panels=() if by_pixel else _read_panels(get_group(group, "panels")),
            pixels=_read_pixels(get_group(group, "pixels"), n_pixels) if by_pixel else None,
            frame_shape=frame_shape,
            mask=mask,
            efficiency=efficiency,
            name=_read_text(group, "name"),
            collections=_read_collections(group),
        )


def store_detector(path: Path, detector: Detector) -> None:
    """Write the detector into a file of its own, whole or not at all."""
    with new_hdf5(path, libver="latest") as file:
        write_detector(file.create_group(GROUP), detector)


def stored_detector(path: Path) -> Detector | None:
    """The detector in a file that :func:`store_detector` wrote; None if there is no such file."""
    if not path.exists():
        return None
    with open_hdf5(path, "detector file") as file:
        return read_detector(get_group(file, GROUP))


def holds_detector(group: Any) -> bool:
    """Whether the object is an HDF5 group with a detector in Orienteer's layout."""
    return isinstance(group, h5py.Group) and read_text(group, "format") == FORMAT


def fixed_text(texts: str | list[str]) -> NDArray[np.bytes_]:
    """Text as fixed-length UTF-8 bytes; at least one byte, because HDF5 has no text type of length 0."""
    array = np.array([text.encode("utf-8") for text in ([texts] if isinstance(texts, str) else texts)])
    return array.reshape(()) if isinstance(texts, str) else array


def _write(group: h5py.Group, name: str, values: NDArray[Any]) -> None:
    group.create_dataset(
        name, data=values, chunks=True, compression="gzip", compression_opts=1, shuffle=True, fletcher32=True
    )


def _read_text(group: h5py.Group, name: str) -> str:
    text = read_text(group, name)
    if text is None:
        raise OrienteerError(f"the attribute '{name}' of '{group.name}' is not a text of fixed length.")
    return text


def _read_frame_shape(group: h5py.Group) -> tuple[int, ...]:
    shape = tuple(read_numbers(group, "frame_shape", "iu", (None,)).tolist())
    if not 1 <= len(shape) <= 16 or min(shape) < 1:
        raise OrienteerError(f"frame_shape {shape} is not the shape of a frame.")
    if prod(shape) > LARGEST_N_PIXELS:
        raise OrienteerError(f"a frame of shape {shape} has more than {LARGEST_N_PIXELS} pixels.")
    return shape


def _read_pixels(group: h5py.Group, n_pixels: int) -> PixelList:
    positions_m = read_whole(group, "positions_m", "f", (n_pixels, 3), 3 * LARGEST_N_PIXELS)
    area_vectors_m2 = read_whole(group, "area_vectors_m2", "f", (n_pixels, 3), 3 * LARGEST_N_PIXELS)
    return PixelList(positions_m, area_vectors_m2)


def _read_panels(group: h5py.Group) -> tuple[Panel, ...]:
    shapes = read_whole(group, "shape", "iu", (None, 2), 2 * LARGEST_N_PANELS)
    n_panels = len(shapes)
    vectors = {
        field: read_whole(group, field, "f", (n_panels, 3), 3 * LARGEST_N_PANELS)
        for field in ("origin_m", "fast_m", "slow_m")
    }
    frame_index = read_whole(group, "frame_index", "iu", (n_panels, 3), 3 * LARGEST_N_PANELS)
    names, groups = (
        [bytes(text).decode("utf-8") for text in read_whole(group, field, "S", (n_panels,), LARGEST_N_PANELS)]
        for field in ("name", "groups")
    )
    return tuple(
        Panel(
            names[k],
            vectors["origin_m"][k],
            vectors["fast_m"][k],
            vectors["slow_m"][k],
            shape=(int(shapes[k, 0]), int(shapes[k, 1])),
            first_pixel=int(frame_index[k, 0]),
            slow_stride=int(frame_index[k, 1]),
            fast_stride=int(frame_index[k, 2]),
            groups=tuple(groups[k].split("/")) if groups[k] else (),
        )
        for k in range(n_panels)
    )


def _read_collections(group: h5py.Group) -> dict[str, tuple[str, ...]]:
    if "collections" not in group.attrs:
        return {}
    collections = json.loads(_read_text(group, "collections"))
    if not isinstance(collections, dict) or not all(
        isinstance(groups, list) for groups in collections.values()
    ):
        raise OrienteerError("the collections of groups are not a table of lists.")
    return {str(name): tuple(str(g) for g in groups) for name, groups in collections.items()}
