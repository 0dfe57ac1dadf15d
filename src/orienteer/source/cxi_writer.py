"""Writing CXI files that other programs read, and that Orienteer reads back without loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np

from orienteer.compute.hdf5_writing import NewHdf5File
from orienteer.detector.beam import HC_EV_A
from orienteer.detector.detector import Detector
from orienteer.detector.hdf5 import write_detector
from orienteer.detector.masks import PixelUse
from orienteer.source.cxi_geometry import OWN_DETECTOR
from orienteer.source.cxi_layout import COLUMNS, DETECTOR, JOULE_PER_EV, SOURCE
from orienteer.source.cxi_masks import bits_of
from orienteer.source.finite_source import BATCH_BYTES
from orienteer.source.hdf5_growing import (
    PACKED,
    append_columns,
    append_rows,
    create_column,
    create_rows,
    write_metadata,
)
from orienteer.source.hdf5_writer import Hdf5PatternWriter
from orienteer.source.patterns import FRAME_MASK, Patterns

FORMAT_NAME = "CXI"
METADATA = "entry_1/orienteer_metadata"
# "x", "y" or "none"; CXI has no field for the polarisation.
POLARISATION = f"{SOURCE}/orienteer_polarisation"
CXI_VERSION = 160


class CxiWriter(Hdf5PatternWriter):
    """Writes CXI: dense frames, one chunk each, gzip compressed.

    Beside CXI's own fields (data, mask, energy, distance, pixel sizes, corner positions and basis vectors) it
    writes ``xyz_map``, ``good_pixels``, ``entry_1/event_id``, the columns as given in ``entry_1/columns`` and
    the detector in ``orienteer_detector``: a round trip is exact.
    """

    format: ClassVar[str] = FORMAT_NAME
    lost_on_write: ClassVar[tuple[str, ...]] = ("sparse storage: frames are written dense",)

    def _start(self, temporary: Path, first: Patterns) -> None:
        self._file = file = NewHdf5File(temporary)
        file["cxi_version"] = CXI_VERSION
        file["number_of_entries"] = 1
        shape = self.frame_shape or (first.n_pixels,)
        # A flat list of pixels is stored as one row, so that the data are not taken for a single image.
        stored = shape if len(shape) > 1 else (1, *shape)
        dtype = np.dtype(np.int32) if first.is_sparse else first.dense().dtype
        group = file.create_group(DETECTOR)
        frames = create_rows(group, "data", dtype, stored, rows_per_chunk=1)
        axes = {2: ":y:x", 3: ":module_identifier:y:x"}.get(len(stored), "")
        frames.attrs["frame_shape"] = np.array(shape, np.int64)
        frames.attrs["axes"] = np.bytes_(f"experiment_identifier{axes}")
        file["entry_1/data_1/data"] = h5py.SoftLink(f"/{DETECTOR}/data")
        create_rows(file["entry_1"], "event_id", np.uint64)
        file["entry_1/experiment_identifier"] = file["entry_1/event_id"]
        file.create_group(COLUMNS)
        for name, column in first.columns.items():
            create_column(file[COLUMNS], name, column)
        if "wavelength_A" in first.columns:
            create_rows(file, f"{SOURCE}/energy", np.float64)
        if self.metadata:
            write_metadata(file, METADATA, self.metadata)
        if self.polarisation is not None:
            file[POLARISATION] = np.bytes_(self.polarisation)
        self._start_masks(group, stored, FRAME_MASK in first.columns)
        if self.detector is not None:
            _write_geometry(group, self.detector, stored)
            write_detector(file.create_group(OWN_DETECTOR), self.detector)

    def _start_masks(self, group: Any, stored: tuple[int, ...], each_frame: bool) -> None:
        """Start CXI's mask, one for each frame if frames have masks; without a detector also exact levels."""
        self._levels = np.zeros(stored, np.uint8) if self.mask is None else self.mask.reshape(stored)
        if each_frame:
            create_rows(group, "mask", np.uint16, stored, rows_per_chunk=1)
        elif self.mask is not None:
            group.create_dataset("mask", data=bits_of(self._levels), **PACKED)
        if self.mask is not None:
            group.create_dataset("good_pixels", data=self._levels < PixelUse.NEVER, **PACKED)
            if self.detector is None:
                group.create_dataset("pixel_use", data=self._levels, **PACKED)

    def _write(self, patterns: Patterns) -> None:
        data = self._file[f"{DETECTOR}/data"]
        # Sparse frames are made dense a part at a time, so that memory stays bounded.
        step = max(1, BATCH_BYTES // (4 * patterns.n_pixels))
        for first in range(0, len(patterns), step):
            part = patterns[first : first + step]
            append_rows(data, part.dense().reshape(-1, *data.shape[1:]))
            if FRAME_MASK in part.columns:
                levels = part.columns[FRAME_MASK].reshape(-1, *data.shape[1:])
                append_rows(self._file[f"{DETECTOR}/mask"], bits_of(np.maximum(levels, self._levels)))
        append_rows(self._file["entry_1/event_id"], patterns.event_id)
        append_columns(self._file[COLUMNS], patterns.columns)
        if "wavelength_A" in patterns.columns:
            energy_J = HC_EV_A * JOULE_PER_EV / np.asarray(patterns.columns["wavelength_A"], np.float64)
            append_rows(self._file[f"{SOURCE}/energy"], energy_J)


def _write_geometry(group: Any, detector: Detector, stored: tuple[int, ...]) -> None:
    """Write CXI's fields of geometry, and those beyond CXI that analysis programs look for."""
    group.create_dataset("xyz_map", data=detector.positions_m.T.reshape(3, *stored), **PACKED)
    group["distance"] = detector.distance_m
    if detector.panels:
        group["x_pixel_size"] = float(np.linalg.norm(detector.panels[0].fast_m))
        group["y_pixel_size"] = float(np.linalg.norm(detector.panels[0].slow_m))
    else:
        edge_m = np.sqrt(np.median(detector.solid_angle_sr * np.square(detector.positions_m).sum(axis=1)))
        group["x_pixel_size"] = group["y_pixel_size"] = float(edge_m)
    n_panels = int(np.prod(stored[:-2]))
    panel_pixels = stored[-2] * stored[-1]
    plain = [
        panel.shape == stored[-2:]
        and panel.first_pixel == k * panel_pixels
        and panel.slow_stride == stored[-1]
        for k, panel in enumerate(detector.panels)
    ]
    if len(plain) == n_panels and all(plain):
        group["corner_positions"] = np.array([panel.origin_m for panel in detector.panels])
        group["basis_vectors"] = np.array([(panel.slow_m, panel.fast_m) for panel in detector.panels])
