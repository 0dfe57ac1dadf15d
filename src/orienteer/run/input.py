"""Hashes of the data and the detector that a run was made from, to notice if it is resumed with others.

Small files are hashed whole; of large ones, only their size and evenly spaced blocks, which takes seconds for
a terabyte, and in which any other data set differs.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from orienteer.compute.arrays import to_numpy
from orienteer.compute.plain_json import plain
from orienteer.compute.reading import reading
from orienteer.detector.detector import Detector
from orienteer.detector.resolution import refuse_no_detail
from orienteer.errors import OrienteerError
from orienteer.settings.section import Section
from orienteer.source.base import Source
from orienteer.source.left_out import WithoutEvents
from orienteer.source.wavelength import WAVELENGTH, wavelengths_in

_BLOCK_BYTES = 1 << 20
_N_BLOCKS = 256
_N_FRAMES = 32


def describe_input(source: Source) -> dict[str, Any]:
    """The facts of a source that must not change during a run, and its path, which may."""
    if source.n_frames is None:
        raise OrienteerError(
            "a run needs data of known length, but this source has no end.",
            "Write its frames to a file first.",
        )
    return {
        "path": None if source.path is None else os.path.abspath(source.path),
        "format": source.format,
        "frames": source.n_frames,
        "frame_shape": list(source.frame_shape),
        # A live run is a folder; its files are merged now and then, while its frames stay the same.
        "data": hash_file(source.path) if source.path and source.path.is_file() else _hash_frames(source),
        "detector": None if source.detector is None else hash_detector(source.detector),
        "polarisation": source.polarisation,
        "wavelength_A": describe_wavelength(source),
        "wavelengths": used_wavelength(source),
        # As texts, because many programs read whole numbers exactly only up to 2^53.
        **({"left_out": source.left_out.astype(str).tolist()} if isinstance(source, WithoutEvents) else {}),
    }


def describe_wavelength(source: Source) -> float | str | None:
    """The wavelength of all events in A; a hash if they differ, None if it is not known."""
    if WAVELENGTH not in source.column_names or not source.n_frames:
        return None
    wavelengths = np.asarray(source.read_columns([WAVELENGTH])[WAVELENGTH], np.float64)
    is_one = bool((wavelengths == wavelengths[0]).all())
    return float(wavelengths[0]) if is_one else _hash(wavelengths.tobytes())


def used_wavelength(source: Source) -> dict[str, Any]:
    """The one wavelength at which all frames are taken, and those of the frames; empty if it is not known."""
    found = wavelengths_in(source)
    if found.usual_A is None:
        return {}
    return {
        "used_A": found.usual_A,
        "mean_A": float(found.known.mean()),
        "range_A": [float(found.known.min()), float(found.known.max())],
        "frames_without": found.n_unknown,
    }


def refuse_wrong_scale(source: Source) -> None:
    """Refuse data whose wavelength no X-rays have, or whose geometry cannot resolve any detail."""
    found = wavelengths_in(source).checked()
    if source.detector is not None and found.usual_A is not None:
        refuse_no_detail(source.detector, float(found.known.min()))


_NAMES = {
    "format": "the format of the data",
    "frames": "the number of frames",
    "frame_shape": "the shape of a frame",
    "data": "the content of the data",
    "detector": "the detector (geometry or mask)",
    "polarisation": "the polarisation",
    "wavelength_A": "the wavelength",
    "left_out": "the events that are excluded",
}


def input_differences(stored: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """The facts that differ now, in words; a different path does not count."""
    found = []
    for key, name in _NAMES.items():
        old, new = stored.get(key), plain(given.get(key))
        if old != new:
            is_hash = key in ("data", "detector", "left_out") or isinstance(old, str) or isinstance(new, str)
            found.append(name if is_hash else f"{name} ({new} instead of {old})")
    # If anything else differs, such as the number of frames, the content does as well: do not name it again.
    return [name for name in found if name != _NAMES["data"] or len(found) == 1]


def hash_named_files(section: Section) -> dict[str, str]:
    """The hash of every file that a setting names; such settings end in ``_file``."""
    named = {name: value for name, value in section if name.endswith("_file") and value}
    return {name: hash_file(Path(value)) for name, value in named.items()}


def file_differences(stored: dict[str, str], given: dict[str, str]) -> list[str]:
    """The files whose content differs now, in words; changed names are noticed as changed settings."""
    return [f"the content of the {name}" for name in stored if stored[name] != given.get(name, stored[name])]


def hash_file(path: Path) -> str:
    """The hash of a file: of the whole up to 256 MiB, else of its size and 256 blocks of 1 MiB."""
    with reading(path), path.open("rb") as file:
        n_bytes = os.fstat(file.fileno()).st_size
        content = hashlib.blake2b(f"{n_bytes}".encode(), digest_size=20)
        n_blocks = min(_N_BLOCKS, -(-n_bytes // _BLOCK_BYTES))
        last = max(0, n_bytes - _BLOCK_BYTES)
        for block in range(n_blocks):
            is_whole = n_bytes <= _N_BLOCKS * _BLOCK_BYTES
            file.seek(block * _BLOCK_BYTES if is_whole else last * block // (n_blocks - 1))
            content.update(file.read(_BLOCK_BYTES))
    return content.hexdigest()


def hash_detector(detector: Detector) -> str:
    """The hash of what a reconstruction uses of a detector: positions, solid angles, mask and efficiency."""
    arrays = [detector.positions_m, detector.solid_angle_sr, detector.mask]
    arrays += [] if detector.efficiency is None else [detector.efficiency]
    return _hash(*(np.ascontiguousarray(to_numpy(array)).tobytes() for array in arrays))


def _hash_frames(source: Source) -> str:
    """The hash of data that have no file: of some frames, all event ids and the metadata."""
    n_frames = source.n_frames or 0
    chosen = np.unique(np.linspace(0, max(0, n_frames - 1), _N_FRAMES).astype(np.int64))[:n_frames]
    frames = to_numpy(source.read(chosen).dense())
    metadata = json.dumps(plain(dict(source.metadata)), sort_keys=True, default=str)
    event_ids = source.event_ids().tobytes()
    return _hash(
        metadata.encode(), event_ids, frames.dtype.str.encode(), np.ascontiguousarray(frames).tobytes()
    )


def _hash(*parts: bytes) -> str:
    content = hashlib.blake2b(digest_size=20)
    for part in parts:
        content.update(f"{len(part)} ".encode())
        content.update(part)
    return content.hexdigest()
