"""Open a geometry file of any known format, recognised by its content and never by its name."""

import os
import re
from pathlib import Path
from typing import Any, Literal, TypeAlias

from orienteer.compute.reading import is_hdf5, read_head
from orienteer.detector.beam import HC_EV_A
from orienteer.detector.detector import Detector
from orienteer.detector.geometry_file import GeometryFile
from orienteer.errors import FileError

Form: TypeAlias = Literal["Orienteer", "CrystFEL", "Dragonfly text", "Dragonfly HDF5", "SpiniFEL"]
_WHAT = "geometry file"
_KNOWN = (
    "Known formats: CrystFEL .geom, Dragonfly detectors (.dat, .h5), SpiniFEL HDF5, and Orienteer files "
    "with a detector."
)
# Matches lines that occur only in geometry files; a line with "=" alone could be any text.
_GEOM_LINE = re.compile(
    r"^\s*(?:[^;=/\s]+\s*/\s*(?:(?:min|max)_(?:fs|ss|x|y)|corner_[xy]|fs|ss|dim\d|res|coffset|data)"
    r"|clen|res|coffset|adu_per_photon|adu_per_eV|dim\d|rigid_group_\w+)\s*=",
    re.MULTILINE,
)


def open_detector(
    path: str | os.PathLike[str],
    wavelength_A: float | None = None,
    distance_m: float | None = None,
    pixel_size_m: float | None = None,
) -> Detector:
    """The detector that a file describes; arguments as for :func:`open_geometry`.

    >>> lines = ["clen = 0.1", "res = 1000", "p0/min_fs = 0", "p0/max_fs = 7", "p0/min_ss = 0"]
    >>> lines += ["p0/max_ss = 7", "p0/corner_x = -4", "p0/corner_y = -4", "p0/fs = x", "p0/ss = y"]
    >>> n_characters = Path("detector.geom").write_text("\\n".join(lines))
    >>> open_detector("detector.geom")
    <Detector 'detector': 1 panel, frame (8, 8), 64 of 64 pixels used, 0.1 m from the sample>
    """
    return open_geometry(path, wavelength_A, distance_m, pixel_size_m).detector


def open_geometry(
    path: str | os.PathLike[str],
    wavelength_A: float | None = None,
    distance_m: float | None = None,
    pixel_size_m: float | None = None,
) -> GeometryFile:
    """The detector that a file describes, and what else the file states.

    wavelength_A : only for SpiniFEL files on a flat Ewald sphere, where it cannot be derived.
    distance_m : for a ``.geom`` whose ``clen`` is a location in the data files, and for SpiniFEL files; it
        overrides what the file states.
    pixel_size_m : for Dragonfly detectors, which do not store it (only directions matter there).
    """
    path = Path(path)
    form = recognise_detector(path)
    if form == "CrystFEL":
        from orienteer.detector.crystfel_geom import read_crystfel

        crystfel = read_crystfel(path, distance_m=distance_m)
        energy_eV = crystfel.photon_energy_eV
        return GeometryFile(
            crystfel.detector,
            wavelength_A=None if energy_eV is None else HC_EV_A / energy_eV,
            masks_in_data=tuple(mask for mask in crystfel.masks if mask.file is None),
            adu_per_photon=crystfel.adu_per_photon,
        )
    if form == "Dragonfly text":
        from orienteer.detector.dragonfly import dragonfly_text_geometry

        return dragonfly_text_geometry(path, pixel_size_m=pixel_size_m)
    from orienteer.compute.hdf5_reading import open_hdf5, read_text
    from orienteer.detector.dragonfly import dragonfly_group_geometry
    from orienteer.detector.hdf5 import read_detector
    from orienteer.detector.polarisation import check_polarisation
    from orienteer.detector.spinifel import spinifel_geometry

    with open_hdf5(path, _WHAT) as file:
        if form == "Dragonfly HDF5":
            return dragonfly_group_geometry(file, pixel_size_m=pixel_size_m)
        if form == "SpiniFEL":
            return spinifel_geometry(file, wavelength_A=wavelength_A, distance_m=distance_m)
        kind = read_text(file, "polarisation")
        return GeometryFile(
            read_detector(_own_group(file)), polarisation=check_polarisation(kind) if kind else None
        )


def recognise_detector(path: str | os.PathLike[str]) -> Form:
    """The format of a geometry file, from its content; a FileError if it holds no detector."""
    path = Path(path)
    head = read_head(path, _WHAT)
    if is_hdf5(head):
        return _recognise_hdf5(path)
    if b"\0" in head:
        raise FileError(path, "is a binary file of no known geometry format.", _KNOWN)
    from orienteer.detector.dragonfly import looks_like_dragonfly_text

    # Panel names may be in any code page, but the directives are ASCII.
    text = head.decode("ascii", errors="replace")
    if looks_like_dragonfly_text(text):
        return "Dragonfly text"
    if _GEOM_LINE.search(text):
        return "CrystFEL"
    raise FileError(path, "is a text file of no known geometry format.", _KNOWN)


def _recognise_hdf5(path: Path) -> Form:
    from orienteer.compute.hdf5_reading import open_hdf5
    from orienteer.detector.dragonfly import holds_dragonfly_detector
    from orienteer.detector.spinifel import holds_spinifel_detector

    with open_hdf5(path, _WHAT) as file:
        if _own_group(file) is not None:
            return "Orienteer"
        if holds_dragonfly_detector(file):
            return "Dragonfly HDF5"
        if holds_spinifel_detector(file):
            return "SpiniFEL"
    raise FileError(path, "is an HDF5 file that holds no detector.", _KNOWN)


def _own_group(file: Any) -> Any:
    """The group with a detector in Orienteer's layout: the root, or in data files a group in the root."""
    from orienteer.detector.hdf5 import holds_detector

    for group in (file, *(file.get(name) for name in file)):
        if holds_detector(group):
            return group
    return None
