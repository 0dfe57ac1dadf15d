"""SpiniFEL's HDF5 files: intensities, scattering vectors of the pixels, and the truth of a simulation.

The wavelength follows from the curvature of ``pixel_position_reciprocal``: the vectors lie on the Ewald
sphere.  If they are flat, ``open_file`` needs it as an argument; without it the source has no detector.

Truth becomes columns: ``truth_orientation`` (N, 4), or ``truth_orientations`` (N, M, 4) if a shot has M
particles; ``truth_class``; ``truth_fluence``, divided by its mean, which the metadata keep as
``mean_fluence``; ``truth_beam_offset_pixels``.  The writer adds what SpiniFEL ignores: ``event_id`` and the
attributes ``wavelength_A`` and, of the fluences, ``mean``.  If a file has no ids, its frames are numbered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_file import open_hdf5_for_reading
from orienteer.compute.hdf5_reading import get_dataset, read_array, read_numbers
from orienteer.compute.hdf5_writing import NewHdf5File
from orienteer.detector.panel import LARGEST_N_PIXELS
from orienteer.detector.spinifel import spinifel_geometry, spinifel_wavelength_A, write_spinifel_group
from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.source.base import Source
from orienteer.source.file_source import FileSource
from orienteer.source.hdf5_growing import append_columns, append_rows, create_column, create_rows
from orienteer.source.hdf5_writer import Hdf5PatternWriter
from orienteer.source.patterns import Patterns
from orienteer.source.wavelength import WAVELENGTH, usual_wavelength

FORMAT_NAME = "SpiniFEL"
_WAVELENGTHS = "wavelengths that differ from shot to shot"
_ROWS_AT_A_TIME = 100_000
EXTENSIONS = (".spinifel.h5",)
# Dataset -> the column that it becomes; SpiniFEL's scripts spell one of them in two ways.
TRUTH = {
    "orientations": "truth_orientation",
    "conformation": "truth_class",
    "conformations": "truth_class",
    "fluences": "truth_fluence",
    "beam_offsets": "truth_beam_offset_pixels",
}
SEVERAL = "truth_orientations"
MEAN_FLUENCE = "mean_fluence"


def recognise(path: Path, head: bytes, hdf5: Any | None) -> bool:
    """Whether an HDF5 file has SpiniFEL's intensities and pixel positions."""
    return hdf5 is not None and "intensities" in hdf5 and "pixel_position_reciprocal" in hdf5


def open_file(path: Path, wavelength_A: float | None = None) -> SpinifelSource:
    """The frames of a SpiniFEL file; the wavelength is needed only if it cannot be derived."""
    return SpinifelSource(path, wavelength_A)


