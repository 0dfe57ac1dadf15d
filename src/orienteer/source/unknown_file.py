"""The error for a file without patterns: says what it is instead, or what it contains."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

import h5py

from orienteer.compute.reading import is_hdf5
from orienteer.compute.words import counted
from orienteer.errors import FileError, OrienteerError

_HDF5_ENDINGS = (".h5", ".hdf5", ".cxi")
# In an unknown HDF5 file: how many data sets the error names, and how many objects are looked at.
_N_NAMED, _N_LOOKED_AT = 3, 1000


def unknown_file(path: Path, head: bytes, formats: Mapping[str, tuple[str, ...]]) -> FileError:
    """The error for an intact file that no reader of patterns recognises.

    head : its first bytes.
    formats : the endings of every format of patterns, by its name.
    """
    if instead := _instead(path):
        return FileError(path, "holds no patterns.", instead)
    known = (
        f"Orienteer reads patterns ({', '.join(formats)}), volumes (MRC, HDF5), "
        "geometries (CrystFEL, Dragonfly) and structures (PDB, mmCIF)."
    )
    what = _contents(path) if is_hdf5(head) else _misnamed(path, head, formats)
    return FileError(path, "holds nothing that Orienteer knows.", f"{what} {known}".strip())


def _instead(path: Path) -> str:
    """Which other kind of file it is that Orienteer reads, and where to give it; empty if none."""
    from orienteer.detector.opening import recognise_detector
    from orienteer.particle.structure_file import recognise_structure
    from orienteer.volume.opening import recognise_volume

    with suppress(OrienteerError):
        return f"It looks like a detector ({recognise_detector(path)}): give it with --geometry (geometry=)."
    with suppress(OrienteerError):
        return f"It looks like a volume ({recognise_volume(path)}): open it with orienteer.open_volume()."
    with suppress(OrienteerError):
        return f"It looks like a structure ({recognise_structure(path)}): give it to orienteer simulate."
    return ""


def _misnamed(path: Path, head: bytes, formats: Mapping[str, tuple[str, ...]]) -> str:
    """A sentence if the name promises a format that the content does not have, else empty."""
    name = path.name.lower()
    promised = ["HDF5"] if name.endswith(_HDF5_ENDINGS) else []
    promised += [format for format, endings in formats.items() if name.endswith(endings)]
    if not promised:
        return ""
    with suppress(UnicodeDecodeError):
        if "".join(head.decode("ascii").split()).isprintable():
            return f"By its name it should be {promised[0]}, but it is text."
    return f"By its name it should be {promised[0]}, which it is not."


def _contents(path: Path) -> str:
    """The largest data sets of an HDF5 file, and a way to read frames among them."""
    from orienteer.compute.hdf5_reading import open_hdf5

    found: list[tuple[int, str]] = []
    looked_at = count(1)

    def look(name: str, one: h5py.Group | h5py.Dataset) -> bool | None:
        if isinstance(one, h5py.Dataset):
            shape = " x ".join(map(str, one.shape or ())) or "single"
            kind = "text" if h5py.check_string_dtype(one.dtype) else one.dtype
            found.append((one.size or 0, f"{name} ({shape} {kind})"))
        return next(looked_at) >= _N_LOOKED_AT or None

    with suppress(FileError), open_hdf5(path) as file:
        file.visititems(look)
    found.sort(key=lambda one: -one[0])
    if not found:
        return "It is HDF5 without any data set."
    more = len(found) - _N_NAMED
    others = f" and {counted(more, 'other')}" if more > 0 else ""
    named = ", ".join(words for _, words in found[:_N_NAMED])
    return f"It is HDF5 with {named}{others}: if these are frames, copy them to a NumPy file."
