"""Geometry of CXI files, from the first of these that the file has.

The detector that Orienteer's writer adds; ``xyz_map``, (3, ...) pixel centres in metres; CXI's
``corner_positions`` (outer corner of the first pixel) with ``basis_vectors`` (slow, then fast).  If all z are
zero, ``distance`` is added.  Pixel sizes and a distance alone do not say where the beam goes, so they make no
detector.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_reading import get_dataset, read_array
from orienteer.detector.detector import Detector
from orienteer.detector.hdf5 import holds_detector, read_detector
from orienteer.detector.panel import Panel
from orienteer.detector.pixel_list import pixel_list
from orienteer.errors import FileError
from orienteer.source.cxi_layout import DETECTOR

OWN_DETECTOR = "orienteer_detector"


def find_detector(path: Path, file: h5py.File, frame_shape: tuple[int, ...]) -> Detector | None:
    """The detector that the file describes; None if it says too little."""
    if holds_detector(file.get(OWN_DETECTOR)):
        return read_detector(file[OWN_DETECTOR])
    group = file.get(DETECTOR)
    if not isinstance(group, h5py.Group):
        return None
    if "xyz_map" in group:
        return _from_xyz_map(path, group, frame_shape)
    if {"corner_positions", "corner_position", "basis_vectors"} & set(group):
        return _from_panels(path, group, frame_shape)
    return None


def _from_xyz_map(path: Path, group: h5py.Group, frame_shape: tuple[int, ...]) -> Detector | None:
    dataset = get_dataset(group, "xyz_map", "f", foreign=True)
    if dataset.shape == (3, *frame_shape):
        positions_m = read_array(dataset).astype(np.float64).reshape(3, -1).T
    elif dataset.shape == (*frame_shape, 3):
        positions_m = read_array(dataset).astype(np.float64).reshape(-1, 3)
    else:
        raise FileError(
            path, f"xyz_map has shape {dataset.shape} for frames of {frame_shape}.", "Give --geometry."
        )
    real: NDArray[np.bool_] = np.asarray(np.isfinite(positions_m).all(axis=1))
    if not real.any():
        raise FileError(path, "xyz_map holds no position.", "Give --geometry.")
    positions_m = np.where(real[:, None], positions_m, 0.0)
    if not positions_m[:, 2].any():
        distance_m = _scalar(path, group, "distance")
        if distance_m is None:
            return None
        positions_m[:, 2] = distance_m
    # An entry without a position is no pixel: it gets no area, and a position away from the sample.
    positions_m[~real] = (0, 0, np.abs(positions_m[real, 2]).max() or 1.0)
    area_m2 = _pixel_area_m2(path, group, positions_m, frame_shape)
    if area_m2 is None:
        return None
    pixels = pixel_list(positions_m, np.where(real, area_m2, 0.0))
    return Detector(pixels=pixels, frame_shape=frame_shape, name=path.stem)


def _pixel_area_m2(
    path: Path, group: h5py.Group, positions_m: NDArray[np.float64], frame_shape: tuple[int, ...]
) -> float | None:
    x, y = _scalar(path, group, "x_pixel_size"), _scalar(path, group, "y_pixel_size")
    edge, area = _scalar(path, group, "pixel_size"), _scalar(path, group, "pixel_area")
    if x is not None and y is not None:
        return abs(x * y)
    if edge is not None or area is not None:
        return abs(area) if edge is None and area is not None else edge**2  # type: ignore[operator]
    if len(frame_shape) < 2 or min(frame_shape[-2:]) < 2:
        return None
    # The median of all steps is the step inside a panel, because gaps and missing pixels are few.
    grid = positions_m.reshape(-1, *frame_shape[-2:], 3)
    slow = np.linalg.norm(np.diff(grid, axis=1), axis=-1)
    fast = np.linalg.norm(np.diff(grid, axis=2), axis=-1)
    return float(np.median(slow) * np.median(fast))


def _from_panels(path: Path, group: h5py.Group, frame_shape: tuple[int, ...]) -> Detector | None:
    """CXI's own geometry; missing parts get the defaults of the CXI specification."""
    n_panels = 1 if len(frame_shape) == 2 else frame_shape[0]
    if len(frame_shape) not in (2, 3):
        raise FileError(path, f"frames of shape {frame_shape} do not fit CXI's panels.", "Give --geometry.")
    n_slow, n_fast = frame_shape[-2:]
    steps = _vectors(path, group, ("basis_vectors",), (n_panels, 2, 3))
    if steps is None:
        x, y = _scalar(path, group, "x_pixel_size"), _scalar(path, group, "y_pixel_size")
        if x is None or y is None:
            return None
        steps = np.broadcast_to(np.array([[0, -y, 0], [-x, 0, 0]]), (n_panels, 2, 3))
    corners = _vectors(path, group, ("corner_positions", "corner_position"), (n_panels, 3))
    if corners is None:
        if n_panels != 1:
            return None
        corners = -(n_slow / 2 * steps[:, 0] + n_fast / 2 * steps[:, 1])
    if not corners[:, 2].any():
        distance_m = _scalar(path, group, "distance")
        if distance_m is None:
            return None
        corners = corners + np.array([0, 0, distance_m])
    panels = [
        Panel(
            f"p{k}", corners[k], steps[k, 1], steps[k, 0], (n_slow, n_fast), first_pixel=k * n_slow * n_fast
        )
        for k in range(n_panels)
    ]
    return Detector(panels, frame_shape=frame_shape, name=path.stem)


def _vectors(
    path: Path, group: h5py.Group, names: tuple[str, ...], shape: tuple[int, ...]
) -> NDArray[np.float64] | None:
    """Vectors per panel; the file may also hold one set for all panels, or one per frame if all are equal."""
    for name in names:
        if name not in group:
            continue
        dataset = get_dataset(group, name, "iuf", foreign=True)
        if dataset.shape not in (shape, shape[1:]) and dataset.shape[1:] != shape[1:]:
            raise FileError(
                path, f"'{name}' has shape {dataset.shape}; expected {shape}.", "Give --geometry."
            )
        values = read_array(dataset).astype(np.float64)
        if values.shape == shape:
            return values
        if values.shape != shape[1:] and (shape[0] != 1 or not (values == values[0]).all()):
            raise FileError(path, f"'{name}' changes from frame to frame or does not fit {shape[0]} panels.")
        return np.broadcast_to(values if values.shape == shape[1:] else values[0], shape)
    return None


def _scalar(path: Path, group: h5py.Group, name: str) -> float | None:
    """A positive number; if there is one per frame, all must agree."""
    if name not in group:
        return None
    values = read_array(get_dataset(group, name, "iuf", foreign=True)).astype(np.float64).reshape(-1)
    if not values.size or not np.allclose(values, values[0]) or not 0 < values[0] < np.inf:
        raise FileError(path, f"'{name}' is not one positive number.", "Give --geometry.")
    return float(values[0])