class SpinifelSource(FileSource):
    """Frames of a SpiniFEL file with their geometry and truth."""

    format = FORMAT_NAME

    def __init__(self, path: Path, wavelength_A: float | None = None) -> None:
        super().__init__(path)
        self._file = open_hdf5_for_reading(path)
        try:
            self._intensities = get_dataset(self._file, "intensities", "iuf")
            self._find_frames(path)
            self._columns = self._find_truth(path)
            self._event_id = None
            if "event_id" in self._file:
                self._event_id = get_dataset(self._file, "event_id", "u", (self.n_frames,))
            self.wavelength_A = self._find_geometry(wavelength_A)
        except BaseException:
            self._file.close()
            raise
        wavelength = () if self.wavelength_A is None else ("wavelength_A",)
        self.stored_columns = (*self._columns, *wavelength)

    def _find_frames(self, path: Path) -> None:
        shape = self._intensities.shape
        if len(shape) < 3 or min(shape[1:]) < 1 or np.prod(shape[1:], dtype=object) > LARGEST_N_PIXELS:
            raise FileError(
                path,
                f"has intensities of shape {shape}; expected (frames, panels, slow, fast).",
                "Save them in this shape.",
            )
        self.n_frames, self.frame_shape = int(shape[0]), tuple(int(n) for n in shape[1:])
        self.bytes_per_value = self._intensities.dtype.itemsize

    def _find_truth(self, path: Path) -> dict[str, Any]:
        found = {}
        for name, column in TRUTH.items():
            if name not in self._file:
                continue
            dataset = get_dataset(self._file, name, "iuf")
            if dataset.ndim == 0 or len(dataset) != self.n_frames:
                raise FileError(path, f"'{name}' has shape {dataset.shape} for {self.n_frames} frames.")
            if name == "orientations":
                if dataset.ndim not in (2, 3) or dataset.shape[-1] != 4 or dataset.shape[1] < 1:
                    raise FileError(
                        path, f"'{name}' has shape {dataset.shape}; expected quaternions (.., 4)."
                    )
                column = SEVERAL if dataset.ndim == 3 and dataset.shape[1] > 1 else column
            found[column] = dataset
        if "truth_fluence" in found and self.n_frames:
            self.metadata[MEAN_FLUENCE] = self._mean_fluence(path, found["truth_fluence"])
        return found

    def _mean_fluence(self, path: Path, fluences: h5py.Dataset) -> float:
        mean = read_numbers(fluences, "mean") if "mean" in fluences.attrs else read_array(fluences).mean()
        if not 0 < mean < np.inf:
            raise FileError(path, f"has fluences of mean {mean}, which is not positive and finite.")
        return float(mean)

    def apply_given(self) -> None:
        """Also make a detector of flat vectors if a wavelength was given."""
        if self.wavelength_A is None and self.given.wavelength_A is not None:
            self._find_geometry(self.given.wavelength_A)
        super().apply_given()

    def _find_geometry(self, wavelength_A: float | None) -> float | None:
        """Attach the detector; returns the wavelength in A, or None if it is unknown."""
        if wavelength_A is None and "wavelength_A" in self._file.attrs:
            wavelength_A = float(read_numbers(self._file, "wavelength_A"))
        elif wavelength_A is None:
            wavelength_A = spinifel_wavelength_A(self._file)
        if wavelength_A is None:
            return None
        geometry = spinifel_geometry(self._file, wavelength_A=wavelength_A)
        detector, self.polarisation = geometry.detector, geometry.polarisation
        if detector.n_pixels != self.n_pixels:
            raise GeometryMismatch(
                f"frames have {self.n_pixels} pixels, but pixel_position_reciprocal has {detector.n_pixels}.",
                "Give the detector of these frames with --geometry.",
            )
        self.attach(detector)
        return wavelength_A

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_frames(self, rows: slice) -> Any:
        return read_array(self._intensities, rows).reshape(rows.stop - rows.start, self.n_pixels)

    def _read_event_ids(self, rows: slice) -> Any:
        return None if self._event_id is None else read_array(self._event_id, rows)

    def _read_columns(self, names: Sequence[str], rows: slice) -> dict[str, Any]:
        columns = {name: read_array(self._columns[name], rows) for name in names if name in self._columns}
        if "truth_orientation" in columns:
            columns["truth_orientation"] = columns["truth_orientation"].reshape(-1, 4)
        if "truth_fluence" in columns:
            columns["truth_fluence"] = columns["truth_fluence"] / self.metadata.get(MEAN_FLUENCE, 1.0)
        if "wavelength_A" in names:
            columns["wavelength_A"] = np.full(rows.stop - rows.start, self.wavelength_A)
        return columns


