"""Where CXI files keep things: frames, columns, event ids and the wavelength, as facilities write them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_reading import check_stored, get_dataset, read_array
from orienteer.detector.beam import HC_EV_A
from orienteer.errors import FileError
from orienteer.source.hdf5_varying import read_texts
from orienteer.source.patterns import checked_event_ids

DETECTOR, SOURCE = "entry_1/instrument_1/detector_1", "entry_1/instrument_1/source_1"
COLUMNS = "entry_1/columns"
# Where frames may be, the best place first; soft links to one another are common.
FRAME_PATHS = (
    f"{DETECTOR}/data",
    f"{DETECTOR}/detector_corrected/data",
    "entry_1/data_1/data",
    "entry_1/image_1/data",
    "entry_1/data_1",
    "entry_1/image_1",
    f"{DETECTOR}/data_1",
)
# Groups whose datasets with one row per frame become columns, and the datasets in them that do not.
COLUMN_GROUPS = ("entry_1", DETECTOR, SOURCE, "entry_1/result_1", "entry_1/sizing", "LCLS")
NOT_COLUMNS = {
    "data", "data_1", "mask", "good_pixels", "xyz_map", "corner_positions", "corner_position",
    "basis_vectors", "distance", "x_pixel_size", "y_pixel_size", "pixel_size", "pixel_area",
    "background", "energy", "photon_energy", "photon_energy_eV", "photon_wavelength", "photon_wavelength_A",
    "wavelength", "event_id",
}  # fmt: skip
# Datasets that are renamed so that the name of the column has the unit.
UNITS = {"pulse_energy": "pulse_energy_J"}
# Longer rows are lists (of peaks, say), not columns.
LONGEST_ROW = 64
JOULE_PER_EV = 1.602176634e-19

Rows = Callable[[slice], NDArray[Any]]


def find_frames(path: Path, file: h5py.File, rows: int | None = None) -> h5py.Dataset:
    """The dataset of frames: (frames, slow, fast), (frames, panels, slow, fast) or one image (slow, fast).

    rows : how many must be stored, for a file that grows; by default all.
    """
    for place in FRAME_PATHS:
        found = _get(file, place)
        if isinstance(found, h5py.Dataset):
            dataset = get_dataset(file, place, "iuf", rows=rows, foreign=True)
            if dataset.ndim < 2 or 0 in dataset.shape[-2:]:
                raise FileError(
                    path,
                    f"'/{place}' has shape {dataset.shape}, which is no stack of frames.",
                    "Give a file with frames of two axes or more.",
                )
            check_virtual(path, dataset)
            return dataset
    hint = f"Frames are looked for in {', '.join(FRAME_PATHS[:4])}."
    raise FileError(path, "is a CXI file without frames.", hint)


def check_virtual(path: Path, dataset: h5py.Dataset) -> None:
    """Refuse a virtual dataset whose parts are missing: HDF5 would silently fill them with zeros."""
    if not dataset.is_virtual:
        return
    for part in dataset.virtual_sources():
        if (
            part.file_name != "."
            and "%b" not in part.file_name
            and not (path.parent / part.file_name).exists()
        ):
            raise FileError(
                path,
                f"takes frames from '{part.file_name}', which does not exist.",
                "Copy that file to the folder of this one.",
            )


def rows_of_growing(file: h5py.File) -> int | None:
    """Complete frames of a growing file: rows of its shortest table that can grow; None if none can."""
    groups = [*COLUMN_GROUPS, COLUMNS, "entry_1/data_1", "entry_1/image_1", f"{DETECTOR}/detector_corrected"]
    tables = [dataset for group in groups for _, dataset in _datasets(_get(file, group))]
    return min((len(table) for table in tables if _can_grow(table)), default=None)


def has_rows(dataset: h5py.Dataset, n_frames: int) -> bool:
    """Whether there is one row per frame, or more in a table that grows ahead of the others."""
    if not dataset.shape:
        return False
    return len(dataset) == n_frames or (
        len(dataset) > n_frames and _can_grow(dataset) and is_growing(dataset)
    )


def is_growing(item: h5py.Group | h5py.Dataset) -> bool:
    """Whether a process is writing to the file, or was killed while writing (``compute/hdf5_file.py``)."""
    return bool(item.file.driver == "fileobj")


def rows_to_check(item: h5py.Group | h5py.Dataset, n_frames: int) -> int | None:
    """Rows that must be stored: ``n_frames`` if the file grows, all (None) if it is complete."""
    return n_frames if is_growing(item) else None


def find_columns(path: Path, file: h5py.File, n_frames: int) -> dict[str, h5py.Dataset]:
    """Datasets with one row per frame, by column name; if Orienteer's own group exists, only those in it."""
    own = _get(file, COLUMNS)
    if isinstance(own, h5py.Group):
        return {name: _own_column(path, own, name, n_frames) for name in own}
    found: dict[str, h5py.Dataset] = {}
    for group in COLUMN_GROUPS:
        for name, dataset in _datasets(_get(file, group)):
            if name not in NOT_COLUMNS and _is_column(dataset, n_frames):
                check_stored(dataset, rows_to_check(dataset, n_frames), foreign=True)
                found.setdefault(UNITS.get(name, name), dataset)
    return found


