"""Opening a geometry file of any format that we know, recognised by its content and never by its name."""

import os
from pathlib import Path

from orienteer.detector.detector import Detector
from orienteer.errors import FileError

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_KNOWN = (
    "Known are CrystFEL .geom, Dragonfly detectors (.dat, .h5), SpiniFEL HDF5 and Orienteer files with a "
    "detector."
)


def open_detector(
    path: str | os.PathLike[str],
    wavelength_A: float | None = None,
    distance_m: float | None = None,
    pixel_size_m: float | None = None,
) -> Detector:
    """The detector that a file describes.

    wavelength_A : only for SpiniFEL files on a flat Ewald sphere, where it cannot be derived.
    distance_m : for a ``.geom`` whose ``clen`` is a place in the data files, and for SpiniFEL files; it
        overrides what the file says.
    pixel_size_m : for Dragonfly detectors, which do not store it (only directions matter there).
    """
    path = Path(path)
    head = read_head(path)
    if is_hdf5(path, head):
        return _open_hdf5(path, wavelength_A, distance_m, pixel_size_m)
    if b"\0" in head:
        raise FileError(path, "is a binary file of no known geometry format.", _KNOWN)
    try:
        text = head.decode("utf-8", errors="ignore" if len(head) == HEAD_BYTES else "strict")
    except UnicodeDecodeError as error:
        raise FileError(path, "is neither text nor HDF5.", _KNOWN) from error
    from orienteer.detector.dragonfly import looks_like_dragonfly_text, read_dragonfly_text

    if looks_like_dragonfly_text(text):
        return read_dragonfly_text(path, pixel_size_m=pixel_size_m)
    if any("=" in line.partition(";")[0] for line in text.splitlines()):
        from orienteer.detector.crystfel_geom import read_crystfel_geom

        return read_crystfel_geom(path, distance_m=distance_m)
    raise FileError(path, "is a text of no known geometry format.", _KNOWN)


HEAD_BYTES = 1 << 16


def read_head(path: Path) -> bytes:
    """The first 64 KiB of a regular file; anything else is a FileError that says what it is."""
    try:
        # A named pipe would wait for ever and a device has no end, so only regular files are opened.
        if path.is_dir():
            raise FileError(path, "is a directory, not a geometry file.", "Give the path of a file.")
        if path.exists() and not path.is_file():
            raise FileError(path, "is not a regular file.")
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError as error:
        raise FileError(path, "does not exist.", "Check the path.") from error
    except (OSError, ValueError) as error:
        raise FileError(path, f"cannot be opened ({getattr(error, 'strerror', None) or error}).") from error
    if not head:
        raise FileError(path, "is empty.")
    return head


def is_hdf5(path: Path, head: bytes) -> bool:
    """Whether the HDF5 signature stands at the start or behind a user block of 512, 1024, ... bytes."""
    offsets = [0, *(1 << power for power in range(9, 16))]
    return any(head[offset : offset + len(HDF5_SIGNATURE)] == HDF5_SIGNATURE for offset in offsets)


def _open_hdf5(
    path: Path, wavelength_A: float | None, distance_m: float | None, pixel_size_m: float | None
) -> Detector:
    import h5py

    from orienteer.detector.checked_reading import reading
    from orienteer.detector.dragonfly import holds_dragonfly_detector, read_dragonfly_group
    from orienteer.detector.hdf5 import holds_detector, read_detector
    from orienteer.detector.spinifel import holds_spinifel_detector, read_spinifel_group

    with reading(path), h5py.File(path, "r") as file:
        # Orienteer's data files keep the detector in a group of the root.
        for group in (file, *(file.get(name, getlink=False) for name in file)):
            if holds_detector(group):
                return read_detector(group)
        if holds_dragonfly_detector(file):
            return read_dragonfly_group(file, pixel_size_m=pixel_size_m)
        if holds_spinifel_detector(file):
            return read_spinifel_group(file, wavelength_A=wavelength_A, distance_m=distance_m)
    raise FileError(path, "is an HDF5 file that carries no detector.", _KNOWN)
