"""Facts from the data of a run: photons per frame, mean frame, and whether the data are unchanged."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.hdf5 import stored_detector
from orienteer.errors import FileError
from orienteer.run.input import describe_wavelength, hash_detector, hash_file
from orienteer.source.opening import open as open_source
from orienteer.source.summary import blocks_to_look_at, summarise

N_FRAMES = 2000  # enough for a mean to 1 % and a histogram
_MOST_PIXELS = 200_000_000  # of all frames that are read: of large frames, fewer are read
_BLOCK_PIXELS = 20_000_000
TRUTH = "truth_"


@dataclass(frozen=True, eq=False)
class Frames:
    """What a sample of the frames shows.

    photons : (M,) photons of each frame of the sample, on unmasked pixels.
    mean : (P,) mean of these frames, in photons per pixel.
    simulated : whether the data hold true orientations, which only a simulation knows.
    needs_geometry, needs_wavelength : whether the run was given them apart from the file.
    """

    photons: NDArray[np.float64]
    mean: NDArray[np.float64]
    simulated: bool
    needs_geometry: bool
    needs_wavelength: bool


def look_at_frames(described: Mapping[str, Any], detector_file: Path) -> Frames | None:
    """Open the data of a run at their recorded path; None if they came from no file.

    Data that have changed since are refused, because they no longer describe the run.

    detector_file : the detector as the run used it, mask included.
    """
    given = described.get("input")
    path = given.get("path") if isinstance(given, dict) else None
    if not isinstance(path, str) or not isinstance(given, dict):
        return None
    if hash_file(Path(path)) != given.get("data"):
        raise FileError(
            path, "has changed since the run was begun.", "Restore the data that the run was begun with."
        )
    with warnings.catch_warnings():  # the run printed these warnings when it was begun
        warnings.simplefilter("ignore")
        source = open_source(path)
        own = None if source.detector is None else hash_detector(source.detector)
        needs_geometry = given.get("detector") not in (None, own)
        if (detector := stored_detector(detector_file)) is not None:
            source = source.with_detector(detector)
    n_frames = min(N_FRAMES, max(1, _MOST_PIXELS // source.n_pixels))
    blocks = blocks_to_look_at(len(source), n_frames, max(1, min(256, _BLOCK_PIXELS // source.n_pixels)))
    summary = summarise(source, (source.read(block) for block in blocks))
    wavelength = describe_wavelength(source)
    return Frames(
        photons=summary.photons,
        mean=summary.total / max(1, len(summary.photons)),
        simulated=any(name.startswith(TRUTH) for name in source.column_names),
        needs_geometry=needs_geometry,
        needs_wavelength=given.get("wavelength_A") not in (None, wavelength),
    )