class Writer(Hdf5PatternWriter):
    """Writes SpiniFEL's HDF5.  It needs the detector and one wavelength for the whole file.

    The wavelength is ``metadata["wavelength_A"]`` or the median of the first batch's column ``wavelength_A``.
    """

    format: ClassVar[str] = FORMAT_NAME
    lost_on_write: ClassVar[tuple[str, ...]] = (
        "columns",
        _WAVELENGTHS,
        "panel names and groups",
        "metadata",
    )

    keeps_frame_mask: ClassVar[bool] = False

    def _start(self, temporary: Path, first: Patterns) -> None:
        if self.detector is None:
            raise OrienteerError(
                f"{self.path}: a SpiniFEL file needs a detector, and these frames have none.",
                "Give --geometry.",
            )
        wavelength_A = _wavelength_A(self.metadata, first)
        if wavelength_A is None:
            raise OrienteerError(
                f"{self.path}: a SpiniFEL file needs the wavelength, and these frames have none.",
                "Give --wavelength-A (a column wavelength_A, or metadata={'wavelength_A': ...}).",
            )
        self._file = NewHdf5File(temporary)
        write_spinifel_group(self._file, self.detector, wavelength_A, self.polarisation or "x")
        self._file.attrs["wavelength_A"] = wavelength_A
        shape = self._file["solid_angle"].shape
        dtype = np.dtype(np.int32) if first.is_sparse else first.dense().dtype
        create_rows(self._file, "intensities", dtype, shape, rows_per_chunk=1)
        create_rows(self._file, "event_id", np.uint64)
        self._truth = self._file.create_group("_truth")
        for name, column in self._truth_of(first).items():
            create_column(self._truth, name, column)
        if "fluences" in self._truth:
            self._truth["fluences"].attrs["mean"] = self._mean_fluence

    def _write(self, patterns: Patterns) -> None:
        frames = patterns.dense()
        intensities = self._file["intensities"]
        append_rows(intensities, frames.reshape(len(patterns), *intensities.shape[1:]))
        append_rows(self._file["event_id"], patterns.event_id)
        append_columns(self._truth, self._truth_of(patterns))

    @property
    def _mean_fluence(self) -> float:
        return float(self.metadata.get(MEAN_FLUENCE, 1.0))

    def _truth_of(self, patterns: Patterns) -> dict[str, NDArray[Any]]:
        """The columns that SpiniFEL keeps, by its own names; orientations are (N, M, 4)."""
        columns = patterns.columns
        # Of the two names of the class in TRUTH, the first is SpiniFEL's own.
        names = {column: name for name, column in reversed(TRUTH.items())}
        kept = {name: columns[column] for column, name in names.items() if column in columns}
        if "fluences" in kept:
            kept["fluences"] = kept["fluences"] * self._mean_fluence
        if SEVERAL in columns:
            kept["orientations"] = columns[SEVERAL]
        elif "orientations" in kept:
            kept["orientations"] = kept["orientations"][:, None, :]
        return kept

    def losses(self, source: Source) -> list[str]:
        """What this source has that the format cannot store, in words for the user."""
        return [
            words for words in super().losses(source) if words != _WAVELENGTHS or _wavelengths_differ(source)
        ]

    def _lost_columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        kept = {*TRUTH.values(), SEVERAL, WAVELENGTH} - ({"truth_orientation"} if SEVERAL in names else set())
        return tuple(name for name in names if name not in kept)

    def _finish(self) -> None:
        for name in list(self._truth):
            self._file.move(f"_truth/{name}", name)
        del self._file["_truth"]
        self._file.attrs["n_images"] = self.n_written
        self._file.attrs["n_pixels_per_image"] = int(np.prod(self._file["intensities"].shape[1:]))
        super()._finish()


def _wavelength_A(metadata: Mapping[str, Any], first: Patterns) -> float | None:
    if WAVELENGTH in metadata:
        return float(metadata[WAVELENGTH])
    return usual_wavelength(first.columns.get(WAVELENGTH))


def _wavelengths_differ(source: Source) -> bool:
    """Whether two shots have different wavelengths; the column is read a part at a time."""
    if WAVELENGTH not in source.column_names:
        return False
    first: float | None = None
    for start in range(0, len(source), _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        values = source.read_columns([WAVELENGTH], rows)[WAVELENGTH]
        first = float(values[0]) if first is None else first
        if (values != first).any():
            return True
    return False