def _own_column(path: Path, group: h5py.Group, name: str, n_frames: int) -> h5py.Dataset:
    dataset = get_dataset(group, name, "biufcSO", rows=rows_to_check(group, n_frames), foreign=True)
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    if not has_rows(dataset, n_frames) or (
        dataset.dtype.kind in "SO" and not (is_text and dataset.ndim == 1)
    ):
        found = f"{dataset.dtype} of shape {dataset.shape}"
        raise FileError(path, f"has the column '{name}' as {found} for {n_frames} frames.")
    return dataset


def find_wavelength(file: h5py.File, n_frames: int) -> Rows | None:
    """The wavelength in A of each frame, from the first place in the file that has it; None if none has.

    CXI's ``energy`` is the photon energy in joule.  Some files hold eV there, which is recognised, and some
    the pulse energy, which is ignored.
    """
    places: tuple[tuple[str, Callable[[NDArray[Any]], NDArray[Any]]], ...] = (
        (f"{SOURCE}/photon_wavelength", _from_metres),
        (f"{SOURCE}/wavelength", _from_metres),
        (f"{SOURCE}/photon_energy", _from_energy),
        (f"{SOURCE}/energy", _from_energy),
        ("LCLS/photon_energy_eV", _from_energy),
        ("entry_1/photon_energy_eV", _from_energy),
        (f"{SOURCE}/photon_energy_eV", _from_energy),
    )
    for place, convert in places:
        dataset = _get(file, place)
        if not isinstance(dataset, h5py.Dataset) or dataset.dtype.kind not in "iuf" or dataset.shape is None:
            continue
        is_one = dataset.size == 1 and not _can_grow(dataset)
        check_stored(dataset, None if is_one else rows_to_check(dataset, n_frames), foreign=True)
        if is_one or (dataset.size == 1 and not is_growing(dataset)):
            one = convert(read_array(dataset).reshape(-1).astype(np.float64))
            if np.isfinite(one).all():
                return lambda rows, one=one: np.repeat(one, rows.stop - rows.start)  # type: ignore[misc]
        elif (
            dataset.ndim == 1
            and has_rows(dataset, n_frames)
            and np.isfinite(convert(read_array(dataset, slice(0, 1)))).all()
        ):
            return lambda rows, d=dataset, c=convert: c(read_array(d, rows))  # type: ignore[misc]
    return None


def find_event_ids(file: h5py.File, n_frames: int) -> Rows | None:
    """A stable 64-bit id of each shot; None if the file has nothing to make one from.

    The first of these that the file has is used: ``entry_1/event_id`` as it is; the train and the pulse (or
    memory cell) as trainId * 2^16 + pulseId; machine time as seconds * 2^32 + nanoseconds;
    ``experiment_identifier`` as it is if it is a whole number, else the first 8 bytes of the BLAKE2b hash of
    its text.
    """

    def per_frame(*places: str, kinds: str = "iu") -> h5py.Dataset | None:
        for place in places:
            dataset = _get(file, place)
            fits = (
                isinstance(dataset, h5py.Dataset)
                and dataset.ndim == 1
                and has_rows(dataset, n_frames)
                and dataset.dtype.kind in kinds
            )
            if fits:
                check_stored(dataset, rows_to_check(dataset, n_frames), foreign=True)
                return dataset
        return None

    own = per_frame("entry_1/event_id")
    if own is not None:
        return lambda rows: _whole(own, rows)
    train = per_frame("entry_1/trainId", f"{DETECTOR}/trainId", "instrument/trainID")
    names = ("pulseId", "cellId", "pulseID", "cellID")
    pulse = per_frame(*(f"{group}/{name}" for name in names for group in ("entry_1", DETECTOR)))
    if train is not None and pulse is not None:
        return lambda rows: (_whole(train, rows) << np.uint64(16)) + _whole(pulse, rows)
    second, nanosecond = per_frame("LCLS/machineTime"), per_frame("LCLS/machineTimeNanoSeconds")
    if second is not None and nanosecond is not None:
        return lambda rows: (_whole(second, rows) << np.uint64(32)) + _whole(nanosecond, rows)
    identifier = per_frame("entry_1/experiment_identifier", f"{DETECTOR}/experiment_identifier", kinds="iuSO")
    if identifier is not None and identifier.dtype.kind in "iu":
        return lambda rows: _whole(identifier, rows)
    if identifier is not None and h5py.check_string_dtype(identifier.dtype) is not None:
        return lambda rows: np.array([hash_text(text) for text in read_texts(identifier, rows)], np.uint64)
    return None


def hash_text(text: str) -> int:
    """A stable 64-bit number for a text; a text of digits gives that number if it is below 2^64.

    >>> hash_text("1234")
    1234
    """
    if text.isdecimal() and text.isascii() and int(text) < 2**64:
        return int(text)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _get(file: Any, place: str) -> Any:
    """The object at this place; None if there is none or the link is broken."""
    try:
        return file.get(place)
    except (KeyError, OSError, RuntimeError):
        return None


def _datasets(group: Any) -> Iterator[tuple[str, h5py.Dataset]]:
    if isinstance(group, h5py.Group):
        for name in group:
            dataset = _get(group, name)
            if isinstance(dataset, h5py.Dataset):
                yield name, dataset


def _can_grow(dataset: h5py.Dataset) -> bool:
    return bool(dataset.shape) and dataset.maxshape[0] is None


def _is_column(dataset: h5py.Dataset, n_frames: int) -> bool:
    shape = dataset.shape
    if not has_rows(dataset, n_frames) or len(shape) > 2 or dataset.dtype.fields is not None:
        return False
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    is_list = len(shape) == 2 and (is_text or shape[1] > LONGEST_ROW)
    return (dataset.dtype.kind in "biuf" or is_text) and not is_list


def _whole(dataset: h5py.Dataset, rows: slice) -> NDArray[np.uint64]:
    return checked_event_ids(read_array(dataset, rows))


def _from_metres(wavelength_m: NDArray[Any]) -> NDArray[np.float64]:
    """Wavelengths in A, from metres; what cannot be a wavelength of X-rays in metres becomes NaN."""
    return np.where((wavelength_m > 1e-12) & (wavelength_m < 1e-7), wavelength_m * 1e10, np.nan)


def _from_energy(energy: NDArray[Any]) -> NDArray[np.float64]:
    """Wavelengths in A, from joule or eV, 18 orders of magnitude apart; anything else becomes NaN."""
    joule = (energy > 1e-18) & (energy < 1e-13)
    electronvolt = (energy > 20) & (energy < 1e6)
    energy_eV = np.where(joule, energy / JOULE_PER_EV, np.where(electronvolt, energy, np.nan))
    return np.asarray(HC_EV_A / energy_eV)
